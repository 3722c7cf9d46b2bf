"""Verdicts on random edits of valid OpenAGI plans: how many of each, and the time that one takes; and on texts.

Each plan is one that random answers make; each edit inserts, deletes or replaces one tool (or a name that is no tool),
and a plan gets one edit more with each round until it starts afresh. Nothing but verdicts may come out.

With ``--texts N``, plans of N random sources of each kind, or some more, are printed, read and changed in single
places. The verdicts are compared with those of an oracle that reads nothing (``tests/planning/printing.py``).

Run: python benchmarks/verify.py [--edits N] [--repairs N] [--texts N]
"""

from __future__ import annotations

import argparse
import os
import random
from collections import Counter
from collections.abc import Iterator
from time import perf_counter

from rich.console import Console
from rich.table import Table

from formal_llm import Planner, RandomLLM, TaskPack, Verifier

#: Edits that a plan gets one after the other.
_EDITS = 4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=20_000, help="verdicts without a nearest plan")
    parser.add_argument("--repairs", type=int, default=1_000, help="verdicts with the nearest plan, too")
    parser.add_argument(
        "--texts", type=int, default=0, help="random sources of each kind, whose printed plans are read"
    )
    options = parser.parse_args()
    if options.texts:
        check_texts(options.texts)
        return
    pack = TaskPack.load("openagi")
    plans = [plan_word(pack, number) for number in range(len(pack.tasks))]
    names = [*pack.cfg.terminals, "no_such_tool"]
    table = Table(title=f"random edits of {len(plans)} valid plans of 1 to {max(map(len, plans))} terminals")
    for column in ("verdicts", "nearest plan", "valid", "too early", "wrong place", "undecided", "mean ms", "worst ms"):
        table.add_column(column, justify="right")
    for repair, count in ((False, options.edits), (True, options.repairs)):
        table.add_row(*measure(Verifier(pack.cfg), edited(plans, names, count), repair))
    Console(width=120).print(table)


def check_texts(count: int) -> None:
    """Run the tests of printed plans with so many random sources of each kind."""
    os.environ["FUZZ"] = str(-(-count // 40))  # by how much the tests' own numbers of examples are multiplied
    from hypothesis import settings

    settings.register_profile("texts", deadline=None, database=None)
    settings.load_profile("texts")
    from tests.planning.checking import test_texts  # its settings are those of the profile

    for test in (test_texts.test_grammars_with_texts, test_texts.test_grammars_without_texts, test_texts.test_automata):
        begin = perf_counter()
        test()
        print(f"{test.__name__}: all verdicts right, {perf_counter() - begin:.0f} s")


def plan_word(pack: TaskPack, number: int) -> tuple[str, ...]:
    """The word of a random plan of a task."""
    return Planner(pack.cfg, RandomLLM(number), wording=pack.wording).plan(pack.tasks[number]).word


def edited(plans: list[tuple[str, ...]], names: list[str], count: int) -> Iterator[tuple[str, ...]]:
    """Words that are a few random edits from a valid one."""
    rng = random.Random(1)
    for number in range(count):
        if number % _EDITS == 0:
            word = list(rng.choice(plans))
        place = rng.randrange(len(word) + 1)
        what = rng.choice(("insert", "delete", "replace"))
        word[place : place + (what != "insert")] = [] if what == "delete" else [rng.choice(names)]
        yield tuple(word)


def measure(verifier: Verifier, words: Iterator[tuple[str, ...]], repair: bool) -> list[str]:
    """One row of the table."""
    verdicts: Counter[str] = Counter()
    total = worst = 0.0
    for word in words:
        begin = perf_counter()
        found = verifier.verify(word, repair=repair)
        seconds = perf_counter() - begin
        total, worst = total + seconds, max(worst, seconds)
        if not found.decided or (repair and not found.nearest_decided):
            verdicts["undecided"] += 1
        elif found.valid:
            verdicts["valid"] += 1
        else:
            verdicts["too early" if found.position == len(word) else "wrong place"] += 1
    count = sum(verdicts.values())
    shown = [f"{verdicts[name]:,}" for name in ("valid", "too early", "wrong place", "undecided")]
    mean = 1e3 * total / max(count, 1)
    return [f"{count:,}", "yes" if repair else "no", *shown, f"{mean:.3f}", f"{1e3 * worst:.1f}"]


if __name__ == "__main__":
    main()
