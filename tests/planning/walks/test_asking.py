"""Questions: their options, their prompt, what came before, and what each option means for the rest."""

from __future__ import annotations

import copy
import math
import pickle
import re
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Budget, Limits, Planner, Question, Walk, Wording
from formal_llm.automata.models.symbols import Order
from formal_llm.errors import InvalidAnswer, NoValidPlan
from formal_llm.planning.walks.asking import LISTED, QuestionBuilder
from formal_llm.planning.walks.choices import ChoiceTable
from tests import oracles, strategies
from tests.planning.wandering import CHAIN, SEASONING, TOOLS, subset_sum


def asked(walk: Walk) -> Question:
    assert walk.question is not None
    return walk.question


@pytest.mark.parametrize("pages", [None, 4])
def test_options_that_were_not_decided_are_marked_where_the_wording_has_a_mark(pages: int | None) -> None:
    table = ChoiceTable.of(subset_sum(9), search_time=0.0, solver=False)
    plain = asked(Walk(table, pages=pages))
    assert not all(option.certain for option in plain.options)
    marked = asked(Walk(table, pages=pages, wording=Wording(uncertain_option="{option} (not sure)")))
    assert [option.certain for option in marked.options] == [option.certain for option in plain.options]
    texts_ = [one.text if one.certain else f"{one.text} (not sure)" for one in plain.options]
    assert [option.text for option in marked.options] == texts_
    assert ("(not sure)" in marked.prompt, "(not sure)" in plain.prompt) == (True, False)
    assert all(option.certain for option in asked(Walk(TOOLS, pages=pages)).options)


def test_an_outlook_tells_what_each_option_uses_allows_and_needs() -> None:
    walk = Walk(TOOLS, "a caption", limits=Limits({"caption": 0}))
    walk.answer(2)  # translate
    outlook = asked(Walk(TOOLS)).outlook
    assert outlook is not None
    assert [[term.name for term in prospect.uses] for prospect in outlook.prospects] == [
        ["classify"], ["caption"], ["translate"],
    ]  # fmt: skip
    translate = outlook.prospects[2]
    assert (translate.length, outlook.prefix, outlook.so_far) == (2, True, ())
    assert {term.name for term, _ in translate.allows} == {"classify", "caption", "colorize", "denoise", "image"}
    longer = {term.name: more for term, more in translate.allows}
    assert (longer["image"], longer["colorize"]) == (0, 1)
    assert walk.word == ("translate", "classify")


def test_without_lookahead_an_option_may_lead_nowhere() -> None:
    walk = Walk(CFG.from_string("S -> a c | b d"), limits=Limits({"c": 0}), lookahead="off")
    outlook = asked(walk).outlook
    assert outlook is not None
    assert [prospect.length for prospect in outlook.prospects] == [math.inf, 1]


def test_terms_have_labels_and_descriptions() -> None:
    cfg = CFG.from_string('S -> wash S | dry\nwash "Wash" "in the machine"')
    walk = Walk(cfg)
    walk.answer(1)
    outlook = asked(walk).outlook
    assert outlook is not None
    (term,) = outlook.so_far
    assert (term.name, term.label, term.description) == ("wash", "Wash", "in the machine")


