"""A cache of answers: the same question to the same model is paid for once.

Two questions are the same if all that the model reads is: the chat and the options, and the task and the outlook (with
the descriptions of the steps) unless the model's ``reads`` leaves them out, as that of chat models does. Two models are
the same if their ``identity`` (name and settings) is. So after a change of the wording, of the rules or of a setting,
questions are asked again.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from formal_llm.authored.files import parse_json
from formal_llm.errors import InvalidAnswer, LLMError
from formal_llm.llms.llm import LLMLike, WrapperLLM, aanswered, all_answered, answered, checked
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.recorded.answer_data import answer_from_data, answer_to_data
from formal_llm.llms.recorded.answer_store import AnswerStore
from formal_llm.llms.usage import TokenUsage

#: The maximum sum of probabilities, which may exceed 1 slightly by rounding.
_ONE = 1.001


@dataclass(frozen=True, slots=True)
class CacheStats:
    """The statistics of a cache since it was opened here.

    Attributes:
        hits: the number of questions answered without the LLM.
        misses: the number of questions that the LLM was asked.
        saved: the original usage of the answers of the hits.
    """

    hits: int = 0
    misses: int = 0
    saved: TokenUsage = field(default_factory=TokenUsage)


class CachedLLM(WrapperLLM):
    """An LLM whose answers are kept in an SQLite file.

    Threads, coroutines and processes may share one file. While a question is being asked, the same question from
    another coroutine or thread is not sent, but waits for the answer to the first.

    Only legal answers are kept. An answer from the cache costs nothing, and is checked against the question like any
    other; a damaged entry is ignored and replaced. A model that answers at random keeps its first answer.

    Args:
        llm: the wrapped LLM: a provider string, a function or an object.
        path: the file, which is created if it does not exist.
        name: distinguishes this LLM from others in the file; required if it has no ``identity`` of its own, such as a
            function. It should change whenever the answers would.

    Raises:
        ValueError: the LLM has no ``identity`` and no name.
        AnswerFileError: the file cannot be used; also while answering.
    """

    def __init__(self, llm: LLMLike, path: str | os.PathLike[str], *, name: str | None = None) -> None:
        super().__init__(llm)
        if name is None and super().identity is None:
            raise ValueError(
                f"{type(self.llm).__name__} has no identity that distinguishes its answers from those of other LLMs; "
                "give the cache a name for it: CachedLLM(llm, path, name=...)"
            )
        self._alias = name
        self._store = AnswerStore(path)
        self._stats = CacheStats()
        self._counting = threading.Lock()
        self._flights: dict[tuple[Any, str], _Flight] = {}

    @property
    def identity(self) -> dict[str, object]:
        """The identity of the wrapped LLM, as JSON data; with the name, if there is one."""
        return {**(super().identity or {}), **({} if self._alias is None else {"name": self._alias})}

    @property
    def stats(self) -> CacheStats:
        """The statistics of the cache since it was opened here."""
        return self._stats

    def __len__(self) -> int:
        """Return the number of answers in the file, of all LLMs."""
        return len(self._store)

    def close(self) -> None:
        """Close the file; the wrapped LLM stays as it is."""
        self._store.close()

    # -- asking -------------------------------------------------------------------------------------------------

    def choose(self, question: Question) -> Answer:
        """Return the answer in the cache, or else that of the LLM, which is then kept.

        Raises:
            InvalidAnswer: the LLM gave no legal answer.
            AnswerFileError: the file cannot be read or written any more.
        """
        key = self._make_key(question)
        # A child process does not wait for a question that its parent has sent.
        place = (os.getpid(), key)
        while True:
            mine = _Flight(threading.Event())
            flight = self._flights.setdefault(place, mine)
            if flight is mine:
                with self._ask_for_all(place, flight):
                    known = self._find_known(key, question, flight)
                    return known or self._store_new(key, question, flight, answered(self.llm, question))
            flight.landed.wait()
            if flight.outcome is not None:
                return self._share_outcome(question, flight.outcome)

    async def _achoose(self, question: Question) -> Answer:
        import asyncio

        key = self._make_key(question)
        # Each event loop only waits for its own questions, since a loop must not block another one.
        place = (asyncio.get_running_loop(), key)
        while True:
            mine = _Flight(asyncio.Event())
            flight = self._flights.setdefault(place, mine)
            if flight is mine:
                with self._ask_for_all(place, flight):
                    known = self._find_known(key, question, flight)
                    return known or self._store_new(key, question, flight, await aanswered(self._awaited, question))
            await flight.landed.wait()
            if flight.outcome is not None:
                return self._share_outcome(question, flight.outcome)

    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        keys = [self._make_key(question) for question in questions]
        found = [self._find_answer(key, question) for key, question in zip(keys, questions, strict=True)]
        first: dict[str, int] = {}  # the first index of each question that must be asked
        for number, key in enumerate(keys):
            if found[number] is None:
                first.setdefault(key, number)
        outcomes: dict[str, Answer | LLMError] = {}
        if first:
            asked = [questions[number] for number in first.values()]
            self._count_misses(len(asked))
            answers = all_answered(self._batched, asked)
            outcomes = {key: checked(q, outcome) for key, q, outcome in zip(first, asked, answers, strict=True)}
            self._keep_answers([(key, answer) for key, answer in outcomes.items() if isinstance(answer, Answer)])

        def outcome(number: int, key: str, answer: Answer | None) -> Answer | LLMError:
            if answer is not None:
                return self._count_hit(answer)
            if first[key] == number:
                return outcomes[key]
            try:
                return self._share_outcome(questions[number], outcomes[key])
            except LLMError as error:
                return error

        return [outcome(number, *entry) for number, entry in enumerate(zip(keys, found, strict=True))]

    # -- concurrent equal questions -----------------------------------------------------------------------------

    @contextmanager
    def _ask_for_all(self, place: tuple[Any, str], flight: _Flight) -> Iterator[None]:
        """Ask for all that wait. They receive an error too; if the request is cancelled, one of them asks again."""
        try:
            yield
        except Exception as error:
            # If the answer could not be stored, those that wait receive it nevertheless.
            flight.outcome = flight.outcome or error
            raise
        finally:
            del self._flights[place]
            flight.landed.set()

    def _find_known(self, key: str, question: Question, flight: _Flight) -> Answer | None:
        """Return the answer in the file, also to all that wait; None if the LLM has to be asked."""
        flight.outcome = self._find_answer(key, question)
        if flight.outcome is not None:
            return self._count_hit(flight.outcome)
        self._count_misses(1)
        return None

    def _store_new(self, key: str, question: Question, flight: _Flight, answer: Answer) -> Answer:
        """Return the answer of the LLM, also to all that wait, and store it."""
        flight.outcome = answer = question.check(answer)
        self._keep_answers([(key, answer)])
        return answer

    def _share_outcome(self, question: Question, outcome: Answer | Exception) -> Answer:
        """Return the outcome of an equal question, whose usage was counted there."""
        if isinstance(outcome, InvalidAnswer):
            raise InvalidAnswer(outcome.problem, outcome.transcript)
        if isinstance(outcome, Exception):
            raise outcome
        return question.check(self._count_hit(outcome))

    # -- entries ------------------------------------------------------------------------------------------------

    def _make_key(self, question: Question) -> str:
        data: list[object] = [self.identity, question.content]
        if "task" in self.reads:
            data.append(question.task)
        if "outlook" in self.reads:
            data.append(repr(question.outlook))  # of dataclasses: all that is in it
        text = json.dumps(data, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def _find_answer(self, key: str, question: Question) -> Answer | None:
        """Return the answer under a key with its original usage; None if there is no valid one."""
        text = self._store.get(key)
        if text is None:
            return None
        try:
            answer = question.check(answer_from_data(parse_json(text, once=True)))
        except (ValueError, InvalidAnswer):
            return None
        return answer if _are_probabilities(answer, question) else None

    def _keep_answers(self, answers: Sequence[tuple[str, Answer]]) -> None:
        self._store.put((key, self.name, json.dumps(answer_to_data(answer))) for key, answer in answers)

    def _count_hit(self, answer: Answer) -> Answer:
        """Count a hit and return the answer without its usage."""
        with self._counting:
            hits, saved = self._stats.hits + 1, self._stats.saved + answer.usage
            self._stats = replace(self._stats, hits=hits, saved=saved)
        return replace(answer, usage=TokenUsage())

    def _count_misses(self, count: int) -> None:
        with self._counting:
            self._stats = replace(self._stats, misses=self._stats.misses + count)


def _are_probabilities(answer: Answer, question: Question) -> bool:
    """Return whether the numbers in an answer can be probabilities of the question's options."""
    likely = answer.probabilities or {}
    if not all(1 <= number <= len(question.options) and 0 <= p <= _ONE for number, p in likely.items()):
        return False  # also for values that are not numbers, whose comparisons are false
    return question.several or sum(likely.values()) <= _ONE


@dataclass(slots=True, eq=False)
class _Flight:
    """A question that is being asked.

    Attributes:
        landed: set at the end.
        outcome: the answer with its usage, or the error; None if the request was cancelled.
    """

    landed: Any
    outcome: Answer | Exception | None = None
