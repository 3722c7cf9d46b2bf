"""Who answers: the LLM protocols, what stands for an LLM, asking with a bounded number of tries, and wrappers.

An LLM has ``choose``. One that waits for others (a network, a server) may have ``achoose`` as well, so that many
questions wait at once; one that answers many questions faster together than one by one may have ``choose_many``. What
drives a walk takes the best that is there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import replace
from typing import Protocol, Self, TypeAlias, runtime_checkable

from formal_llm.authored.plugins import Plugins
from formal_llm.errors import InvalidAnswer, LLMError, UnknownProvider, UnreadableResponse, WritesNoText
from formal_llm.llms.doubles import of_function
from formal_llm.llms.driven import driven
from formal_llm.llms.generation import ContinuingLLM, ObjectLLM, TextLLM, Writing
from formal_llm.llms.question import Answer, AnswerLike, Question
from formal_llm.llms.texts import AsyncTexts, Texts
from formal_llm.llms.usage import TokenUsage


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
        """Answer ``question``, without blocking the event loop."""
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
        the place of one that could not be had, the ``LLMError`` with the reason.
        """
        ...


#: What :func:`resolve` takes for an LLM: a provider string, an LLM, or a function that answers, ``async def`` or not.
LLMLike: TypeAlias = str | LLM | Callable[[Question], AnswerLike] | Callable[[Question], Awaitable[AnswerLike]]


class Provider(Protocol):
    """Makes an LLM of a provider string. Packages offer theirs in the group ``formal_llm.providers``."""

    def __call__(self, rest: str | None, /) -> LLM | None:
        """The LLM of the text behind the colon (None without a colon); None where that is no form of the provider."""
        ...


#: The forms of provider strings, and what they stand for.
PROVIDERS: dict[str, str] = {}
#: What makes the LLMs of each provider. The module :mod:`formal_llm.llms.providers` fills both tables: what makes LLMs
#: lies above this one.
MAKERS: dict[str, Provider] = {}
#: The providers of other packages.
PLUGINS: Plugins[LLM | None] = Plugins(
    "formal_llm.providers", "provider", ("rest",), "an LLM, which has choose(question), or None",
    lambda _, made: made is None or isinstance(made, LLM), lambda: MAKERS,
)  # fmt: skip


def provider_forms() -> dict[str, str]:
    """The forms of provider strings and what they stand for, those of other packages at the end."""
    other = set(PLUGINS.names())
    return PROVIDERS | {
        f"{one.name}:...": f"of the package {one.package}" for one in PLUGINS.installed() if one.name in other
    }


def check_providers(*llms: str) -> None:
    """Raise for a provider string whose provider there is not, before any LLM is made: making one may load a model.

    Raises:
        UnknownProvider: there is no such provider.
    """
    for llm in llms:
        if llm.partition(":")[0] not in {*MAKERS, *PLUGINS.names()}:
            raise UnknownProvider(llm, tuple(provider_forms()))


def resolve(llm: LLMLike) -> LLM:
    """The LLM that a provider string, a function or an object stands for.

    Raises:
        UnknownProvider: the string names no provider.
        PluginError: it names one of another package, which cannot be used.
        MissingKey: a hosted model without its key.
        TypeError: something else than a string, a function, or an object with ``choose``.
    """
    if isinstance(llm, str):
        provider, colon, rest = llm.partition(":")
        behind = rest if colon else None
        made = MAKERS[provider](behind) if provider in MAKERS else PLUGINS.make(provider, behind)
        if made is None:
            raise UnknownProvider(llm, tuple(provider_forms()))
        return made
    if isinstance(llm, LLM):
        return llm
    if callable(llm):
        return of_function(llm)
    raise TypeError(f"an llm is a provider string, a function, or an object with choose(question); not {llm!r}")


#: Questions go out, answers come in (or ``InvalidAnswer`` is thrown in); what is returned at the end is the result.
Asking = Generator[Question, Answer, Answer]


