"""The modular agent: planning and calling apart, under rules."""

from formal_llm.agents.modular.agent import ModularAgent
from formal_llm.agents.modular.modules import (
    Module,
    ask,
    calculate,
    function_call,
    respond,
    scripted_user,
    search,
    standard_modules,
    terminal_user,
)
from formal_llm.agents.modular.run import Decision, ModularRun, ProgressEvent, RunBudget
from formal_llm.agents.modular.scratchpad import Memory, Scratchpad, Step, Turn
from formal_llm.agents.modular.setup import Sizes
from formal_llm.agents.modular.trajectories import decision_rows, write_decisions

__all__ = [
    "Decision",
    "Memory",
    "ModularAgent",
    "ModularRun",
    "Module",
    "ProgressEvent",
    "RunBudget",
    "Scratchpad",
    "Sizes",
    "Step",
    "Turn",
    "ask",
    "calculate",
    "decision_rows",
    "function_call",
    "respond",
    "scripted_user",
    "search",
    "standard_modules",
    "terminal_user",
    "write_decisions",
]  # fmt: skip
