"""Simple answerers (functions, chance, scripts, a person), for tests and baselines, as public as the real LLMs."""

from __future__ import annotations

import hashlib
import inspect
import random
import sys
import threading
import weakref
from collections.abc import Awaitable, Callable, Iterable
from typing import TextIO, cast

from formal_llm.errors import InvalidAnswer, LLMError, visible
from formal_llm.llms.question import Answer, AnswerLike, Question


class FunctionLLM:
    """Answers with a function of the question, which returns an :class:`Answer`, a number, or a text to read."""

    def __init__(self, function: Callable[[Question], AnswerLike]) -> None:
        self._function = function

    def choose(self, question: Question) -> Answer:
        """Return the function's answer, checked."""
        returned: object = self._function(question)
        if inspect.iscoroutine(returned):
            returned.close()
            raise TypeError("the function returns a coroutine, not an answer; wrap it: AsyncFunctionLLM(function)")
        return question.check(returned)


class AsyncFunctionLLM:
    """Answers with an ``async def`` function of the question, so that many questions can be asked concurrently.

    In synchronous code (``Planner.plan``) each question runs to its end on an event loop that is kept for each thread,
    so whatever the function opened for one question, such as connections, is still there for the next.
    """

    def __init__(self, function: Callable[[Question], Awaitable[AnswerLike]]) -> None:
        self._function = function
        self._own = threading.local()

    async def achoose(self, question: Question) -> Answer:
        """Return the function's answer, checked."""
        return question.check(await self._function(question))

    async def aclose(self) -> None:
        """Do nothing: whatever the function opened is its own."""

    def choose(self, question: Question) -> Answer:
        """Like :meth:`achoose`, for synchronous code.

        Raises:
            LLMError: an event loop is running in this thread, and would be blocked.
        """
        import asyncio

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise LLMError("an event loop is running: await achoose(question), or use what drives walks asynchronously")
        runner: asyncio.Runner | None = getattr(self._own, "runner", None)
        if runner is None:
            runner = self._own.runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
            weakref.finalize(self, runner.get_loop().close)
        return runner.run(self.achoose(question))


def of_function(
    function: Callable[[Question], AnswerLike] | Callable[[Question], Awaitable[AnswerLike]],
) -> FunctionLLM | AsyncFunctionLLM:
    """Return an LLM that answers with a function, ``async def`` or not."""
    # An object is asynchronous if its ``__call__`` is.
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return AsyncFunctionLLM(cast("Callable[[Question], Awaitable[AnswerLike]]", function))
    return FunctionLLM(cast("Callable[[Question], AnswerLike]", function))


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


class RandomLLM:
    """Answers at random: one option, or any possible selection of several, all equally likely."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def choose(self, question: Question) -> Answer:
        """Return a random legal answer."""
        if question.several:
            return _draw_several(question, self._random)
        return Answer((self._random.randrange(len(question.options)) + 1,))

    def draw_seed(self) -> int:
        """Draw a seed for another double, such as one that writes."""
        return self._random.randrange(1_000) + 1


class WeightedLLM:
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

    def choose(self, question: Question) -> Answer:
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


class ScriptedLLM:
    """Gives prepared answers in turn, then fails.

    Args:
        answers: for each question a number, several numbers, text, or an :class:`Answer`.
    """

    def __init__(self, answers: Iterable[AnswerLike]) -> None:
        self._answers = iter(answers)
        self._problem = ""
        self.questions: list[Question] = []

    @classmethod
    def from_text(cls, text: str) -> ScriptedLLM:
        """Read the answers from a text such as ``1,3,2``; ``2+3`` chooses several options at once."""
        return cls([[int(number) for number in part.split("+")] for part in text.split(",")])

    def choose(self, question: Question) -> Answer:
        """Return the next answer of the script.

        Raises:
            InvalidAnswer: the script has no more answers, or the next one is not legal here.
        """
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


class Person:
    """Shows each question and reads lines until one is a legal answer, so typing errors cost nothing."""

    def __init__(self, reads: TextIO | None = None, writes: TextIO | None = None) -> None:
        self._reads = reads
        self._writes = writes

    def choose(self, question: Question) -> Answer:
        """Return the answer that the person typed.

        Raises:
            LLMError: the input ended.
        """
        reads, writes = self._reads or sys.stdin, self._writes or sys.stderr
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
