"""Simple answerers (functions, chance, scripts, a person), for tests and baselines, as public as the real LLMs.

Those that write count four characters as a token, and can stream their texts.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import random
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TextIO

from formal_llm.errors import InvalidAnswer, LLMError, visible
from formal_llm.llms.llm import AWAITED, LLM
from formal_llm.llms.question import Answer, AnswerLike, CallRequest, Question
from formal_llm.llms.stops import first_stop
from formal_llm.llms.text_request import CUT_OFF, Stream, TextRequest
from formal_llm.llms.usage import TokenUsage

#: What chats, and continues texts; what takes turns with tools, as hosted models do.
TEXTS = frozenset({"choose", "write", "continue"})
TURNS = frozenset({"choose", "write", "call"})
#: The number of characters that count as a token here.
TOKEN = 4


class WritingLLM(LLM):
    """An LLM whose texts come from a function, and are cut at their stops and their limit of tokens.

    Attributes:
        piece: the number of characters in each piece of a streamed text.
    """

    piece = 3

    def stream(self, request: TextRequest, /) -> Stream:
        """Yield a text piece by piece, and last of all the whole."""
        answer = self.ask(request)
        for at in range(0, len(answer.text), self.piece):
            yield answer.text[at : at + self.piece]
        yield answer

    def _as_written(self, request: Question, returned: object) -> Answer:
        """Return what a function gave as an answer: to a request for a text the text, a turn, or an object."""
        if inspect.isawaitable(returned):
            if inspect.iscoroutine(returned):
                returned.close()
            raise TypeError("the function returns a coroutine, not an answer; define it by async def")
        if not isinstance(request, TextRequest) or isinstance(returned, Answer):
            return request.check(returned)
        requested: Sequence[tuple[str, object]] = ()
        if request.tools is not None and isinstance(returned, tuple):
            returned, requested = returned
        text = request.check(returned).text
        most = request.max_tokens * TOKEN
        found = first_stop(text[:most], request.stop)
        ended = found[1] if found is not None else "" if len(text) <= most else None
        text = text[:most] if found is None else text[: found[0]]
        calls = []
        for name, arguments in requested:
            self._calls = getattr(self, "_calls", 0) + 1
            written = arguments if isinstance(arguments, str) else json.dumps(arguments)
            calls.append(CallRequest(f"call_{self._calls}", name, written))
        read = sum(len(message.content) for message in request.messages)
        if request.tools is not None:
            read = len(json.dumps(request.content["messages"])) + len(json.dumps(request.content["tools"]))
        wrote = len(text) + sum(len(call.name) + len(call.arguments) for call in calls)
        usage = TokenUsage(1, read // TOKEN, -(-wrote // TOKEN))
        return Answer((), None, text, usage, ended, CUT_OFF if ended is None else "", tuple(calls))


class FunctionLLM(WritingLLM):
    """Answers with a function of the request, ``async def`` or not.

    A function that is ``async def`` runs on the event loop of hosted models, so that many requests are under way at
    once, from synchronous code, too; whatever it opens there stays open for the next request.

    Args:
        function: returns for a question an :class:`Answer`, a number, or a text to read; for a
            :class:`~formal_llm.llms.TextRequest` a text, for one by a schema also an object, and for a turn with tools
            also a text and calls, each the name of a tool with its arguments.
        can: the kinds of requests that it answers, of :data:`~formal_llm.llms.llm.KINDS`.
        choose: answers questions instead, for a function of texts.
        name, identity: see :class:`LLM`.
        piece: the number of characters in each piece of a streamed text.
    """

    def __init__(
        self,
        function: Callable[[Any], object],
        *,
        can: Collection[str] = LLM.can,
        choose: Callable[[Question], AnswerLike] | None = None,
        name: str = "",
        identity: Mapping[str, object] | None = None,
        piece: int = 3,
    ) -> None:
        self._function, self._choose = function, choose or function
        self.can, self.name, self.identity, self.piece = can, name, identity, piece
        # An object is asynchronous if its ``__call__`` is.
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
            self.blocks, self.at_once = False, AWAITED

    @classmethod
    def from_object(cls, answerer: Any) -> FunctionLLM:
        """Create the LLM of an object with a method ``answer``, and with whatever else of an LLM it has."""
        llm = cls(answerer.answer)
        for name in ("name", "identity", "reads", "can", "at_once", "wording", "drafts", "knows_steps"):
            if (known := getattr(answerer, name, None)) is not None:
                setattr(llm, name, known)
        return llm

    def answer(self, request: Question, /) -> Answer:
        """Return the function's answer, checked."""
        function = self._function if isinstance(request, TextRequest) else self._choose
        return self._as_written(request, function(request))

    async def _await_answer(self, request: Question) -> Answer:
        function: Any = self._function if isinstance(request, TextRequest) else self._choose
        returned = function(request)
        return self._as_written(request, await returned if inspect.isawaitable(returned) else returned)


