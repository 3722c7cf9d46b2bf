"""Requests for texts: the next message of a chat, a text to continue, an object of a schema, or a turn with tools.

Plans are chosen, not written, so planning needs text only for drafts, which are then checked against the rules. Text is
used where writing is natural (agents), and for baselines that show how a model plans when nothing enforces the rules.

A chat ends with a message of the user, which the model answers. Continuing a text is different: the model writes on in
the middle of a sentence. Local models and self-hosted servers can do that; hosted chat models refuse it.

In a turn with tools a model writes a text, requests calls of the tools that it is offered, or both. Nothing is carried
out here, and nothing is checked: a model may request a call of a tool that it was not offered.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from formal_llm.errors import InvalidAnswer
from formal_llm.llms.question import Answer, Message, Question
from formal_llm.llms.schemas import Schema, portable
from formal_llm.llms.usage import TokenUsage

#: Why a text is not whole, in words for the model, which reads them when it is asked again.
CUT_OFF = "it was cut off at the limit of tokens"
REFUSED = "it was refused"
FILTERED = "it was stopped by the content filter"

#: A chat: its messages, or one text, which stands for a single message of the user.
Messages: TypeAlias = str | Sequence[Message]
#: A streamed text: its pieces, and finally the whole text with its usage.
Stream: TypeAlias = Generator[str | Answer]
#: The instruction before a schema, for models whose provider does not enforce it.
INSTRUCTION = "Answer with one JSON object that keeps this JSON schema, and with nothing else:"
#: The number of characters that count as a token where a server does not count.
_CHARACTERS = 4
#: What a model is asked to do in a request of each kind, for the error of a model that cannot.
_WANTED = {
    "continue": "continue a text", "object": "write an object", "grammar": "write by a grammar",
    "call": "take a turn with tools",
}  # fmt: skip


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


@dataclass(frozen=True, slots=True)
class TextGrammar:
    """A context-free grammar of a text, in the two notations that providers read.

    Attributes:
        lark: the grammar in Lark's notation, its start symbol ``start``.
        gbnf: the grammar in GBNF, its start symbol ``root``.
    """

    lark: str
    gbnf: str


class TextRequest(Question):
    """A request for a text, as a question without options: any text is an answer.

    Texts are thus handled like choices: whatever caches, records, replays or distributes answers to questions does the
    same with texts.

    Args:
        messages: the chat; a single text stands for a message of the user.
        max_tokens: the maximum number of tokens to write, including those of the model's thinking.
        stop: texts before which the writing ends.
        temperature: 0 for the most probable text. Models that accept no temperature use their own.
        continues: whether the last message is a text to continue, as the model reads it, without a chat template.
        schema: the schema of an object to write (:mod:`formal_llm.llms.schemas`).
        grammar: the grammar that the provider holds the text to; not all providers take one.
        tools: the tools that may be called now; None for a text without calls.
        must_call: whether at least one tool must be called. Not all servers enforce it.
        role: the role of the model that is asked, if several share the work.
        task: the task that the text is for.
        walk: the name of the walk that asks, if there are several at once.

    Raises:
        ValueError: there are no messages.
    """

    __slots__ = (
        "continues", "grammar", "max_tokens", "must_call", "role", "schema", "stop", "temperature", "tools",
    )  # fmt: skip

    def __init__(
        self,
        messages: Messages,
        *,
        max_tokens: int = 512,
        stop: Sequence[str] = (),
        temperature: float = 0.0,
        continues: bool = False,
        schema: Schema | None = None,
        grammar: TextGrammar | None = None,
        tools: Sequence[ToolOffer] | None = None,
        must_call: bool = False,
        role: str = "",
        task: str = "",
        walk: str = "",
    ) -> None:
        chat_messages = chat(messages)
        if not chat_messages:
            raise ValueError("there is nothing to go on from")
        super().__init__(chat_messages[-1].content, (), task=task, messages=chat_messages, walk=walk)
        self.max_tokens, self.stop, self.temperature = max_tokens, tuple(stop), temperature
        self.continues, self.schema, self.grammar = continues, schema, grammar
        self.tools = None if tools is None else tuple(tools)
        self.must_call, self.role = must_call, role

    def replace(self, **changes: Any) -> TextRequest:
        """Return the request with other values of some arguments."""
        names = (*TextRequest.__slots__, "task", "walk")
        return TextRequest(**{"messages": self.messages, **{name: getattr(self, name) for name in names}, **changes})

    def show_schema(self) -> TextRequest:
        """Return the request with its schema shown at the end of the chat, for a model that is not held to it."""
        assert self.schema is not None
        *earlier, last = self.messages
        text = json.dumps(portable(self.schema, lists=True), ensure_ascii=False)
        shown = Message(last.role, f"{last.content}\n\n{INSTRUCTION}\n{text}")
        return self.replace(messages=(*earlier, shown), schema=None)

    @property
    def kind(self) -> str:
        """The kind of the request, of :data:`~formal_llm.llms.llm.KINDS`."""
        if self.tools is not None:
            return "call"
        if self.grammar is not None:
            return "grammar"
        if self.continues:
            return "continue"
        return "write" if self.schema is None else "object"

    @property
    def wants(self) -> str:
        """What a model is asked to do, for the error of a model that cannot."""
        return _WANTED.get(self.kind, "write this")

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole chat."""
        return tuple(self._get_slot("_messages"))

    @property
    def content(self) -> dict[str, object]:
        """What the writer sees, and the settings of the text, as JSON data; what is not set is left out."""
        writes: dict[str, object] = {
            "max_tokens": self.max_tokens, "stop": list(self.stop), "temperature": self.temperature,
            **({"continues": True} if self.continues else {}), **({"schema": self.schema} if self.schema else {}),
            **({"grammar": self.grammar.gbnf} if self.grammar else {}),
        }  # fmt: skip
        more: dict[str, object] = {}
        if self.tools is not None:
            more = {"tools": [asdict(tool) for tool in self.tools], "must_call": self.must_call}
        return {**super().content, "writes": writes, **more, **({"role": self.role} if self.role else {})}

    def check(self, given: object) -> Answer:
        """Return a text as an answer, or an object as its JSON text.

        Raises:
            InvalidAnswer: the value is no text.
        """
        if isinstance(given, Answer):
            return given
        if isinstance(given, Mapping):
            given = json.dumps(given, ensure_ascii=False, default=repr)
        if isinstance(given, str):
            return Answer((), text=given)
        raise InvalidAnswer(f"{type(given).__name__} is no text", [(self.prompt, repr(given))])

    def again(self, problem: str) -> Question:  # noqa: ARG002  # there are no numbers to describe
        """Return the request unchanged."""
        return self

    def __repr__(self) -> str:
        return f"<TextRequest: {self.prompt[:60]!r}>"


def estimate_usage(asked: TextRequest, text: str) -> TokenUsage:
    """Estimate the usage of a request whose text was not read to its end."""
    read = sum(len(message.content) for message in asked.messages)
    return TokenUsage(1, -(-read // _CHARACTERS), -(-len(text) // _CHARACTERS), estimated=1)


def in_one_piece(answer: Answer) -> Stream:
    """Turn a whole text into a stream."""
    if answer.text:
        yield answer.text
    yield answer


def chat(messages: Messages) -> tuple[Message, ...]:
    """Return the messages of a chat; a single text stands for a message of the user."""
    return (Message("user", messages),) if isinstance(messages, str) else tuple(messages)
