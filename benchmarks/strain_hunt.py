"""The search for bad cases: rules like real life at random, the worst of them changed a little, again and again.

    python benchmarks/strain_hunt.py                               # all families, 40 cases at random, 20 steps uphill
    python benchmarks/strain_hunt.py --family tools --random 100 --seed 7
    python benchmarks/strain_hunt.py --by unknown                  # climb by the share of unknown verdicts
    python benchmarks/strain_hunt.py --again 'days hours=8 grain=15 ... seed=12' --profile

Times are milliseconds of processor time on one core. A question may take 50 ms of search and a start 1 s. Walks go on
to their last question, and a family climbs for ten minutes at most. For each family the questions of all walks are told
together, then the worst cases: each line can be given to ``--again``.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import heapq
import pstats
import random
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

from rich.console import Console
from rich.table import Table

sys.path.append(str(Path(__file__).parents[1]))  # behind what PYTHONPATH says

import benchmarks

benchmarks.__path__ = [str(Path(__file__).parent)]  # the cases are always those of this checkout
from benchmarks.hunting.rules import FAMILIES, Problem, Settings, problem  # noqa: E402
from benchmarks.hunting.walking import Measured, measure  # noqa: E402

#: What makes a case bad.
BADNESS: dict[str, Callable[[Measured], float]] = {
    "question": lambda found: found.worst,
    "start": lambda found: found.start,
    "time": lambda found: max(found.worst, found.start / 20),
    "unknown": lambda found: found.unknown,
    "wasted": lambda found: found.wasted,
    "repair": lambda found: found.parts.get("repair", 0.0),
    "verify": lambda found: max(found.parts.get("verify", 0.0), found.parts.get("membership", 0.0)),
}


def line(family: str, settings: Settings) -> str:
    """A case as it is written: ``days hours=8 grain=15 seed=12``."""
    return " ".join([family, *(f"{name}={value}" for name, value in settings.items())])


def case(text: str) -> tuple[str, Settings]:
    """The case of a line."""
    family, *settings = text.split()
    return family, {name: int(value) for name, _, value in (one.partition("=") for one in settings)}


def measured(made: Problem, options: argparse.Namespace) -> Measured:
    """What rules take."""
    return measure(made, questions=options.questions, seconds=options.seconds, solver=options.solver)


class Hunt:
    """The cases of a family that were measured so far."""

    def __init__(self, family: str, options: argparse.Namespace) -> None:
        self.family = family
        self.options = options
        self.found: dict[str, Measured] = {}

    def measure(self, settings: Settings) -> Measured | None:
        """What a case takes; None where it makes no rules."""
        name = line(self.family, settings)
        if name not in self.found:
            made = problem(self.family, settings)
            if made is None:
                return None
            gc.collect()
            self.found[name] = measured(made, self.options)
        return self.found[name]

    def run(self, rng: random.Random) -> None:
        """Cases at random, then steps uphill from the worst one."""
        badness = BADNESS[self.options.by]
        begun = monotonic()
        scored: list[tuple[float, int, Settings]] = []
        for number in range(self.options.random):
            settings = FAMILIES[self.family].draw(rng)
            found = self.measure(settings)
            if found is not None:
                scored.append((badness(found), number, settings))
        for _, _, top in heapq.nlargest(self.options.tops, scored):
            now, best = top, badness(self.found[line(self.family, top)])
            for _ in range(self.options.climb):
                if monotonic() - begun > 60 * self.options.minutes:
                    return
                near = FAMILIES[self.family].neighbour(now, rng)
                found = self.measure(near)
                if found is not None and badness(found) > best:
                    now, best = near, badness(found)

    def summary(self) -> list[str]:
        """A row of the table."""
        cases = list(self.found.values())
        times = sorted(time for found in cases for time in found.questions)
        starts = sorted(found.start for found in cases)
        verdicts: Counter[str] = Counter()
        parts: Counter[str] = Counter()
        for found in cases:
            for kind in ("filter", "search", "program", "unknown"):
                verdicts[kind] += getattr(found.verdicts, kind)
            for part, taken in found.parts.items():
                parts[part] = max(parts[part], round(taken))
        total = sum(verdicts.values()) or 1
        return [
            self.family,
            f"{len(cases)} / {len(times):,}",
            _spread(times),
            _spread(starts),
            "  ".join(f"{kind} {100 * count / total:.2g}%" for kind, count in verdicts.items() if count),
            "  ".join(f"{part} {taken}" for part, taken in parts.items()),
            "  ".join(f"{ended} {count}" for ended, count in Counter(f.ended for f in cases).most_common(8)),
        ]

    def worst(self, by: str) -> list[tuple[float, str, Measured]]:
        """The worst cases by some measure."""
        badness = BADNESS[by]
        scored = [(badness(found), name, found) for name, found in self.found.items() if badness(found)]
        return heapq.nlargest(self.options.show, scored, key=lambda one: one[0])


def _spread(times: Sequence[float]) -> str:
    if not times:
        return ""
    return f"{statistics.median(times):.2g} / {times[int(0.99 * (len(times) - 1))]:.3g} / {times[-1]:,.0f}"


def again(text: str, options: argparse.Namespace) -> None:
    """Run one case once more: its rules, what it takes, where the time goes."""
    family, settings = case(text)
    made = problem(family, settings)
    if made is None:
        sys.exit("these settings make no rules")
    print(made)
    profile = cProfile.Profile()
    if options.profile:
        profile.enable()
    print(measured(made, options))
    if options.profile:
        profile.disable()
        pstats.Stats(profile).sort_stats("cumulative").print_stats(40)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument(
        "--family", action="append", choices=list(FAMILIES), help="a kind of rules; all where left out"
    )
    options.add_argument("--random", type=int, default=40, help="cases at random for each family")
    options.add_argument("--climb", type=int, default=20, help="steps uphill from each of the worst cases")
    options.add_argument("--minutes", type=float, default=10.0, help="how long a family may climb")
    options.add_argument("--tops", type=int, default=2, help="from how many of the worst cases to climb")
    options.add_argument("--by", choices=list(BADNESS), default="time", help="what makes a case bad")
    options.add_argument("--show", type=int, default=10, help="how many of the worst cases are told")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--questions", type=int, default=400, help="how many questions of a walk are answered")
    options.add_argument("--seconds", type=float, default=20.0, help="the processor time after which a case is cut off")
    options.add_argument("--solver", action="store_true", help="let the integer program help where it is installed")
    options.add_argument("--again", help="run one case: a line as the table of the worst cases tells it")
    options.add_argument("--profile", action="store_true", help="with --again: where the time goes")
    chosen = options.parse_args()
    if chosen.again:
        again(chosen.again, chosen)
        return
    columns = ("rules", "cases / questions", "a question: p50 / p99 / worst", "start: p50 / p99 / worst")
    table = Table(*columns, "decided by", "worst of each part", "ended by", title="Rules like real life, in ms")
    bad: list[str] = []
    for family in chosen.family or FAMILIES:
        hunt = Hunt(family, chosen)
        hunt.run(random.Random(f"{family} {chosen.seed}"))
        table.add_row(*hunt.summary())
        for by in dict.fromkeys(("question", "start", "unknown", "verify", "repair", chosen.by)):
            for score, name, found in hunt.worst(by):
                bad.append(f"{by} {score:,.3g} ({found.ended}): {name}")
    console = Console(width=190)
    console.print(table)
    for one in bad:
        print(one)


if __name__ == "__main__":
    main()