#: The maximum number of random selections to try; then a legal one near the last is used.
_DRAWS = 100


def _draw_several(question: Question, rng: random.Random) -> Answer:
    """Draw a selection to which the question does not object; all are equally likely unless they are very rare."""
    count = len(question.options)
    for _ in range(_DRAWS):
        chosen = rng.randrange(1, 1 << count)
        numbers = tuple(number + 1 for number in range(count) if chosen >> number & 1)
        if not question.problem(numbers):
            return Answer(numbers)
    return Answer(question.nearest(numbers))


class RandomLLM(WritingLLM):
    """Answers at random: one option, or any possible selection of several, all equally likely; it may write, too.

    Args:
        seed: identifies what is drawn.
        can: the kinds of requests that it answers. A text is a few of its words; an object has random values of its
            schema; a turn is a text and calls of offered tools with random arguments.
        words: the parts of its texts: words, markers, halves of markers, spaces; and the names of tools that it calls
            without being offered them.
        most: the maximum number of words in a text.
        lies: the probability that a call is not one of an offered tool with arguments by its schema.
        piece: the number of characters in each piece of a streamed text.
    """

    def __init__(
        self,
        seed: int = 0,
        *,
        can: Collection[str] = LLM.can,
        words: Sequence[str] = ("so ", "then ", "42 "),
        most: int = 8,
        lies: float = 0.0,
        piece: int = 3,
    ) -> None:
        self._random, self._texts = random.Random(seed), random.Random(seed)
        self.can, self._words, self._most, self._lies, self.piece = can, tuple(words), most, lies, piece

    def answer(self, request: Question, /) -> Answer:
        """Return a random legal answer."""
        if isinstance(request, TextRequest):
            return self._as_written(request, self._draw_text(request))
        if request.several:
            return _draw_several(request, self._random)
        return Answer((self._random.randrange(len(request.options)) + 1,))

    def _draw_text(self, request: TextRequest) -> object:
        rng = self._texts
        if request.schema is not None:
            return json.dumps(self._draw_value(request.schema, request.schema.get("$defs", {})))
        if "call" not in self.can:
            return "".join(rng.choices(self._words, k=rng.randint(0, self._most)))
        text = self._draw_words(0, self._most // 2)
        if request.tools is None:
            return text
        calls: list[tuple[str, str]] = []
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3)) or int(request.must_call and rng.random() >= self._lies)):
            tool = rng.choice(request.tools) if request.tools else None
            if tool is None or rng.random() < self._lies:
                calls.append((rng.choice(self._words).strip(), rng.choice(("{}", "", "[1", '{"x": 1}', "null"))))
            else:
                drawn = self._draw_value(tool.parameters, tool.parameters.get("$defs", {}))
                calls.append((tool.name, json.dumps(drawn)))
        return text, calls

    def _draw_words(self, least: int, most: int) -> str:
        return " ".join(word.strip() for word in self._texts.choices(self._words, k=self._texts.randint(least, most)))

    def _draw_value(self, schema: Mapping[str, Any], definitions: Any) -> object:
        rng = self._texts
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
                size = rng.randint(least, max(least, most))
                return [self._draw_value(schema["items"], definitions) for _ in range(size)]
            case "string":
                least, most = schema.get("minLength", 0), schema.get("maxLength", 100)
                return self._draw_words(1, 3)[:most].ljust(least, "x")
            case "integer" | "number":
                least = schema.get("minimum", -5)
                return rng.randint(math.ceil(least), math.floor(schema.get("maximum", max(least, 5))))
            case kind:
                return None if kind == "null" else rng.random() < 0.5

    def draw_seed(self) -> int:
        """Draw a seed for another double, such as one that writes."""
        return self._random.randrange(1_000) + 1


