"""Long flowcharts: what reading, printing, compiling, drawing and checking takes for n and for 2n steps.

A chart of 32,000 steps has about 1 MB. All figures are CPU seconds of this process; the last column says by what twice
as many steps take longer (2 is linear).

Run: python benchmarks/long_charts.py [STEPS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

from rich.console import Console
from rich.table import Table

from formal_llm import Flowchart, Lookahead


def chain(steps: int) -> str:
    """The text of a chart with so many steps, one after the other."""
    return "flowchart TD\n" + "".join(f"  n{n}[Do thing {n}] --> n{n + 1}\n" for n in range(steps - 1))


def timed(steps: int) -> dict[str, float]:
    """CPU seconds of each part, by its name."""
    taken: dict[str, float] = {}

    def time(name: str, part: Callable[[], object]) -> None:
        begin = process_time()
        part()
        taken[name] = process_time() - begin

    text = chain(steps)
    time("read", lambda: Flowchart.from_string(text))
    chart = Flowchart.from_string(text)
    time("print", lambda: str(chart))
    time("compile", chart.pda)
    time("draw as DOT", chart.to_dot)
    pda = chart.pda()
    time("can it be completed", lambda: Lookahead(pda).completable())
    time("shortest plan", lambda: Lookahead(pda).shortest_word())
    time("count", lambda: Lookahead(pda).count())
    time("is each step used", lambda: Lookahead(pda).detours(pda.start()))
    return taken


def main() -> None:
    """Print the table."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 16_000
    few, many = timed(steps), timed(2 * steps)
    table = Table("part", f"{steps:,} steps", f"{2 * steps:,} steps", "times", box=None)
    for name, seconds in few.items():
        table.add_row(name, f"{seconds:.2f} s", f"{many[name]:.2f} s", f"{many[name] / max(seconds, 1e-3):.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
