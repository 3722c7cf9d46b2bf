"""The settings that walks and planners share, typed for those who hand them on as keywords."""

from __future__ import annotations

from typing import Literal, TypedDict

from formal_llm.automata import Limits
from formal_llm.llms.usage import Prices
from formal_llm.planning.task import Task
from formal_llm.planning.walks.budget import Budget
from formal_llm.planning.walks.events import EventCallback
from formal_llm.planning.walks.pages import Pages
from formal_llm.planning.walks.wording import Wording

LookaheadMode = Literal["on", "off"]


class SharedSettings(TypedDict, total=False):
    """What a walk and a planner are told alike."""

    limits: Limits | None
    lookahead: LookaheadMode
    wording: Wording | None
    pages: Pages | int | None
    budget: Budget | None
    prices: Prices | None
    on_event: EventCallback | None


class WalkSettings(SharedSettings, total=False):
    """The settings of a :class:`~formal_llm.planning.walks.walk.Walk`."""

    task: str | Task
    name: str
