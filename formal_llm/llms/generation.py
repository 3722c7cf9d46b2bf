"""Free text: the protocols of language models that write text, of those that continue one, and of turns with tools.

Plans are chosen, not written, so planning needs text only for drafts, which are then checked against the rules. Text is
used where writing is natural (agents), and for baselines that show how a model plans when nothing enforces the rules.

A chat ends with a message of the user, which the model answers. Continuing a text is different: the model writes on in
the middle of a sentence, ``continue_text("[Thought] I look it")``. Local models and self-hosted servers can do that;
hosted chat models refuse it.

In a turn with tools a model writes a text, requests calls of the tools that it is offered, or both. Nothing is carried
out here, and nothing is checked: a model may request a call of a tool that it was not offered.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Protocol, TypeAlias, TypedDict, Unpack, runtime_checkable

from formal_llm.errors import InvalidAnswer, WritesNoText
from formal_llm.llms.question import Answer, CallRequest, Message, Question
from formal_llm.llms.schemas import Schema, read_object
from formal_llm.llms.usage import TokenUsage

#: Why a text is not whole, in words for the model, which reads them when it is asked again.
CUT_OFF = "it was cut off at the limit of tokens"
REFUSED = "it was refused"
FILTERED = "it was stopped by the content filter"

#: A request: the messages of a chat, or one text, which stands for a single message of the user.
Messages: TypeAlias = str | Sequence[Message]


@dataclass(frozen=True, slots=True)
class Generated:
    """A text that a model wrote, without the stop that ended it.

    Attributes:
        usage: the tokens that it cost.
        ended: the stop that ended it, or an empty text if the model itself ended it. None if the text is not whole, or
            if it is not known whether the model or a stop ended it.
        stopped: why the text is not whole: :data:`CUT_OFF`, :data:`REFUSED` or :data:`FILTERED`; empty if it is whole,
            or if nothing is known.
        calls: the calls of tools that the model requests, if tools were offered to it.
    """

    text: str
    usage: TokenUsage = field(default_factory=TokenUsage)
    ended: str | None = None
    stopped: str = ""
    calls: tuple[CallRequest, ...] = ()


class _Sampling(TypedDict, total=False):
    max_tokens: int
    temperature: float


class TextOptions(_Sampling, total=False):
    """The settings of a text.

    Attributes:
        max_tokens: the maximum number of tokens to write, including those of the model's thinking; by default 512.
        temperature: 0, the default, for the most probable text. Models that accept no temperature use their own.
        stop: texts before which the writing ends; none by default.
    """

    stop: Sequence[str]


@runtime_checkable
class TextLLM(Protocol):
    """A language model that writes free text."""

    def generate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """Write the next message of a chat.

        Args:
            messages: the chat; a single text stands for a message of the user.
            max_tokens: the maximum number of tokens to write, including those of the model's thinking.
            stop: texts before which the writing ends.
            temperature: 0 for the most probable text. Models that accept no temperature use their own.

        Raises:
            ProviderError: the server gave no answer.
        """
        ...


@runtime_checkable
class ContinuingLLM(Protocol):
    """A language model that continues a text."""

    def continue_text(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        """Write the continuation of a text.

        Args:
            prompt: the text as the model reads it, without a chat template.
            max_tokens: the maximum number of tokens to write.
            stop: texts before which the writing ends.
            temperature: 0 for the most probable text.

        Returns:
            The continuation; its ``ended`` is known.

        Raises:
            LLMError: the model gave no text.
        """
        ...


#: A streamed text: its pieces, and finally the whole text with its usage.
Stream: TypeAlias = Generator[str | Generated]


@dataclass(frozen=True, slots=True)
class ToolOffer:
    """A tool as it is offered to a model.

    Attributes:
        description: what it does.
        parameters: the JSON schema of the object of its arguments.
    """

    name: str
    description: str
    parameters: Schema = field(hash=False)


class TurnOptions(_Sampling, total=False):
    """The settings of a turn with tools.

    Attributes:
        max_tokens, temperature: as of :class:`TextOptions`.
        must_call: whether at least one tool must be called; False by default. Not all servers enforce it.
    """

    must_call: bool


@runtime_checkable
class ToolCallingLLM(Protocol):
    """A language model that requests calls of tools."""

    def take_turn(self, messages: Messages, tools: Sequence[ToolOffer], **how: Unpack[TurnOptions]) -> Generated:
        """Write the next message of a chat, which may request calls of tools.

        Args:
            messages: the chat; a single text stands for a message of the user.
            tools: the tools that may be called now.
            **how: the settings.

        Raises:
            ProviderError: the server gave no answer.
        """
        ...


@runtime_checkable
class ScoringLLM(Protocol):
    """A language model that reports how probable given texts are."""

    def log_probabilities(self, messages: Messages, texts: Sequence[str]) -> Sequence[tuple[float, int]] | None:
        """Compute how probable each of the texts is as the answer to a chat.

        Args:
            messages: the chat; a single text stands for a message of the user.
            texts: the texts, none of them empty.

        Returns:
            For each text the natural logarithm of its probability, without the token that ends it, and its number of
            tokens. None if the model's server does not report probabilities.

        Raises:
            LLMError: the model could not be asked.
        """
        ...


@dataclass(frozen=True, slots=True)
class GeneratedObject:
    """An object that a model wrote and that satisfies its schema, the text from which it was read, and its usage."""

    value: dict[str, object]
    text: str
    usage: TokenUsage = field(default_factory=TokenUsage)

    @classmethod
    def read(cls, text: str, schema: Schema, usage: TokenUsage, prompt: str) -> GeneratedObject:
        """Read the object in a text and check it against the schema.

        Raises:
            InvalidAnswer: the text has no object that satisfies the schema; has the request, the text and the usage.
        """
        try:
            return cls(read_object(text, schema), text, usage)
        except ValueError as error:
            raise InvalidAnswer(str(error), [(prompt, text)], usage) from None


@runtime_checkable
class ObjectLLM(Protocol):
    """A language model that writes objects and enforces their schema itself."""

    def generate_object(
        self, messages: Messages, schema: Schema, *, max_tokens: int = 2048, temperature: float = 0.0
    ) -> GeneratedObject:
        """Write the next message of a chat as an object of a schema (:mod:`formal_llm.llms.schemas`).

        Raises:
            InvalidAnswer: the text does not satisfy the schema.
            ProviderError: the server gave no answer.
            ValueError: the schema is not supported.
        """
        ...


@dataclass(frozen=True, slots=True)
class TextGrammar:
    """A context-free grammar of a text, in the two notations that providers read.

    Attributes:
        lark: the grammar in Lark's notation, its start symbol ``start``.
        gbnf: the grammar in GBNF, its start symbol ``root``.
    """

    lark: str
    gbnf: str


class Writing(Question):
    """A request for free text, as a question without options: any text is an answer.

    Texts are thus handled like choices: whatever caches, records, replays or distributes answers to questions does the
    same with texts.

    Args:
        messages, max_tokens, stop, temperature: see :meth:`TextLLM.generate`.
        schema: the schema if the text is an object, see :meth:`ObjectLLM.generate_object`.
        grammar: the grammar that the provider holds the text to; not all providers take one.
        task: the task that the text is for.
        walk: the name of the walk that asks, if there are several at once.
        continues: whether the last message is a text to continue (:meth:`ContinuingLLM.continue_text`).

    Raises:
        ValueError: there are no messages.
    """

    __slots__ = ("continues", "grammar", "max_tokens", "schema", "stop", "temperature")

    def __init__(
        self,
        messages: Messages,
        *,
        max_tokens: int = 512,
        stop: Sequence[str] = (),
        temperature: float = 0.0,
        schema: Schema | None = None,
        grammar: TextGrammar | None = None,
        task: str = "",
        walk: str = "",
        continues: bool = False,
    ) -> None:
        chat_messages = chat(messages)
        if not chat_messages:
            raise ValueError("there is nothing to go on from")
        super().__init__(chat_messages[-1].content, (), task=task, messages=chat_messages, walk=walk)
        self.max_tokens, self.stop, self.temperature = max_tokens, tuple(stop), temperature
        self.schema = schema
        self.grammar = grammar
        self.continues = continues

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole chat."""
        return tuple(self._get_slot("_messages"))

    @property
    def content(self) -> dict[str, object]:
        """What the writer sees, and the settings of the text, as JSON data."""
        limits = {"max_tokens": self.max_tokens, "stop": list(self.stop), "temperature": self.temperature}
        # Unset fields are left out, so that answers cached before the fields existed are still found.
        extra = {**({"continues": True} if self.continues else {}), **({"schema": self.schema} if self.schema else {})}
        extra |= {"grammar": self.grammar.gbnf} if self.grammar else {}
        return {**super().content, "writes": {**limits, **extra}}

    def check(self, given: object) -> Answer:
        """Return a text as an answer.

        Raises:
            InvalidAnswer: the value is no text.
        """
        if isinstance(given, Answer):
            return given
        if isinstance(given, str):
            return Answer((), text=given)
        raise InvalidAnswer(f"{type(given).__name__} is no text", [(self.prompt, repr(given))])

    def again(self, problem: str) -> Question:  # noqa: ARG002  # there are no numbers to describe
        """Return the request unchanged."""
        return self

    def way(self, llm: object) -> tuple[str, tuple[object, ...], dict[str, object]] | None:
        """Return the name of the model's method that writes this text, and its arguments; None if the model has none.

        The name of the asynchronous counterpart has an ``a`` in front.
        """
        if self.grammar is not None:
            return ("choose", (self,), {}) if getattr(llm, "takes_text", False) else None
        how: dict[str, object] = {"max_tokens": self.max_tokens, "temperature": self.temperature}
        if self.continues:
            prompt = self.messages[-1].content
            return ("continue_text", (prompt,), {**how, "stop": self.stop}) if isinstance(llm, ContinuingLLM) else None
        if self.schema is not None and isinstance(llm, ObjectLLM):
            return "generate_object", (self.messages, self.schema), how
        return ("generate", (self.messages,), {**how, "stop": self.stop}) if isinstance(llm, TextLLM) else None

    def written_by(self, llm: object) -> Answer | None:
        """Have a model write the text; None if it cannot write texts of this kind."""
        if (way := self.way(llm)) is None:
            return None
        name, arguments, options = way
        return _as_answer(getattr(llm, name)(*arguments, **options))

    async def awritten_by(self, llm: object) -> Answer | None:
        """Like :meth:`written_by`: with the model's asynchronous method if it has one, else in a thread."""
        if (way := self.way(llm)) is None:
            return None
        name, arguments, options = way
        method = getattr(llm, f"a{name}", None)
        if method is not None:
            return _as_answer(await method(*arguments, **options))
        import asyncio  # imported here: it takes half of this library's import time, and is rarely needed

        return _as_answer(await asyncio.to_thread(getattr(llm, name), *arguments, **options))

    def streamed_by(self, llm: object) -> Stream:
        """Stream the text that a model writes: piece by piece if it can, else in one piece; finally the whole.

        Raises:
            WritesNoText: the model cannot write texts of this kind.
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


class ToolTurn(Writing):
    """A request for the next message of a chat with tools.

    Args:
        messages, tools, how: see :meth:`ToolCallingLLM.take_turn`.
    """

    __slots__ = ("must_call", "tools")

    def __init__(self, messages: Messages, tools: Sequence[ToolOffer], **how: Unpack[TurnOptions]) -> None:
        super().__init__(messages, max_tokens=how.get("max_tokens", 512), temperature=how.get("temperature", 0.0))
        self.tools = tuple(tools)
        self.must_call = how.get("must_call", False)

    @property
    def content(self) -> dict[str, object]:
        """What the writer sees, and the settings of the turn, as JSON data."""
        return {**super().content, "tools": [asdict(tool) for tool in self.tools], "must_call": self.must_call}

    def way(self, llm: object) -> tuple[str, tuple[object, ...], dict[str, object]] | None:
        """Return the name of the model's method that takes this turn, and its arguments; None if it has none."""
        if not isinstance(llm, ToolCallingLLM):
            return None
        how: dict[str, object] = {
            "must_call": self.must_call, "max_tokens": self.max_tokens, "temperature": self.temperature
        }  # fmt: skip
        return "take_turn", (self.messages, self.tools), how


