"""Models around other models: a person where a model is not sure, the next model where the first one fails.

A wrapper is one generator. It yields what is to be asked, is sent the answer (or has the error thrown in), and returns
its own answer; nothing in it waits, so it is written once for all ways of asking::

    class Twice(Wrapper):
        def around(self, request):
            first, second = (yield request), (yield request)
            return first if first == second else (yield request)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import Any, Self, TypeAlias

from formal_llm.errors import LLMError, ProviderError
from formal_llm.llms.driven import resumed
from formal_llm.llms.llm import LLM, outcome_of, settle, settled, submit_in_thread
from formal_llm.llms.providers import LLMLike, resolve
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.text_request import TextRequest

#: What a wrapper yields: a request for the wrapped LLM, or for another one, or an answer to wait for.
Step: TypeAlias = Question | tuple[LLM, Question] | Future[Any]
#: The generator of a wrapper.
Steps: TypeAlias = Generator[Step, Any, Answer]
#: The seconds for which an LLM that failed is asked only after the others.
LEFT_ALONE = 30.0


class _Asked:
    """A request on its way through a wrapper."""

    __slots__ = ("future", "inner", "steps")

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.future: Future[Answer] = Future()
        self.inner: Future[Any] | None = None
        self.future.add_done_callback(self._pass_on_cancel)

    def resume(self) -> Step | None:
        """Send in what came; return what is to be asked next, or None at the end."""
        inner, self.inner = self.inner, None
        if self.future.cancelled() or (inner is not None and inner.cancelled()):
            self.steps.close()
            self.future.cancel()
            return None
        try:
            return resumed(self.steps, None if inner is None else outcome_of(inner))
        except StopIteration as end:
            settle(self.future, end.value)
        except Exception as error:
            settle(self.future, error)
        return None

    def _pass_on_cancel(self, future: Future[Answer]) -> None:
        if future.cancelled() and (inner := self.inner) is not None:
            inner.cancel()


class Wrapper(LLM, ABC):
    """An LLM around another one. A subclass defines ``around``; it can and reads what the wrapped LLM does.

    Attributes:
        llm: the wrapped LLM.
    """

    def __init__(self, llm: LLMLike) -> None:
        self.llm = resolve(llm)
        self.name = llm if isinstance(llm, str) else self.llm.name or type(self.llm).__name__
        self.identity, self.reads = self.llm.identity, self.llm.reads
        self.can = frozenset(self.llm.can) - {"score"}
        self.at_once, self.blocks = self.llm.at_once, self.llm.blocks
        self.wording, self.drafts, self.knows_steps = self.llm.wording, self.llm.drafts, self.llm.knows_steps

    @abstractmethod
    def around(self, request: Question) -> Steps:
        """Answer a request as a generator.

        It yields a request for the wrapped LLM, a pair of another LLM and a request, or a future to wait for.
        """

    def submit(self, requests: Sequence[Question], /) -> list[Future[Answer]]:
        """Ask; what is due of one LLM at the same time is asked together."""
        asked = [_Asked(self.around(request)) for request in requests]
        try:
            self._advance(asked, may_block=self.blocks)
        except BaseException:  # Ctrl-C while a model that blocks is asked
            for one in asked:
                one.steps.close()
            raise
        return [one.future for one in asked]

    def _advance(self, due: list[_Asked], *, may_block: bool) -> None:
        """Resume requests until each has ended or waits for an answer that is under way."""
        while due:
            by_llm: dict[int, tuple[LLM, list[tuple[_Asked, Question]]]] = {}
            waiting: list[tuple[_Asked, Future[Any]]] = []
            for one in due:
                step = one.resume()
                if isinstance(step, Future):
                    one.inner = step
                    waiting.append((one, step))
                elif step is not None:
                    llm, request = step if isinstance(step, tuple) else (self.llm, step)
                    by_llm.setdefault(id(llm), (llm, []))[1].append((one, request))
            for llm, some in by_llm.values():
                for (one, _), inner in zip(some, _submit(llm, [r for _, r in some], may_block=may_block), strict=True):
                    one.inner = inner
                    waiting.append((one, inner))
            due = []
            for one, inner in waiting:
                if one.future.cancelled():
                    inner.cancel()
                if inner.done():
                    due.append(one)
                else:
                    inner.add_done_callback(partial(self._continue, one))

    def _continue(self, one: _Asked, _: Future[Any]) -> None:
        # Called in whichever thread answered: a model that blocks is asked in a thread of its own.
        self._advance([one], may_block=False)

    def close(self) -> None:
        """Close the wrapper's file, if it has one; the wrapped LLM stays as it is."""
        return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _submit(llm: LLM, requests: Sequence[Question], *, may_block: bool) -> list[Future[Answer]]:
    try:
        return submit_in_thread(llm, requests) if llm.blocks and not may_block else llm.submit(requests)
    except Exception as error:
        return [settled(error) for _ in requests]


