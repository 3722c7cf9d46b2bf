"""Transfer to other wordings: the same methods on the benchmark's sentences and on rewordings of the same tasks.

Nothing is executed: a plan is judged by its validity, and by how well its tools agree with those that its task requires
(:mod:`~formal_llm.packs.openagi.references`). So all tools are available for planning, whatever the toolkit has.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Unpack

from formal_llm.packs.openagi.benchmark.conditions import Method
from formal_llm.packs.openagi.benchmark.plans import AskingSettings, Plans
from formal_llm.packs.openagi.benchmark.records import ScoredPlan
from formal_llm.packs.openagi.benchmark.tables import Interval, compute_interval
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.planning import Task, TaskPack
from formal_llm.rltf.reference_tools import compute_f1
from formal_llm.rltf.setup import hash_values

#: The two sets of sentences.
OWN, OTHER = "the benchmark's sentences", "other words"


@dataclass(frozen=True, slots=True)
class ToolFigures:
    """Figures on how well the plans for some sentences use the right tools.

    Attributes:
        words: :data:`OWN` or :data:`OTHER`.
        valid: the share of valid plans.
        f1: the mean over tasks of the F1 measure of the tools; 0 for an invalid plan.
        f1_interval: its 95 % interval over similar tasks; None for a single task.
        exact: the share of valid plans with exactly the right tools.
        note: why there are no plans; empty if there are.
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
    """Plans for tasks of a pack and for rewordings of them.

    Args:
        numbers: the tasks.
        sentences: all reworded tasks; plans are recorded by their places.
        chosen: the places of the sentences to use; by default all.
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
        self._sentences = hash_values([task.description for task in sentences])
        first = len(pack.tasks)  # sentences are numbered from there
        places = range(len(sentences)) if chosen is None else chosen
        tasks = {number: pack.tasks[number] for number in numbers}
        super().__init__(pack, tasks | {first + place: sentences[place] for place in places}, **settings)

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of tasks and of reworded sentences."""
        other = sum(bool(task.original) for task in self.tasks.values())
        return len(self.tasks) - other, other

    @cached_property
    def identity(self) -> dict[str, object]:
        """The identity of the plans, with the sentences."""
        return {**super().identity, "sentences": self._sentences}

    def compute_figures(self, rows: Iterable[ScoredPlan]) -> list[ToolFigures]:
        """Compute the figures of recorded plans by LLM and method: on the benchmark's sentences, then on others."""
        columns: dict[tuple[str, Method], dict[str, list[ScoredPlan]]] = {}
        for row in rows:
            if (task := self.tasks.get(row["task"])) is not None and row["repeat"] < self.repeats:
                sets = columns.setdefault((row["llm"], row["method"]), {OWN: [], OTHER: []})
                sets[OTHER if task.original else OWN].append(row)
        return [
            self._compute_figures(llm, method, words, some)
            for (llm, method), sets in columns.items()
            for words, some in sets.items()
            if some
        ]

    def _compute_figures(self, llm: str, method: Method, words: str, rows: Sequence[ScoredPlan]) -> ToolFigures:
        by_task: dict[str, list[float]] = {}
        exact = []
        for row in rows:
            task = self.tasks[row["task"]]
            needed, used = tools_called_for(task), self.tools_of(row)
            by_task.setdefault(task.original or task.description, []).append(
                compute_f1(needed, used) if row["valid"] else 0.0
            )
            exact.append(row["valid"] and needed == used)
        means = [statistics.fmean(values) for values in by_task.values()]
        return ToolFigures(
            llm, method, words, len(rows), statistics.fmean(row["valid"] for row in rows), statistics.fmean(means),
            compute_interval(means), statistics.fmean(exact),
        )  # fmt: skip

    def tools_of(self, row: ScoredPlan) -> set[str]:
        """Return the tools of a plan."""
        return {tool.name for tool in self.conditions.every} & set(row["word"])


def lines_of(figures: Sequence[ToolFigures]) -> list[list[str]]:
    """Return the rows of a table: the LLM and method, and the figures on each of the two sets of sentences."""
    rows: dict[str, dict[str, list[str]]] = {}
    for one in figures:
        margin = "" if one.f1_interval is None else f" ({one.f1_interval})"
        cells = [f"{one.valid:.0%}", f"{one.f1:.3f}{margin}", f"{one.exact:.0%}"]
        rows.setdefault(f"{one.llm} {one.method}", {})[one.words] = [one.note, "", ""] if one.note else cells
    return [
        [who, *(cell for words in (OWN, OTHER) for cell in cells.get(words, ["-"] * 3))] for who, cells in rows.items()
    ]


#: The heads of the columns of :func:`lines_of`.
HEADS = ("", "valid", "F1 of the tools", "just these", "other words: valid", "F1 of the tools", "just these")
