"""Cases that the search for bad cases (``benchmarks/strain_hunt.py``) has found: questions, and checks of plans."""

from __future__ import annotations

from functools import partial

from benchmarks.hunting.rules import problem
from benchmarks.strain_cases.case import Case, milliseconds, spread_of_questions
from formal_llm import CFG, Budget, Planner, RandomLLM
from formal_llm.errors import InvalidAnswer
from formal_llm.planning.checking.verify import Verifier

#: A week of activities of which four have to be done, and 500 tools under sums.
DAYS = {
    "activities": 60, "grain": 30, "hours": 2, "most": 0, "cost": 300, "uses": 0, "required": 4, "clock": 0,
    "windows": 0, "automaton": 0, "steps": 0, "formulas": 0, "seed": 28533,
}  # fmt: skip
WIDE = {"options": 500, "alike": 1, "shape": 2, "limit": 3, "sum": 2, "size": 1, "steps": 0, "seed": 830163}
#: Sums between two bounds over 200 tools, what some of them weigh under an exact one, and formulas beside limits.
TOOLS = {
    "three sums between bounds": "3 0 2 80 30 2 5 1 0 0 562429",
    "three exact sums": "3 0 1 50 100 3 0 2 1 0 250150",
    "five required, a formula": "0 5 1 10 30 0 20 3 3 1 1251",
    "a tree of calls, a formula": "0 0 1 10 30 1 0 1 4 1 657263",
}
_SETTINGS = "sums", "required", "size", "share", "weighed", "bound", "slack", "uses", "shape", "formulas", "seed"


def _asked(family: str, settings: dict[str, int], questions: int) -> dict[str, float | str]:
    """The outlooks and the answers of some questions."""
    made = problem(family, settings)
    assert made is not None
    budget = None if made.steps is None else Budget(steps=made.steps)
    walk = Planner(made.source, "test:first", solver=False, budget=budget).start("a plan")
    llm = RandomLLM(0)
    outlooks: list[float] = []
    answers: list[float] = []
    while len(answers) < questions and (question := walk.question) is not None:
        outlooks.append(milliseconds(lambda: question.outlook))  # called at once
        answers.append(milliseconds(partial(walk.answer, llm.choose(question))))
    return {"outlook worst": max(outlooks), **spread_of_questions(answers)}


def _checked() -> dict[str, float | str]:
    """A plan of three tools of 500 that lacks weight: what could come next, and the nearest plan."""
    made = problem("wide", WIDE)
    assert made is not None
    return {"check": milliseconds(lambda: Verifier(made.source).verify(("w1", "w2", "w3"), repair=False))}


def _selected() -> dict[str, float | str]:
    """How many plans the built-in answerer makes of ten, where few sets of a selection can be chosen."""
    plans = 0
    for least in range(1, 11):
        tools = [f"t{number}" for number in range(10)]
        rules = [f"S -> some({', '.join(tools)})", f"%require 1 {' '.join(tools[:least])}"]
        try:
            plans += len(Planner(CFG.from_string("\n".join(rules)), "builtin").plan("use t9").word) >= least
        except InvalidAnswer:
            continue
    return {"plans": f"{plans} of 10"}


CASES = [
    Case("hunted: 60 activities, four required, under a sum", "50 + 50 ms", partial(_asked, "days", DAYS, 3)),
    *(
        Case(
            f"hunted: 200 tools, {name}",
            "50 + 50 ms",
            partial(_asked, "tools", {"tools": 200, **dict(zip(_SETTINGS, map(int, line.split()), strict=True))}, 30),
        )
        for name, line in TOOLS.items()
    ),
    Case("hunted: 500 tools under sums", "50 + 50 ms", partial(_asked, "wide", WIDE, 2)),
    Case("hunted: a plan among 500 tools is checked", "1,000 ms", _checked),
    Case("hunted: a selection and the built-in answerer", "10 of 10", _selected),
]