#: The number of characters that count as a token where a server does not count.
_CHARACTERS = 4


def estimate_usage(asked: Writing, text: str) -> TokenUsage:
    """Estimate the usage of a request whose text was not read to its end."""
    read = sum(len(message.content) for message in asked.messages)
    return TokenUsage(1, -(-read // _CHARACTERS), -(-len(text) // _CHARACTERS), estimated=1)


#: For each method that writes a whole text the method that streams it.
STREAMS = {"generate": "stream", "continue_text": "stream_continuation", "take_turn": "stream_turn"}


def _as_answer(made: Generated | GeneratedObject | Answer) -> Answer:
    if isinstance(made, Answer):
        return made
    if not isinstance(made, Generated):
        return Answer((), text=made.text, usage=made.usage)
    return Answer((), text=made.text, usage=made.usage, ended=made.ended, stopped=made.stopped, calls=made.calls)


def in_one_piece(answer: Answer) -> Stream:
    """Turn a whole text into a stream."""
    if answer.text:
        yield answer.text
    yield as_generated(answer)


def as_generated(answer: Answer) -> Generated:
    """Return a text that was the answer to a request."""
    return Generated(answer.text, answer.usage, answer.ended, answer.stopped, answer.calls)


def chat(messages: Messages) -> tuple[Message, ...]:
    """Return the messages of a chat; a single text stands for a message of the user."""
    return (Message("user", messages),) if isinstance(messages, str) else tuple(messages)
