"""Short wordings, for models that read slowly: what a model reads anew for a question decides what the question costs.

A model that runs on this machine remembers what it has read, from the beginning of a question up to where it differs
from earlier ones. What is new in each is its end: the last step, what is wanted, the list of options, the instruction.
These wordings leave out there what says little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from formal_llm.llms.llm import LLM
from formal_llm.planning.walks.wording import Wording

_SHORT = {
    "tool_option": "{label}",
    "instruction": "Which number, 1 to {count}?",
    "instruction_several": "Which numbers from 1 to {count}, separated by commas?",
}
#: The texts of the wordings that have names.
NAMED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "terse": {
            **_SHORT,
            "prompt": "Task: {task}\n{progress}\nTo get {target}:\n{options}\n{instruction}",
            "follow_up": "{progress}\nTo get {target}:\n{options}\n{instruction}",
        },
        "unlisted": {
            **_SHORT,
            "prompt": "Task: {task}\n{progress}\nTo get {target}, what is needed?",
            "follow_up": "{progress}\nTo get {target}, what is needed?",
        },
    }
)


def shortened(wording: Wording, name: str = "terse") -> Wording:
    """A wording with short texts in the places of its own.

    Args:
        wording: the wording; what it says beside the questions (system message, examples, conversation) stays.
        name: ``terse``: few words around the task, the steps and the options; ``unlisted``: without the options. That
            is for models whose options are scored by their texts, which then need no list
            (:mod:`~formal_llm.llms.scoring`); all others could only guess what the numbers mean.

    Raises:
        ValueError: there is no such wording.
    """
    if name not in NAMED:
        raise ValueError(f"there is no wording {name!r}; there are: {', '.join(NAMED)}")
    changes: dict[str, Any] = {**NAMED[name]}
    return replace(wording, **changes)


def adapt_wording(wording: Wording, llm: LLM) -> Wording:
    """The wording as an LLM reads it best: short, where it says so in ``wording``; for wordings that nobody chose."""
    name = getattr(llm, "wording", "")
    return shortened(wording, name) if name else wording
