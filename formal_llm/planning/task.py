"""A task: one problem in natural language."""

from __future__ import annotations

from dataclasses import dataclass, field

from formal_llm.automata import Limits


@dataclass(frozen=True)
class Task:
    """What a plan is for.

    Attributes:
        description: the problem, in natural language.
        goal: the nonterminal from which the plan is derived, if it is not the grammar's start symbol.
        limits: limits for this task besides those of the grammar (an input that is not given has limit 0).
        inputs: the names of the given inputs.
        group: the kind of task in its task pack.
        original: for a paraphrase, the sentence of the task pack that it rewords; otherwise empty.
    """

    description: str
    goal: str | None = None
    limits: Limits = field(default_factory=Limits)
    inputs: tuple[str, ...] = ()
    group: str = ""
    original: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.description, str):
            raise TypeError(f"a task is described by a text: Task('...'), not by {type(self.description).__name__}")

    @classmethod
    def of(cls, task: str | Task) -> Task:
        """Convert a text to a task; return a task as it is.

        Raises:
            TypeError: it is neither.
        """
        return task if isinstance(task, Task) else cls(task)
