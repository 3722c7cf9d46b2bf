"""Questions and answers, and those who answer."""

from formal_llm.llms.doubles import AsyncFunctionLLM, FunctionLLM, RandomLLM, ScriptedLLM, WeightedLLM
from formal_llm.llms.llm import LLM, AsyncLLM, BatchLLM, Provider, ask, resolve
from formal_llm.llms.providers import PROVIDERS
from formal_llm.llms.question import Answer, Message, Option, Outlook, Prospect, Question, Term
from formal_llm.llms.recorded.cache import CachedLLM, CacheStats
from formal_llm.llms.recorded.transcript import RecordingLLM, ReplayLLM
from formal_llm.llms.usage import Prices, TokenUsage

__all__ = [
    "LLM", "PROVIDERS", "Answer", "AsyncFunctionLLM", "AsyncLLM", "BatchLLM", "CacheStats", "CachedLLM", "FunctionLLM",
    "Message", "Option", "Outlook", "Prices", "Prospect", "Provider", "Question", "RandomLLM", "RecordingLLM",
    "ReplayLLM", "ScriptedLLM", "Term", "TokenUsage", "WeightedLLM", "ask", "resolve",
]  # fmt: skip
