"""Tasks, walks, plans, and the planner that drives a walk with an LLM."""

from typing import TYPE_CHECKING

from formal_llm.exports import export_lazily

if TYPE_CHECKING:
    from formal_llm.planning.drivers.planner import Planner
    from formal_llm.planning.packs import TaskPack
    from formal_llm.planning.plans.plan import Plan
    from formal_llm.planning.plans.steps import Step
    from formal_llm.planning.plans.tree import Call, Node
    from formal_llm.planning.plans.usage import Usage
    from formal_llm.planning.task import Task
    from formal_llm.planning.walks.budget import Budget
    from formal_llm.planning.walks.choices import ChoiceTable
    from formal_llm.planning.walks.walk import Walk
    from formal_llm.planning.walks.wording import Wording

#: For each module the names that it defines.
_HOMES = {
    "drivers.planner": "Planner",
    "packs": "TaskPack",
    "plans.plan": "Plan",
    "plans.steps": "Step",
    "plans.tree": "Call Node",
    "plans.usage": "Usage",
    "task": "Task",
    "walks.budget": "Budget",
    "walks.choices": "ChoiceTable",
    "walks.walk": "Walk",
    "walks.wording": "Wording",
}

__getattr__ = export_lazily(__name__, _HOMES)

__all__ = [
    "Budget", "Call", "ChoiceTable", "Node", "Plan", "Planner", "Step", "Task", "TaskPack", "Usage",
    "Walk", "Wording",
]  # fmt: skip
