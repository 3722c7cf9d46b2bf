"""Trails: going back from dead ends, taking answers back, ruling branches out."""

from __future__ import annotations

import random

import pytest

from formal_llm import CFG, Limits, Walk
from formal_llm.errors import NoValidPlan, WalkError
from formal_llm.planning.walks.asking import Asker
from formal_llm.planning.walks.budget import Budget, Meter
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.events import Backtracked
from formal_llm.planning.walks.journal import JournalEntry
from formal_llm.planning.walks.trail import Stage, Trail
from formal_llm.planning.walks.wording import Wording
from tests import oracles
from tests.planning.wandering import TOOLS, drive, keeps, texts


def test_back_asks_the_last_question_again() -> None:
    walk = Walk(TOOLS)
    walk.answer(3)
    before = texts(walk)
    walk.answer(1)
    walk.back()
    assert texts(walk) == before
    walk.back()
    assert len(texts(walk)) == 3
    with pytest.raises(WalkError):
        walk.back()
    walk.answer(1)
    assert walk.word == ("classify",)
    assert walk.usage.wasted == 2


def test_back_out_of_a_finished_plan() -> None:
    walk = Walk(CFG.from_string("S -> a | b"))
    walk.answer(1)
    assert walk.done
    walk.back()
    assert not walk.done
    walk.answer(2)
    assert walk.plan.word == ("b",)


def test_a_branch_ruled_out_is_removed_and_the_question_asked_again() -> None:
    walk = Walk(CFG.from_string("S -> a X | b X | c\nX -> x | y"))
    walk.answer(1)
    walk.answer(2)
    walk.rule_out(0)  # a cannot be had, though x and y have not all been tried
    assert texts(walk) == ['the output of "b"', "c"]
    walk.answer(1)
    walk.rule_out()  # the last choice of all: b
    assert walk.done  # one branch was left, so it was taken without a question
    assert walk.plan.word == ("c",)
    with pytest.raises(NoValidPlan, match="ruled out"):
        walk.rule_out()


def test_ruling_out_a_forced_terminal_rules_out_the_choice_that_forced_it() -> None:
    events: list[object] = []
    walk = Walk(CFG.from_string("S -> a X | b\nX -> x"), on_event=events.append)
    walk.answer(1)
    assert walk.word == ("a", "x")
    walk.rule_out(1)
    assert walk.plan.word == ("b",)
    assert Backtracked('the output of "a"', ()) in events
    with pytest.raises(WalkError, match="position"):
        walk.rule_out(5)


def test_ruling_out_every_tool_ends_in_no_valid_plan() -> None:
    rng = random.Random(5)
    walk = drive(Walk(TOOLS), rng)
    seen = {walk.word}
    with pytest.raises(NoValidPlan):
        while True:
            walk.rule_out()
            drive(walk, rng)
            assert walk.word not in seen
            seen.add(walk.word)
    assert seen == {word for word in oracles.language(TOOLS, 6) if keeps(TOOLS, word)}


def test_backtracking_without_lookahead() -> None:
    cfg = CFG.from_string("%limit 1 a\nS -> a Y | b\nY -> a | a a")
    events: list[object] = []
    walk = Walk(cfg, lookahead="off", on_event=events.append)
    assert texts(walk) == ['the output of "a"', "b"]
    walk.answer(1)  # Y cannot be completed any more
    assert walk.plan.word == ("b",)
    assert walk.usage.backtracks == 1
    assert walk.usage.wasted == 1
    assert Backtracked('the output of "a"', ()) in events


def test_without_lookahead_an_impossible_task_is_still_told_first() -> None:
    cfg = CFG.from_string("S -> a S | b")
    with pytest.raises(NoValidPlan):
        Walk(cfg, limits=Limits({"b": 0}), lookahead="off")


def test_a_trail_stands_at_a_choice_or_at_a_stage() -> None:
    table = ChoiceTable.of(CFG.from_string("S -> a S | b"))
    trail = Trail(table, Asker(table, Wording(), "t"), Meter(), None)
    assert trail.state is Stage.ON_THE_WAY

    def no_plan() -> object:
        raise AssertionError("nothing is used up")

    trail.settle(Budget(), no_plan)  # type: ignore[arg-type]
    assert isinstance(trail.state, JournalEntry)
    twin = trail.copy(None)
    trail.take(trail.state, trail.state.offered[1])
    trail.settle(Budget(), no_plan)  # type: ignore[arg-type]
    assert (trail.state, trail.word) == (Stage.DONE, ("b",))
    assert isinstance(twin.state, JournalEntry)
    assert (twin.state.chosen, twin.moves) == (None, twin.moves[: twin.state.moves])
    trail.cut(0)
    assert trail.state is Stage.DEAD
