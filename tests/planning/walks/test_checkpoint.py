"""Snapshots: a walk is restored exactly, or refused."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Answer, Budget, Limits, Lookahead, Plan, Question, RandomLLM, Walk, WeightedLLM, Wording
from formal_llm.errors import BudgetExceeded, NoValidPlan, RecordError, WalkError
from formal_llm.planning import ChoiceTable
from tests import oracles, strategies
from tests.planning.wandering import CHAIN, TOOLS, drive, keeps, subset_sum, wander
from tests.strategies import examples


@examples(40)
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
    with pytest.raises(RecordError, match="another automaton"):
        Walk.restore(snapshot, TOOLS, limits=Limits({"caption": 0}))
    with pytest.raises(RecordError, match="another automaton"):
        Walk.restore(snapshot, CFG.from_string("S -> a | b"))
    with pytest.raises(RecordError, match="lookahead"):
        Walk.restore(snapshot, TOOLS, lookahead="off")
    relabelled = TOOLS.with_labels({"caption": "Describe"})
    assert Walk.restore(snapshot, relabelled).word == walk.word  # labels are not rules


def test_probabilities_survive_a_snapshot() -> None:
    model = WeightedLLM(5)
    walk = Walk(CHAIN, "t", limits=Limits({"a": 3, "b": 3}))
    for number in (1, 2, 1):
        assert walk.question is not None
        walk.answer(Answer((number,), model.ask(walk.question).probabilities))
    data = json.dumps(walk.snapshot())
    copy = Walk.restore(data, CHAIN.with_limits(Limits({"a": 3, "b": 3})))
    assert copy.log_probability == walk.log_probability
    assert copy.log_probability is not None
    walk.back()
    assert walk.log_probability is not None
    assert walk.log_probability > copy.log_probability
    with pytest.raises(RecordError, match="probability"):
        Walk.restore(data.replace('"probability": 0.', '"probability": 7.'), CHAIN)


# -- a stranger's file ------------------------------------------------------------------------------------------------

FORK = CFG.from_string("S -> a S | b S | some(c, d) | e")


def snapshot_of(*answers: object) -> dict[str, Any]:
    walk = Walk(FORK, "t")
    for answer in answers:
        walk.answer(answer)  # type: ignore[arg-type]
    return json.loads(json.dumps(walk.snapshot()))  # type: ignore[no-any-return]


def changed(snapshot: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    at: Any = snapshot
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    for part in way:
        at = at[part]
    at[last] = value
    return snapshot


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("journal.1.excluded", [0, 1, 2], "journal 2: what it rules out leaves no two answers"),
        ("journal.1.excluded", [0, 1, 2, 3], "journal 2: what it rules out leaves no two answers"),
        ("journal.1.excluded", [7], "journal 2: it rules out 7, which is no choice there"),
        ("journal.1.excluded", [["a"]], r"journal 2: it rules out \['a'\], which is no choice there"),
        ("journal.1.excluded", "false", "journal 2, excluded is a list, not 'false'"),
        ("journal.1.excluded", [True], "journal 2, excluded 1 is a whole number or a list, not True"),
        ("journal.0.excluded", [0], "journal 1: it takes a choice that is not offered"),
        ("journal.0.chosen", None, "journal 1, chosen is null, but only the last question"),
        ("journal.0.chosen", -1, "journal 1: it takes a choice that is not offered"),
        ("journal.0.asked", 1, "journal 1, asked is true or false, not 1"),
        ("journal.0.probability", -0.5, "journal 1, probability is from 0 to 1, not -0.5"),
        ("journal.0.probability", float("nan"), "journal 1, probability"),
        ("usage.questions", -1, "usage, questions is no amount: -1"),
        ("usage.questions", 0, "usage, questions is less than the 1 answers"),
        ("usage.questions", 1.0, "usage, questions is a whole number"),
        ("usage.seconds", float("inf"), "usage, seconds is no amount: inf"),
        ("usage.cost", "5", "usage, cost is a number or null, not '5'"),
        ("usage.qestions", 1, "unknown key in usage: qestions"),
        ("dead", "false", "dead is true or false, not 'false'"),
        ("lookahead", "of", "lookahead is 'on' or 'off', not 'of'"),
        ("lookahead", [], "lookahead is 'on' or 'off', not a list"),
        ("task", None, "task is a text, not None"),
        ("format", "formal_llm.walk/2", "unknown format 'formal_llm.walk/2'"),
        ("format", 7, "format is 'formal_llm.walk/1', not 7"),
    ],
)
def test_a_field_that_cannot_be_is_named(path: str, value: object, says: str) -> None:
    with pytest.raises(RecordError, match=says):
        Walk.restore(changed(snapshot_of(1), path, value), FORK)


def test_sets_that_are_ruled_out_are_counted() -> None:
    good = changed(snapshot_of(3), "journal.1.excluded", [["c"]])
    assert len(Walk.restore(good, FORK).question.options) == 2  # type: ignore[union-attr]
    for sets in ([["c"], ["d"]], [["c"], ["d"], ["c", "d"]]):
        with pytest.raises(RecordError, match="journal 2: what it rules out leaves no two answers"):
            Walk.restore(changed(snapshot_of(3), "journal.1.excluded", sets), FORK)
    for sets in ([[]], [["x"]], [0]):
        with pytest.raises(RecordError, match="journal 2: it rules out"):
            Walk.restore(changed(snapshot_of(3), "journal.1.excluded", sets), FORK)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"journal": ' + "[" * 100_000 + "]" * 100_000 + "}", "{", "nan", ""])
def test_a_text_that_is_no_snapshot_is_refused(text: str) -> None:
    with pytest.raises(RecordError):
        Walk.restore(text, FORK)


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(one, (*path, key))


def mutated(snapshot: Any, rng: random.Random) -> Any:
    """A snapshot with one field changed: its type, its sign, its length, its nesting; or left out."""
    path = rng.choice(list(places(snapshot)))
    if not path:
        return rng.choice([None, [snapshot], {}, "x", 3])
    at = snapshot
    for part in path[:-1]:
        at = at[part]
    old = at[path[-1]]
    nested: Any = old
    for _ in range(rng.choice([1, 50])):
        nested = [nested]
    others = [None, True, False, "", "false", -1, 0, 1, 2, 3, 0.5, 1e308, 10**30, float("nan"), [], [0], [0, 1], {}]
    others += [[["a"]], [["a"], ["b"]], {"a": 1}, nested]
    if isinstance(old, int | float):
        others += [-old, old + 1, str(old), bool(old)]
    if isinstance(old, list):
        others += [old[:-1], old * 2, old[1:], list(reversed(old)), dict.fromkeys(map(str, old))]
    if rng.random() < 0.15:
        del at[path[-1]]
    elif isinstance(at, list) and rng.random() < 0.2:
        at.insert(path[-1], rng.choice(at))  # type: ignore[arg-type]
    else:
        at[path[-1]] = rng.choice(others)
    return snapshot


def legal_answers(question: Question) -> int:
    numbers = range(1, len(question.options) + 1)
    if not question.several:
        return len(numbers)
    sizes = numbers if len(numbers) < 6 else (1, 2)
    return sum(not question.problem(some) for size in sizes for some in combinations(numbers, size))


@strategies.examples(40)
@given(strategies.limited_grammars(), st.integers(0, 1 << 30), st.sampled_from(["on", "off"]))
def test_a_changed_snapshot_is_refused_or_leads_to_a_valid_plan(cfg: CFG, seed: int, lookahead: str) -> None:
    rng = random.Random(seed)
    budget = Budget(steps=120, backtracks=200)
    try:
        walk = Walk(cfg, "task", lookahead=lookahead, budget=budget)  # type: ignore[arg-type]
        wander(walk, rng, 8)
    except (NoValidPlan, BudgetExceeded):
        assume(False)
    text = json.dumps(walk.snapshot())
    for _ in range(12):
        snapshot = mutated(json.loads(text), rng)
        try:
            copy = Walk.restore(rng.choice([json.dumps, lambda data: data])(snapshot), cfg, budget=budget)
        except RecordError:
            continue
        try:
            while (question := copy.question) is not None:
                assert legal_answers(question) > 1
                copy.answer(RandomLLM(rng.randrange(99)).ask(question))
                if rng.random() < 0.1:
                    with suppress(WalkError):  # a dead end may have undone the only answer
                        copy.back()
            plan = copy.plan
        except (NoValidPlan, BudgetExceeded):
            continue  # what is left in a file that was made up may rule everything out
        assert oracles.keeps(plan.word, cfg.limits, cfg.terminals, cfg.symbols) and cfg.accepts(plan.word)
        assert min(plan.usage.questions, plan.usage.wasted, plan.usage.seconds) >= 0
        assert plan.usage == Plan.from_json(plan.to_json()).usage


@pytest.mark.parametrize(("then", "now"), [(0.0, None), (None, 0.0), (0.0003, 0.002), (0.002, 0.0003)])
@pytest.mark.parametrize("seed", range(6))
def test_a_snapshot_is_good_whatever_has_been_decided_since(then: float | None, now: float | None, seed: int) -> None:
    cfg, rng = subset_sum(7, seed), random.Random(seed)
    walk = Walk(ChoiceTable.of(cfg, search_time=then, solver=False))
    for _ in range(3):
        if (question := walk.question) is not None:
            walk.answer(rng.randint(1, len(question.options)))
    snapshot = json.loads(json.dumps(walk.snapshot()))
    copy = Walk.restore(snapshot, ChoiceTable.of(cfg, search_time=now, solver=False))
    assert copy.usage.questions == walk.usage.questions
    # What is known by now to lead nowhere is left, and the only way on is taken; all else is as it was.
    shared = min(len(copy.word), len(walk.word))
    assert copy.word[:shared] == walk.word[:shared]
    if shared < len(walk.word):
        exact = Lookahead(cfg)
        assert not exact.completable(walk.configuration).possible
    assert keeps(cfg, drive(copy, rng).plan.word)
    assert keeps(cfg, drive(walk, rng).plan.word)
