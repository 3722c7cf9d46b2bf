"""Tasks, walks, plans, and the planner that drives a walk with an LLM."""

from formal_llm.planning.budget import Budget
from formal_llm.planning.choices import ChoiceTable
from formal_llm.planning.packs import TaskPack
from formal_llm.planning.plan import Plan, Step, Usage
from formal_llm.planning.planner import Planner
from formal_llm.planning.task import Task
from formal_llm.planning.tree import Call, Node
from formal_llm.planning.walk import Walk
from formal_llm.planning.wording import Wording

__all__ = [
    "Budget", "Call", "ChoiceTable", "Node", "Plan", "Planner", "Step", "Task", "TaskPack", "Usage", "Walk", "Wording",
]  # fmt: skip
