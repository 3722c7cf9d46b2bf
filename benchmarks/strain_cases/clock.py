"""Step budgets beside lower sums, questions that cannot be decided in their time, and days by the clock."""

from __future__ import annotations

import random
from pathlib import Path
from time import process_time

from benchmarks.strain_cases.case import Case, milliseconds, spread_of_questions
from formal_llm import CFG, PDA, Budget, Lookahead, Planner
from formal_llm.errors import BudgetExceeded, NoValidPlan


def once(weights: list[int], quantity: str, *limits: str, selection: bool = False, repeated: bool = False) -> CFG:
    """A grammar of tools with these weights, under limits: a selection of them, or one after the other."""
    tools = [f"t{number}" for number in range(len(weights))]
    body = f"S -> some({', '.join(tools)})" if selection else f"S -> T S | T\nT -> {' | '.join(tools)}"
    lines = [
        *([] if selection or repeated else ["%limit 1"]),
        *(f"%limit {quantity} {limit}" for limit in limits),
        body,
    ]
    return CFG.from_string("\n".join([*lines, *(f"{t} {quantity}={w}" for t, w in zip(tools, weights, strict=True))]))


def subset_sum(items: int, seed: int, selection: bool = False) -> CFG:
    """Weights of 10^5 to 10^6, and just the sum of half of them."""
    rng = random.Random(seed)
    weights = [rng.randint(10**5, 10**6) for _ in range(items)]
    target = sum(rng.sample(weights, items // 2))
    return once(weights, "grams", f"<= {target}", f">= {target}", selection=selection)


def walked(planner: Planner, questions: int, seed: int = 0) -> dict[str, float | str]:
    """The start, and questions with their answers at random, each with what the walk does until the next question."""
    found: dict[str, float | str] = {}
    walks = []
    try:
        found["start"] = milliseconds(lambda: walks.append(planner.start("a day")))
    except NoValidPlan:
        return {"no plan": ""}
    walk, rng = walks[0], random.Random(seed)
    times: list[float] = []
    try:
        while len(times) < questions and (question := walk.question) is not None:
            number, begun = rng.randint(1, len(question.options)), process_time()
            walk.answer(number)
            times.append(1_000 * (process_time() - begun))
    except (BudgetExceeded, NoValidPlan) as error:
        found["ended by"] = type(error).__name__
    verdicts = getattr(walk.usage, "verdicts", None)
    told = {"asked": float(walk.usage.questions), "wasted": float(walk.usage.wasted)}
    unknown = {} if verdicts is None else {"unknown": float(verdicts.unknown)}
    return {**found, **(spread_of_questions(times) if times else {}), **told, **unknown}


def minutes(least: int, most: int | None, tools: int, steps: int) -> dict[str, float | str]:
    """A day of steps of 1 to 10 minutes, or of 5 to 60 where it has an end, in so many moves."""
    rng = random.Random(1)
    weights = [rng.choice((5, 10, 15, 20, 25, 30, 45, 60)) for _ in range(tools)] if most else [*range(1, tools + 1)]
    limits = [f">= {least}", *([f"<= {most}"] if most else [])]
    return walked(Planner(once(weights, "min", *limits, repeated=True), "test:first", budget=Budget(steps=steps)), 60)


#: The day of errands as a grammar: what goes before the clock.
ERRANDS = """%start day
%order forward
day -> errand day | errand
errand -> breakfast | lunch | supper | shop | bank | parcel | swim | pause
"""


def errands(kind: type[CFG | PDA], pause: str = "15min") -> dict[str, float | str]:
    """A day in quarter hours, with opening hours, gaps and a deadline: read, started, and questions to its end."""
    text = (Path(__file__).parents[2] / "grammars" / "errands.pda").read_text().replace("15min", pause)
    if kind is CFG:
        text = ERRANDS + text[text.index("%clock") :]
    read: list[CFG | PDA] = []
    kind.from_string("a -> b" if kind is CFG else "%accept a\na, b, ε -> a, ε")  # the parser is made
    figures: dict[str, float | str] = {"read": milliseconds(lambda: read.append(kind.from_string(text)))}
    return {**figures, **walked(Planner(read[0], "test:first"), 60)}


def day_of(rules: str, grain: int, gap: bool) -> dict[str, float | str]:
    """A day of three kinds of steps in a grain of so many minutes, by a clock and perhaps a gap: the start."""
    lines = [f"{name} time={number * grain}min" for number, name in enumerate("abc", 1)]
    lines += ["%order forward", "%clock time 8:00-20:00", "%window c 9:00-12:00 14:00-18:00", *["%gap 1h c"] * gap]
    cfg = CFG.from_string("\n".join([rules, "E -> a | b | c", *lines]))
    return {"start": milliseconds(lambda: Planner(cfg, "test:first").start("a day"))}


#: Grammars of a day: right-linear, without recursion around the day, and nested.
DAYS = {
    "list": "S -> E S | E",
    "parts": "S -> M D N\nM -> E | E E\nD -> E D | E\nN -> b | E",
    "nested": "S -> a S b | E S | E",
}


def hard_sums(items: int, solver: bool) -> dict[str, float | str]:
    return walked(Planner(subset_sum(items, 1), "test:first", solver=solver), 6)


def decided(max_states: int, solver: bool) -> dict[str, float | str]:
    """How many problems, from easy to hard, are decided within so many states, and the time they take."""
    count, taken = 0, 0.0
    problems = [subset_sum(items, seed) for items in (8, 12, 16, 20) for seed in range(4)]
    problems += [subset_sum(items, seed, selection=True) for items in (8, 12, 16) for seed in range(4)]
    for problem in problems:
        lookahead = Lookahead(problem, max_states=max_states, solver=solver)
        begun = process_time()
        count += lookahead.completable().value != "unknown"
        taken += 1_000 * (process_time() - begun)
    return {"decided": f"{count} of {len(problems)}", "mean": taken / len(problems)}


CASES = [
    Case("clock: a day of errands, an automaton", "read 100, start 100, 5 / 30 ms", lambda: errands(PDA)),
    Case("clock: a day of errands, a grammar", "read 1,000, start 1,000, 5 / 30 ms", lambda: errands(CFG)),
    Case("clock: a day of errands in five minutes", "start 1,000 ms", lambda: errands(PDA, "5min")),
    Case("clock: a day of errands in five minutes, a grammar", "start 1,000 ms", lambda: errands(CFG, "5min")),
    *(
        Case(
            f"clock: {name} in {grain} minutes{' with a gap' if gap else ''}",
            f"start {300 if grain == 5 else 1_000} ms",
            lambda rules=rules, grain=grain, gap=gap: day_of(rules, grain, gap),  # type: ignore[misc]
        )
        for name, rules in DAYS.items()
        for grain in (30, 5, 3)
        for gap in (False, True)
    ),
    Case("steps: 1,000 minutes in 100 moves, empty", "told at once", lambda: minutes(1_000, None, 10, 100)),
    Case("steps: 300 minutes in 100 moves, just so", "10 ms", lambda: minutes(300, None, 10, 100)),
    Case("steps: a day of 480 to 600 minutes in 40 moves", "10 ms", lambda: minutes(480, 600, 40, 40)),
    *(
        Case(
            f"time: subset sum of {items} items{' and a solver' if solver else ''}",
            "start 1,000, 50 + 50 ms",
            lambda items=items, solver=solver: hard_sums(items, solver),  # type: ignore[misc]
        )
        for items in (16, 24, 30)
        for solver in (False, True)
    ),
    *(
        Case(
            f"states: {states:,}{' and a solver' if solver else ''}",
            "",
            lambda states=states, solver=solver: decided(states, solver),  # type: ignore[misc]
        )
        for states in (200, 2_000, 20_000, 100_000)
        for solver in (False, True)
    ),
]
