"""Tasks, walks, plans, and the planner that drives a walk with an LLM."""

from typing import TYPE_CHECKING

from formal_llm.exports import LazyFunction, export_lazily
from formal_llm.pictures.drawable import register_graph, register_picture

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

#: For each name the module that defines it.
_HOMES = {
    "Budget": "walks.budget",
    "Call": "plans.tree",
    "ChoiceTable": "walks.choices",
    "Node": "plans.tree",
    "Plan": "plans.plan",
    "Planner": "drivers.planner",
    "Step": "plans.steps",
    "Task": "task",
    "TaskPack": "packs",
    "Usage": "plans.usage",
    "Walk": "walks.walk",
    "Wording": "walks.wording",
}

__getattr__ = export_lazily(__name__, _HOMES)

register_picture("formal_llm.planning.plans.plan:Plan", LazyFunction("formal_llm.planning.plans.drawing:plan_picture"))
register_picture("formal_llm.planning.plans.tree:Node", LazyFunction("formal_llm.planning.plans.drawing:tree_picture"))
register_graph("formal_llm.planning.plans.plan:Plan", LazyFunction("formal_llm.planning.plans.drawing:plan_graph"))

__all__ = [
    "Budget", "Call", "ChoiceTable", "Node", "Plan", "Planner", "Step", "Task", "TaskPack", "Usage",
    "Walk", "Wording",
]  # fmt: skip
