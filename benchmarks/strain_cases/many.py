"""One question with very many options."""

from __future__ import annotations

from benchmarks.strain_cases.case import Case, milliseconds, spread
from formal_llm import CFG, Planner


def alternatives() -> dict[str, float | str]:
    cfg = CFG([("S", (f"tool{number}",)) for number in range(5_000)])
    planner = Planner(cfg, "test:first")
    planner.plan("warm up")
    return spread(milliseconds(lambda: planner.plan("one of many")) for _ in range(5))


CASES = [Case("5,000 alternatives", "10 ms", alternatives)]
