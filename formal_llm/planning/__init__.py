"""Tasks, walks, plans, and the planner that drives a walk with an LLM."""

from formal_llm.pictures.drawable import graph_of, picture_of
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.packs import TaskPack
from formal_llm.planning.plans.drawing import plan_graph, plan_picture, tree_picture
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.steps import Step
from formal_llm.planning.plans.tree import Call, Node
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.task import Task
from formal_llm.planning.walks.budget import Budget
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.walk import Walk
from formal_llm.planning.walks.wording import Wording

picture_of.register(Plan, plan_picture)
picture_of.register(Node, tree_picture)
graph_of.register(Plan, plan_graph)

__all__ = [
    "Budget", "Call", "ChoiceTable", "Node", "Plan", "Planner", "Step", "Task", "TaskPack", "Usage", "Walk", "Wording",
]  # fmt: skip
