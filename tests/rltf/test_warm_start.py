"""Warm starts: words are retraced to the decisions that make them, and reference plans follow their limits."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import assume, given

from formal_llm import CFG, Budget, Limits, Planner, RandomLLM, Task, TaskPack
from formal_llm.errors import NoValidPlan, TooManyPlans, TrainingError, Undecided
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.rollout import WalkNode
from formal_llm.rltf.warm_start import reference_plans, retrace
from tests import strategies
from tests.strategies import examples


@given(strategies.limited_grammars() | strategies.tool_grammars())
@examples(40)
def test_words_of_random_walks_are_retraced(cfg: CFG) -> None:
    planner, task = Planner(cfg, RandomLLM(0)), Task("t")
    ended = 0
    for seed in range(3):
        rng = random.Random(seed)
        try:
            node = WalkNode.root(planner.start(task))
        except (NoValidPlan, Undecided):
            assume(False)
        for _ in range(30):
            if node.question is not None:
                node = node.after(rng.randint(1, len(node.question.options)))
        if node.question is None:
            ended += 1
            again = retrace(planner, task, node.walk.word)
            assert again.word == node.walk.word
            assert again.plan.complete
    assume(ended)


@given(strategies.limited_grammars() | strategies.tool_grammars())
@examples(40)
def test_each_word_is_retraced(cfg: CFG) -> None:
    planner, task = Planner(cfg, "test:first"), Task("t")
    try:
        leaves = enumerate_episodes(planner, task, 0, 60)
    except (NoValidPlan, TooManyPlans, Undecided):
        assume(False)
    paths: dict[tuple[str, ...], list[tuple[int, ...]]] = {}
    for leaf in leaves:  # in the order of their paths
        paths.setdefault(leaf.word, []).append(leaf.path)
    for word, ways in paths.items():
        again = retrace(planner, task, word)
        assert again.word == word
        assert again.path == next(way for way in ways if len(way) <= 2 * len(word) + 8)
        assert again.plan.complete


def test_what_is_no_plan_is_told(planner: Planner, tasks: list[Task]) -> None:
    for word in (("a", "a", "e"), ("a",), ("e", "a"), ()):
        with pytest.raises(ValueError, match="no plan of 'make it alpha' has the word"):
            retrace(planner, tasks[0], word)


@pytest.mark.parametrize("rules", ["S -> A S | b\nA -> ε | a", "S -> S S | b", "S -> S | b"])
@pytest.mark.filterwarnings("ignore:.*can become")
def test_rules_that_may_read_nothing_for_ever_are_retraced(rules: str) -> None:
    planner = Planner(CFG.from_string(rules), "test:first")
    word = ("b",) * 6 if "S S" in rules else ("b",)
    assert retrace(planner, Task("t"), word).word == word
    with pytest.raises(ValueError, match="has the word"):
        retrace(planner, Task("t"), ("b", "a"))


def test_a_word_beyond_the_budget_is_none_of_the_planner_s() -> None:
    planner = Planner(CFG.from_string("S -> a S | b"), "test:first", budget=Budget(steps=8))
    assert retrace(planner, Task("t"), ("a", "b")).word == ("a", "b")
    with pytest.raises(ValueError, match="has the word"):
        retrace(planner, Task("t"), ("a",) * 20 + ("b",))


def test_a_selection_is_retraced_option_by_option() -> None:
    planner = Planner(CFG.from_string("S -> some(a, b, d) c"), "test:first")
    episode = retrace(planner, Task("t"), ("a", "d", "c"))
    assert episode.path == (1, 2)  # a; d of b, d and nothing more, after which nothing is left
    assert [len(decision.question.options) for decision in episode.decisions] == [3, 3]
    with pytest.raises(ValueError, match="has the word"):
        retrace(planner, Task("t"), ("d", "a", "c"))


@pytest.mark.parametrize("name", ["cooking", "daily", "risk"])
def test_references_of_packs_with_one_task(name: str) -> None:
    """Risk and cooking have selections, and cooking so many ambiguous plans that derivations are drawn."""
    pack = TaskPack.load(name)
    planner = pack.planner("test:first")
    [plans] = reference_plans(planner, [pack.task("")], 3)
    for episode in plans:
        assert planner.table(episode.task).automaton.accepts(episode.word)
        assert retrace(planner, episode.task, episode.word).word == episode.word


def test_references_are_drawn_evenly(planner: Planner, tasks: list[Task]) -> None:
    first, second, third = reference_plans(planner, tasks, 800)
    words = Counter(episode.word for episode in first)
    assert len(words) == 16
    assert min(words.values()) > 20
    assert {episode.index for episode in second} == {1}
    assert not any("c" in episode.word for episode in third)
    assert [e.word for e in reference_plans(planner, tasks, 5)[0]] == [
        e.word for e in reference_plans(planner, tasks, 5)[0]
    ]


def test_references_may_be_narrowed(planner: Planner, tasks: list[Task]) -> None:
    def only_b(_: Task) -> Limits:
        return Limits({"a": 0, "c": 0}, {"b": 1})

    for plans in reference_plans(planner, tasks, 3, references=only_b):
        assert {episode.word for episode in plans} == {("b", "e")}
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
            assert {name for name in episode.word if not name.startswith("input_")} == tools_called_for(task)
