"""The LLM protocols, the resolution of provider strings, asking with a bounded number of tries, and wrappers.

An LLM has ``choose``. If it waits for a network or a server, it may also have ``achoose``, so that many questions can
wait concurrently; if it answers many questions faster together than one by one, it may have ``choose_many``. The
drivers of walks use the best method that an LLM has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from dataclasses import replace
from typing import Protocol, Self, TypeAlias, runtime_checkable

from formal_llm.authored.plugins import Plugins
from formal_llm.errors import InvalidAnswer, LLMError, UnknownProvider, UnreadableResponse, WritesNoText
from formal_llm.llms.doubles import of_function
from formal_llm.llms.driven import driven
from formal_llm.llms.generation import ContinuingLLM, ObjectLLM, TextLLM, ToolCallingLLM, Writing
from formal_llm.llms.question import Answer, AnswerLike, Question, what_is_read
from formal_llm.llms.texts import AsyncTexts, Texts
from formal_llm.llms.usage import TokenUsage


@runtime_checkable
class LLM(Protocol):
    """Anything that answers numbered questions."""

    def choose(self, question: Question) -> Answer:
        """Answer ``question``; raise ``InvalidAnswer`` if the answer cannot be read, so that it is asked again."""
        ...


@runtime_checkable
class AsyncLLM(LLM, Protocol):
    """An LLM that also has asynchronous methods, which raise the same errors."""

    async def achoose(self, question: Question) -> Answer:
        """Answer ``question`` asynchronously."""
        ...

    async def aclose(self) -> None:
        """Free the resources that were opened on the running event loop."""
        ...


@runtime_checkable
class BatchLLM(LLM, Protocol):
    """An LLM that answers many questions in one call."""

    def choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        """Answer each question; the answers are in the order of the questions.

        An answer that cannot be read is replaced by its ``InvalidAnswer``, and its question is asked again; an answer
        that could not be obtained is replaced by the ``LLMError`` that gives the reason.
        """
        ...


#: Whatever :func:`resolve` accepts: a provider string, an LLM, or a function that answers (``async def`` or not).
LLMLike: TypeAlias = str | LLM | Callable[[Question], AnswerLike] | Callable[[Question], Awaitable[AnswerLike]]


class Provider(Protocol):
    """Creates an LLM from a provider string. Packages register theirs in the group ``formal_llm.providers``."""

    def __call__(self, rest: str | None, /) -> LLM | None:
        """Return the LLM for the text after the colon (None without a colon), or None if that text is not valid."""
        ...


#: The forms of provider strings, each with a description.
PROVIDERS: dict[str, str] = {}
#: The function that creates the LLMs of each provider. The module :mod:`formal_llm.llms.providers`, which imports this
#: one, fills both tables.
MAKERS: dict[str, Provider] = {}
#: The providers of other packages.
PLUGINS: Plugins[LLM | None] = Plugins(
    "formal_llm.providers", "provider", ("rest",), "an LLM, which has choose(question), or None",
    lambda _, made: made is None or isinstance(made, LLM), lambda: MAKERS,
)  # fmt: skip


def provider_forms() -> dict[str, str]:
    """Return the forms of provider strings with their descriptions; those of other packages come last."""
    other = set(PLUGINS.names())
    return PROVIDERS | {
        f"{one.name}:...": f"of the package {one.package}" for one in PLUGINS.installed() if one.name in other
    }


def check_providers(*llms: str) -> None:
    """Check that all providers exist, before any LLM is created, since creating one may load a model.

    Raises:
        UnknownProvider: a provider does not exist.
    """
    for llm in llms:
        if llm.partition(":")[0] not in {*MAKERS, *PLUGINS.names()}:
            raise UnknownProvider(llm, tuple(provider_forms()))


def resolve(llm: LLMLike) -> LLM:
    """Return the LLM that a provider string, a function or an object denotes.

    Raises:
        UnknownProvider: the string names no provider.
        PluginError: the string names a provider of another package, which cannot be used.
        MissingKey: the key of a hosted model is missing.
        TypeError: the argument is no string, no function, and no object with ``choose``.
    """
    if isinstance(llm, str):
        parts = llm.split(",")
        if len(parts) > 1 and all(part.partition(":")[0].strip() in MAKERS for part in parts):
            return MAKERS["fallback"](llm)  # type: ignore[return-value]  # never None
        provider, colon, rest = llm.partition(":")
        behind = rest if colon else None
        provided = MAKERS[provider](behind) if provider in MAKERS else PLUGINS.make(provider, behind)
        if provided is None:
            raise UnknownProvider(llm, tuple(provider_forms()))
        return provided
    if isinstance(llm, LLM):
        return llm
    if callable(llm):
        return of_function(llm)
    raise TypeError(f"an llm is a provider string, a function, or an object with choose(question); not {llm!r}")


#: Yields questions, receives answers (or has ``InvalidAnswer`` thrown into it), and returns the final answer.
Asking = Generator[Question, Answer, Answer]


def attempts(question: Question, tries: int = 3, before_again: Callable[[TokenUsage], None] | None = None) -> Asking:
    """Ask until the answer is legal, at most ``tries`` times; each new question describes the last error.

    A response that cannot be read at all is not the model's fault: the same question is then asked again.

    The generator does not ask an LLM itself: its driver sends in the answers, or throws in the errors.

    Args:
        question: the question.
        tries: the maximum number of times that the question is asked.
        before_again: called before each repetition with the usage so far; may raise an error to stop.

    Returns:
        The answer; its usage covers all tries.

    Raises:
        InvalidAnswer: the last answer was not legal; the error has the transcript of all tries.
        UnreadableResponse: the response to the last try cannot be read.
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
        except UnreadableResponse as error:
            tries -= 1
            if tries < 1:
                raise
            if error.usage is not None:
                usage = (usage or TokenUsage()) + error.usage
                if before_again is not None:
                    before_again(usage)
        else:
            return answer if usage is None else replace(answer, usage=usage + answer.usage)


