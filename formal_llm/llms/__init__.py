"""Questions and answers, and those who answer."""

from formal_llm.llms.doubles import AsyncFunctionLLM, FunctionLLM, RandomLLM, ScriptedLLM, WeightedLLM
from formal_llm.llms.llm import LLM, PROVIDERS, AsyncLLM, BatchLLM, ask, resolve
from formal_llm.llms.question import Answer, Message, Option, Outlook, Prices, Prospect, Question, Term, TokenUsage
from formal_llm.llms.recorded.cache import CachedLLM, CacheStats
from formal_llm.llms.recorded.transcript import RecordingLLM, ReplayLLM

__all__ = [
    "LLM", "PROVIDERS", "Answer", "AsyncFunctionLLM", "AsyncLLM", "BatchLLM", "CacheStats", "CachedLLM", "FunctionLLM",
    "Message", "Option", "Outlook", "Prices", "Prospect", "Question", "RandomLLM", "RecordingLLM", "ReplayLLM",
    "ScriptedLLM", "Term", "TokenUsage", "WeightedLLM", "ask", "resolve",
]  # fmt: skip
