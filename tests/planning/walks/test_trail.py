"""Trails: going back from dead ends, taking answers back, ruling branches out."""

from __future__ import annotations

import json
import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyformlang.cfg import Terminal

from formal_llm import CFG, Answer, Budget, Limits, RandomLLM, Walk
from formal_llm.automata.languages.emptiness import WhyEmpty, why_empty
from formal_llm.errors import BudgetExceeded, NoValidPlan, RecordError, WalkError
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.events import Backtracked
from formal_llm.planning.walks.trail import WalkDraft, describe_hard_rule
from tests import oracles
from tests.planning.wandering import CHAIN, TOOLS, drive, keeps, subset_sum, texts
from tests.strategies import examples, limited_grammars, tool_grammars


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
    walk = Walk(CFG.from_string("%order prefix\nS -> a X | b X | c\nX -> x | y"))
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
    walk = Walk(CFG.from_string("%order prefix\nS -> a X | b\nX -> x"), on_event=events.append)
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
    cfg = CFG.from_string("%order prefix\n%limit 1 a\nS -> a Y | b\nY -> a | a a")
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


def test_an_option_that_was_not_decided_is_looked_at_once_more_when_it_is_chosen() -> None:
    exact = ChoiceTable.of(subset_sum(9), search_time=None, solver=False)
    hasty = ChoiceTable.of(subset_sum(9), search_time=0.0, solver=False)
    walk = Walk(hasty)
    alive = {choice.index for choice in exact.at(walk.configuration, 99).choices}
    question = walk.question
    assert question is not None
    assert walk.undecided
    dead = next(n for n, c in enumerate(hasty.at(walk.configuration, 99).choices, 1) if c.index not in alive)
    before, hasty.search_time = walk.word, 1.0
    walk.answer(dead)  # no deeper question is asked: it is asked again, without that option
    assert walk.word == before
    assert (walk.usage.questions, walk.usage.wasted, walk.usage.backtracks) == (1, 1, 1)
    again = walk.question
    assert again is not None
    assert len(again.options) == len(question.options) - 1
    assert drive(walk, random.Random(1)).plan.complete


@examples(25)
@given(
    st.one_of(limited_grammars(), tool_grammars()),
    st.sampled_from([0.0, 0.0002, 0.001]),
    st.sampled_from([1, 10, 20_000]),
    st.integers(0, 99),
)
def test_where_nothing_is_decided_in_time_going_back_still_ends_at_words(
    cfg: CFG, seconds: float, max_states: int, seed: int
) -> None:
    table = ChoiceTable.of(cfg, search_time=seconds, max_states=max_states, solver=False)
    llm, letters, steps = RandomLLM(seed), oracles.alphabet(cfg), 14
    try:
        walk = Walk(table, budget=Budget(steps=steps, questions=200))
        while (question := walk.question) is not None:
            walk.answer(llm.ask(question))
    except BudgetExceeded as error:
        if error.kind == "steps":  # all ways were gone, and there is none
            assert ChoiceTable.of(cfg).lookahead.completable(steps=steps).value == "no"
        return  # else it would have gone on
    except NoValidPlan:
        assert not any(oracles.keeps(word, cfg.limits, letters, cfg.symbols) for word in oracles.language(cfg, 4))
        return
    assert oracles.to_pyformlang(cfg).contains([Terminal(name) for name in walk.word])
    assert oracles.keeps(walk.word, cfg.limits, letters, cfg.symbols)


def test_after_dead_ends_questions_get_more_time_within_the_patience() -> None:
    def walked(patience: float) -> tuple[int, float]:
        table = ChoiceTable.of(subset_sum(9, 2), search_time=0.0001, solver=False)
        table.patience = patience
        walk = drive(Walk(table), random.Random(4))
        return walk.usage.wasted, walk._trail.meter.searched

    wasted, searched = walked(0.0)
    assert searched == 0.0
    assert walked(0.0003) == (wasted, 0.0)  # not enough for a question of four times the search time
    fewer, searched = walked(0.02)
    assert fewer < wasted / 2
    assert 0.0 < searched <= 0.02 + 0.002


