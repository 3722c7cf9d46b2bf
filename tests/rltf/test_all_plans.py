"""All plans: against the count, the language, single walks, and the limits of what is listed; a policy over them."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Answer, Budget, Limits, Planner, Production, RandomLLM, TaskPack, WeightedLLM, Wording
from formal_llm.errors import NoValidPlan, TooManyPlans
from formal_llm.rltf.all_plans import count_plans, enumerate_episodes, walk_episodes
from formal_llm.rltf.tabular import TabularPolicy
from tests import oracles, strategies
from tests.rltf.listed_plans import AMBIGUOUS, STACKED, TASK, listed, probabilities_under, single_choices, some_grammars

KEPT = ("denoising", "deblurring", "captioning", "detection", "translation", "sentiment", "input_image")


@strategies.examples(120)
@given(some_grammars)
def test_as_many_leaves_as_are_counted_and_the_words_of_the_language(cfg: CFG) -> None:
    planner, episodes = listed(cfg)
    assert len(episodes) == count_plans(planner, TASK)
    words = {episode.word for episode in episodes}
    longest = max(map(len, words))
    assert len(words) == planner.table(TASK).lookahead.count()
    if longest <= 6:
        terminals = list(cfg.terminals)
        right = {w for w in oracles.language(cfg, 6) if oracles.keeps(w, cfg.limits, terminals, cfg.symbols)}
        assert words == right


@strategies.examples(60)
@given(some_grammars)
def test_leaves_come_in_the_order_of_their_paths_and_each_once(cfg: CFG) -> None:
    _, episodes = listed(cfg)
    paths = [episode.path for episode in episodes]
    assert paths == sorted(set(paths))
    assert all(e.index == 3 and e.task is TASK and e.plan.complete and e.log_probability == 0 for e in episodes)


@strategies.examples(60)
@given(single_choices, st.booleans())
def test_decisions_are_what_a_walk_of_its_own_is_asked(cfg: CFG, conversation: bool) -> None:
    planner, _ = listed(cfg)
    planner.wording = replace(planner.wording, conversation=conversation)
    for episode in itertools.islice(walk_episodes(planner, TASK), 20):
        walk = planner.start(TASK)
        for decision in episode.decisions:
            assert walk.question is not None
            assert walk.question.content == decision.question.content
            walk.answer(decision.number)
        assert walk.plan == episode.plan


@pytest.mark.parametrize("name", ["openagi", "daily"])
def test_decisions_of_a_real_pack_are_those_of_rollouts(name: str) -> None:
    pack = TaskPack.load(name)
    planner = pack.planner(RandomLLM(1))
    if name == "openagi":
        planner.limits = Limits(at_most=dict.fromkeys(pack.cfg.terminals, 0) | dict.fromkeys(KEPT, 1))
    task = pack.task(20 if name == "openagi" else "")
    found = {e.word: e for e in enumerate_episodes(planner, task, 0, 1_000)}
    for _ in range(20):
        walk = planner.start(task)
        asked = []
        while (question := walk.question) is not None:
            asked.append(question.content)
            walk.answer(planner.llm.ask(question))
        assert asked == [decision.question.content for decision in found[walk.word].decisions]


def test_an_ambiguous_word_has_a_leaf_for_each_derivation() -> None:
    planner = Planner(AMBIGUOUS, "test:first")
    episodes = enumerate_episodes(planner, TASK, 0, 3)
    assert Counter(episode.word for episode in episodes) == {("a", "b"): 2, ("c",): 1}
    assert len({episode.path for episode in episodes}) == 3


def test_too_many_are_told_before_any_is_made() -> None:
    planner = Planner(STACKED, "test:first")
    assert count_plans(planner, TASK) == 16
    with pytest.raises(TooManyPlans, match="15 plans may be listed, and the task 't' has 16") as caught:
        enumerate_episodes(planner, TASK, 0, 15)
    assert (caught.value.limit, caught.value.count) == (15, 16)
    assert len(enumerate_episodes(planner, TASK, 0, 16)) == 16


def test_a_real_task_has_too_many() -> None:
    pack = TaskPack.load("openagi")
    with pytest.raises(TooManyPlans) as caught:
        enumerate_episodes(pack.planner(), pack.task(7), 0, 10_000)
    assert caught.value.count == 348_042_253


def test_infinitely_many() -> None:
    planner = Planner(CFG.from_string("S -> a S | b"), "test:first")
    assert count_plans(planner, TASK) == math.inf
    with pytest.raises(TooManyPlans, match="infinitely many"):
        enumerate_episodes(planner, TASK, 0, 100)
    first = list(itertools.islice(walk_episodes(Planner(CFG.from_string("S -> b | a S")), TASK), 3))
    assert [episode.word for episode in first] == [("b",), ("a", "b"), ("a", "a", "b")]


def test_a_budget_of_steps_decides_what_the_plans_are() -> None:
    # In both orders: one plan is found early, or every branch waits while the walk goes down.
    for text in ("S -> a S | b", "S -> b | a S"):
        planner = Planner(CFG.from_string(text), "test:first", budget=Budget(steps=9))
        assert count_plans(planner, TASK) is None
        episodes = enumerate_episodes(planner, TASK, 0, 50)
        assert {len(episode.word) for episode in episodes} == set(range(1, len(episodes) + 1))
        with pytest.raises(TooManyPlans, match="more than that"):
            enumerate_episodes(planner, TASK, 0, len(episodes) - 1)


@strategies.examples(60)
@given(some_grammars, st.integers(1, 10))
def test_without_a_count_the_limit_is_kept_while_walking(cfg: CFG, limit: int) -> None:
    planner, episodes = listed(cfg)
    if len(episodes) > limit:
        with pytest.raises(TooManyPlans):
            list(walk_episodes(planner, TASK, limit=limit))
    else:
        assert len(list(walk_episodes(planner, TASK, limit=limit))) == len(episodes)


def test_rules_without_choice_have_one_plan() -> None:
    (episode,) = enumerate_episodes(Planner(CFG.from_string("S -> a b"), "test:first"), TASK, 0, 1)
    assert (episode.word, episode.decisions) == (("a", "b"), ())


def test_selections_are_listed_option_by_option() -> None:
    planner = Planner(CFG.from_string("%limit 0 b\nS -> some(a, b, c) d"), "test:first")
    assert [(e.path, "".join(e.word)) for e in enumerate_episodes(planner, TASK, 0, 10)] == [
        ((1, 1), "acd"), ((1, 2), "ad"), ((2,), "cd"),
    ]  # fmt: skip
    pack = TaskPack.load("risk")
    episodes = enumerate_episodes(pack.planner("test:first"), pack.task(""), 0, 500)
    assert len(episodes) == count_plans(pack.planner("test:first"), pack.task("")) == 471


def test_what_is_not_listed() -> None:
    with pytest.raises(ValueError, match="lookahead='on'"):
        enumerate_episodes(Planner(STACKED, "test:first", lookahead="off"), TASK, 0, 100)
    with pytest.raises(ValueError, match="counts from 1"):
        enumerate_episodes(Planner(STACKED, "test:first"), TASK, 0, 0)
    with pytest.raises(NoValidPlan):
        empty = CFG([Production("S", ("a", "a"))], limits=Limits(default=1))
        enumerate_episodes(Planner(empty, "test:first"), TASK, 0, 10)


def test_nobody_is_told_and_nothing_is_asked() -> None:
    events: list[object] = []
    planner = Planner(STACKED, lambda question: 1 / 0, on_event=events.append, budget=Budget(questions=1))
    assert len(enumerate_episodes(planner, TASK, 0, 20)) == 16
    assert not events


@strategies.examples(60)
@given(single_choices, st.integers(0, 1 << 30))
def test_probabilities_sum_to_one_and_are_those_of_the_plans(cfg: CFG, seed: int) -> None:
    planner, episodes = listed(cfg)
    llm = WeightedLLM(seed)
    found = probabilities_under(episodes, llm.ask)
    assert math.isclose(sum(found), 1, rel_tol=1e-9)
    for episode, probability in list(zip(episodes, found, strict=True))[:10]:
        walk = planner.start(TASK)
        for decision in episode.decisions:
            walk.answer(Answer((decision.number,), llm.ask(decision.question).probabilities))
        assert walk.plan.log_probability == pytest.approx(math.log(probability))


def test_plans_of_one_ambiguous_word_share_its_probability() -> None:
    episodes = enumerate_episodes(Planner(AMBIGUOUS, "test:first"), TASK, 0, 3)
    assert math.isclose(sum(probabilities_under(episodes, WeightedLLM(0).ask)), 1)


# -- a policy that is a table ----------------------------------------------------------------------------------------


@strategies.examples(60)
@given(some_grammars, st.integers(0, 1 << 30))
def test_the_gradient_is_the_limit_of_differences(cfg: CFG, seed: int) -> None:
    _, episodes = listed(cfg)
    tree = TabularPolicy(episodes)
    rng = np.random.default_rng(seed)
    logits, rewards = rng.normal(size=tree.size), rng.normal(size=len(episodes))
    assert tree.compute_probabilities(logits).sum() == pytest.approx(1, abs=1e-12)
    found = tree.exact_gradient(logits, rewards)
    for place in rng.permutation(tree.size)[:5]:
        step = np.zeros(tree.size)
        step[place] = 1e-5
        rise = tree.expected_reward(logits + step, rewards) - tree.expected_reward(logits - step, rewards)
        assert found[place] == pytest.approx(rise / 2e-5, abs=1e-7)


def test_equal_questions_share_their_logits() -> None:
    cfg = CFG.from_string("S -> a T | b T\nT -> c | d")
    plain = Wording()
    tree = TabularPolicy.from_task(Planner(cfg, "test:first", wording=plain), TASK, 4)
    assert [len(question.options) for question in tree.questions] == [2] * len(tree.questions)
    # By hand: with rewards for "c" only, at uniform logits, each first step is as good as the other.
    rewards = [float(episode.word[1] == "c") for episode in tree.episodes]
    found = tree.exact_gradient(np.zeros(tree.size), rewards)
    assert found[:2] == pytest.approx([0, 0])
    assert np.abs(found[2:]).sum() == pytest.approx(0.5)


def test_a_tree_must_be_whole() -> None:
    episodes = enumerate_episodes(Planner(STACKED, "test:first"), TASK, 0, 16)
    random.Random(0).shuffle(episodes)
    assert len(TabularPolicy(episodes).episodes) == 16
    with pytest.raises(ValueError, match="not all plans"):
        TabularPolicy(episodes[1:])
    with pytest.raises(ValueError, match="twice"):
        TabularPolicy([*episodes, episodes[0]])
    with pytest.raises(ValueError, match="not all plans"):
        TabularPolicy([])
    longest = max(episodes, key=lambda episode: len(episode.path))
    cut = replace(longest, decisions=longest.decisions[:1])
    with pytest.raises(ValueError, match="goes on"):
        TabularPolicy([*episodes, cut])


def test_rules_without_choice_have_no_logit() -> None:
    tree = TabularPolicy.from_task(Planner(CFG.from_string("S -> a b"), "test:first"), TASK, 1)
    assert tree.size == 0
    assert tree.compute_probabilities([]) == pytest.approx([1])
    assert tree.compute_gradient([], [1]).shape == (0,)
