"""``--config FILE.toml``: the settings of planning that do not change from call to call."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from formal_llm.authored.tables import AlternativeShape, Keys, TableProblem, TomlFile
from formal_llm.automata.lookahead.verdicts import SEARCH_TIME


@dataclass(frozen=True)
class PlanConfig:
    """Settings of planning. Those that a file does not name have these values.

    Attributes:
        lookahead: whether only options are offered from which a plan can be finished.
        search_time: seconds of search for a question; what is not decided by then is offered.
        length_penalty: for the search best-first: above 0, longer plans are favoured; 1 is the mean.
        seed: for the search sample.
        conversation: whether questions are asked in one conversation, and not each alone.
        rules: whether the LLM is told the rules, in the system message.
        page_size: how many options a page has, where larger questions are asked page by page; None: no pages.
        tries: how often one question is asked until its answer is legal.
        max_steps: the most moves of the automaton in a plan.
        max_backtracks: after how many dead ends planning stops; None: never.
    """

    lookahead: Literal["on", "off"] = "on"
    search_time: float = SEARCH_TIME
    length_penalty: float = 0.0
    seed: int = 0
    conversation: bool = False
    rules: bool = False
    page_size: int | None = None
    tries: int = 3
    max_steps: int = 10_000
    max_backtracks: int | None = None


_SHAPE = Keys(
    {"lookahead": AlternativeShape(texts=("on", "off"))}
    | dict.fromkeys(("search_time", "length_penalty"), float)
    | dict.fromkeys(("conversation", "rules"), bool)
    | dict.fromkeys(("seed", "page_size", "tries", "max_steps", "max_backtracks"), int)
)
_LEAST = {
    "search_time": 0, "length_penalty": 0, "page_size": 2, "tries": 1, "max_steps": 1, "max_backtracks": 1,
}  # fmt: skip


def read_config(path: Path | None) -> PlanConfig:
    """Read the settings of a file; without one, all have their usual values.

    Raises:
        NotationError: the file cannot be read, is no TOML, or names a setting that is none or has a value that it
            cannot have; with the line.
    """
    if path is None:
        return PlanConfig()
    file = TomlFile.read(path, _SHAPE, "in a configuration of planning")
    for name, least in _LEAST.items():
        if name in file.data and not least <= file.data[name] < math.inf:
            file.fail(TableProblem((name,), f"{name} is a number from {least}, not {file.data[name]}"))
    return PlanConfig(**file.data)