def attempts(question: Question, tries: int = 3, before_again: Callable[[TokenUsage], None] | None = None) -> Asking:
    """Ask until the answer is legal, at most ``tries`` times; each time with what was wrong before.

    A response that cannot be read at all is no fault of the model: then the same question is asked again.

    It asks no LLM by itself: its driver sends the answer in, or throws in the error that came of it.

    Args:
        question: the question.
        tries: how often it may be asked.
        before_again: called before it is asked again, with what the tries cost so far; may raise to put an end to it.

    Returns:
        The answer; its usage covers all tries.

    Raises:
        InvalidAnswer: after the last try, with the transcript of all.
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
        except UnreadableResponse:
            tries -= 1
            if tries < 1:
                raise
        else:
            return answer if usage is None else replace(answer, usage=usage + answer.usage)


def ask(llm: LLM, question: Question, *, tries: int = 3) -> Answer:
    """Ask until the answer is legal, at most ``tries`` times; what comes back is as of :func:`attempts`.

    Raises:
        InvalidAnswer: after the last try, with the transcript of all.
        LLMError: the LLM could not be asked; its ``usage`` is that of the tries before.
    """
    return driven(asking(question, tries), llm.choose)


def asking(question: Question, tries: int = 3) -> Asking:
    """As :func:`ask`, without an LLM (sans I/O): questions go out, answers come in."""
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
    """What an LLM answers to a question; of a :class:`~formal_llm.llms.generation.Writing`, what it writes.

    Raises:
        WritesNoText: a text is wanted, and it writes none.
        LLMError: it could not be asked.
    """
    if not isinstance(question, Writing) or getattr(llm, "takes_text", False):
        return llm.choose(question)
    return _writes(llm, question.written_by(llm))


def _writes(llm: LLM, answer: Answer | None) -> Answer:
    if answer is None:
        raise WritesNoText(llm, "write this")
    return answer


async def aanswered(llm: LLM, question: Question) -> Answer:
    """As :func:`answered`, without blocking the event loop: awaited where the LLM can be, else in a thread."""
    if isinstance(question, Writing) and not getattr(llm, "takes_text", False):
        return _writes(llm, await question.awritten_by(llm))
    if isinstance(llm, AsyncLLM):
        return await llm.achoose(question)
    import asyncio  # half of what importing this library would take, and most never need it

    return await asyncio.to_thread(llm.choose, question)


def all_answered(llm: BatchLLM, questions: Sequence[Question]) -> list[Answer | LLMError]:
    """As :func:`answered`, of many questions together; texts are written one after the other."""
    if getattr(llm, "takes_text", False) or not any(isinstance(question, Writing) for question in questions):
        return llm.choose_many(questions)
    choices = [question for question in questions if not isinstance(question, Writing)]
    chosen = iter(llm.choose_many(choices) if choices else ())
    return [_written(llm, question) if isinstance(question, Writing) else next(chosen) for question in questions]


def _written(llm: LLM, question: Writing) -> Answer | LLMError:
    try:
        return answered(llm, question)
    except LLMError as error:
        return error


class WrapperLLM(ABC):
    """An LLM in front of another one.

    It has ``choose``; ``achoose`` and ``aclose`` if and only if the other one is an ``AsyncLLM``; ``choose_many`` if
    and only if it is a ``BatchLLM``; and ``generate``, ``continue_text`` and ``generate_object`` if and only if it is a
    ``TextLLM``, a ``ContinuingLLM``, an ``ObjectLLM``, with their awaited twins where it has ``achoose``.

    Attributes:
        llm: the other one.
        name: its name: a provider string, where it has one.
    """

    #: Its ``choose`` takes a :class:`~formal_llm.llms.generation.Writing`, too.
    takes_text = True

    def __init__(self, llm: LLMLike) -> None:
        self.llm = resolve(llm)
        self.name: str = llm if isinstance(llm, str) else getattr(self.llm, "name", "") or type(self.llm).__name__
        # Who drives a walk looks for these names, so they are there only where the other one has them too.
        texts = Texts(self.choose)
        given: dict[str, object] = {}
        if isinstance(self.llm, BatchLLM):
            self._batched = self.llm
            given["choose_many"] = self._choose_many
        if isinstance(self.llm, TextLLM):
            given["generate"] = texts.generate
        if isinstance(self.llm, ContinuingLLM):
            given["continue_text"] = texts.continue_text
        if isinstance(self.llm, ObjectLLM):
            given["generate_object"] = texts.generate_object
        if isinstance(self.llm, AsyncLLM):
            self._awaited = self.llm
            written = AsyncTexts(self._achoose)
            given |= {f"a{name}": getattr(written, f"a{name}") for name in given if name != "choose_many"}
            given |= {"achoose": self._achoose, "aclose": self.llm.aclose}
        self.__dict__.update(given)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def identity(self) -> dict[str, object] | None:
        """The identity of the other one, as JSON data; None where it has none."""
        return getattr(self.llm, "identity", None)

    @property
    def wording(self) -> str:
        """The name of the wording that the other one reads best; empty where any will do."""
        return str(getattr(self.llm, "wording", ""))

    @abstractmethod
    def choose(self, question: Question) -> Answer:
        """Answer ``question``."""

    @abstractmethod
    async def _achoose(self, question: Question) -> Answer:
        """As :meth:`choose`, of an LLM that is awaited."""

    @abstractmethod
    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        """As :meth:`choose`, of an LLM that is asked many questions together."""

    @abstractmethod
    def close(self) -> None:
        """Close the file. The LLM behind is left as it is."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def checked(question: Question, outcome: Answer | LLMError) -> Answer | LLMError:
    """What came back for a question of a batch; an answer that is not legal becomes its ``InvalidAnswer``."""
    if isinstance(outcome, LLMError):
        return outcome
    try:
        return question.check(outcome)
    except InvalidAnswer as error:
        return error
