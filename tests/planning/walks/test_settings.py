"""Settings as typed keywords: they are the keywords of the constructors, and of nothing else."""

from __future__ import annotations

import inspect

from formal_llm import Planner, Walk
from formal_llm.planning.drivers.planner import PlannerSettings
from formal_llm.planning.walks.settings import SharedSettings, WalkSettings


def keywords(kind: type) -> set[str]:
    return set(inspect.signature(kind).parameters)


def test_the_settings_of_walks_and_of_planners_are_those_of_their_constructors() -> None:
    assert set(WalkSettings.__annotations__) == keywords(Walk) - {"source"}
    assert set(PlannerSettings.__annotations__) == keywords(Planner) - {"source", "llm"}


def test_what_is_shared_is_a_setting_of_both() -> None:
    assert set(SharedSettings.__annotations__) <= keywords(Walk) & keywords(Planner)
