"""One question with very many options; many plans."""

from __future__ import annotations

from benchmarks.strain_cases.case import Case, milliseconds, spread_of_questions
from formal_llm import CFG, Planner


def _asked(cfg: CFG) -> dict[str, float | str]:
    """The first question of a planner, with its options and its prompt; what starts the planner is told apart."""
    starts, times = [], []
    for _ in range(5):
        planner = Planner(cfg, "test:first")
        starts.append(milliseconds(lambda: planner.start("one of many")))  # noqa: B023  # called at once
        walk = planner.start("one of many")
        times.append(milliseconds(lambda: walk.question and walk.question.prompt))  # noqa: B023
    return {**spread_of_questions(times), "start": min(starts)}


def alternatives() -> dict[str, float | str]:
    return _asked(CFG([("S", (f"tool{number}",)) for number in range(5_000)]))


def alike() -> dict[str, float | str]:
    """The bad case for the wording: a thousand labels, each of five tools with other inputs."""
    cfg = CFG([("S", (f"tool{number}", f"in{number % 5}")) for number in range(5_000)])
    return _asked(cfg.with_labels({f"tool{number}": f"the tool {number // 5}" for number in range(5_000)}))


CASES = [
    Case("5,000 alternatives", "10 ms", alternatives),
    Case("5,000 alternatives, labels alike", "10 ms", alike),
]
