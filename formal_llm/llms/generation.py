"""Free text: the second, separate protocol of a language model, and the third, which continues a text.

A plan is chosen and not written, so planning needs it only where a draft is asked for, which the rules are held against
afterwards. It is for what is written by nature (agents), and for baselines that show what a model plans when nothing
holds it to the rules.

A chat ends with a message of the user, and the model answers. A text that is not closed is another thing: the model
goes on in the middle of a sentence, ``continue_text("[Thought] I look it")``. Models that run here and servers of one's
own can do it; hosted chat models refuse it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

from formal_llm.errors import InvalidAnswer, WritesNoText
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.llms.schemas import Schema, read_object
from formal_llm.llms.usage import TokenUsage

#: What is asked: one text, as a message of the user, or the messages of a chat.
Messages: TypeAlias = str | Sequence[Message]


@dataclass(frozen=True, slots=True)
class Generated:
    """What a model wrote, without the stop that ended it, and what it cost.

    Attributes:
        text: the text.
        usage: what it cost.
        ended: what ended it: a stop; nothing (an empty text) where the model itself did. None where more could come,
            since the tokens ran out, and where that is not known.
    """

    text: str
    usage: TokenUsage = field(default_factory=TokenUsage)
    ended: str | None = None


@runtime_checkable
class TextLLM(Protocol):
    """Anything that writes free text."""

    def generate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """What comes next in a chat.

        Args:
            messages: the chat; a text alone is what the user says.
            max_tokens: the most tokens that are written (of a model that thinks, thinking counts too).
            stop: texts before which the writing ends.
            temperature: 0 for the most probable text. A model that takes no temperature has its own.

        Raises:
            ProviderError: no answer came.
        """
        ...


@runtime_checkable
class ContinuingLLM(Protocol):
    """Anything that continues a text."""

    def continue_text(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """What comes after a text.

        Args:
            prompt: the text, as the model reads it: no chat template is put around it.
            max_tokens: the most tokens that are written.
            stop: texts before which the writing ends.
            temperature: 0 for the most probable text.

        Returns:
            What comes; its ``ended`` is known.

        Raises:
            LLMError: no text came.
        """
        ...


#: A text as it comes: its pieces, and last of all the whole, with what it cost.
Stream: TypeAlias = Generator[str | Generated]


@runtime_checkable
class StreamingLLM(Protocol):
    """A :class:`TextLLM` that also streams a text while it is written."""

    def stream(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Stream:
        """As :meth:`TextLLM.generate`, piece by piece; close it to stop early."""
        ...


@runtime_checkable
class StreamingContinuingLLM(Protocol):
    """A :class:`ContinuingLLM` that also streams a text while it is written."""

    def stream_continuation(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Stream:
        """As :meth:`ContinuingLLM.continue_text`, piece by piece; close it to stop early."""
        ...


@runtime_checkable
class ScoringLLM(Protocol):
    """Anything that determines how probable texts are."""

    def log_probabilities(self, messages: Messages, texts: Sequence[str]) -> Sequence[tuple[float, int]] | None:
        """How probable each of some texts is as the answer to a chat.

        Args:
            messages: the chat; a text alone is what the user says.
            texts: the texts, none of them empty.

        Returns:
            For each text the natural logarithm of its probability, without what ends it, and its number of tokens. None
            where the server behind the model does not report it.

        Raises:
            LLMError: it could not be asked.
        """
        ...


@runtime_checkable
class AnswerScoringLLM(Protocol):
    """Anything that determines how probable whole answers are."""

    def answer_log_probabilities(self, messages: Messages, texts: Sequence[str]) -> Sequence[tuple[float, int]] | None:
        """As :meth:`ScoringLLM.log_probabilities`, with the token that ends an answer."""
        ...


@dataclass(frozen=True, slots=True)
class GeneratedObject:
    """An object that a model wrote, which keeps its schema; the text that it was read from, and what it cost."""

    value: dict[str, object]
    text: str
    usage: TokenUsage = field(default_factory=TokenUsage)

    @classmethod
    def read(cls, text: str, schema: Schema, usage: TokenUsage, prompt: str) -> GeneratedObject:
        """The object in a text, always checked.

        Raises:
            InvalidAnswer: there is none that keeps the schema; with what was asked and written, and what it cost.
        """
        try:
            return cls(read_object(text, schema), text, usage)
        except ValueError as error:
            raise InvalidAnswer(str(error), [(prompt, text)], usage) from None


@runtime_checkable
class ObjectLLM(Protocol):
    """Anything that writes objects, held to a schema by its own means."""

    def generate_object(
        self, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
    ) -> GeneratedObject:
        """The object that comes next in a chat, of a schema (:mod:`formal_llm.llms.schemas`); else as a text.

        Raises:
            InvalidAnswer: what was written does not keep the schema.
            ProviderError: no answer came.
            ValueError: the schema is none that is known.
        """
        ...


class Writing(Question):
    """A request for free text, as a question without options: any text is an answer.

    So a text goes the ways that choices go: what keeps, records, replays or shares out the answers to questions does so
    with texts.

    Args:
        messages, max_tokens, stop, temperature: as of :meth:`TextLLM.generate`.
        schema: where the text is an object, as of :meth:`ObjectLLM.generate_object`.
        task: the task that the text is for.
        walk: the name of the walk that asks, where several are under way.
        continues: whether the last message is a text to continue (:meth:`ContinuingLLM.continue_text`).

    Raises:
        ValueError: there is nothing to continue.
    """

    __slots__ = ("continues", "max_tokens", "schema", "stop", "temperature")

    def __init__(
        self,
        messages: Messages,
        *,
        max_tokens: int = 512,
        stop: Sequence[str] = (),
        temperature: float = 0.0,
        schema: Schema | None = None,
        task: str = "",
        walk: str = "",
        continues: bool = False,
    ) -> None:
        talk = chat(messages)
        if not talk:
            raise ValueError("there is nothing to go on from")
        super().__init__(talk[-1].content, (), task=task, messages=talk, walk=walk)
        self.max_tokens, self.stop, self.temperature = max_tokens, tuple(stop), temperature
        self.schema = schema
        self.continues = continues

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole chat."""
        return tuple(self._get("_messages"))

    @property
    def content(self) -> dict[str, object]:
        """What the writer is shown, and how it shall write, as JSON data."""
        how = {"max_tokens": self.max_tokens, "stop": list(self.stop), "temperature": self.temperature}
        # What is not there is left out: what was cached before it could be stays known.
        more = {**({"continues": True} if self.continues else {}), **({"schema": self.schema} if self.schema else {})}
        return {**super().content, "writes": {**how, **more}}

    def check(self, given: object) -> Answer:
        """The answer that a text is.

        Raises:
            InvalidAnswer: it is no text.
        """
        if isinstance(given, Answer):
            return given
        if isinstance(given, str):
            return Answer((), text=given)
        raise InvalidAnswer(f"{type(given).__name__} is no text", [(self.prompt, repr(given))])

    def again(self, problem: str) -> Question:  # noqa: ARG002  # there are no numbers to remind anybody of
        """The same request."""
        return self

    def way(self, llm: object) -> tuple[str, tuple[object, ...], dict[str, object]] | None:
        """By which method a model writes this, and with what it is called; None where it writes nothing of this kind.

        Its twin that is awaited has an ``a`` before its name.
        """
        how: dict[str, object] = {"max_tokens": self.max_tokens, "temperature": self.temperature}
        if self.continues:
            prompt = self.messages[-1].content
            return ("continue_text", (prompt,), {**how, "stop": self.stop}) if isinstance(llm, ContinuingLLM) else None
        if self.schema is not None and isinstance(llm, ObjectLLM):
            return "generate_object", (self.messages, self.schema), how
        return ("generate", (self.messages,), {**how, "stop": self.stop}) if isinstance(llm, TextLLM) else None

    def written_by(self, llm: object) -> Answer | None:
        """What a model writes; None where it writes nothing of this kind."""
        if (way := self.way(llm)) is None:
            return None
        name, given, how = way
        return _as_answer(getattr(llm, name)(*given, **how))

    async def awritten_by(self, llm: object) -> Answer | None:
        """As :meth:`written_by`: awaited where the model can be, else in a thread."""
        if (way := self.way(llm)) is None:
            return None
        name, given, how = way
        awaited = getattr(llm, f"a{name}", None)
        if awaited is not None:
            return _as_answer(await awaited(*given, **how))
        import asyncio  # half of what importing this library would take, and most never need it

        return _as_answer(await asyncio.to_thread(getattr(llm, name), *given, **how))

    def told_by(self, llm: object) -> Stream:
        """What a model writes: piece by piece where it can, else in one piece; then the whole.

        Raises:
            WritesNoText: it writes nothing of this kind.
        """
        way = self.way(llm)
        stream = getattr(llm, STREAMS.get(way[0], ""), None) if way is not None else None
        if way is not None and stream is not None:
            yield from stream(*way[1], **way[2])
            return
        answer = self.written_by(llm)
        if answer is None:
            raise WritesNoText(llm, "write this")
        yield from in_one_piece(answer)

    def __repr__(self) -> str:
        return f"<Writing: {self.prompt[:60]!r}>"


#: Which method writes piece by piece what another one writes as a whole.
STREAMS = {"generate": "stream", "continue_text": "stream_continuation"}


def _as_answer(made: Generated | GeneratedObject) -> Answer:
    return Answer((), text=made.text, usage=made.usage, ended=getattr(made, "ended", None))


def in_one_piece(answer: Answer) -> Stream:
    """A text that came as a whole, as a stream."""
    if answer.text:
        yield answer.text
    yield Generated(answer.text, answer.usage, answer.ended)


def chat(messages: Messages) -> tuple[Message, ...]:
    """The messages of a chat; a text alone is a message of the user."""
    return (Message("user", messages),) if isinstance(messages, str) else tuple(messages)
