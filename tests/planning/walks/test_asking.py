"""Questions: their options, their prompt, what came before, and what each option means for the rest."""

from __future__ import annotations

import copy
import math
import pickle
from itertools import combinations

import pytest

from formal_llm import CFG, PDA, Budget, Limits, Planner, Question, Walk, Wording
from formal_llm.errors import InvalidAnswer
from formal_llm.planning.walks.asking import QuestionBuilder
from formal_llm.planning.walks.choices import ChoiceTable
from tests.planning.wandering import CHAIN, SEASONING, TOOLS, texts


def asked(walk: Walk) -> Question:
    assert walk.question is not None
    return walk.question


def test_an_outlook_tells_what_each_option_uses_allows_and_needs() -> None:
    walk = Walk(TOOLS, "a caption", limits=Limits({"caption": 0}))
    walk.answer(2)  # translate
    outlook = asked(Walk(TOOLS)).outlook
    assert outlook is not None
    assert [[term.name for term in prospect.uses] for prospect in outlook.prospects] == [
        ["classify"], ["caption"], ["translate"],
    ]  # fmt: skip
    translate = outlook.prospects[2]
    assert (translate.length, outlook.backward, outlook.so_far) == (2, True, ())
    assert {term.name for term, _ in translate.allows} == {"classify", "caption", "colorize", "denoise", "image"}
    longer = {term.name: more for term, more in translate.allows}
    assert (longer["image"], longer["colorize"]) == (0, 1)
    assert walk.word == ("translate", "classify")


def test_terms_have_labels_and_descriptions() -> None:
    cfg = CFG.from_string('S -> wash S | dry\nwash "Wash" "in the machine"')
    walk = Walk(cfg)
    walk.answer(1)
    outlook = asked(walk).outlook
    assert outlook is not None
    (term,) = outlook.so_far
    assert (term.name, term.label, term.description) == ("wash", "Wash", "in the machine")


def test_options_are_made_once_and_shared_by_the_walks_of_a_table() -> None:
    table, wording = ChoiceTable.of(CHAIN), Wording()
    one, other = (asked(Walk(table, wording=wording)) for _ in range(2))
    assert one.options is other.options
    assert asked(Walk(table, wording=Wording(tool_option="<{label}>"))).options[0].text == "<a>"
    assert texts(Walk(table, wording=wording))[0] == 'the output of "a"'


def test_in_one_conversation_the_earlier_answers_stand_before() -> None:
    walk = Walk(CHAIN, "go", wording=Wording(conversation=True))
    walk.answer(2)
    walk.answer(1)
    messages = asked(walk).messages
    assert [message.role for message in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert [message.content for message in messages][1::2] == ["2", "1"]
    assert "Step n-1" in asked(walk).prompt
    assert "Step n:" not in asked(walk).prompt  # that was shown before
    assert len(asked(Walk(CHAIN)).messages) == 1


def test_sets_of_a_selection_that_are_ruled_out_or_impossible_are_objected_to() -> None:
    walk = Walk(SEASONING, limits=Limits({"salt": 0}), budget=Budget(steps=50))
    walk.answer(1)
    question = asked(walk)
    assert question.several
    assert not question.problem((1, 2))
    assert question.leads_on((1,))
    walk.answer([1, 2])
    walk.back()
    assert not asked(walk).problem((1, 2))
    walk.answer([1, 2])
    walk.rule_out()
    assert asked(walk).problem((1, 2)) == "this selection is ruled out"
    assert not asked(walk).problem((2,))


def test_the_question_of_an_automaton_is_asked_where_all_its_moves_ask_it() -> None:
    pda = PDA.from_string("%start p\n%accept r\np, a, ε -> r, ε\np, b, ε -> r, ε")
    assert "the next part" in asked(Walk(pda)).prompt


@pytest.mark.parametrize("order", ["backward", "forward"])
def test_the_texts_of_a_fork_and_of_what_was_chosen(order: str) -> None:
    table = ChoiceTable.of(CHAIN)
    asker = QuestionBuilder(table, Wording(order=order), "t", "7")  # type: ignore[arg-type]
    now = table.automaton.start()
    while len((fork := table.at(now, math.inf)).choices) < 2:
        now = table.after(now, fork.choices[0])
    assert len(asker.describe_choices(fork)) == 3
    assert asker.walk == "7"
    assert asker.describe_choices(fork)[2] == "c"


SELECTING = """
%start S
S -> some(a, b, c) x
%limit 1
%limit minutes <= 5
a "A" minutes=3
b "B" minutes=3
c "C" minutes=1
"""
SETS = [numbers for size in (1, 2, 3) for numbers in combinations((1, 2, 3), size)]


def selection(rules: str = SELECTING) -> Question:
    question = Planner(CFG.from_string(rules)).start("choose").question
    assert question is not None
    return question


def test_what_the_rules_forbid_is_objected_to() -> None:
    question = selection()
    assert [numbers for numbers in SETS if question.problem(numbers)] == [(1, 2), (1, 2, 3)]


def test_what_some_set_begins_with() -> None:
    question = selection()
    assert [numbers for numbers in SETS if question.leads_on(numbers)] == [(1,), (2,), (3,), (1, 3), (2, 3)]


def test_a_set_that_is_ruled_out_is_objected_to() -> None:
    walk = Planner(CFG.from_string(SELECTING)).start("choose")
    walk.answer([1, 3])
    walk.rule_out()
    question = walk.question
    assert question is not None
    assert question.problem((1, 3)) == "this selection is ruled out"
    assert question.leads_on((1,)) and not question.leads_on((1, 3))
    assert question.leads_on((3,)) and question.begins is not None
    assert pickle.loads(pickle.dumps(question)).problem((1, 3)) == "this selection is ruled out"


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("how", ["pickle", "deepcopy", "copy"])
def test_a_copy_refuses_what_the_question_refuses(how: str, again: bool) -> None:
    question = selection().again("it was empty") if again else selection()
    ways = {"pickle": lambda q: pickle.loads(pickle.dumps(q)), "deepcopy": copy.deepcopy, "copy": copy.copy}
    other = ways[how](question)
    assert [other.problem(numbers) for numbers in SETS] == [question.problem(numbers) for numbers in SETS]
    assert [other.leads_on(numbers) for numbers in SETS] == [question.leads_on(numbers) for numbers in SETS]
    with pytest.raises(InvalidAnswer, match="cannot be chosen together"):
        other.check([1, 2])
    assert other.prompt == question.prompt and ("could not be used" in other.prompt) is again
    assert other == question and hash(other) == hash(question)


def test_the_same_selection_under_other_rules_is_another_question() -> None:
    assert selection() == selection()
    assert selection() != selection(SELECTING.replace("minutes <= 5", "minutes <= 6"))


def test_an_outlook_of_many_options_makes_each_term_once() -> None:
    names = [f"t{number}" for number in range(50)]
    walk = Walk(CFG.from_string(f"S -> T S | T\nT -> {' | '.join(names)}"))
    outlook = asked(walk).outlook
    assert outlook is not None
    allowed = {id(term) for prospect in outlook.prospects for term, _ in prospect.allows}
    assert len(allowed) == 50
