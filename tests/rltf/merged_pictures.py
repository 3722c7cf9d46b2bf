"""A small language of pictures that are sharpened and merged, for tests of rewards."""

from __future__ import annotations

from formal_llm import CFG, Planner, Task
from formal_llm.planning import Plan

CFG_TEXT = """
%start S
%limit 2
S -> sharpen S | merge S S | picture
"""
TASK = Task("Make it sharp", inputs=("picture",))


def plan_of(*numbers: int, text: str = CFG_TEXT) -> Plan:
    """The plan of these answers, and of 3 (the input) where there are no more."""
    told = iter(numbers)
    return Planner(CFG.from_string(text), lambda question: min(next(told, 3), len(question.options))).plan(TASK)


PLAN = plan_of(2, 1)
