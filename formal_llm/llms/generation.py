"""Free text: the second, separate protocol of a language model.

A plan is chosen and not written, so planning needs it only where a draft is asked for, which the rules are held against
afterwards. It is for what is written by nature (agents), and for baselines that show what a model plans when nothing
holds it to the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias, runtime_checkable

from formal_llm.errors import InvalidAnswer
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.llms.schemas import Schema, read_object
from formal_llm.llms.usage import TokenUsage

#: What is asked: one text, which the user says, or the messages of a chat.
Messages: TypeAlias = str | Sequence[Message]


@dataclass(frozen=True, slots=True)
class Generated:
    """What a model wrote, without the stop that ended it, and what it cost."""

    text: str
    usage: TokenUsage = field(default_factory=TokenUsage)


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


@dataclass(frozen=True, slots=True)
class GeneratedObject:
    """An object that a model wrote, which keeps its schema; the text that it was read from, and what it cost."""

    value: dict[str, object]
    text: str
    usage: TokenUsage = field(default_factory=TokenUsage)

    @classmethod
    def read(cls, text: str, schema: Schema, usage: TokenUsage, prompt: str) -> GeneratedObject:
        """The object in a text, checked whoever wrote it.

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
        """The object that comes next in a chat.

        Args:
            messages: the chat; a text alone is what the user says.
            schema: what is asked for, see :mod:`formal_llm.llms.schemas`.
            max_tokens: as of :meth:`TextLLM.generate`.
            temperature: as there.

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

    Raises:
        ValueError: there is nothing to go on from.
    """

    __slots__ = ("max_tokens", "schema", "stop", "temperature")

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
    ) -> None:
        talk = chat(messages)
        if not talk:
            raise ValueError("there is nothing to go on from")
        super().__init__(talk[-1].content, (), task=task, messages=talk, walk=walk)
        self.max_tokens, self.stop, self.temperature = max_tokens, tuple(stop), temperature
        self.schema = schema

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole chat."""
        return tuple(self._get("_messages"))

    @property
    def content(self) -> dict[str, object]:
        """What the writer is shown, and how it shall write, as JSON data."""
        how: dict[str, object] = {
            "max_tokens": self.max_tokens, "stop": list(self.stop), "temperature": self.temperature
        }  # fmt: skip
        if self.schema is not None:
            how["schema"] = self.schema
        return {**super().content, "writes": how}

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

    def written_by(self, llm: TextLLM | ObjectLLM) -> Answer:
        """What a model writes."""
        if self.schema is not None and isinstance(llm, ObjectLLM):
            one = llm.generate_object(
                self.messages, self.schema, max_tokens=self.max_tokens, temperature=self.temperature
            )
            return Answer((), text=one.text, usage=one.usage)
        assert isinstance(llm, TextLLM)
        made = llm.generate(self.messages, max_tokens=self.max_tokens, stop=self.stop, temperature=self.temperature)
        return Answer((), text=made.text, usage=made.usage)

    def __repr__(self) -> str:
        return f"<Writing: {self.prompt[:60]!r}>"


class TextsByChoice:
    """Writes texts and objects by its ``choose``, which takes a :class:`Writing` as a question."""

    def choose(self, question: Question) -> Answer:
        """Answer ``question``."""
        raise NotImplementedError

    def _generate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """What comes next in a chat, see :class:`TextLLM`."""
        made = self.choose(Writing(messages, max_tokens=max_tokens, stop=stop, temperature=temperature))
        return Generated(made.text, made.usage)

    def _generate_object(
        self, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
    ) -> GeneratedObject:
        """The object that comes next in a chat, see :class:`ObjectLLM`."""
        asked = Writing(messages, max_tokens=max_tokens, temperature=temperature, schema=schema)
        made = self.choose(asked)
        return GeneratedObject.read(made.text, schema, made.usage, asked.prompt)


def chat(messages: Messages) -> tuple[Message, ...]:
    """The messages of a chat; a text alone is what the user says."""
    return (Message("user", messages),) if isinstance(messages, str) else tuple(messages)


def cut(text: str, stop: Iterable[str]) -> str:
    """A text up to the first of its stops: for servers that know no stops, or write them out."""
    places = [place for one in stop if one and (place := text.find(one)) >= 0]
    return text[: min(places)] if places else text
