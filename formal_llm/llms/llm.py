"""The base class of all models, and asking one with a bounded number of tries.

There is one way of asking: ``submit`` takes requests and returns futures. ``ask`` waits for one answer, ``aask`` awaits
one, ``stream`` yields a text piece by piece. A request is a :class:`~formal_llm.llms.Question` or a
:class:`~formal_llm.llms.text_request.TextRequest`; what a model can answer is data (``can``)::

    class Mine(LLM):
        def answer(self, question):          # or: async def answer
            return len(question.options)     # a number, a text to read, or an Answer
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeAlias

from formal_llm.errors import InvalidAnswer, LLMError, UnreadableResponse, WritesNoText
from formal_llm.llms.question import READS, Answer, Message, Question
from formal_llm.llms.text_request import TextRequest, in_one_piece
from formal_llm.llms.usage import TokenUsage

#: The kinds of requests: to choose an option; to write the next message of a chat; to continue a text; to write an
#: object of a schema; to write by a grammar; to take a turn with tools; and whether given texts can be scored.
KINDS = frozenset({"choose", "write", "continue", "object", "grammar", "call", "score"})
#: The end of a stream.
_END = Answer(())
#: How many requests to a model that is awaited are under way at once.
AWAITED = 32


class LLM:
    """Whatever answers requests: a model, a person, a function.

    A subclass defines one of three methods, and everything else follows: ``answer`` for one request (``async def`` or
    not); ``answer_all`` for several that are answered faster together; ``submit`` for those that nobody waits for.

    Attributes:
        name: its name: the provider string if there is one.
        identity: what distinguishes its answers from those of others, as JSON data: the name and the settings. None if
            that is unknown; then its answers are not kept in a cache without a name.
        reads: what its answers depend on, of :data:`~formal_llm.llms.question.READS`.
        can: the kinds of requests that it answers, of :data:`KINDS`.
        at_once: the number of requests that are best under way at once.
        blocks: whether ``submit`` returns only when everything is answered.
        wording: the name of the wording that it reads best; empty if it has no preference.
        drafts: whether it plans best if it writes a whole plan (``search="draft"``), as large language models do.
        knows_steps: returns whether it plans best if it is asked for all of some steps at once (``search="exact"``).
    """

    name: str = ""
    identity: Mapping[str, object] | None = None
    reads: frozenset[str] = READS
    can: Collection[str] = frozenset({"choose"})
    at_once: int = 1
    blocks: bool = True
    wording: str = ""
    drafts: bool = False
    knows_steps: Callable[[Iterable[str]], bool] | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "answer" in vars(cls):
            cls.blocks = not inspect.iscoroutinefunction(cls.answer)
            if not cls.blocks and "at_once" not in vars(cls):
                cls.at_once = AWAITED

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>" if self.name else f"<{type(self).__name__}>"

    # -- defined by subclasses --------------------------------------------------------------------------------------

    def answer(self, request: Any, /) -> Any:
        """Answer one request with an :class:`Answer`, or anything that ``request.check`` makes one of.

        Raises:
            InvalidAnswer: the answer cannot be read; it is asked for again.
            LLMError: there is no answer.
        """
        raise NotImplementedError(f"{type(self).__name__} defines neither answer nor answer_all nor submit")

    def answer_all(self, requests: Sequence[Question], /) -> Sequence[Answer | Exception]:
        """Answer requests together; the answers, or the errors in their places, are in the order of the requests."""
        return [self._try_answer(request) for request in requests]

    def submit(self, requests: Sequence[Question], /) -> list[Future[Answer]]:
        """Ask; each future gets the answer to its request, or the error. To cancel a future ends its request.

        A text by a schema is asked of a model that only writes by showing it the schema.
        """
        if self.blocks:
            return [settled(outcome) for outcome in self._answer_here(requests)]
        from formal_llm.llms.background import run_on_loop

        fitting = [self._fit(request) for request in requests]
        return [run_on_loop(self._await_answer(one)) if isinstance(one, Question) else settled(one) for one in fitting]

    # -- asking -----------------------------------------------------------------------------------------------------

    def ask(self, request: Question, /) -> Answer:
        """Return the answer to one request; who stops waiting (Ctrl-C) ends it.

        Raises:
            WritesNoText: it does not answer requests of this kind.
            InvalidAnswer: the answer cannot be read.
            LLMError: there is no answer.
        """
        kind = type(self)
        if self.blocks and kind.submit is LLM.submit and kind.answer_all is LLM.answer_all:  # no future is needed
            fit = self._fit(request)
            outcome = self._try_answer(fit) if isinstance(fit, Question) else fit
            if isinstance(outcome, Exception):
                raise outcome
            return outcome
        (future,) = self.submit([request])
        try:
            if not future.done():
                from formal_llm.llms.background import refuse_waiting

                refuse_waiting()
            return future.result()
        finally:
            future.cancel()

    async def aask(self, request: Question, /) -> Answer:
        """Like :meth:`ask`, without blocking the event loop."""
        import asyncio  # imported here: it takes half of this library's import time, and is rarely needed

        (future,) = submit_in_thread(self, [request]) if self.blocks else self.submit([request])
        return await asyncio.wrap_future(future)

    def stream(self, request: TextRequest, /) -> Generator[str | Answer]:
        """Yield the pieces of a text, and last of all the whole; here in one piece. Close it to stop early.

        Raises:
            LLMError: as of :meth:`ask`.
        """
        yield from in_one_piece(self.ask(request))

    async def astream(self, request: TextRequest, /) -> AsyncGenerator[str | Answer]:
        """Like :meth:`stream`, without blocking the event loop."""
        import asyncio

        if type(self).stream is LLM.stream:
            for part in in_one_piece(await self.aask(request)):
                yield part
            return
        parts = self.stream(request)
        try:
            while True:
                piece = await asyncio.to_thread(next, parts, _END)
                if piece is _END:
                    return
                yield piece
        finally:
            await asyncio.to_thread(parts.close)

    def log_probabilities(
        self,
        messages: str | Sequence[Message],  # noqa: ARG002  # for models that can "score"
        texts: Sequence[str],  # noqa: ARG002
        /,
    ) -> Sequence[tuple[float, int]] | None:
        """Return for each text the logarithm of its probability as the answer to a chat, and its number of tokens.

        None if the model reports no probabilities of texts.
        """
        return None

    # -- inside -----------------------------------------------------------------------------------------------------

    def _fit(self, request: Question) -> Question | LLMError:
        """Return a request as this model can answer it, or the error that it cannot."""
        if request.kind in self.can:
            return request
        if request.kind == "object" and "write" in self.can and isinstance(request, TextRequest):
            return request.show_schema()
        return WritesNoText(self, request.wants)

    def _answer_here(self, requests: Sequence[Question]) -> Sequence[Answer | Exception]:
        """Answer requests in this thread; the answers, or the errors in their places."""
        fitting = [self._fit(request) for request in requests]
        due = [one for one in fitting if isinstance(one, Question)]
        try:
            answers = self.answer_all(due) if due else ()
            if len(answers) != len(due):
                raise LLMError(f"{self!r} gave {len(answers)} answers to {len(due)} requests")
        except Exception as error:
            return [error] * len(requests)
        if len(due) == len(requests):
            return answers
        left = iter(answers)
        return [next(left) if isinstance(one, Question) else one for one in fitting]

    def _try_answer(self, request: Question) -> Answer | Exception:
        try:
            return as_answer(request, self.answer(request))
        except StopIteration as error:  # would end whatever generator asked
            return RuntimeError(f"{self!r} raised StopIteration: {error}")
        except Exception as error:
            return error

    async def _await_answer(self, request: Question) -> Answer:
        return as_answer(request, await self.answer(request))


def as_answer(request: Question, returned: object) -> Answer:
    """Return what answered a request as an answer; an :class:`Answer` is returned as it is."""
    return returned if isinstance(returned, Answer) else request.check(returned)


# -- futures --------------------------------------------------------------------------------------------------------


def settle(future: Future[Answer], outcome: object) -> None:
    """Give a future its answer or error, unless it was cancelled."""
    with suppress(InvalidStateError):
        if isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)  # type: ignore[arg-type]


def settled(outcome: Answer | Exception) -> Future[Answer]:
    """Return a future that has its answer or error already."""
    future: Future[Answer] = Future()
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
    return future


def outcome_of(future: Future[Answer]) -> Answer | Exception:
    """Return the answer of a future that is done, or its error."""
    error = future.exception()
    if error is None:
        return future.result()
    if not isinstance(error, Exception):
        raise error
    return error


def submit_in_thread(
    llm: LLM, requests: Sequence[Question], start: Callable[[Callable[[], None]], object] | None = None
) -> list[Future[Answer]]:
    """Like ``llm.submit``, in another thread, for a model that blocks.

    Args:
        llm: the model.
        requests: what it is asked.
        start: starts the work in a thread; by default in a new one, which does not keep the program from ending.
    """
    futures: list[Future[Answer]] = [Future() for _ in requests]

    def work() -> None:
        try:
            for future, inner in zip(futures, llm.submit(requests), strict=True):
                future.add_done_callback(lambda ended, inner=inner: ended.cancelled() and inner.cancel())  # type: ignore[misc]
                inner.add_done_callback(lambda ended, future=future: _copy(ended, future))  # type: ignore[misc]
        except BaseException as error:
            for future in futures:
                settle(future, error)

    if start is None:
        threading.Thread(target=work, name="formal-llm", daemon=True).start()
    else:
        start(work)
    return futures


def _copy(ended: Future[Answer], future: Future[Answer]) -> None:
    if ended.cancelled():
        future.cancel()
    else:
        settle(future, ended.exception() or ended.result())


# -- until the answer is legal --------------------------------------------------------------------------------------

#: Yields questions, receives answers (or has ``InvalidAnswer`` thrown into it), and returns the final answer.
Asking: TypeAlias = Generator[Question, Answer, Answer]


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
