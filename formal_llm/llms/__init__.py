"""Questions and answers, and the LLMs that answer."""

from typing import TYPE_CHECKING

from formal_llm.exports import export_lazily
from formal_llm.llms.providers import PROVIDERS

if TYPE_CHECKING:
    from formal_llm.llms.doubles import FunctionLLM, RandomLLM, ScriptedLLM, WeightedLLM
    from formal_llm.llms.hosted.models import HostedLLM
    from formal_llm.llms.llm import LLM
    from formal_llm.llms.providers import Provider, ask, resolve
    from formal_llm.llms.question import Answer, Message, Option, Outlook, Prospect, Question, Term
    from formal_llm.llms.recorded import RecordedLLM
    from formal_llm.llms.text_request import TextRequest
    from formal_llm.llms.usage import Prices, TokenUsage
    from formal_llm.llms.wrappers import FallbackLLM, SureLLM, Wrapper

#: For each module the names that it defines.
_HOMES = {
    "doubles": "FunctionLLM RandomLLM ScriptedLLM WeightedLLM",
    "hosted.models": "HostedLLM",
    "llm": "LLM",
    "providers": "Provider ask resolve",
    "question": "Answer Message Option Outlook Prospect Question Term",
    "recorded": "RecordedLLM",
    "text_request": "TextRequest",
    "usage": "Prices TokenUsage",
    "wrappers": "FallbackLLM SureLLM Wrapper",
}

__getattr__ = export_lazily(__name__, _HOMES)

__all__ = [
    "LLM", "PROVIDERS", "Answer", "FallbackLLM", "FunctionLLM", "HostedLLM", "Message", "Option", "Outlook", "Prices",
    "Prospect", "Provider", "Question", "RandomLLM", "RecordedLLM", "ScriptedLLM", "SureLLM", "Term", "TextRequest",
    "TokenUsage", "WeightedLLM", "Wrapper", "ask", "resolve",
]  # fmt: skip
