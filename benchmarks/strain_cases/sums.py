"""Many tools under several sums with some of them required, and sums that must come out exactly."""

from __future__ import annotations

import importlib
import random
from functools import partial
from time import process_time

from benchmarks.lookahead_tools import random_tools
from benchmarks.strain_cases.case import Case, milliseconds, spread_of_questions
from formal_llm import CFG, Limits, Lookahead, SumLimit, Symbol, Walk
from formal_llm.automata.lookahead.cheapest import least_costs
from formal_llm.automata.lookahead.exact import integer_program
from formal_llm.planning.walks.choices import ChoiceTable

#: The quantities that tools carry: of two a plan may not use up too much, of the third it must reach something.
SPENT, EARNED = ("money", "minutes"), "value"


def some_plan(cfg: CFG, rng: random.Random, most: int) -> set[str] | None:
    """The tools of a plan made by chance, each used once; None where chance did not bring it to an end."""
    bodies: dict[str, list[tuple[str, ...]]] = {}
    for production in cfg.productions:
        bodies.setdefault(production.head, []).append(production.body)
    height = least_costs((p.head, 1.0, [name for name in p.body if name in bodies]) for p in cfg.productions)
    pending, used = [cfg.start], set[str]()
    while pending:
        fresh = [body for body in bodies[pending.pop()] if used.isdisjoint(body) and height.keys() >= bodies.keys()]
        if not fresh or len(used) > most:
            return None
        if rng.random() < len(pending) / 4:  # come to an end
            body = min(fresh, key=lambda body: sum(height.get(name, 0) for name in body))
        else:
            body = rng.choice(fresh)
        used |= {name for name in body if name.startswith("tool")}
        pending += [name for name in body if name in bodies]
    return used


