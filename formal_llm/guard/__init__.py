"""Guards for agents that exist already: rules for tool calls, and decisions before each of them."""

from typing import TYPE_CHECKING

from formal_llm.exports import export_lazily
from formal_llm.guard.core import GuardRules
from formal_llm.guard.events import Call, Decision, GuardEvent, Result, Said
from formal_llm.guard.guard import Guard, GuardState

if TYPE_CHECKING:
    from formal_llm.guard.live import GuardedRun, Noted

__getattr__ = export_lazily(__name__, {"live": "GuardedRun Noted"})

__all__ = [
    "Call",
    "Decision",
    "Guard",
    "GuardEvent",
    "GuardRules",
    "GuardState",
    "GuardedRun",
    "Noted",
    "Result",
    "Said",
]
