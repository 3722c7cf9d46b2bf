"""Driving a walk: how its questions get their answers, and what starts walks in the first place.

The questions of a walk come from a generator, its *steps*: a question comes out; an answer, or the error that came in
its place, goes in. What makes the steps is a search (:mod:`formal_llm.planning.drivers.search`).
"""

from __future__ import annotations

import random
from collections.abc import Generator, Mapping
from typing import Protocol

from formal_llm.automata import Source
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import Prices
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.task import Task
from formal_llm.planning.walks.walk import Walk

#: What a walk is restored from (:meth:`Walk.snapshot`).
Snapshot = Mapping[str, JSON]
#: Questions go out, answers come in.
Steps = Generator[Question, Answer, None]


class WalkDriver(Protocol):
    """What starts walks and takes them to their end: what batches and solving know of a planner."""

    @property
    def source(self) -> Source:
        """The rules."""

    @property
    def llm(self) -> LLM:
        """Who answers."""

    @property
    def prices(self) -> Prices | None:
        """What the tokens of the one who answers cost."""

    @property
    def seed(self) -> int:
        """Where draws begin."""

    def start(self, task: str | Task, *, name: str = "") -> Walk:
        """A walk for a task, before its first question."""

    def resume(self, snapshot: Snapshot | str, task: str | Task | None = None, *, name: str = "") -> Walk:
        """The walk of a snapshot."""

    def steps(self, walk: Walk, rng: random.Random | None = None) -> Steps:
        """The questions that take a walk to its end."""

    def drive(self, walk: Walk) -> Plan:
        """Have the questions of a walk answered until its plan is finished."""

    async def adrive(self, walk: Walk) -> Plan:
        """As :meth:`drive`, without blocking the event loop."""
