"""What transfers: the same methods on the benchmark's sentences, and on others that say the same tasks.

Nothing is carried out: a plan is judged by whether it is valid, and by how well its tools agree with those that its
task calls for (:mod:`~formal_llm.packs.openagi.references`). So all tools can be planned with, whatever the toolkit
has.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Unpack

from formal_llm.packs.openagi.benchmark.conditions import Method
from formal_llm.packs.openagi.benchmark.intervals import Interval, interval
from formal_llm.packs.openagi.benchmark.plans import AskingSettings, Plans
from formal_llm.packs.openagi.benchmark.records import ScoredPlan
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.planning import Task, TaskPack
from formal_llm.rltf.reference_tools import f1
from formal_llm.rltf.setup import digest

#: The two sets of sentences.
OWN, OTHER = "the benchmark's sentences", "other words"


@dataclass(frozen=True, slots=True)
class ToolFigures:
    """How well the plans for some sentences use the right tools.

    Attributes:
        llm, method: whose plans.
        words: :data:`OWN` or :data:`OTHER`.
        plans: how many.
        valid: the share of valid ones.
        f1: the mean over tasks of the F1 measure of the tools; 0 for a plan that is not valid.
        f1_interval: where it lies with 95 % over other tasks like these; None for a single task.
        exact: the share of valid plans with just the right tools.
        note: why there are no plans; empty where there are.
    """

    llm: str
    method: Method
    words: str
    plans: int
    valid: float = 0.0
    f1: float = 0.0
    f1_interval: Interval | None = None
    exact: float = 0.0
    note: str = ""


class Transfer(Plans):
    """Plans for tasks of a pack and for sentences that say them in other words.

    Args:
        pack: the pack.
        numbers: the tasks.
        sentences: tasks in other words, all that there are: by their places plans are on record.
        chosen: the places of those that are asked for; all where left out.
        settings: see :class:`~formal_llm.packs.openagi.benchmark.plans.AskingSettings`.
    """

    def __init__(
        self,
        pack: TaskPack,
        numbers: Sequence[int],
        sentences: Sequence[Task],
        chosen: Sequence[int] | None = None,
        **settings: Unpack[AskingSettings],
    ) -> None:
        self._sentences = digest([task.description for task in sentences])
        first = len(pack.tasks)  # sentences are numbered from there
        places = range(len(sentences)) if chosen is None else chosen
        tasks = {number: pack.tasks[number] for number in numbers}
        super().__init__(pack, tasks | {first + place: sentences[place] for place in places}, **settings)

    @property
    def counts(self) -> tuple[int, int]:
        """How many tasks, and how many sentences in other words."""
        other = sum(bool(task.original) for task in self.tasks.values())
        return len(self.tasks) - other, other

    @cached_property
    def identity(self) -> dict[str, object]:
        """As of the plans; with the sentences."""
        return {**super().identity, "sentences": self._sentences}

    def figures(self, rows: Iterable[ScoredPlan]) -> list[ToolFigures]:
        """The figures of plans on record, for each LLM and method: on the benchmark's sentences, then on others."""
        columns: dict[tuple[str, Method], dict[str, list[ScoredPlan]]] = {}
        for row in rows:
            if (task := self.tasks.get(row["task"])) is not None and row["repeat"] < self.repeats:
                sets = columns.setdefault((row["llm"], row["method"]), {OWN: [], OTHER: []})
                sets[OTHER if task.original else OWN].append(row)
        return [
            self._figures(llm, method, words, some)
            for (llm, method), sets in columns.items()
            for words, some in sets.items()
            if some
        ]

    def _figures(self, llm: str, method: Method, words: str, rows: Sequence[ScoredPlan]) -> ToolFigures:
        by_task: dict[str, list[float]] = {}
        exact = []
        for row in rows:
            task = self.tasks[row["task"]]
            wanted, used = tools_called_for(task), self.tools_of(row)
            by_task.setdefault(task.original or task.description, []).append(f1(wanted, used) if row["valid"] else 0.0)
            exact.append(row["valid"] and wanted == used)
        means = [statistics.fmean(values) for values in by_task.values()]
        return ToolFigures(
            llm, method, words, len(rows), statistics.fmean(row["valid"] for row in rows), statistics.fmean(means),
            interval(means), statistics.fmean(exact),
        )  # fmt: skip

    def tools_of(self, row: ScoredPlan) -> set[str]:
        """The tools of a plan."""
        return {tool.name for tool in self.conditions.every} & set(row["word"])


def lines_of(figures: Sequence[ToolFigures]) -> list[list[str]]:
    """The rows of a table: who was asked how, and the figures on each of the two sets of sentences."""
    rows: dict[str, dict[str, list[str]]] = {}
    for one in figures:
        within = "" if one.f1_interval is None else f" ({one.f1_interval})"
        told = [f"{one.valid:.0%}", f"{one.f1:.3f}{within}", f"{one.exact:.0%}"]
        rows.setdefault(f"{one.llm} {one.method}", {})[one.words] = [one.note, "", ""] if one.note else told
    return [
        [who, *(cell for words in (OWN, OTHER) for cell in told.get(words, ["-"] * 3))] for who, told in rows.items()
    ]


#: The heads of the columns of :func:`lines_of`.
HEADS = ("", "valid", "F1 of the tools", "just these", "other words: valid", "F1 of the tools", "just these")