def test_what_made_a_budget_too_small_is_named() -> None:
    assert describe_hard_rule(ChoiceTable.of(CFG.from_string("S -> a"), limits=Limits()).lookahead) == ""
    rules = "S -> a S | a\na kg=1 h=2\n%limit kg <= 90\n%limit 2 <= h <= 8"
    assert describe_hard_rule(ChoiceTable.of(CFG.from_string(rules)).lookahead) == "%limit 2 <= h <= 8"
    table = ChoiceTable.of(subset_sum(9, 3), search_time=0.0, solver=False)
    walk = Walk(table, budget=Budget(questions=2))
    with pytest.raises(BudgetExceeded, match=r"options were offered undecided.*%limit .* = .*patience=60$") as caught:
        drive(walk, random.Random(1))
    assert caught.value.hard.startswith(f"{walk.usage.uncertain} options")
    assert walk.usage.uncertain == walk.usage.verdicts.unknown > 0
    with pytest.raises(BudgetExceeded) as caught:
        drive(Walk(TOOLS, budget=Budget(questions=0)), random.Random(1))
    assert caught.value.hard == ""


@pytest.mark.parametrize("seed", range(4))
def test_with_no_time_at_all_a_hard_sum_is_found_by_going_back(seed: int) -> None:
    cfg = subset_sum(7, seed)
    table = ChoiceTable.of(cfg, search_time=0.0, solver=False)
    walk = drive(Walk(table), random.Random(seed))
    assert keeps(cfg, walk.word)
    assert walk.usage.verdicts.unknown > 0 < walk.usage.wasted


def test_with_no_time_at_all_a_question_about_several_has_an_answer_or_is_not_asked() -> None:
    """A question was asked whose sets are all ruled out, and no answer to it was legal."""
    cfg = CFG.from_string('%limit cost >= 3\nS -> ε | some(a, b, c) S\na "A" cost=0.5')
    for seed in range(30):
        walk = Walk(ChoiceTable.of(cfg, search_time=0.0), budget=Budget(steps=60, backtracks=200))
        try:
            assert keeps(cfg, drive(walk, random.Random(seed)).word)
        except BudgetExceeded:
            continue


def test_why_there_is_no_plan_is_bounded_by_the_time_of_a_start(monkeypatch: pytest.MonkeyPatch) -> None:
    times = []

    def asked(source: object, *, max_states: int, search_time: float | None) -> WhyEmpty:
        times.append(search_time)
        return why_empty(source, max_states=max_states, search_time=search_time)  # type: ignore[arg-type]

    monkeypatch.setattr(sys.modules["formal_llm.automata.languages.emptiness"], "why_empty", asked)
    for seconds in (0.1, None):
        with pytest.raises(NoValidPlan, match="no plan keeps %limit 0 a"):
            Walk(ChoiceTable.of(CFG([("S", ("a",))]), limits=Limits({"a": 0}), search_time=seconds))
    assert times == [2.0, None]


def test_the_note_stands_in_the_question_and_changes_with_it() -> None:
    walk = Walk(CHAIN, "t")
    assert walk.question is not None and "Your draft" not in walk.question.prompt
    walk.note("Your draft has x.")
    assert walk.question.prompt.splitlines()[-2] == "Your draft has x."
    walk.note("")
    assert "Your draft" not in walk.question.prompt


def test_the_snapshot_has_the_draft_the_notes_and_what_was_taken() -> None:
    walk = Walk(CHAIN, "t")
    assert walk.take(0)
    walk.draft = WalkDraft("a x c", 1)
    walk.note("Your draft has x.")
    walk.answer(Answer((2,)))
    walk.note("again")
    data = json.loads(json.dumps(walk.snapshot()))
    copy = Walk.restore(data, CHAIN)
    assert copy.snapshot()["journal"] == walk.snapshot()["journal"]
    assert copy.draft == walk.draft and copy.fork().draft == walk.draft
    assert copy.question == walk.question and (copy.usage.drafted, copy.usage.questions) == (1, 1)
    assert [row.get("drafted", False) for row in data["journal"]] == [True, False, False]
    plain = Walk(CHAIN, "t").snapshot()
    assert "draft" not in plain and "note" not in json.dumps(plain["journal"])
    for bad in ({"text": 1, "at": 0}, {"text": "a"}, 3):
        with pytest.raises(RecordError, match="damaged"):
            Walk.restore({**data, "draft": bad}, CHAIN)


def test_choices_of_a_draft_and_turned_pages_are_no_decisions() -> None:
    walk = Walk(CHAIN, "t")
    assert walk.decisions == 0
    walk.answer(1)
    assert walk.decisions == 1 and walk.take(0) and walk.decisions == 1
    walk.answer(3)
    assert walk.done and walk.decisions == 2
    # A choice among 90 is asked on several pages, and is one decision.
    many = Walk(CFG.from_string("S -> " + " | ".join(f"t{number} S" for number in range(90)) + " | e"), "t", pages=10)
    assert many.question is not None
    many.answer(len(many.question.options))
    assert many.decisions == 0 and not many.word
    assert many.question is not None
    many.answer(1)
    assert many.decisions == 1 and len(many.word) == 1
