"""Tasks of OpenAGI in other words: on how many the plan uses just the tools that the task calls for, and the mean F1.

The sentences of ``paraphrases.toml`` are there to measure, so only totals are shown. Those of
``paraphrases_tuning.toml`` are there to tune on (``--tuning``), with each sentence where ``--rows`` is given.

Run: python benchmarks/paraphrases.py [--llm builtin --llm minilm ...] [--tuning [--rows]]
"""

from __future__ import annotations

import argparse
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from formal_llm import TaskPack
from formal_llm.llms import LLM, resolve
from formal_llm.packs.openagi.references import tools_called_for

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Found:
    """What a plan for one sentence uses, and what it should use."""

    text: str
    used: frozenset[str]
    wanted: frozenset[str]

    @property
    def exact(self) -> bool:
        """Whether these are the same."""
        return self.used == self.wanted

    @property
    def f1(self) -> float:
        """How well they agree."""
        return 2 * len(self.used & self.wanted) / (len(self.used) + len(self.wanted))


def sentences(file: str) -> list[tuple[int, str]]:
    """The sentences of a file of paraphrases, each with its task."""
    rows = tomllib.loads((HERE / file).read_text(encoding="utf-8"))["paraphrases"]
    return [(row["task"], text) for row in rows for text in row["texts"]]


def measured(pack: TaskPack, llm: LLM, file: str) -> list[Found]:
    """One plan for each sentence of a file."""
    planner = pack.planner(llm)
    found = []
    for number, text in sentences(file):
        task = pack.task(number)
        word = planner.plan(replace(task, description=text)).word
        used = frozenset(tool for tool in word if not tool.startswith("input_"))
        found.append(Found(text, used, frozenset(tools_called_for(task))))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llm", action="append", help="who answers, again for more; else builtin, minilm and chance")
    parser.add_argument("--tuning", action="store_true", help="the sentences to tune on, not those to measure")
    parser.add_argument("--rows", action="store_true", help="with --tuning: each sentence")
    given = parser.parse_args()
    if given.rows and not given.tuning:
        parser.error("the sentences to measure are not looked at one by one: --rows goes with --tuning")
    file = "paraphrases_tuning.toml" if given.tuning else "paraphrases.toml"
    pack = TaskPack.load("openagi")
    table = Table(title=f"{len(sentences(file))} sentences of {file}")
    for column in ("llm", "just the tools", "mean F1"):
        table.add_column(column, justify="left" if column == "llm" else "right")
    for name in given.llm or ["builtin", "minilm", "test:random"]:
        found = measured(pack, resolve(name), file)
        if given.rows:
            for one in found:
                print("ok " if one.exact else "-- ", one.text, "|", *sorted(one.used), "|", *sorted(one.wanted))
        table.add_row(name, str(sum(one.exact for one in found)), f"{sum(one.f1 for one in found) / len(found):.3f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
