"""How long the lookahead takes on random tools, what decides, and whether search and integer program ever disagree.

Run: python benchmarks/lookahead_tools.py [--tools N ...] [--queries N] [--states N] [--patience N]

A tool takes one to three typed inputs and makes one type, and may be used at most once; some types are given, as often
as a plan wants. The configurations are reached by random walks, every other walk kept to moves that a little search
does not rule out. ``how`` counts what decided. ``checked`` queries were decided by a search alone, with a large budget
of states, and ``wrong`` counts verdicts against it: those of the lookahead, and those of its filters and the integer
program alone. Times are processor time, so that what else the machine does matters less. Needs the extra ``solver``.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections import Counter
from collections.abc import Iterator
from time import perf_counter, process_time
from typing import Any

from rich.console import Console
from rich.table import Table

from formal_llm import CFG, Limits, Lookahead
from formal_llm.automata.lookahead import search
from formal_llm.automata.lookahead.exact import integer_program

PER_GRAMMAR = 15


def random_tools(tools: int, rng: random.Random) -> CFG:
    """A random grammar of typed tools, as task packs have them."""
    types = rng.randint(max(3, tools // 10), max(3, tools // 3))
    given = rng.sample(range(types), rng.randint(1, max(1, types // 4)))
    productions: list[tuple[str, tuple[str, ...]]] = [("Plan", (f"Type{rng.randrange(types)}",))]
    for number in range(tools):
        made = number if number < types else rng.randrange(types)  # some tool makes each type
        needs = tuple(f"Type{rng.randrange(types)}" for _ in range(rng.randint(1, 3)))
        productions.append((f"Type{made}", (f"tool{number}", *needs)))
    productions += [(f"Type{number}", (f"given{number}",)) for number in given]
    return CFG(productions, limits=Limits(at_most={f"given{n}": None for n in given}, default=1))


def configurations(cfg: CFG, count: int, rng: random.Random) -> Iterator[Any]:
    """Where random walks end."""
    guide = Lookahead(cfg, max_states=30, solver=False)
    automaton = guide.automaton
    for number in range(count):
        now = automaton.start()
        for _ in range(rng.randrange(3 * len(cfg.terminals))):
            moves = automaton.moves(now)
            if number % 2:
                moves = [move for move in moves if guide.completable(automaton.step(now, move)).possible]
            if not moves:
                break
            now = automaton.step(now, rng.choice(moves))
        yield now


def measure(tools: int, queries: int, states: int) -> list[str]:
    """One row of the table."""
    rng = random.Random(tools)
    how: Counter[str] = Counter()
    checked = wrong = 0
    times: list[float] = []
    for _ in range(-(-queries // PER_GRAMMAR)):
        while Lookahead(cfg := random_tools(tools, rng)).completable().value == "no":
            pass  # no plan at all: nothing to look ahead for
        lookahead = Lookahead(cfg)
        search, program = Lookahead(cfg, max_states=states, solver=False), Lookahead(cfg, max_states=0)
        lookahead.completable()  # the grammar is prepared once for all plans
        for now in configurations(cfg, PER_GRAMMAR, rng):
            begin = process_time()
            verdict = lookahead.completable(now)
            times.append((process_time() - begin) * 1e3)
            how[str(verdict)] += 1
            truth = search.completable(now).value
            if truth != "unknown":
                checked += 1
                wrong += sum(said not in {truth, "unknown"} for said in (verdict.value, program.completable(now).value))
    times.sort()
    shown = [statistics.median(times), times[int(0.99 * len(times))], times[-1]]
    counts = ", ".join(f"{count} {name}" for name, count in sorted(how.items()))
    return [str(tools), str(len(times)), counts, str(checked), str(wrong), *(f"{time:.2f}" for time in shown)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, nargs="+", default=[15, 30, 100, 200], help="how many tools")
    parser.add_argument("--queries", type=int, default=150, help="queries for each number of tools")
    parser.add_argument("--states", type=int, default=20_000, help="the budget of the search that checks")
    parser.add_argument("--patience", type=int, help="states that are searched before the integer program is asked")
    arguments = parser.parse_args()
    if not integer_program.is_solver_installed():
        raise SystemExit('the extra is not installed: pip install "formal-llm[solver]"')
    if arguments.patience is not None:
        search.PATIENCE = arguments.patience
    warm = Lookahead(CFG.from_string("%limit 1\nS -> A A\nA -> a b | a c | d"), max_states=0)
    begin = perf_counter()
    warm.completable()  # loads OR-Tools
    table = Table(
        title=f"Processor milliseconds per query (loading OR-Tools took {perf_counter() - begin:.2f} s, once)"
    )
    for column in ("tools", "queries", "how", "checked", "wrong", "median", "p99", "worst"):
        table.add_column(column, justify="left" if column == "how" else "right")
    for tools in arguments.tools:
        table.add_row(*measure(tools, arguments.queries, arguments.states))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
