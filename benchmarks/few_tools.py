"""A small room of OpenAGI: tasks that make an image of an image, with the tools that mend images; 64 plans each."""

from __future__ import annotations

from typing import Any

from formal_llm import Limits, Planner, TaskPack

#: The tools, and the input.
MENDING = ("colorization", "super_resolution", "denoising", "deblurring", "input_image")
#: The tasks, as the setting ``train`` takes them.
TASKS = "5,7,9,11"


def planner(pack: TaskPack, llm: Any = "builtin", **settings: Any) -> Planner:
    """A planner of the OpenAGI pack that knows these tools alone, each at most once."""
    limits = Limits(at_most={symbol: int(symbol in MENDING) for symbol in pack.cfg.terminals})
    return pack.planner(llm, limits=limits, **settings)
