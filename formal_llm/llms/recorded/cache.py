"""A cache of answers: the same question to the same model is paid for once.

Two questions are the same if they show the same (chat, options); two models, if their ``identity`` (name and settings)
is the same. So a change of the wording, of the rules or of a setting is asked anew, and nothing old gets in its way.
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

#: What probabilities sum to at most; sums of roundings may pass 1 by a little.
_ONE = 1.001


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache did since it was opened here.

    Attributes:
        hits: questions answered without asking the LLM.
        misses: questions that the LLM was asked.
        saved: what the answers of the hits cost when they were made.
    """

    hits: int = 0
    misses: int = 0
    saved: TokenUsage = field(default_factory=TokenUsage)


class CachedLLM(WrapperLLM):
    """An LLM whose answers are kept in an SQLite file.

    Threads, coroutines and processes may share one file. While a question is on its way, the same question from another
    coroutine, or from another thread, is not sent: it waits for the answer to the first.

    Only legal answers are kept. An answer from the cache costs nothing, and is checked against the question like any
    other; a damaged entry counts as none and is replaced. A model that answers at random is held to its first answer.

    Args:
        llm: who answers what the cache does not know: a provider string, a function or an object.
        path: the file; made if it is not there.
        name: distinguishes this LLM from others in the file; needed where it has no ``identity`` of its own, such as a
            function. It should change whenever the answers would. An LLM that looks at more than the chat and the
            options (the task, the outlook) is not one to cache.

    Raises:
        ValueError: the LLM has no ``identity``, and no name was given.
        AnswerFileError: the file cannot be used; also while answering.
    """

    def __init__(self, llm: LLMLike, path: str | os.PathLike[str], *, name: str | None = None) -> None:
        super().__init__(llm)
        if name is None and super().identity is None:
            raise ValueError(
                f"{type(self.llm).__name__} has no identity that tells its answers apart from those of other LLMs; "
                "give the cache a name for it: CachedLLM(llm, path, name=...)"
            )
        self._alias = name
        self._store = AnswerStore(path)
        self._stats = CacheStats()
        self._counting = threading.Lock()
        self._flights: dict[tuple[Any, str], _Flight] = {}

    @property
    def identity(self) -> dict[str, object]:
        """The identity of the LLM behind, as JSON data; with the name, where one was given."""
        return {**(super().identity or {}), **({} if self._alias is None else {"name": self._alias})}

    @property
    def stats(self) -> CacheStats:
        """What the cache did since it was opened here."""
        return self._stats

    def __len__(self) -> int:
        """How many answers the file holds, of all LLMs."""
        return len(self._store)

    def close(self) -> None:
        """Close the file. The LLM behind is left as it is."""
        self._store.close()

    # -- asking -------------------------------------------------------------------------------------------------

    def choose(self, question: Question) -> Answer:
        """The answer in the cache; else that of the LLM, which is then kept.

        Raises:
            InvalidAnswer: the LLM gave no legal answer.
            AnswerFileError: the file cannot be read or written any more.
        """
        key = self._key(question)
        # A child of this process does not wait for a question that its parent has sent.
        place = (os.getpid(), key)
        while True:
            mine = _Flight(threading.Event())
            flight = self._flights.setdefault(place, mine)
            if flight is mine:
                with self._leading(place, flight):
                    known = self._known(key, question, flight)
                    return known or self._new(key, question, flight, answered(self.llm, question))
            flight.landed.wait()
            if flight.outcome is not None:
                return self._shared(question, flight.outcome)

    async def _achoose(self, question: Question) -> Answer:
        import asyncio

        key = self._key(question)
        # Each event loop waits for its own: a loop must not be held up by another one.
        place = (asyncio.get_running_loop(), key)
        while True:
            mine = _Flight(asyncio.Event())
            flight = self._flights.setdefault(place, mine)
            if flight is mine:
                with self._leading(place, flight):
                    known = self._known(key, question, flight)
                    return known or self._new(key, question, flight, await aanswered(self._awaited, question))
            await flight.landed.wait()
            if flight.outcome is not None:
                return self._shared(question, flight.outcome)

    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        keys = [self._key(question) for question in questions]
        found = [self._find(key, question) for key, question in zip(keys, questions, strict=True)]
        first: dict[str, int] = {}  # where a question that must be asked stands for the first time
        for number, key in enumerate(keys):
            if found[number] is None:
                first.setdefault(key, number)
        came: dict[str, Answer | LLMError] = {}
        if first:
            asked = [questions[number] for number in first.values()]
            self._missed(len(asked))
            said = all_answered(self._batched, asked)
            came = {key: checked(q, outcome) for key, q, outcome in zip(first, asked, said, strict=True)}
            self._keep([(key, answer) for key, answer in came.items() if isinstance(answer, Answer)])

        def outcome(number: int, key: str, answer: Answer | None) -> Answer | LLMError:
            if answer is not None:
                return self._hit(answer)
            if first[key] == number:
                return came[key]
            try:
                return self._shared(questions[number], came[key])
            except LLMError as error:
                return error

        return [outcome(number, *entry) for number, entry in enumerate(zip(keys, found, strict=True))]

    # -- one question, many who ask it --------------------------------------------------------------------------

    @contextmanager
    def _leading(self, place: tuple[Any, str], flight: _Flight) -> Iterator[None]:
        """Ask for all who wait. What goes wrong they learn too; only if it is broken off, one of them asks anew."""
        try:
            yield
        except Exception as error:
            # Where the answer came and could not be kept, those who wait have it all the same.
            flight.outcome = flight.outcome or error
            raise
        finally:
            del self._flights[place]
            flight.landed.set()

    def _known(self, key: str, question: Question, flight: _Flight) -> Answer | None:
        """The answer in the file, for all who wait; None where the LLM has to be asked."""
        flight.outcome = self._find(key, question)
        if flight.outcome is not None:
            return self._hit(flight.outcome)
        self._missed(1)
        return None

    def _new(self, key: str, question: Question, flight: _Flight, answer: Answer) -> Answer:
        """The answer that the LLM gave, for all who wait, and for the file."""
        flight.outcome = answer = question.check(answer)
        self._keep([(key, answer)])
        return answer

    def _shared(self, question: Question, outcome: Answer | Exception) -> Answer:
        """What came back for another one that asked the same; it was paid for there."""
        if isinstance(outcome, InvalidAnswer):
            raise InvalidAnswer(outcome.problem, outcome.transcript)
        if isinstance(outcome, Exception):
            raise outcome
        return question.check(self._hit(outcome))

    # -- entries ------------------------------------------------------------------------------------------------

    def _key(self, question: Question) -> str:
        text = json.dumps([self.identity, question.content], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def _find(self, key: str, question: Question) -> Answer | None:
        """The answer under a key, with what it cost; None where there is none that answers the question."""
        text = self._store.get(key)
        if text is None:
            return None
        try:
            answer = question.check(answer_from_data(parse_json(text, once=True)))
        except (ValueError, InvalidAnswer):
            return None
        return answer if _are_probabilities(answer, question) else None

    def _keep(self, answers: Sequence[tuple[str, Answer]]) -> None:
        self._store.put((key, self.name, json.dumps(answer_to_data(answer))) for key, answer in answers)

    def _hit(self, answer: Answer) -> Answer:
        """The answer as one that costs nothing."""
        with self._counting:
            hits, saved = self._stats.hits + 1, self._stats.saved + answer.usage
            self._stats = replace(self._stats, hits=hits, saved=saved)
        return replace(answer, usage=TokenUsage())

    def _missed(self, count: int) -> None:
        with self._counting:
            self._stats = replace(self._stats, misses=self._stats.misses + count)


def _are_probabilities(answer: Answer, question: Question) -> bool:
    """Whether the figures of an answer for the options of a question can be their probabilities."""
    likely = answer.probabilities or {}
    if not all(1 <= number <= len(question.options) and 0 <= p <= _ONE for number, p in likely.items()):
        return False  # also what is no number, which compares with nothing
    return question.several or sum(likely.values()) <= _ONE


@dataclass(slots=True, eq=False)
class _Flight:
    """A question that is on its way to the LLM.

    Attributes:
        landed: set when it is over.
        outcome: the answer, with what it cost, or what went wrong; None if it was broken off.
    """

    landed: Any
    outcome: Answer | Exception | None = None
