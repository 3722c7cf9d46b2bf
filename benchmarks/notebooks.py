"""What notebooks cost: the processor's seconds of each example, and of drawing values of many sizes.

``python benchmarks/notebooks.py`` prints two tables. The first runs each notebook of ``examples/`` in a kernel of this
environment (it needs nbclient and ipykernel). The second makes what a notebook is shown of a value that is the last
line of a cell, and tells what it is given: beyond the bound it is text alone, and that must not take long either.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from formal_llm import CFG, PDA, Planner, TaskPack
from formal_llm.pictures.drawable import Drawable

ROOT = Path(__file__).parent.parent


def used() -> float:
    """The seconds of the processor that this process and those it started took."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def run(path: Path) -> float:
    """The seconds of the processor that a notebook takes, its kernel included."""
    import nbclient
    import nbformat

    began = used()
    with tempfile.TemporaryDirectory() as folder:
        book = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)  # type: ignore[no-untyped-call]
        nbclient.NotebookClient(book, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    return used() - began


def chain(size: int) -> CFG:
    """A grammar of so many nonterminals."""
    rules = [f"N{n} -> t{n} N{n + 1} | t{n}\n" for n in range(size - 1)]
    return CFG.from_string("".join(rules) + f"N{size - 1} -> t\n")


def tangle(states: int, arrows: int) -> PDA:
    """An automaton with arrows between any of its states, which is what Graphviz finds hard."""
    rng, names = random.Random(0), [f"s{n}" for n in range(states)]
    path = [(one, "a", None, other, ()) for one, other in pairwise(names)]
    more = [(rng.choice(names), "b", None, rng.choice(names), ()) for _ in range(arrows - len(path))]
    return PDA(sorted({*path, *more}), start=names[0], accepting=[names[-1]], check=False)


def drawn() -> Iterator[tuple[str, Drawable]]:
    """Values of many sizes, by name."""
    pack = TaskPack.load("openagi")
    planner = Planner(pack.cfg, "builtin", wording=pack.wording)
    yield "the grammar openagi", pack.cfg
    yield "its automaton", planner.table().lookahead
    yield "a plan of it", planner.plan(pack.task(117))
    yield "a step through it", planner.step_through(pack.task(117))
    for size in (20, 70, 80, 1_000, 10_000):
        yield f"a grammar of {size:,} nonterminals", chain(size)
    for states, arrows in ((24, 100), (60, 150), (60, 300)):
        yield f"{states} states, {arrows} arrows anywhere", tangle(states, arrows)


def main() -> None:
    """Print the tables."""
    print(f"{'notebook':<36} {'CPU s':>6}")
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        print(f"{path.stem:<36} {run(path):6.1f}")
    print(f"\n{'value':<36} {'CPU s':>6} {'characters':>11}  shown as")
    for name, value in drawn():
        began = used()
        bundle = value._repr_mimebundle_()
        took = used() - began
        kinds = ", ".join(kind.rpartition("/")[2] for kind in bundle)
        print(f"{name:<36} {took:6.2f} {sum(map(len, bundle.values())):11,}  {kinds}")
    print(f"\n{time.process_time():.1f} s of this process in all")


if __name__ == "__main__":
    main()
