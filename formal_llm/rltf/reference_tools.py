"""A reward that executes nothing: the agreement of the tools of a plan with those that its task requires."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Literal

from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.task import Task
from formal_llm.rltf.rewards import Reward, name_of


class ReferenceTools(Reward):
    """The agreement of the tools of a plan with the tools that its task requires. Cheap: nothing is executed.

    ``"f1"``: the harmonic mean of precision and recall over the two *sets* of tools (van Rijsbergen 1979), twice the
    number of shared tools divided by the sum of both numbers; 1 if both sets are empty. ``"exact"``: 1 if the sets are
    equal, else 0. Inputs are not tools.

    Args:
        tools: returns the names of the tools that a task requires.
        inputs: the terminals that are inputs. Default: those that the plan does not apply to anything; none in a plan
            that is not a nesting of calls.
        name, invalid: see :class:`Reward`; the name is for ``tools`` and ``kind`` together.

    Raises:
        ValueError: the kind is unknown, or ``invalid`` is not a finite number.
    """

    def __init__(
        self,
        tools: Callable[[Task], Collection[str]],
        kind: Literal["f1", "exact"] = "f1",
        *,
        inputs: Collection[str] | None = None,
        name: str | None = None,
        invalid: float = 0.0,
    ) -> None:
        if kind not in ("f1", "exact"):
            raise ValueError(f"kind is 'f1' or 'exact', not {kind!r}")
        self.tools = tools
        self.kind = kind
        self.inputs = None if inputs is None else frozenset(inputs)
        if name is None and (of := name_of(tools)) is not None:
            name = f"reference tools, {kind}, {of}"
        super().__init__(self._compute_agreement, name=name, invalid=invalid)

    @property
    def name(self) -> str:
        """The name in logs."""
        return self._name or f"reference tools, {self.kind}"

    @property
    def settings(self) -> dict[str, object]:
        """Like :attr:`Reward.settings`, with the kind and the inputs."""
        inputs = None if self.inputs is None else sorted(self.inputs)
        return {**super().settings, "kind": self.kind, "inputs": inputs}

    def _compute_agreement(self, task: Task, plan: Plan) -> float:
        wanted, used = frozenset(self.tools(task)), tools_of(plan, self.inputs)
        return float(wanted == used) if self.kind == "exact" else compute_f1(wanted, used)


def tools_of(plan: Plan, inputs: Collection[str] | None = None) -> frozenset[str]:
    """Return the tools that a plan uses; ``inputs`` are terminals that are not tools (see :class:`ReferenceTools`)."""
    if inputs is not None:
        return frozenset(plan.word).difference(inputs)
    call = plan.call
    return frozenset(plan.word) if call is None else frozenset(c.name for c in call.walk() if c.arguments)


def compute_f1(wanted: Collection[str], used: Collection[str]) -> float:
    """Return the F1 measure of two sets, from 0 to 1: see :class:`ReferenceTools`."""
    one, other = frozenset(wanted), frozenset(used)
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 1.0
