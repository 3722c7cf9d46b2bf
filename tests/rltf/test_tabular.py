"""A policy that is a table: against single walks, and differences of the expected reward."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Planner, Wording
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.tabular import TabularPolicy
from tests import strategies
from tests.rltf.listed_plans import STACKED, TASK, listed, some_grammars


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
    plain = Wording.default(cfg)
    tree = TabularPolicy.from_task(Planner(cfg, "test:first", wording=plain), TASK, 4)
    assert [len(question.options) for question in tree.questions] == [2] * len(tree.questions)
    # By hand: with rewards for "c" only, at uniform logits, each first step is as good as the other.
    rewards = [float(episode.word[1] == "c") for episode in tree.episodes]
    found = tree.exact_gradient(np.zeros(tree.size), rewards)
    assert found[:2] == pytest.approx([0, 0])
    assert np.abs(found[2:]).sum() == pytest.approx(0.5)


def test_decisions_are_numbered_by_their_questions() -> None:
    tree = TabularPolicy.from_task(Planner(STACKED, "test:first"), TASK, 16)
    rows = iter(tree._rows)
    for leaf, episode in enumerate(tree.episodes):
        for decision in episode.decisions:
            plan, state, option = next(rows)
            assert (plan, option + 1) == (leaf, decision.number)
            assert tree.questions[state].content == decision.question.content
    assert next(rows, None) is None
    assert tree.size == sum(len(question.options) for question in tree.questions)


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