class SureLLM(Wrapper):
    """An LLM that answers only if it is sure; a person, or another LLM, answers the other questions.

    It is sure if its choice has at least a given probability, and unsure if its answer has no probabilities, as for
    selections. The other answerer is informed of what it would have chosen. Texts are always its own.

    Args:
        llm: the LLM that is asked first.
        least: the minimum probability of its choice, from 0 to 1.
        other: the LLM that answers if the first one is not sure.

    Attributes:
        asked, unsure: the number of questions, and of those that the other LLM answered.

    Raises:
        ValueError: the probability is not between 0 and 1.
    """

    def __init__(self, llm: LLMLike, least: float, other: LLMLike = "person") -> None:
        if not 0 <= least <= 1:
            raise ValueError(f"a probability is from 0 to 1, not {least}")
        super().__init__(llm)
        self.least = least
        self.other = resolve(other)
        first, second = self.llm.identity, self.other.identity
        #: None if one of them has none, as a person never does.
        self.identity = None if first is None or second is None else {**first, "least": least, "other": second}
        self.reads |= self.other.reads
        self.asked = self.unsure = 0

    def around(self, request: Question) -> Steps:
        """Return the answer of the first LLM if it is sure, or else that of the second."""
        answer = yield request
        again = self._build_doubt(request, answer)
        if again is None:
            return answer  # type: ignore[no-any-return]
        second: Answer = yield self.other, again
        return replace(second, usage=answer.usage + second.usage)

    def _build_doubt(self, question: Question, answer: Answer) -> Question | None:
        """Return the question for the other LLM; None if the first one is sure, or if a text was requested."""
        if isinstance(question, TextRequest):
            return None
        self.asked += 1
        share = (answer.probabilities or {}).get(answer.numbers[0]) if len(answer.numbers) == 1 else None
        if share is not None and share >= self.least:
            return None
        self.unsure += 1
        note = "" if share is None else f" (probability {share:.2f})"
        again = question.again("")
        hint = f"{self.name} would choose {', '.join(map(str, answer.numbers))}{note}."
        if not all(option.text in question.prompt for option in question.options):  # its wording lists none
            hint = "\n".join([*(f"{option.number}: {option.text}" for option in question.options), hint])
        again.complaint = f"{question.complaint}\n{hint}" if question.complaint else hint
        return again


class FallbackLLM(Wrapper):
    """Asks the first LLM, and the next one where its provider fails: ``openai:A,anthropic:B``.

    Only failures of a provider (:class:`~formal_llm.errors.ProviderError`: no connection, a refused key, a rate limit)
    lead to the next one. An answer that is not legal is an answer.

    Args:
        llms: the LLMs, the preferred one first.
        clock: returns the time in seconds.

    Raises:
        LLMError: there are less than two.
    """

    def __init__(self, llms: Iterable[LLMLike], clock: Callable[[], float] = monotonic) -> None:
        self.llms = [resolve(llm) for llm in llms]
        if len(self.llms) < 2:
            raise LLMError("a fallback needs two LLMs at least, as in openai:A,anthropic:B")
        super().__init__(self.llms[0])
        self.name = ",".join(llm.name or type(llm).__name__ for llm in self.llms)
        known = [llm.identity for llm in self.llms]
        self.identity = None if None in known else {"llm": self.name, "any of": known}
        self.reads = frozenset().union(*(llm.reads for llm in self.llms))
        # A model that writes is shown the schema of an object.
        kinds = [{*llm.can, *(["object"] if "write" in llm.can else [])} for llm in self.llms]
        self.can = frozenset(set.intersection(*kinds) - {"score"})
        self._clock = clock
        self._failed_at = [-LEFT_ALONE] * len(self.llms)

    def around(self, request: Question) -> Steps:
        """Return the answer of the first LLM whose provider does not fail.

        Raises:
            ProviderError: all failed; the error of the last one that was asked.
            InvalidAnswer: the one that answered gave no legal answer.
        """
        error: ProviderError | None = None
        for place, llm in self._list_by_preference():
            try:
                return (yield llm, request)  # type: ignore[no-any-return]
            except ProviderError as failed:
                self._failed_at[place] = self._clock()
                error = failed
        assert error is not None
        raise error

    def _list_by_preference(self) -> list[tuple[int, LLM]]:
        """The LLMs with their places; those that failed a short time ago come last."""
        now = self._clock()
        return sorted(enumerate(self.llms), key=lambda entry: now - self._failed_at[entry[0]] < LEFT_ALONE)
