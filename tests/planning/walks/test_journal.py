"""The journal: what was chosen, what is ruled out, and how probable it was."""

from __future__ import annotations

import math
from itertools import combinations

import pytest

from formal_llm import CFG, Answer, Walk
from formal_llm.errors import InvalidAnswer
from formal_llm.planning.walks.choices import ChoiceFork, ChoiceTable
from formal_llm.planning.walks.journal import JournalEntry, normalise_probabilities, sum_log_probability
from formal_llm.planning.walks.wording import Wording

FLAT = ChoiceTable.of(CFG.from_string("S -> a | b | c"))
SOME = ChoiceTable.of(CFG.from_string("S -> some(salt, oil, chili)"))


def entry_of(table: ChoiceTable) -> JournalEntry:
    """The first choice."""
    now = table.automaton.start()
    while len((fork := table.at(now, math.inf)).choices) < 2:
        now = table.after(now, fork.choices[0])
    return JournalEntry(now, fork, 0)


def test_what_is_ruled_out_is_not_offered_and_numbers_count_what_is() -> None:
    entry = entry_of(FLAT)
    assert [choice.reads for choice in entry.offered_choices] == [("a",), ("b",), ("c",)]
    entry.excluded = frozenset({1})
    assert [choice.reads for choice in entry.offered_choices] == [("a",), ("c",)]
    entry.chosen = entry.find_choice(2, FLAT, math.inf)
    assert entry.chosen is not None
    assert (entry.key, entry.answer_text) == (2, "2")
    assert entry.find_choice(9, FLAT, math.inf) is None
    assert entry.find_choice(frozenset({"a"}), FLAT, math.inf) == None  # noqa: E711 - a set is no choice here


def test_of_a_selection_sets_are_ruled_out() -> None:
    entry = entry_of(SOME)
    sets = [{"salt"}, {"oil"}, {"chili"}, {"salt", "oil"}, {"salt", "chili"}, {"oil", "chili"}]
    entry.excluded = frozenset(map(frozenset, sets))
    assert len(entry.offered_choices) == 3
    assert not entry.is_dead(SOME, math.inf)
    only = entry.find_only_choice(SOME, math.inf)
    assert only is not None and only.reads == ("salt", "oil", "chili")
    entry.chosen = entry.find_choice(frozenset({"chili", "salt", "oil"}), SOME, math.inf)
    assert (entry.answer_text, entry.key) == ("1, 2, 3", frozenset({"salt", "oil", "chili"}))
    entry.excluded |= {entry.key}
    assert entry.is_dead(SOME, math.inf)
    assert entry.find_only_choice(SOME, math.inf) is None


def test_whether_a_set_is_left_is_told_without_trying_all_of_them() -> None:
    names = [f"t{number}" for number in range(20)]
    costs = "\n".join(f"{name} cost=1" for name in names)
    table = ChoiceTable.of(CFG.from_string(f"%limit cost <= 1\nS -> some({', '.join(names)})\n{costs}"))
    entry = entry_of(table)
    entry.excluded = frozenset(frozenset([name]) for name in names[2:])
    assert entry.find_only_choice(table, math.inf) is None and not entry.is_dead(table, math.inf)
    entry.excluded |= {frozenset(names[1:2])}
    only = entry.find_only_choice(table, math.inf)
    assert only is not None and only.reads == ("t0",)
    entry.excluded |= {frozenset(names[:1])}
    assert entry.is_dead(table, math.inf)  # a million sets of members are too many to try


def test_of_the_next_page_only_one_set_may_be_left() -> None:
    walk = Walk(CFG.from_string("S -> some(salt, oil, chili, mint)"), pages=2)
    entry = walk.choice
    assert entry is not None and entry.fork.more is not None
    more = frozenset({"salt", entry.fork.more.marker})
    sets = [frozenset({"salt", *rest}) for size in (1, 2) for rest in combinations(("oil", "chili", "mint"), size)]
    entry.excluded = frozenset(sets[1:])
    turned = entry.find_choice(more, walk.table, math.inf)
    assert turned is not None and turned.menu is entry.fork.more  # two sets are left: with oil, and with all
    entry.excluded = frozenset(sets)
    only = entry.find_choice(more, walk.table, math.inf)
    assert only is not None and only.reads == ("salt", "oil", "chili", "mint")


def test_nothing_chosen_rules_nothing_out() -> None:
    with pytest.raises(ValueError, match="nothing has been chosen"):
        _ = entry_of(FLAT).key


def test_a_copy_may_choose_something_else() -> None:
    entry = entry_of(FLAT)
    twin = entry.copy()
    twin.chosen = twin.offered_choices[1]
    assert entry.chosen is None
    assert twin.fork is entry.fork


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({1: 0.5, 2: 0.5}, (0.5, 0.5, 0.0)),
        ({1: 3, 3: 1}, (0.75, 0.0, 0.25)),
        ({2: 1e-300}, (0.0, 1.0, 0.0)),
        ({7: 1.0}, None),
        ({}, None),
        (None, None),
    ],
)
def test_shares_are_normalised_over_what_is_offered(given, expected) -> None:  # type: ignore[no-untyped-def]
    assert normalise_probabilities(Answer((1,), given), 3) == expected


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_numbers_that_are_no_probabilities(bad: float) -> None:
    with pytest.raises(InvalidAnswer, match="the probability of option 2"):
        normalise_probabilities(Answer((1,), {1: 0.5, 2: bad}), 3)


def test_the_logarithm_of_a_journal() -> None:
    def made(probability: float | None, asked: bool = True) -> JournalEntry:
        entry = JournalEntry(0, ChoiceFork((), 0), 0)
        entry.asked, entry.probability = asked, probability
        return entry

    assert sum_log_probability([]) == 0.0
    assert sum_log_probability([made(0.5), made(0.25), made(None, asked=False)]) == pytest.approx(math.log(0.125))
    assert sum_log_probability([made(0.5), made(0.0)]) == -math.inf
    assert sum_log_probability([made(0.5), made(None)]) is None


def test_questions_tell_the_numbers_that_led_here() -> None:
    walk = Walk(CFG.from_string("S -> a S | b S | c"))
    walk.answer(2)
    walk.answer(1)
    assert [question.options[number - 1].text for question, number in zip(walk.questions, (2, 1), strict=True)] == [
        'the output of "b"', 'the output of "a"',
    ]  # fmt: skip


@pytest.mark.parametrize("conversation", [False, True])
def test_questions_share_their_past_and_say_the_same_when_they_are_let_go(conversation: bool) -> None:
    rules = CFG.from_string("S -> a T S | b\nT -> c T | d")
    walk = Walk(rules, "a task", wording=Wording(conversation=conversation))
    told = []
    for number in (1, 1, 2, 1, 2, 2):
        assert walk.question is not None
        told.append((walk.question.prompt, walk.question.messages, walk.question.outlook))
        if len(told) == 3:  # what is left of a walk that went back and of one that parted says nothing here
            twin = walk.fork()
            twin.answer(1)
            walk.answer(1)
            walk.back()
        walk.answer(number)
    assert walk.done
    assert [(one.prompt, one.messages, one.outlook) for one in walk.questions] == told
    entries = walk._trail.journal
    assert sum(len(entry.past.since) for entry in entries if entry.past is not None) <= len(walk._trail.moves)
    assert entries[-1].past is not None and entries[-1].past.moves == walk._trail.moves[: entries[-1].moves]
