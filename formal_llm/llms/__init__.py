"""Questions and answers, and those who answer."""

from formal_llm.llms.doubles import FunctionLLM, RandomLLM, ScriptedLLM, WeightedLLM
from formal_llm.llms.llm import LLM, PROVIDERS, ask, resolve
from formal_llm.llms.question import Answer, Message, Option, Outlook, Prospect, Question, Term, TokenUsage

__all__ = [
    "LLM", "PROVIDERS", "Answer", "FunctionLLM", "Message", "Option", "Outlook", "Prospect", "Question", "RandomLLM",
    "ScriptedLLM", "Term", "TokenUsage", "WeightedLLM", "ask", "resolve",
]  # fmt: skip
