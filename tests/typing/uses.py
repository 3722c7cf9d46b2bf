"""How the library is used, right and wrong. Not run: two type checkers read it, and must flag just the marked lines.

A line that ends with ``# wrong`` is a mistake that types exist to show; every other line is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from formal_llm import (
    CFG,
    PDA,
    Answer,
    Automaton,
    Behaviour,
    Budget,
    Executor,
    Flowchart,
    Limits,
    Lookahead,
    Plan,
    Planner,
    Question,
    Task,
    TaskPack,
    Toolkit,
    Walk,
    constraint,
    tool,
    verify,
)
from formal_llm.errors import BudgetExceeded, NoValidPlan

cfg = CFG.from_string("S -> wash S | dry")
chart = Flowchart.from_string("flowchart TD\n A[Wash] --> B[Dry]")
behaviour = Behaviour.load("react")
pda = PDA.from_cfg(cfg)


# -- what a planner takes ---------------------------------------------------------------------------------------------


def choose(question: Question) -> int:
    return len(question.options)


def answer(question: Question) -> Answer:
    return Answer((1,))


async def wait(question: Question) -> int:
    return 1


planner = Planner(cfg, "test:first")
Planner(chart, choose)
Planner(behaviour, answer)
Planner(pda, wait, budget=Budget(questions=5))
Planner(cfg & constraint("(not (eventually (next dry wash)))", cfg))
Planner(cfg, limits=Limits(at_most={"wash": 3}), search="best-first")
Planner("S -> wash S | dry")  # wrong
Planner("test:first", cfg)  # wrong
Planner(cfg, None)  # wrong
Planner(cfg, "test:first", search="breadth-first")  # wrong
Planner(cfg, limits={"wash": 3})  # wrong
Planner(cfg, budget=5)  # wrong
Planner(42)  # wrong


# -- plans ------------------------------------------------------------------------------------------------------------

plan: Plan = planner.plan("do the laundry")
word: tuple[str, ...] = plan.word
length: str = plan.word  # wrong
planner.plan(Task("do the laundry", goal="S"))
planner.plan(42)  # wrong
print(plan.nothing)  # wrong
walk: Walk = planner.start("do the laundry")
question = walk.question
print(question.options)  # wrong
if question is not None:
    walk.answer(Answer((1,)))
walk.answer("yes")  # wrong
outcomes = planner.plan_all(["one", Task("two")], concurrency=4)
plans: list[Plan | None] = [outcome.plan for outcome in outcomes]
ok: bool = verify(plan, cfg).valid
steps: int = Lookahead(cfg).count()
Lookahead(cfg).count(of="trees")  # wrong
pack: TaskPack = TaskPack.load("openagi")

try:
    planner.plan("x")
except NoValidPlan as error:
    reason: str = error.reason
except BudgetExceeded as error:
    kind: int = error.kind  # wrong


# -- an automaton of one's own ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tick:
    read: str | None


class Clock:
    """Strikes twelve at most."""

    def start(self) -> int:
        return 0

    def moves(self, configuration: int) -> Sequence[Tick]:
        return [Tick("strike")] if configuration < 12 else []

    def step(self, configuration: int, move: Tick) -> int:
        return configuration + 1

    def accepting(self, configuration: int) -> bool:
        return configuration > 0


class Sundial:
    """No automaton: it has no step."""

    def start(self) -> int:
        return 0


def first_moves(automaton: Automaton[int, Tick]) -> Iterator[str | None]:
    for move in automaton.moves(automaton.start()):
        yield move.read


Planner(Clock())
list(first_moves(Clock()))
Planner(Sundial())  # wrong
first_moves(pda)  # wrong


# -- tools ------------------------------------------------------------------------------------------------------------


@tool
def wash(text: str) -> str:
    """Wash a text."""
    return text.strip()


toolkit = Toolkit([wash])
Executor(toolkit)
Executor("toolkit")  # wrong
Toolkit(["wash"])  # wrong
clean: str = wash(" a ")
wash(3)  # wrong
number: int = wash("a")  # wrong