class WeightedLLM(LLM):
    """Answers with probabilities, like a language model: always the same ones for the same question.

    They look random, but are a function of the seed and of the question (task, chat, options), so two doubles with the
    same seed are the same model, in whatever order they are asked. The probabilities are normalised exponential draws:
    uniform over all distributions (a flat Dirichlet distribution), unless ``sharpness`` is set.

    Args:
        seed: identifies the model.
        sharpness: the power to which each draw is raised: 0 makes all options equally probable, 1 is the flat
            distribution; the larger it is, the surer the model is of one option.
    """

    def __init__(self, seed: int = 0, *, sharpness: float = 1.0) -> None:
        self._seed = seed
        self._sharpness = sharpness

    def answer(self, question: Question, /) -> Answer:
        """Return the most probable option with all probabilities; for several a random selection without any."""
        texts = [option.text for option in question.options]
        messages = [tuple(message.to_data().values()) for message in question.messages]
        content = repr((self._seed, question.task, messages, texts))
        rng = random.Random(hashlib.sha256(content.encode()).digest())
        if question.several:
            return _draw_several(question, rng)
        weights = [rng.expovariate(1.0) ** self._sharpness for _ in texts]
        total = sum(weights)
        likely = {number: weight / total for number, weight in enumerate(weights, 1)}
        return Answer((max(likely, key=likely.__getitem__),), likely)


class ScriptedLLM(WritingLLM):
    """Gives prepared answers in turn, then fails.

    Args:
        answers: for each question a number, several numbers, text, or an :class:`Answer`.
        texts: for each :class:`~formal_llm.llms.TextRequest` what :class:`FunctionLLM` accepts: a text, an object, or a
            text and calls; None if it only chooses.
        can: the kinds of requests that it answers; by default it also writes and continues texts if there are some.
        piece: the number of characters in each piece of a streamed text.

    Attributes:
        questions, requests: the questions, and the requests for texts, so far.
    """

    def __init__(
        self,
        answers: Iterable[AnswerLike] = (),
        texts: Iterable[object] | None = None,
        *,
        can: Collection[str] | None = None,
        piece: int = 3,
    ) -> None:
        self._answers, self._texts = iter(answers), iter(texts or ())
        self.can = can or (LLM.can if texts is None else TEXTS)
        self.piece = piece
        self._problem = ""
        self.questions: list[Question] = []
        self.requests: list[TextRequest] = []

    @classmethod
    def from_text(cls, text: str) -> ScriptedLLM:
        """Read the answers from a text such as ``1,3,2``; ``2+3`` chooses several options at once."""
        return cls([[int(number) for number in part.split("+")] for part in text.split(",")])

    def answer(self, request: Question, /) -> Answer:
        """Return the next answer, or the next text, of the script.

        Raises:
            InvalidAnswer: the script has no more answers or objects, or the next one is not legal here.
            LLMError: the script has no more texts.
        """
        if not isinstance(request, TextRequest):
            return self._choose(request)
        self.requests.append(request)
        try:
            return self._as_written(request, next(self._texts))
        except StopIteration:
            if request.schema is not None:
                raise InvalidAnswer("the script has no more objects", [(request.prompt, "")], TokenUsage()) from None
            raise LLMError(f"the script ended before text {len(self.requests)}") from None

    def _choose(self, question: Question) -> Answer:
        self.questions.append(question)
        try:
            answer = next(self._answers)
        except StopIteration:
            place = sum(not asked.complaint for asked in self.questions)  # repeated questions count once
            why = f"the script ended before question {place}"
            if question.complaint and self._problem:
                why = f"{self._problem}; and the script has no answer after that one, which was for question {place}"
            raise InvalidAnswer(why, [(question.prompt, "")]) from None
        try:
            return question.check(answer)
        except InvalidAnswer as error:
            self._problem = error.problem
            raise


class Person(LLM):
    """Shows each question and reads lines until one is a legal answer, so typing errors cost nothing."""

    def __init__(self, reads: TextIO | None = None, writes: TextIO | None = None) -> None:
        self._reads = reads
        self._writes = writes
        self._asking = threading.Lock()  # a person answers one question at a time

    def answer(self, question: Question, /) -> Answer:
        """Return the answer that the person typed.

        Raises:
            LLMError: the input ended.
        """
        with self._asking:
            return self._read_answer(question, self._reads or sys.stdin, self._writes or sys.stderr)

    def _read_answer(self, question: Question, reads: TextIO, writes: TextIO) -> Answer:
        writes.write(visible(f"\n{question.prompt}\n"))
        while True:
            writes.write("> ")
            writes.flush()
            line = reads.readline()
            if not line:
                raise LLMError("the input ended before the plan was finished")
            try:
                return question.check(line.rstrip("\n"))
            except InvalidAnswer as error:
                writes.write(visible(f"{question.again(error.problem).complaint}\n"))