def ask(llm: LLM, question: Question, *, tries: int = 3) -> Answer:
    """Ask until the answer is legal, at most ``tries`` times; see :func:`attempts`.

    Raises:
        InvalidAnswer: the last answer was not legal; the error has the transcript of all tries.
        LLMError: the LLM could not be asked; the ``usage`` of the error covers the earlier tries.
    """
    return driven(asking(question, tries), llm.choose)


def asking(question: Question, tries: int = 3) -> Asking:
    """Ask like :func:`ask`, as a generator that yields questions and receives answers."""
    vain = TokenUsage()

    def note(usage: TokenUsage) -> None:
        nonlocal vain
        vain = usage

    try:
        return (yield from attempts(question, tries, note))
    except InvalidAnswer:  # has the usage of all tries already
        raise
    except LLMError as error:
        error.usage = vain + (error.usage or TokenUsage())
        raise


def answered(llm: LLM, question: Question) -> Answer:
    """Return an LLM's answer to a question; to a :class:`~formal_llm.llms.generation.Writing`, the text that it writes.

    Raises:
        WritesNoText: a text is requested, and the LLM writes none.
        LLMError: the LLM could not be asked.
    """
    if not isinstance(question, Writing) or getattr(llm, "takes_text", False):
        return llm.choose(question)
    return _require_text(llm, question.written_by(llm))


def _require_text(llm: LLM, answer: Answer | None) -> Answer:
    if answer is None:
        raise WritesNoText(llm, "write this")
    return answer


async def aanswered(llm: LLM, question: Question) -> Answer:
    """Like :func:`answered`, asynchronously: with the LLM's asynchronous methods if it has them, else in a thread."""
    if isinstance(question, Writing) and not getattr(llm, "takes_text", False):
        return _require_text(llm, await question.awritten_by(llm))
    if isinstance(llm, AsyncLLM):
        return await llm.achoose(question)
    import asyncio  # imported here: it takes half of this library's import time, and is rarely needed

    return await asyncio.to_thread(llm.choose, question)


