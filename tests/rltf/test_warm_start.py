"""Warm starts: words are retraced to the decisions that make them, and reference plans follow their limits."""

from __future__ import annotations

from collections import Counter

import pytest
import strategies
from hypothesis import assume, given, settings

from formal_llm import CFG, Limits, NoValidPlan, Planner, Task, TaskPack, Undecided
from formal_llm.errors import TooManyPlans, TrainingError
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.rltf.plan_tree import enumerate_episodes, path
from formal_llm.rltf.warm_start import reference_plans, retrace


@given(strategies.limited_grammars(selections=False) | strategies.tool_grammars())
@settings(max_examples=40)
def test_each_word_is_retraced(cfg: CFG) -> None:
    planner, task = Planner(cfg, "test:first"), Task("t")
    try:
        leaves = enumerate_episodes(planner, task, 0, 60)
    except (NoValidPlan, TooManyPlans, Undecided):
        assume(False)
    first = {}
    for leaf in leaves:  # in the order of their paths
        first.setdefault(leaf.key, path(leaf))
    for word, numbers in first.items():
        again = retrace(planner, task, word)
        assert again.key == word
        assert path(again) == numbers
        assert again.plan.complete


def test_what_is_no_plan_is_told(planner: Planner, tasks: list[Task]) -> None:
    for word in (("a", "a", "e"), ("a",), ("e", "a"), ()):
        with pytest.raises(ValueError, match="no plan of 'make it alpha' has the word"):
            retrace(planner, tasks[0], word)
    cfg = CFG.from_string("S -> some(a, b) c")
    with pytest.raises(ValueError, match="selections"):
        retrace(Planner(cfg, "test:first"), Task("t"), ("a", "c"))


def test_references_are_drawn_evenly(planner: Planner, tasks: list[Task]) -> None:
    first, second, third = reference_plans(planner, tasks, 800)
    words = Counter(episode.key for episode in first)
    assert len(words) == 16
    assert min(words.values()) > 20
    assert {episode.index for episode in second} == {1}
    assert not any("c" in episode.key for episode in third)
    assert [e.key for e in reference_plans(planner, tasks, 5)[0]] == [
        e.key for e in reference_plans(planner, tasks, 5)[0]
    ]


def test_references_may_be_narrowed(planner: Planner, tasks: list[Task]) -> None:
    def only_b(_: Task) -> Limits:
        return Limits({"a": 0, "c": 0}, {"b": 1})

    for plans in reference_plans(planner, tasks, 3, references=only_b):
        assert {episode.key for episode in plans} == {("b", "e")}
        assert all(len(episode.decisions) >= 1 for episode in plans)
        assert all(len(d.question.options) > 1 for episode in plans for d in episode.decisions)
    with pytest.raises(TrainingError, match="no reference plan for 'make it short'"):
        reference_plans(planner, tasks, 3, references=lambda _: Limits({}, {"c": 1}))


def test_references_of_openagi_use_the_tools_that_are_called_for() -> None:
    pack = TaskPack.load("openagi")
    planner = pack.planner("test:first")
    tasks = [pack.task(number) for number in pack.data["splits"]["training"]]
    tools = [name for name in pack.cfg.terminals if not name.startswith("input_")]

    def just_these(task: Task) -> Limits:
        wanted = tools_called_for(task)
        return Limits({tool: 0 for tool in tools if tool not in wanted}, dict.fromkeys(wanted, 1))

    for task, plans in zip(tasks, reference_plans(planner, tasks, 2, references=just_these), strict=True):
        for episode in plans:
            assert {name for name in episode.key if not name.startswith("input_")} == tools_called_for(task)
