"""Who answers: the LLM protocol, asking with a bounded number of tries, and provider strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from formal_llm.errors import InvalidAnswer, UnknownProvider
from formal_llm.llms.question import Answer, Question, TokenUsage


@runtime_checkable
class LLM(Protocol):
    """Anything that answers numbered questions."""

    def choose(self, question: Question) -> Answer:
        """Answer ``question``. May raise ``InvalidAnswer`` for an answer it cannot read: it is then asked again."""
        ...


#: The forms of provider strings, and what they stand for.
PROVIDERS: dict[str, str] = {
    "builtin": "offline stand-in: chooses by the words that options share with the task; not a language model",
    "person": "you, on the terminal",
    "test:random": "a random option each time; test:random=7 sets the seed",
    "test:first": "the first option each time",
    "test:script=1,3,2": "these numbers in turn",
    "openai:MODEL": "a model of OpenAI, or of a server that speaks its protocol (OPENAI_API_KEY, OPENAI_BASE_URL)",
    "anthropic:MODEL": "a model of Anthropic (ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL)",
}


def resolve(llm: str | LLM | Callable[[Question], Any]) -> LLM:
    """The LLM that a provider string, a function or an object stands for.

    Raises:
        UnknownProvider: the string names no provider.
        MissingKey: a hosted model without its key.
        TypeError: something else than a string, a function, or an object with ``choose``.
    """
    if isinstance(llm, str):
        return _from_string(llm)
    if isinstance(llm, LLM):
        return llm
    if callable(llm):
        from formal_llm.llms.doubles import FunctionLLM

        return FunctionLLM(llm)
    raise TypeError(f"an llm is a provider string, a function, or an object with choose(question); not {llm!r}")


def _from_string(name: str) -> LLM:
    from formal_llm.llms import doubles

    provider, _, rest = name.partition(":")
    if name == "builtin":
        from formal_llm.llms.builtin import BuiltinLLM

        return BuiltinLLM()
    if name == "person":
        from formal_llm.llms.person import Person

        return Person()
    if provider == "test":
        kind, _, value = rest.partition("=")
        try:
            if kind == "random":
                return doubles.RandomLLM(int(value or 0))
            if kind == "first" and not value:
                return doubles.FunctionLLM(lambda _: 1)
            if kind == "script" and value:
                return doubles.ScriptedLLM.from_text(value)
        except ValueError:
            pass
    elif provider == "openai" and rest:
        from formal_llm.llms.openai import OpenAILLM

        return OpenAILLM(rest)
    elif provider == "anthropic" and rest:
        from formal_llm.llms.anthropic import AnthropicLLM

        return AnthropicLLM(rest)
    raise UnknownProvider(name, tuple(PROVIDERS))


def ask(llm: LLM, question: Question, *, tries: int = 3) -> Answer:
    """Ask until the answer is legal, at most ``tries`` times; each time with what was wrong before.

    Returns:
        The answer; its usage covers all tries.

    Raises:
        InvalidAnswer: after the last try, with the transcript.
    """
    try:
        return question.check(llm.choose(question))
    except InvalidAnswer as error:
        return _ask_again(llm, question, error, tries)


def _ask_again(llm: LLM, question: Question, error: InvalidAnswer, tries: int) -> Answer:
    transcript = [*error.transcript]
    usage = error.usage or TokenUsage()
    for _ in range(tries - 1):
        asked = question.again(error.problem)
        try:
            answer = asked.check(llm.choose(asked))
        except InvalidAnswer as again:
            error = again
            transcript += again.transcript
            usage += again.usage or TokenUsage()
        else:
            return Answer(answer.numbers, answer.probabilities, answer.text, usage + answer.usage)
    raise InvalidAnswer(error.problem, transcript, usage)
