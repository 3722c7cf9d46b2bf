"""Simple writers of text (functions, scripts, chance), for tests and baselines, as public as the real LLMs.

Each writes chat messages and continuations of texts, can stream both, and also answers questions.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar, Unpack

from formal_llm.errors import LLMError
from formal_llm.llms.doubles import FunctionLLM, RandomLLM, ScriptedLLM
from formal_llm.llms.generation import (
    CUT_OFF,
    Generated,
    GeneratedObject,
    Messages,
    Stream,
    TextOptions,
    ToolOffer,
    ToolTurn,
    TurnOptions,
    Writing,
    chat,
)
from formal_llm.llms.question import Answer, AnswerLike, CallRequest, Question
from formal_llm.llms.schemas import Schema
from formal_llm.llms.stops import first_stop
from formal_llm.llms.texts import Texts
from formal_llm.llms.usage import TokenUsage

T = TypeVar("T")
#: The number of characters that count as a token here.
TOKEN = 4


class FunctionTextLLM:
    """Writes with a function of the request that returns a text, which is cut at its stops and its token limit.

    Four characters count as a token.

    Args:
        function: returns the text for a :class:`~formal_llm.llms.generation.Writing`, whose ``continues`` distinguishes
            the two kinds; its ``prompt`` is the text to continue, or the last message of the user.
        choose: answers questions; by default with the first option.
        piece: the number of characters in each piece of a streamed text.
    """

    #: Its ``choose`` accepts a :class:`~formal_llm.llms.generation.Writing`, too.
    takes_text = True
    name = "test:text"

    def __init__(
        self,
        function: Callable[[Writing], str],
        choose: Callable[[Question], AnswerLike] | None = None,
        *,
        piece: int = 3,
    ) -> None:
        self._function = function
        self._chooses = FunctionLLM(choose or (lambda _: 1))
        self._piece = piece
        self.generate, self.continue_text = Texts(self.choose).generate, Texts(self.choose).continue_text

    def choose(self, question: Question) -> Answer:
        """Return the function's answer or text."""
        if not isinstance(question, Writing):
            return self._chooses.choose(question)
        text = self._function(question)
        most = question.max_tokens * TOKEN
        found = first_stop(text[:most], question.stop)
        ended = found[1] if found is not None else "" if len(text) <= most else None
        text = text[:most] if found is None else text[: found[0]]
        size = sum(len(message.content) for message in question.messages)
        usage = TokenUsage(1, size // TOKEN, -(-len(text) // TOKEN))
        return Answer((), text=text, usage=usage, ended=ended, stopped=CUT_OFF if ended is None else "")

    def stream(self, messages: Messages, **how: Unpack[TextOptions]) -> Stream:
        """Like ``generate``, piece by piece."""
        yield from self._split_pieces(self.generate(messages, **how))

    def stream_continuation(self, prompt: str, **how: Unpack[TextOptions]) -> Stream:
        """Like ``continue_text``, piece by piece."""
        yield from self._split_pieces(self.continue_text(prompt, **how))

    def _split_pieces(self, made: Generated) -> Stream:
        for at in range(0, len(made.text), self._piece):
            yield made.text[at : at + self._piece]
        yield made


class ScriptedTextLLM(FunctionTextLLM):
    """Writes prepared texts in turn, then fails.

    Args:
        texts: the text for each request, cut off at the request's limit of tokens.
        answers: the answers to questions, see :class:`~formal_llm.llms.ScriptedLLM`.
        piece: see :class:`FunctionTextLLM`.

    Attributes:
        requests: the requests for text so far.
    """

    def __init__(self, texts: Iterable[str], answers: Iterable[AnswerLike] = (), *, piece: int = 3) -> None:
        self.requests: list[Writing] = []
        super().__init__(partial(_take_next, iter(texts), self.requests), ScriptedLLM(answers).choose, piece=piece)


def _take_next(texts: Iterator[T], requests: list[Writing], asked: Writing) -> T:
    requests.append(asked)
    try:
        return next(texts)
    except StopIteration:
        raise LLMError(f"the script ended before text {len(requests)}") from None


class RandomTextLLM(FunctionTextLLM):
    """Writes a random number of random words.

    Args:
        words: the parts of its texts: words, markers, halves of markers, spaces.
        most: the maximum number of words in a text.
        piece: see :class:`FunctionTextLLM`.
    """

    def __init__(self, seed: int = 0, words: Sequence[str] = ("so ", "then ", "42 "), *, most: int = 8, piece: int = 3):
        rng = random.Random(seed)
        super().__init__(
            lambda _: "".join(rng.choices(words, k=rng.randint(0, most))), RandomLLM(seed).choose, piece=piece
        )


#: A turn: a text, or a text and calls: the names of tools with their arguments, as data or as the model writes them.
TurnLike: TypeAlias = "str | tuple[str, Sequence[tuple[str, Mapping[str, object] | str]]]"


class FunctionTurnLLM(FunctionTextLLM):
    """Takes turns with tools by a function; see :class:`~formal_llm.llms.generation.ToolCallingLLM`.

    It enforces nothing: the function may call tools that were not offered.

    Args:
        function: returns the turn for a :class:`~formal_llm.llms.generation.ToolTurn`, a text for another request.
        choose, piece: see :class:`FunctionTextLLM`.
    """

    def __init__(
        self,
        function: Callable[[Writing], TurnLike],
        choose: Callable[[Question], AnswerLike] | None = None,
        *,
        piece: int = 3,
    ) -> None:
        self._take = function
        self._count = 0
        super().__init__(self._write_turn, choose, piece=piece)
        del self.continue_text  # it only chats, as hosted models do
        self.take_turn = Texts(self.choose).take_turn

    def _write_turn(self, asked: Writing) -> str:
        turn = self._take(asked)
        return turn if isinstance(turn, str) else turn[0]

    def choose(self, question: Question) -> Answer:
        """Return the function's answer, text or turn."""
        if not isinstance(question, ToolTurn):
            return super().choose(question)
        turn = self._take(question)
        text, called = (turn, ()) if isinstance(turn, str) else turn
        calls = []
        for name, arguments in called:
            self._count += 1
            written = arguments if isinstance(arguments, str) else json.dumps(arguments)
            calls.append(CallRequest(f"call_{self._count}", name, written))
        read = len(json.dumps(question.content["messages"])) + len(json.dumps(question.content["tools"]))
        wrote = len(text) + sum(len(call.name) + len(call.arguments) for call in calls)
        return Answer((), text=text, usage=TokenUsage(1, read // TOKEN, -(-wrote // TOKEN)), ended="", calls=(*calls,))

    def stream_turn(self, messages: Messages, tools: Sequence[ToolOffer], **how: Unpack[TurnOptions]) -> Stream:
        """Like ``take_turn``, its text piece by piece."""
        yield from self._split_pieces(self.take_turn(messages, tools, **how))


class ScriptedTurnLLM(FunctionTurnLLM):
    """Takes prepared turns in order, then fails.

    Args:
        turns: the turns, and the texts for other requests.
        answers: the answers to questions, see :class:`~formal_llm.llms.ScriptedLLM`.
        piece: see :class:`FunctionTextLLM`.
    """

    def __init__(self, turns: Iterable[TurnLike], answers: Iterable[AnswerLike] = (), *, piece: int = 3) -> None:
        self.requests: list[Writing] = []
        super().__init__(partial(_take_next, iter(turns), self.requests), ScriptedLLM(answers).choose, piece=piece)


class RandomTurnLLM(FunctionTurnLLM):
    """Takes random turns: texts, calls of offered tools with random arguments, and, as a liar, whatever else.

    Args:
        words: the words of its texts, and the names of tools that it calls without being offered them.
        lies: the probability that a call is not one of an offered tool with arguments by its schema.
        piece: see :class:`FunctionTextLLM`.
    """

    def __init__(
        self, seed: int = 0, words: Sequence[str] = ("so", "then", "42"), *, lies: float = 0.0, piece: int = 3
    ) -> None:
        rng, objects = random.Random(seed), RandomObjectLLM(seed, words)

        def take(asked: Writing) -> TurnLike:
            text = " ".join(rng.choices(words, k=rng.randint(0, 4)))
            if not isinstance(asked, ToolTurn):
                return text
            calls: list[tuple[str, str]] = []
            for _ in range(rng.choice((0, 1, 1, 1, 2, 3)) or int(asked.must_call and rng.random() >= lies)):
                tool = rng.choice(asked.tools) if asked.tools else None
                if tool is None or rng.random() < lies:
                    calls.append((rng.choice(words), rng.choice(("{}", "", "[1", '{"x": 1}', "null"))))
                else:
                    calls.append((tool.name, json.dumps(objects.generate_object("", tool.parameters).value)))
            return text, calls

        super().__init__(take, RandomLLM(seed).choose, piece=piece)


class RandomObjectLLM:
    """Writes random objects that satisfy their schemas."""

    def __init__(self, seed: int = 0, words: Sequence[str] = ("so", "then", "42", "1 + 2", "Rhine")) -> None:
        self._rng, self._words = random.Random(seed), tuple(words)
        self.name = f"test:random={seed}"
        self.identity = {"llm": self.name}

    def generate_object(
        self,
        messages: Messages,
        schema: Schema,
        *,
        max_tokens: int = 2048,  # noqa: ARG002  # its objects are small
        temperature: float = 0.0,  # noqa: ARG002
    ) -> GeneratedObject:
        """Return a random object; see :class:`~formal_llm.llms.generation.ObjectLLM`."""
        chat_messages = chat(messages)
        definitions: Any = schema.get("$defs", {})
        text = json.dumps(self._draw_value(schema, definitions))
        size = sum(len(message.content) for message in chat_messages) // TOKEN
        return GeneratedObject.read(text, schema, TokenUsage(1, size, len(text) // TOKEN), chat_messages[-1].content)

    def _draw_value(self, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> object:
        rng = self._rng
        if "$ref" in schema:
            return self._draw_value(definitions[schema["$ref"].rpartition("/")[2]], definitions)
        if "anyOf" in schema:
            return self._draw_value(rng.choice(schema["anyOf"]), definitions)
        if "enum" in schema:
            return rng.choice(schema["enum"])
        match schema["type"]:
            case "object":
                return {name: self._draw_value(one, definitions) for name, one in schema["properties"].items()}
            case "array":
                least, most = schema.get("minItems", 0), schema.get("maxItems", 3)
                return [
                    self._draw_value(schema["items"], definitions) for _ in range(rng.randint(least, max(least, most)))
                ]
            case "string":
                least, most = schema.get("minLength", 0), schema.get("maxLength", 100)
                text = " ".join(rng.choices(self._words, k=rng.randint(1, 3)))
                return text[:most].ljust(least, "x")
            case "integer" | "number":
                least = schema.get("minimum", -5)
                return rng.randint(math.ceil(least), math.floor(schema.get("maximum", max(least, 5))))
            case kind:
                return None if kind == "null" else rng.random() < 0.5
