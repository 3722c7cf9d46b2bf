"""A walk along a draft: choices are taken without a question, counted apart, and are in its snapshot."""

import json

import pytest

from formal_llm import CFG, Answer, Budget, Walk
from formal_llm.errors import SnapshotError
from formal_llm.llms import TokenUsage
from formal_llm.planning.walks.trail import WalkDraft
from tests.planning.wandering import CHAIN, SEASONING


def test_a_choice_of_a_draft_is_taken_without_a_question() -> None:
    walk = Walk(CHAIN, "t", budget=Budget(questions=0))
    assert walk.choice is not None and not walk.take(99)
    assert walk.take(0) and walk.word == ("a",)
    walk.count_draft(TokenUsage(1, 10, 5))
    assert (walk.usage.drafts, walk.usage.drafted, walk.usage.questions, walk.usage.requests) == (1, 1, 0, 1)
    assert walk.take(2) and walk.done and walk.choice is None and not walk.take(0)
    assert walk.plan.word == ("a", "c") and walk.plan.log_probability is None


def test_what_is_ruled_out_is_not_taken() -> None:
    walk = Walk(CHAIN, "t")
    assert walk.take(0) and walk.take(2)
    walk.rule_out(0)
    assert not walk.take(0) and walk.take(1)
    assert walk.backtracks == 1


def test_a_set_of_a_selection_is_taken_by_its_names() -> None:
    walk = Walk(SEASONING, "t")
    assert walk.take(0) and not walk.take(frozenset({"sugar"})) and walk.take(frozenset({"salt", "chili"}))
    assert walk.word == ("cook", "salt", "chili", "serve")


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
        with pytest.raises(SnapshotError, match="damaged"):
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
