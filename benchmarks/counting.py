"""How many OpenAGI plans there are, exactly, and how long counting and sampling them takes.

Run: python benchmarks/counting.py
"""

from __future__ import annotations

import random
import statistics
from time import perf_counter

from rich.console import Console
from rich.table import Table

from formal_llm import Limits, Lookahead, TaskPack


def main() -> None:
    pack = TaskPack.load("openagi")
    table = Table(title="Complete plans, each of the fifteen tools at most once")
    for column in ("from", "to", "plans", "counting, ms", "one sample, ms"):
        table.add_column(column, justify="left" if column in ("from", "to") else "right")
    rows = [
        ("an image, used at most once", "text_plan", Limits({"input_text": 0, "input_image": 1})),
        ("an image, used at will", "text_plan", Limits({"input_text": 0})),
        ("an image, used at will", "image_plan", Limits({"input_text": 0})),
        ("a text, used at will", "text_plan", Limits({"input_image": 0})),
        ("image and text, used at will", "text_plan", Limits()),
    ]
    for given, goal, limits in rows:
        times = []
        for _ in range(5):
            lookahead = Lookahead(pack.cfg.with_start(goal), limits)
            begin = perf_counter()
            number = lookahead.count()
            times.append((perf_counter() - begin) * 1e3)
        rng = random.Random(0)
        begin = perf_counter()
        for _ in range(100):
            lookahead.sample(rng)
        each = (perf_counter() - begin) * 10
        table.add_row(
            given, goal.removesuffix("_plan"), f"{number:,}", f"{statistics.median(times):.1f}", f"{each:.1f}"
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
