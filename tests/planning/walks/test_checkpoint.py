"""Snapshots: a walk is restored exactly, or refused."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formal_llm import CFG, Answer, Budget, Limits, Walk, WeightedLLM, Wording
from formal_llm.errors import BudgetExceeded, NoValidPlan, SnapshotError
from tests import strategies
from tests.planning.wandering import CHAIN, TOOLS, drive, wander


@settings(max_examples=40)
@given(strategies.grammars(), st.integers(0, 1 << 30), st.sampled_from(["on", "off"]), st.booleans())
def test_a_snapshot_restores_the_walk_exactly(cfg: CFG, seed: int, lookahead: str, conversation: bool) -> None:
    rng = random.Random(seed)
    settings = {"wording": Wording(conversation=conversation), "budget": Budget(steps=120, backtracks=500)}
    try:
        walk = Walk(cfg, "task", lookahead=lookahead, **settings)
        wander(walk, rng, 8)
        snapshot = walk.snapshot()
        copy = Walk.restore(json.dumps(snapshot), cfg, **settings)
        assert copy.word == walk.word
        assert copy.configuration == walk.configuration
        seed = rng.randrange(99)
        for one in (walk, copy):
            drive(one, random.Random(seed))
        assert copy.plan == walk.plan
        mine, theirs = walk.usage, copy.usage
        assert (mine.questions, mine.forced, mine.backtracks, mine.wasted) == (
            theirs.questions,
            theirs.forced,
            theirs.backtracks,
            theirs.wasted,
        )
    except (NoValidPlan, BudgetExceeded):
        assume(False)


def test_a_snapshot_of_another_automaton_is_refused() -> None:
    walk = Walk(TOOLS)
    walk.answer(1)
    snapshot = walk.snapshot()
    with pytest.raises(SnapshotError, match="another automaton"):
        Walk.restore(snapshot, TOOLS, limits=Limits({"caption": 0}))
    with pytest.raises(SnapshotError, match="another automaton"):
        Walk.restore(snapshot, CFG.from_string("S -> a | b"))
    with pytest.raises(SnapshotError, match="lookahead"):
        Walk.restore(snapshot, TOOLS, lookahead="off")
    relabelled = TOOLS.with_labels({"caption": "Describe"})
    assert Walk.restore(snapshot, relabelled).word == walk.word  # labels are not rules


@pytest.mark.parametrize(
    "damage",
    [
        lambda s: "{",
        lambda s: {},
        lambda s: {**s, "format": "formal_llm.walk/99"},
        lambda s: {**s, "journal": [{"chosen": 77, "excluded": [], "asked": True}]},
        lambda s: {**s, "journal": [{"chosen": ["x"], "excluded": [], "asked": True}]},
        lambda s: {**s, "journal": s["journal"][:1] * 40},
        lambda s: {**s, "journal": 7},
        lambda s: {**s, "usage": {"nonsense": 1}},
        lambda s: [1, 2],
    ],
)
def test_a_damaged_snapshot_is_refused(damage: object) -> None:
    walk = Walk(TOOLS)
    walk.answer(3)
    with pytest.raises(SnapshotError):
        Walk.restore(damage(walk.snapshot()), TOOLS)  # type: ignore[operator]


def test_probabilities_survive_a_snapshot() -> None:
    model = WeightedLLM(5)
    walk = Walk(CHAIN, "t", limits=Limits({"a": 3, "b": 3}))
    for number in (1, 2, 1):
        assert walk.question is not None
        walk.answer(Answer((number,), model.choose(walk.question).probabilities))
    data = json.dumps(walk.snapshot())
    copy = Walk.restore(data, CHAIN.with_limits(Limits({"a": 3, "b": 3})))
    assert copy.log_probability == walk.log_probability
    assert copy.log_probability is not None
    walk.back()
    assert walk.log_probability is not None
    assert walk.log_probability > copy.log_probability
    with pytest.raises(SnapshotError, match="probability"):
        Walk.restore(data.replace('"probability": 0.', '"probability": 7.'), CHAIN)