def all_answered(llm: BatchLLM, questions: Sequence[Question]) -> list[Answer | LLMError]:
    """Like :func:`answered`, for many questions together; texts are written one after the other."""
    if getattr(llm, "takes_text", False) or not any(isinstance(question, Writing) for question in questions):
        return llm.choose_many(questions)
    choices = [question for question in questions if not isinstance(question, Writing)]
    chosen = iter(llm.choose_many(choices) if choices else ())
    return [
        _answer_or_error(llm, question) if isinstance(question, Writing) else next(chosen) for question in questions
    ]


def _answer_or_error(llm: LLM, question: Writing) -> Answer | LLMError:
    try:
        return answered(llm, question)
    except LLMError as error:
        return error


class WrapperLLM(ABC):
    """An LLM that wraps another one.

    It has ``choose``; ``achoose`` and ``aclose`` if and only if the wrapped LLM is an ``AsyncLLM``; ``choose_many`` if
    and only if that is a ``BatchLLM``; and ``generate``, ``continue_text``, ``generate_object`` and ``take_turn`` if
    and only if it is a ``TextLLM``, ``ContinuingLLM``, ``ObjectLLM`` or ``ToolCallingLLM``, with their asynchronous
    counterparts if it has ``achoose``.

    Attributes:
        name: its name: the provider string if there is one.
    """

    #: Its ``choose`` accepts a :class:`~formal_llm.llms.generation.Writing`, too.
    takes_text = True

    def __init__(self, llm: LLMLike) -> None:
        self.llm = resolve(llm)
        self.name: str = llm if isinstance(llm, str) else getattr(self.llm, "name", "") or type(self.llm).__name__
        # The drivers of walks look for these names, so they exist only if the wrapped LLM has them too.
        texts = Texts(self.choose)
        methods: dict[str, object] = {}
        if isinstance(self.llm, BatchLLM):
            self._batched = self.llm
            methods["choose_many"] = self._choose_many
        if isinstance(self.llm, TextLLM):
            methods["generate"] = texts.generate
        if isinstance(self.llm, ToolCallingLLM):
            methods["take_turn"] = texts.take_turn
        if isinstance(self.llm, ContinuingLLM):
            methods["continue_text"] = texts.continue_text
        if isinstance(self.llm, ObjectLLM):
            methods["generate_object"] = texts.generate_object
        if isinstance(self.llm, AsyncLLM):
            self._awaited = self.llm
            async_texts = AsyncTexts(self._achoose)
            methods |= {f"a{name}": getattr(async_texts, f"a{name}") for name in methods if name != "choose_many"}
            methods |= {"achoose": self._achoose, "aclose": self.llm.aclose}
        self.__dict__.update(methods)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def identity(self) -> dict[str, object] | None:
        """What distinguishes the wrapped LLM from others, as JSON data; None if unknown."""
        return getattr(self.llm, "identity", None)

    @property
    def reads(self) -> frozenset[str]:
        """What the answers of the wrapped LLM depend on."""
        return what_is_read(self.llm)

    @property
    def wording(self) -> str:
        """The name of the wording that the wrapped LLM reads best; empty if it has no preference."""
        return str(getattr(self.llm, "wording", ""))

    @property
    def knows_steps(self) -> Callable[[Iterable[str]], bool] | None:
        """Whether the wrapped LLM plans best if it is asked for all of some steps at once (``search="exact"``)."""
        return getattr(self.llm, "knows_steps", None)

    @property
    def together(self) -> int | None:
        """The number of questions that the wrapped LLM is best asked together; None if that makes no difference."""
        return getattr(self.llm, "together", None)

    @abstractmethod
    def choose(self, question: Question) -> Answer:
        """Answer ``question``."""

    @abstractmethod
    async def _achoose(self, question: Question) -> Answer:
        """Like :meth:`choose`, for an ``AsyncLLM``."""

    @abstractmethod
    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        """Like :meth:`choose`, for many questions to a ``BatchLLM``."""

    def close(self) -> None:
        """Close the wrapper's file, if it has one; the wrapped LLM stays as it is."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def checked(question: Question, outcome: Answer | LLMError) -> Answer | LLMError:
    """Return the outcome of one question of a batch; an illegal answer is replaced by its ``InvalidAnswer``."""
    if isinstance(outcome, LLMError):
        return outcome
    try:
        return question.check(outcome)
    except InvalidAnswer as error:
        return error
