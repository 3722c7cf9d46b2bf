"""What can go wrong in training."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.errors.base import FormalLLMError


class RewardError(FormalLLMError, ValueError):
    """A reward that is no finite number, one that raised something, or a cache of rewards that cannot be used.

    It is no :class:`ExecutionError`, so it is never taken for a plan that failed.

    Attributes:
        problem: what is wrong, and what to do.
        task: the description of the task; empty where it is about no plan.
        word: the word of the plan; empty where it is about no plan.
        file: the file of the cache; empty where it is about none.
    """

    def __init__(self, problem: str, *, task: str = "", word: Sequence[str] = (), file: str = "") -> None:
        self.problem = problem
        self.task = task
        self.word = tuple(word)
        self.file = file
        place = f"{file}: " if file else ""
        where = f" (task: {task!r}; plan: {' '.join(self.word) or 'the empty word'})" if task or self.word else ""
        super().__init__(f"{place}{problem}{where}")


class TrainingError(FormalLLMError):
    """Training that cannot begin or continue; what was trained until then is in the last checkpoint."""
