"""What one case takes: the start, each question of a walk at random, and what is asked of plans afterwards."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import process_time
from typing import TypeVar

from benchmarks.hunting.rules import Problem
from formal_llm import Budget, Planner, RandomLLM
from formal_llm.errors import BudgetExceeded, FormalLLMError, InvalidAnswer, NoValidPlan
from formal_llm.llms.question import Answer, Question
from formal_llm.planning.checking.verify import Verifier
from formal_llm.planning.plans.usage import Verdicts

T = TypeVar("T")


class TooLong(Exception):
    """A case took more processor time than it may."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Let what is inside take so many seconds of processor time."""

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass(slots=True)
class Measured:
    """What a case took, in milliseconds of processor time.

    Attributes:
        start: from the rules to the first question.
        questions: each question: its prompt, its outlook, and what the walk does with the answer until the next one.
        parts: the worst of each part of a question, and of what is asked afterwards.
        verdicts: what decided the options.
        wasted: answers that going back undid.
        ended: how the walk ended: ``"plan"``, ``"no plan"``, ``"many questions"``, or the name of an error.
    """

    start: float = 0.0
    questions: list[float] = field(default_factory=list)
    parts: dict[str, float] = field(default_factory=dict)
    verdicts: Verdicts = field(default_factory=Verdicts)
    wasted: int = 0
    ended: str = ""

    def time(self, part: str, work: Callable[[], T]) -> T:
        """Do a part of a question, and note what it takes."""
        begun = process_time()
        try:
            return work()
        finally:
            taken = 1_000 * (process_time() - begun)
            self.parts[part] = max(taken, self.parts.get(part, 0.0))

    @property
    def worst(self) -> float:
        """The worst question."""
        return max(self.questions, default=0.0)

    @property
    def unknown(self) -> float:
        """The share of verdicts that were not decided."""
        counted = self.verdicts
        total = counted.filter + counted.search + counted.program + counted.unknown
        return counted.unknown / total if total else 0.0


def measure(problem: Problem, *, questions: int = 40, seconds: float = 20.0, solver: bool = False) -> Measured:
    """What a walk with answers at random takes, and what is asked of plans after it; cut off after so many seconds."""
    found = Measured()
    try:
        with at_most(seconds):
            word = _walk(problem, questions, found, solver)
            if word is not None:
                _afterwards(problem, word, found)
    except TooLong:
        found.ended += " (cut off)"
    return found


def _walk(problem: Problem, questions: int, found: Measured, solver: bool) -> tuple[str, ...] | None:
    llm = RandomLLM(0)
    budget = Budget(steps=problem.steps) if problem.steps is not None else None
    constraints = problem.constraints()
    walk = None
    begun = process_time()
    try:
        found.ended = "start"
        planner = Planner(problem.source, "test:first", constraints=constraints, budget=budget, solver=solver)
        walk = planner.start("a plan")
        _ = walk.question
        found.start = 1_000 * (process_time() - begun)
        while (question := walk.question) is not None:
            if len(found.questions) >= questions:
                found.ended = "many questions"
                return walk.word
            found.ended = f"question {len(found.questions) + 1}"
            before = process_time()
            found.time("prompt", lambda: question.prompt)  # called at once
            found.time("outlook", lambda: question.outlook)
            looked = process_time()
            answer = found.time("choosing", lambda: _chosen(question, llm))
            chosen = process_time()
            found.time("answer", lambda: walk.answer(answer))  # noqa: B023
            found.questions.append(1_000 * (process_time() - chosen + looked - before))
        found.ended = "plan"
        return walk.plan.word
    except NoValidPlan:
        found.ended = "no plan" if walk is None else "no plan after questions"
    except InvalidAnswer:
        found.ended += ": no answer"
    except BudgetExceeded as error:
        found.ended = f"budget of {error.kind}"
    finally:
        if walk is None or not found.start:
            found.start = 1_000 * (process_time() - begun)
        if walk is not None:
            found.verdicts, found.wasted = walk.usage.verdicts, walk.usage.wasted
    return None


def _chosen(question: Question, llm: RandomLLM) -> Answer:
    """An answer at random."""
    return question.check(llm.choose(question))


def _afterwards(problem: Problem, word: tuple[str, ...], found: Measured) -> None:
    """Verify the word, and the word with two mistakes in it, as a program does that checks plans."""
    rng = random.Random(0)
    names = list(problem.source.terminals)
    wrong = list(word)
    for _ in range(2):
        wrong.insert(rng.randint(0, len(wrong)), rng.choice(names))
    if wrong:
        del wrong[rng.randrange(len(wrong))]
    ended, found.ended = found.ended, "membership"
    try:
        found.time("membership", lambda: problem.source.accepts(word))
        verifier = Verifier(problem.source)
        found.ended = "verify"
        found.time("verify", lambda: verifier.verify(word))
        found.ended = "repair"
        found.time("repair", lambda: verifier.verify(wrong))
    except FormalLLMError as error:
        found.ended = f"{ended}; {type(error).__name__} afterwards"
    else:
        found.ended = ended
