"""The engine under strain: ten cases in which a question was slow, what they take, and what they should take.

    python benchmarks/strain.py                          # all cases
    python benchmarks/strain.py --only tools --only sum  # those with these words in their names

Times are milliseconds of processor time on one core, memory is in megabytes. Each case runs in a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import process_time
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.engine import random_tools
from formal_llm import CFG, Limits, Planner, SumLimit, Symbol, Verifier, constraint

ROOT = Path(__file__).parents[1]
#: What a case takes, by name: in the unit of the aim ("p50", "worst", "start"), or a count ("wasted").
Figures = dict[str, float | str]


class Case(NamedTuple):
    """A hard case: what it should take as people read it, and what measures it."""

    aim: str
    measure: Callable[[], Figures]


def milliseconds(work: Callable[[], object]) -> float:
    """The processor time of a call."""
    gc.collect()
    begun = process_time()
    work()
    return 1_000 * (process_time() - begun)


def spread(times: Iterable[float]) -> Figures:
    """The median and the worst of some times, how many there are, and how many took longer than a question may."""
    found = list(times)
    slow = sum(time > 80 for time in found)
    return {"p50": statistics.median(found), "worst": max(found), "over 80": slow, "of": len(found)}


def walked(source: CFG, walks: int = 1, questions: int = 250, seed: int = 0) -> Figures:
    """The start; and questions, each with its answer at random and what the walk does until the next one."""
    planner, rng = Planner(source, "test:first"), random.Random(seed)
    start = milliseconds(lambda: planner.start("a task"))
    times: list[float] = []
    wasted = ended = 0
    for _ in range(walks):
        walk, asked = planner.start("a task"), 0
        while asked < questions and (question := walk.question) is not None:
            number, begun = rng.randint(1, len(question.options)), process_time()
            walk.answer(number)
            times.append(1_000 * (process_time() - begun))
            asked += 1
        wasted += walk.usage.wasted
        ended += walk.question is None
    return {"start": start, **spread(times), "wasted": wasted, "ended": f"{ended} of {walks}"}


# -- sums --------------------------------------------------------------------------------------------------------------


def with_sums(
    productions: Sequence[tuple[str, tuple[str, ...]]], start: str, numbers: Mapping[str, Mapping[str, int]],
    sums: Sequence[SumLimit], *, once: Iterable[str], required: Iterable[str] = (),
) -> CFG:  # fmt: skip
    """A grammar under sums; some terminals at most once, some required."""
    symbols = {name: Symbol(numbers=one) for name, one in numbers.items()}
    limits = Limits(dict.fromkeys(once, 1), dict.fromkeys(required, 1), default=None, sums=tuple(sums))
    return CFG(productions, start, symbols, limits)


def subset_sum(items: int) -> CFG:
    """Take each item or leave it, so that the weights add up to a sum that half of them have."""
    rng = random.Random(items)
    weights = {f"item{n}": rng.randint(100_000, 1_000_000) for n in range(items)}
    total = sum(weights[name] for name in rng.sample(sorted(weights), items // 2))
    productions = [("Pack", tuple(f"Choice{n}" for n in range(items)))]
    productions += [(f"Choice{n}", (name,)) for n in range(items) for name in (f"item{n}", f"none{n}")]
    numbers = {name: {"weight": weight} for name, weight in weights.items()}
    return with_sums(productions, "Pack", numbers, [SumLimit("weight", at_most=total, at_least=total)], once=())


def amounts(items: int) -> CFG:
    """Amounts, each at most once and in any order, with the exact sum of half of them."""
    rng = random.Random(items)
    numbers = {f"item{n}": {"sum": rng.randint(10**5, 10**6)} for n in range(items)}
    total = sum(numbers[name]["sum"] for name in rng.sample(sorted(numbers), items // 2))
    productions = [*(("S", (name, "S")) for name in numbers), ("S", ("end",))]
    return with_sums(productions, "S", numbers, [SumLimit("sum", at_most=total, at_least=total)], once=numbers)


def some_plan(cfg: CFG, rng: random.Random, most: int) -> set[str] | None:
    """The tools of a plan made by chance, each used once; None where chance did not bring it to an end."""
    bodies: dict[str, list[tuple[str, ...]]] = {}
    for production in cfg.productions:
        bodies.setdefault(production.head, []).append(production.body)
    pending, used = [cfg.start], set[str]()
    while pending:
        fresh = [body for body in bodies[pending.pop()] if used.isdisjoint(body)]
        if not fresh or len(used) > most:
            return None
        few = min(len(body) for body in fresh)
        ends = [body for body in fresh if len(body) == few]
        body = rng.choice(ends if rng.random() < len(pending) / 4 else fresh)
        used |= {name for name in body if name.startswith("tool")}
        pending += [name for name in body if name in bodies]
    return used


def budgeted_tools(tools: int) -> CFG:
    """Typed tools with numbers, each usable once; five are required, and three sums are close to those of a plan."""
    rng = random.Random(1_000 * tools)
    while True:
        plain = random_tools(tools, rng)
        plans = (some_plan(plain, rng, tools // 2) for _ in range(300))
        used = sorted(next((plan for plan in plans if plan and len(plan) >= 12), ()))
        if used:
            break
    names = ("money", "minutes", "value")
    numbers = {f"tool{n}": {name: rng.randint(1, 100) for name in names} for n in range(tools)}
    spent = {name: sum(numbers[tool][name] for tool in used) for name in names}
    sums = [SumLimit(name, at_most=int(spent[name] * 1.1)) for name in names[:2]]
    sums.append(SumLimit("value", at_least=int(spent["value"] * 0.9)))
    productions = [(one.head, one.body) for one in plain.productions]
    return with_sums(productions, plain.start, numbers, sums, once=numbers, required=rng.sample(used, 5))


# -- the other cases ---------------------------------------------------------------------------------------------------


def errands() -> Figures:
    """A day of errands as a grammar, in quarter hours, with opening hours, gaps and a deadline."""
    text = (ROOT / "grammars" / "errands.pda").read_text()
    day = "day -> errand day | errand\nerrand -> breakfast | lunch | supper | shop | bank | parcel | swim | pause\n"
    return walked(CFG.from_string("%start day\n%order forward\n" + day + text[text.index("%clock") :]), questions=60)


def long_file(productions: int = 10_000) -> Figures:
    """A grammar of tools with two inputs each, at most three uses of a tool: read, and started."""
    rng = random.Random(1)
    kinds, tools = productions // 10, productions // 5
    lines = ["%start N0", "%limit 3"]
    for kind in range(kinds):
        bodies = [
            f"t{rng.randrange(tools)} N{min(kinds - 1, kind + rng.randrange(1, 20))} "
            f"N{min(kinds - 1, kind + rng.randrange(60))}"
            for _ in range(9)
        ]
        lines.append(f"N{kind} -> {' | '.join([*bodies, f't{rng.randrange(tools)}'])}")
    text = "\n".join(lines)
    CFG.from_string("S -> a")  # what is read once only is not counted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = min(milliseconds(lambda: CFG.from_string(text)) for _ in range(3))
        cfg = CFG.from_string(text)
    return {"read": read, "start": milliseconds(lambda: Planner(cfg, "test:first").start("a task").question)}


def alternatives() -> Figures:
    """One question with five thousand options, with its prompt."""
    cfg = CFG([("S", (f"tool{number}",)) for number in range(5_000)])
    planner = Planner(cfg, "test:first")
    start = milliseconds(lambda: planner.start("one of many"))
    walk = planner.start("one of many")
    return {"start": start, "prompt": milliseconds(lambda: walk.question and walk.question.prompt)}


TYPED = """
%order prefix
%limit 1
%limit * given_text given_image
S -> T | I
T -> B I | D T | E I T | F T T | given_text
I -> A I | C T | given_image
A -> a1 | a2 | a3 | a4 | a5
B -> b1 | b2 | b3 | b4
C -> c1 | c2
D -> d1 | d2 | d3 | d4 | d5 | d6
E -> e1
F -> f1 | f2
"""


def repaired() -> Figures:
    """Words of 30 random symbols are put right, each by a new verifier."""
    cfg, rng, found = CFG.from_string(TYPED), random.Random(3), []
    words = [rng.choices(list(cfg.terminals), k=30) for _ in range(3)]
    times = [milliseconds(partial(lambda word: found.append(Verifier(cfg).verify(word)), word)) for word in words]
    return {**spread(times), "undecided": sum(not one.decided or not one.nearest_decided for one in found)}


NAMES = [f"t{n}" for n in range(12)]
RULES = (
    "(eventually {a})",
    "(-> (eventually {c}) (eventually {a}))",
    "(-> (eventually {a}) (eventually (next {b} (until any {c}))))",
    "(not (eventually (next {a} {b})))",
    "(not (eventually (next {a} (until any {b}))))",
    "(until (not (eventually {a})) (or empty (next {b} (until any empty))))",
)


def ten_formulas() -> Figures:
    """From ten random formulas to the first question, the slower of two draws."""
    cfg = CFG.from_string(f"%limit 1\nS -> T | T S\nT -> {' | '.join(NAMES)}")
    times = []
    for seed in (3, 4):
        rng, rules = random.Random(seed), []
        for _ in range(10):
            a, b, c = rng.sample(NAMES, 3)
            rules.append(constraint(rng.choice(RULES).format(a=a, b=b, c=c), cfg))
        times.append(milliseconds(partial(Planner(cfg, "test:first", constraints=rules).start, "a plan")))
    return {"start": max(times)}


def many_plans(count: int = 100_000) -> Figures:
    """So many plans, handed out as they come: by how much the process grows."""
    planner = Planner(CFG.from_string("S -> cut T | paint T\nT -> wood | stone"), "test:first")
    planner.plan("warm up")
    before, begun = getrusage(RUSAGE_SELF).ru_maxrss, process_time()
    assert sum(1 for _ in planner.plan_each(f"task {number}" for number in range(count))) == count
    return {
        "MB": (getrusage(RUSAGE_SELF).ru_maxrss - before) / 1024,
        "plans a second": count / (process_time() - begun),
    }


CASES: Mapping[str, Case] = {
    "clock: a day of errands, a grammar": Case("start 1,000, 5 / 30 ms", errands),
    "subset sum of 24 items": Case("start 1,000, 50 ms", lambda: walked(subset_sum(24))),
    "60 tools, 3 sums, 5 required": Case("12 / 80 ms", lambda: walked(budgeted_tools(60), walks=4)),
    "200 tools, 3 sums, 5 required": Case("200 ms", lambda: walked(budgeted_tools(200))),
    "20 amounts, an exact sum": Case("50 ms, 3 wasted", lambda: walked(amounts(20))),
    "%limit 3 over 10,000 productions": Case("500, 500 ms", long_file),
    "a question with 5,000 options": Case("10 ms", alternatives),
    "verify with repair: 30 random symbols, 20 typed tools": Case("500 ms, decided", repaired),
    "start: ten formulas over 12 tools": Case("300 ms", ten_formulas),
    "memory of 100,000 plans": Case("constant", many_plans),
}


def measured(name: str, seconds: int) -> Figures:
    """What a case takes in a process of its own."""
    command = [sys.executable, __file__, "--run", name]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"": f"> {seconds} s"}
    if done.returncode:
        return {"": (done.stderr.strip().splitlines() or ["failed"])[-1][:60]}
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--only", action="append", default=[], help="a word in the names of the cases to run")
    options.add_argument("--seconds", type=int, default=180, help="how long one case may take")
    options.add_argument("--run", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.run:
        print(json.dumps(CASES[given.run].measure()))
        return
    table = Table("case", "aim", "now", title="The engine under strain")
    for name, case in CASES.items():
        if not given.only or any(word in name for word in given.only):
            figures = measured(name, given.seconds)
            shown = (f"{key} {value:,.3g}" if isinstance(value, float) else f"{key} {value}"
                     for key, value in figures.items())  # fmt: skip
            table.add_row(name, case.aim, "  ".join(shown).strip())
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
