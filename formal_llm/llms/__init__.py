"""Questions and answers, and the LLMs that answer."""

from typing import TYPE_CHECKING

from formal_llm.exports import export_lazily
from formal_llm.llms.providers import PROVIDERS

if TYPE_CHECKING:
    from formal_llm.llms.doubles import AsyncFunctionLLM, FunctionLLM, RandomLLM, ScriptedLLM, WeightedLLM
    from formal_llm.llms.hosted.models import HostedLLM
    from formal_llm.llms.llm import LLM, AsyncLLM, BatchLLM, Provider, ask, resolve
    from formal_llm.llms.question import Answer, Message, Option, Outlook, Prospect, Question, Term
    from formal_llm.llms.recorded import RecordedLLM
    from formal_llm.llms.usage import Prices, TokenUsage

#: For each name the module that defines it.
_HOMES = {
    "LLM": "llm",
    "Answer": "question",
    "AsyncFunctionLLM": "doubles",
    "AsyncLLM": "llm",
    "BatchLLM": "llm",
    "FunctionLLM": "doubles",
    "HostedLLM": "hosted.models",
    "Message": "question",
    "Option": "question",
    "Outlook": "question",
    "Prices": "usage",
    "Prospect": "question",
    "Provider": "llm",
    "Question": "question",
    "RandomLLM": "doubles",
    "RecordedLLM": "recorded",
    "ScriptedLLM": "doubles",
    "Term": "question",
    "TokenUsage": "usage",
    "WeightedLLM": "doubles",
    "ask": "llm",
    "resolve": "llm",
}

__getattr__ = export_lazily(__name__, _HOMES)

__all__ = [
    "LLM", "PROVIDERS", "Answer", "AsyncFunctionLLM", "AsyncLLM", "BatchLLM",
    "FunctionLLM", "HostedLLM", "Message", "Option", "Outlook", "Prices", "Prospect", "Provider", "Question",
    "RandomLLM", "RecordedLLM", "ScriptedLLM", "Term", "TokenUsage", "WeightedLLM", "ask", "resolve",
]  # fmt: skip
