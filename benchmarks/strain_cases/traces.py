"""Long traces: where one goes wrong, and what could have come there."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.strain_cases.case import Case, milliseconds
from formal_llm import CFG, Behaviour, Limits, Verifier
from formal_llm.automata import Source


def _judged(rules: Source, trace: Sequence[str], limits: Limits | None = None) -> dict[str, float | str]:
    """One trace with one slip, by a new verifier; the nearest valid one is not looked for."""
    verifier = Verifier(rules, limits)
    taken = milliseconds(lambda: verifier.verify(trace, repair=False))
    found = verifier.verify(trace, repair=False)
    return {"once": taken, "place": str(found.position)}


def rounds() -> dict[str, float | str]:
    """A thousand rounds of ReAct; the last one forgets the input of its action."""
    trace = ["Ques", *["Tht", "Act", "Act-Inp", "Obs"] * 1_000, "Tht", "Act", "Obs"]
    return _judged(Behaviour.load("react"), trace)


def steps() -> dict[str, float | str]:
    """Three hundred steps, written with the recursion in front; one more than is allowed."""
    rules = CFG.from_string("%order forward\nSteps -> Steps Step | Step\nStep -> call | open Steps close")
    return _judged(rules, ["call"] * 301, Limits(at_most={"call": 300}))


CASES = [
    Case("trace of 4,000 events, one slip", "20 ms", rounds),
    Case("trace of 300 steps, left recursion", "50 ms", steps),
]