def test_in_one_conversation_the_earlier_answers_stand_before() -> None:
    walk = Walk(CHAIN, "go", wording=Wording(conversation=True))
    walk.answer(2)
    walk.answer(1)
    messages = asked(walk).messages
    assert [message.role for message in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert [message.content for message in messages][1::2] == ["2", "1"]
    assert "Step 2" in asked(walk).prompt
    assert "Step 1:" not in asked(walk).prompt  # that was shown before
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


@pytest.mark.parametrize("order", ["prefix", "forward"])
def test_the_texts_of_a_fork_and_of_what_was_chosen(order: Order) -> None:
    table = ChoiceTable.of(CHAIN.with_order(order))
    asker = QuestionBuilder(table, Wording(), "t", "7")
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


LETTERS = "abcdef"


def told(walk: Walk) -> list[str]:
    """The lines of a question between its options and its instruction."""
    assert walk.question is not None
    lines = walk.question.prompt.split("\n")
    return lines[lines.index("", lines.index(f"1: {walk.question.options[0].text}")) + 1 : -1]


def selecting(costs: list[float], lines: str, rest: str = "x") -> CFG:
    names = LETTERS[: len(costs)]
    numbers = "\n".join(f"{name} cost={cost}" for name, cost in zip(names, costs, strict=True))
    return CFG.from_string(f"S -> some({', '.join(names)}) T\nT -> {rest}\n{numbers}\n{lines}")


def test_few_sets_are_listed() -> None:
    walk = Walk(selecting([1, 1, 1.25, 9, 9], "%limit cost <= 3\n%limit cost >= 2.1"))
    assert told(walk) == ["Only these can be chosen together: 1, 3; 2, 3."]
    walk.answer([2, 3])
    walk.rule_out()
    assert walk.plan.word == ("a", "c", "x")  # the other one is taken without a question


def test_of_many_sets_the_sums_are_told() -> None:
    walk = Walk(selecting([1, 2, 3, 4, 5, 6], "%limit cost <= 10\n%limit cost >= 3.5"))
    assert told(walk) == ["Your choices together must come to between 3.5 and 10 in cost."]
    later = Walk(selecting([1, 2, 3, 4, 5, 6], "%limit cost <= 10\n%limit cost >= 3.5\nx cost=0.5"))
    assert told(later) == ["Your choices, with all that comes after them, must come to between 3.5 and 10 in cost."]
    exactly = Walk(selecting([1, 1, 1, 1, 1, 1], "%limit cost <= 3\n%limit cost >= 3"))
    assert told(exactly) == ["Your choices together must come to exactly 3 in cost."]


def test_what_has_to_be_chosen_and_what_is_ruled_out_is_told() -> None:
    walk = Walk(selecting([1] * 6, "%require 1 b e"))
    assert told(walk) == ["Among your choices must be: 2, 5."]
    walk.answer([2, 5])
    walk.rule_out()
    assert told(walk)[1:] == ["These cannot be chosen together any more: 2, 5."]


def test_where_all_may_be_chosen_together_nothing_is_told() -> None:
    for count in (2, 6):
        walk = Walk(selecting([1] * count, "%limit cost <= 6\n%limit 1"))
        assert "together" not in walk.question.prompt  # type: ignore[union-attr]


def test_the_lines_are_templates() -> None:
    wording = Wording(selection_sets="Nur: {sets}")
    walk = Walk(selecting([1, 1, 1.25], "%limit cost <= 3\n%limit cost >= 2.1"), wording=wording)
    assert told(walk) == ["Nur: 1, 3; 2, 3"]
    with pytest.raises(ValueError, match="selection_sum"):
        Wording(selection_sum="{sum}")


@strategies.examples(80)
@given(
    costs=st.lists(st.sampled_from([0, 0.5, 1, 2, 3]), min_size=1, max_size=6),
    most=st.sampled_from(["", 2, 3.5, 5, 9]),
    least=st.sampled_from(["", 0.5, 2, 4]),
    required=st.sampled_from(["", "a", "b", "a b", "x"]),
    rest=st.sampled_from(["x", "x | y", "x | a x", "y | x y"]),
    numbers=st.sampled_from(["", "x cost=1"]),
)
def test_what_is_asked_and_told_is_what_all_words_say(
    costs: list[float], most: object, least: object, required: str, rest: str, numbers: str
) -> None:
    lines = [numbers, f"%limit cost <= {most}" if most else "", f"%limit cost >= {least}" if least else ""]
    known = {*LETTERS[: len(costs)], "x"} if "x" in rest else {*LETTERS[: len(costs)]}
    lines += [f"%require 1 {required}" if set(required.split()) <= known else ""]
    try:
        cfg = selecting(costs, "\n".join(lines), rest)
        walk = Walk(cfg)
    except (NoValidPlan, ValueError):
        return  # that this is so is tested elsewhere
    words = [w for w in oracles.language(cfg, 9) if oracles.keeps(w, cfg.limits, oracles.alphabet(cfg), cfg.symbols)]
    every = LETTERS[: len(costs)]
    # The rest begins with x or y, or with an a after which no more member can come.
    trees = {
        frozenset(word[:cut])
        for word in words
        for cut in range(1, len(word))
        if set(word[:cut]) <= set(every)
        and list(word[:cut]) == sorted(set(word[:cut]))
        and " ".join(word[cut:]) in rest.split(" | ")
    }
    question = walk.question
    if question is None or not question.several:
        assert len(trees) == 1
        return
    assert len(trees) > 1
    shown = [option.text for option in question.options]
    assert shown == [name for name in every if any(name in one for one in trees)]
    sizes = range(1, len(shown) + 1)
    numbers_of = list(chain.from_iterable(combinations(sizes, size) for size in sizes))
    legal = [some for some in numbers_of if not question.problem(some)]
    assert {frozenset(shown[n - 1] for n in some) for some in legal} == trees
    for line in told(walk):
        said = line.rstrip(".").split(": ")[-1]
        if line.startswith("Only"):
            assert len(legal) <= LISTED < 2 ** len(shown) - 1 or len(legal) < len(numbers_of)
            assert [tuple(map(int, one.split(", "))) for one in said.split("; ")] == legal
        elif line.startswith("Among"):
            assert set(map(int, said.split(", "))) == set.intersection(*map(set, legal))
        else:
            amounts = [float(found) for found in re.findall(r"\d+(?:\.\d+)?", line)]
            low, high = (amounts[0], amounts[-1]) if "least" not in line else (amounts[0], float("inf"))
            low = 0.0 if "at most" in line else low
            carried = {**dict(zip(every, costs, strict=True)), "x": 1.0 if numbers else 0.0}
            sums = [sum(carried[shown[n - 1]] for n in some) for some in legal]
            if "comes after" not in line:
                assert all(low <= one <= high for one in sums)
            assert all(one <= high for one in sums)