def budgeted_tools(tools: int, rng: random.Random, *, slack: float = 0.1) -> CFG:
    """Typed tools with numbers, each usable once; five are required, and three sums are close to those of a plan."""
    while True:
        plain = random_tools(tools, rng)
        plans = (some_plan(plain, rng, tools // 2) for _ in range(300))
        used = sorted(next((plan for plan in plans if plan and len(plan) >= 12), ()))
        if not used:
            continue
        numbers = {f"tool{n}": {name: rng.randint(1, 100) for name in (*SPENT, EARNED)} for n in range(tools)}
        symbols = {tool: Symbol(numbers=carried) for tool, carried in numbers.items()}
        spent = {name: sum(numbers[tool][name] for tool in used) for name in (*SPENT, EARNED)}
        sums = [SumLimit(name, at_most=int(spent[name] * (1 + slack))) for name in SPENT]
        sums.append(SumLimit(EARNED, at_least=int(spent[EARNED] * (1 - slack))))
        required = dict.fromkeys(rng.sample(used, 5), 1)
        limits = plain.limits & Limits(at_least=required, default=None, sums=tuple(sums))
        return CFG(plain.productions, plain.start, symbols, limits)


def load(solver: bool) -> None:
    """Load OR-Tools, where it is there: that takes most of a second, once in a process, and is not what is measured."""
    if solver and integer_program.is_solver_installed():
        importlib.import_module("ortools.sat.python.cp_model")


def walked(cfg: CFG, rng: random.Random, walks: int, *, solver: bool = True) -> tuple[float, list[float], int]:
    """(what the start takes, what each question takes, answers wasted) of random walks over one table."""
    table = ChoiceTable(Lookahead(cfg, solver=solver))
    start = milliseconds(lambda: Walk(table))
    times: list[float] = []
    wasted = 0
    for _ in range(walks):
        walk = Walk(table)
        while (question := walk.question) is not None:
            answer = rng.randrange(len(question.options)) + 1
            begun = process_time()
            walk.answer(answer)
            times.append(1_000 * (process_time() - begun))
        wasted += walk.plan.usage.wasted
    return start, times, wasted


def tools(count: int, grammars: int, walks: int, *, solver: bool = True) -> dict[str, float | str]:
    """Figures of random walks over some grammars of so many tools."""
    load(solver)
    starts: list[float] = []
    times: list[float] = []
    wasted = 0
    for number in range(grammars):
        rng = random.Random(1_000 * count + number)
        start, more, lost = walked(budgeted_tools(count, rng), rng, walks, solver=solver)
        starts.append(start)
        times += more
        wasted += lost
    return {**spread_of_questions(times), "start": max(starts), "wasted": float(wasted)}


def subset_sums(items: int) -> CFG:
    """Take each item or leave it, so that the weights add up to a sum that half of them have."""
    rng = random.Random(items)
    weights = {f"item{n}": rng.randint(100_000, 1_000_000) for n in range(items)}
    total = sum(weights[name] for name in rng.sample(sorted(weights), items // 2))
    productions = [("Pack", tuple(f"Choice{n}" for n in range(items)))]
    productions += [(f"Choice{n}", (name,)) for n in range(items) for name in (f"item{n}", f"none{n}")]
    symbols = {name: Symbol(numbers={"weight": weight}) for name, weight in weights.items()}
    return CFG(productions, "Pack", symbols, Limits(sums=(SumLimit("weight", at_most=total, at_least=total),)))


def packed(items: int, *, solver: bool = True) -> dict[str, float | str]:
    """Figures of one random walk."""
    load(solver)
    start, times, wasted = walked(subset_sums(items), random.Random(0), 1, solver=solver)
    return {**spread_of_questions(times), "start": start, "wasted": float(wasted)}


def amounts(items: int, sums: int, required: int, largest: int, smallest: int = 1) -> CFG:
    """Amounts, each at most once and in any order, of which some are required; each sum is that of half of them."""
    rng = random.Random(items)
    names = [f"item{n}" for n in range(items)]
    numbers = {name: {f"sum{k}": rng.randint(smallest, largest) for k in range(sums)} for name in names}
    plan = rng.sample(names, items // 2)
    totals = {f"sum{k}": sum(numbers[name][f"sum{k}"] for name in plan) for k in range(sums)}
    limits = Limits(
        dict.fromkeys(names, 1),
        dict.fromkeys(plan[:required], 1),
        default=None,
        sums=tuple(SumLimit(name, at_most=total, at_least=total) for name, total in totals.items()),
    )
    symbols = {name: Symbol(numbers=one) for name, one in numbers.items()}
    return CFG([*(("S", (name, "S")) for name in names), ("S", ("end",))], "S", symbols, limits)


def spent(*settings: int, walks: int = 3, solver: bool = True) -> dict[str, float | str]:
    """Figures of whole walks over such amounts, each with rules of its own, cut off after 250 questions."""
    load(solver)
    done = wasted = 0
    times: list[float] = []
    begun = process_time()
    for number in range(walks):
        rng = random.Random(number)
        walk = Walk(ChoiceTable(Lookahead(amounts(*settings), solver=solver)))
        count = 0
        while count < 250 and (question := walk.question) is not None:
            answer, before = rng.randrange(len(question.options)) + 1, process_time()
            walk.answer(answer)
            times.append(1_000 * (process_time() - before))
            count += 1
        done += walk.question is None
        wasted += walk.usage.wasted
    seconds = (process_time() - begun) / walks
    return {
        **spread_of_questions(times),
        "done": f"{done} of {walks}",
        "wasted": float(wasted),
        "s a walk": seconds,
    }


CASES = [
    Case("amounts: 20, one exact sum", "0 wasted, 0.5 s", partial(spent, 20, 1, 0, 10**6, 10**5)),
    Case("amounts: 30, one exact sum", "0 wasted, 2 s", partial(spent, 30, 1, 0, 10**6, 10**5)),
    Case("amounts: 40, two exact sums, 5 required", "2 wasted a walk, 5 s", partial(spent, 40, 2, 5, 10**6, 10**5)),
    Case("amounts: 60, three exact sums, 8 required", "2 wasted a walk, 80 ms", partial(spent, 60, 3, 8, 100)),
    Case("amounts: 200, four exact sums, 10 required", "2 wasted, 80 ms", partial(spent, 200, 4, 10, 100, walks=1)),
    Case("60 tools, 3 sums, 5 required", "5 / 30 ms", partial(tools, 60, 5, 4)),
    Case("200 tools, 3 sums, 5 required", "10 / 100 ms, start 300", partial(tools, 200, 2, 1)),
    Case("60 tools, 3 sums, 5 required, no solver", "5 / 30 ms", partial(tools, 60, 5, 4, solver=False)),
    Case("200 tools, 3 sums, 5 required, no solver", "10 / 100 ms, start 300", partial(tools, 200, 2, 1, solver=False)),
    Case("a sum hit exactly with 24 items", "50 ms, start 1,000", partial(packed, 24)),
    Case("a sum hit exactly with 30 items", "50 ms, start 1,000", partial(packed, 30)),
    Case("a sum hit exactly with 30 items, no solver", "50 ms, start 1,000", partial(packed, 30, solver=False)),
]
