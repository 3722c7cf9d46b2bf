"""Sentences about order, in every notation: against a definition of each over all words, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Flowchart, Limits, Lookahead, verify
from formal_llm.automata import constraint
from formal_llm.automata.models.declare import KEYWORDS, Sentence
from formal_llm.automata.models.dfa import minimal_dfa
from formal_llm.automata.models.formula import EVERYTHING, reverse
from formal_llm.automata.notation.files import read_rules, read_rules_text
from formal_llm.automata.notation.sentences import read_rule, read_sentences, write_sentences
from formal_llm.errors import AutomatonError, NotationError
from tests.oracles import all_words
from tests.strategies import examples

Word = tuple[str, ...]
LETTERS = "abc"
WORDS = list(all_words(LETTERS, 6))


def _each(word: Word, name: str) -> list[int]:
    return [at for at, step in enumerate(word) if step == name]


def _opened(word: Word, at: int, opening: str, closing: str) -> bool:
    """Whether the last of the two before a place is the opening one."""
    before = [step for step in word[:at] if step in (opening, closing)]
    return before[-1:] == [opening]


#: What each sentence means of a word in the order of carrying out.
MEANINGS: dict[str, Callable[[Word], bool]] = {
    "a before b": lambda w: all("a" in w[:at] for at in _each(w, "b")),
    "a or c before b": lambda w: all({"a", "c"} & {*w[:at]} for at in _each(w, "b")),
    "a before each b": lambda w: all("a" in w[max((0, *_each(w[:at], "b"))) : at] for at in _each(w, "b")),
    "a after each b": lambda w: all("a" in w[at:] for at in _each(w, "b")),
    "a or c after each b": lambda w: all({"a", "c"} & {*w[at:]} for at in _each(w, "b")),
    "a directly after each b": lambda w: all(w[at + 1 : at + 2] == ("a",) for at in _each(w, "b")),
    "never a after b": lambda w: all("a" not in w[at:] for at in _each(w, "b")),
    "never a directly after b": lambda w: ("b", "a") not in zip(w, w[1:], strict=False),
    "never a": lambda w: "a" not in w,
    "never a or b": lambda w: not {"a", "b"} & {*w},
    "at most 2 a": lambda w: w.count("a") <= 2,
    "at least 2 a": lambda w: w.count("a") >= 2,
    "exactly 2 a": lambda w: w.count("a") == 2,
    "at least 0 a": lambda w: True,
    "at most 2 a or b": lambda w: w.count("a") + w.count("b") <= 2,
    "at least 2 a or b": lambda w: w.count("a") + w.count("b") >= 2,
    "exactly 2 a or b": lambda w: w.count("a") + w.count("b") == 2,
    "first a": lambda w: w[:1] == ("a",),
    "first a or b": lambda w: w[:1] in (("a",), ("b",)),
    "last a": lambda w: w[-1:] == ("a",),
    "a if b": lambda w: "a" in w or "b" not in w,
    "at most one of a, b, c": lambda w: len({*w}) <= 1,
    "at least one of a, b": lambda w: bool({"a", "b"} & {*w}),
    "exactly one of a, b": lambda w: len({"a", "b"} & {*w}) == 1,
    "never a between b and c": lambda w: not any(_opened(w, at, "b", "c") for at in _each(w, "a")),
    "a only between b and c": lambda w: all(_opened(w, at, "b", "c") for at in _each(w, "a")),
    "only a after b": lambda w: all({*w[at + 1 :]} <= {"a"} for at in _each(w, "b")),
    "in this order: a, b, c": lambda w: list(w) == sorted(w),
    "in this order: b, a or c": lambda w: all("b" not in w[at:] for at, step in enumerate(w) if step in "ac"),
    "at most 3 steps": lambda w: len(w) <= 3,
    "at least 3 steps": lambda w: len(w) >= 3,
    "exactly 3 steps": lambda w: len(w) == 3,
}

#: Rules that allow all words, with a place for more.
NOTATIONS = {
    ".rules": "steps: a, b, c\n{rule}\n",
    ".cfg": "%order forward\n%rule {rule}  # said\nS -> a S | b S | c S | ε\n",
    ".pda": "%start p\n%accept p\n%rule {rule}  # said\np, a, ε -> p, ε\np, b, ε -> p, ε\np, c, ε -> p, ε\n",
    ".mmd": "flowchart TD\n%% %rule {rule}\ns([Start]) --> D{{More?}}\nD -->|a| a[A]\nD -->|b| b[B]\nD -->|c| c[C]\n"
    "a --> D\nb --> D\nc --> D\nD -->|no| e([End])\n",
    ".agent": '(define all (:states a b c) (:limits "%rule {rule}") (:behavior (until any empty)))',
}
PREFIX = {
    ".cfg": NOTATIONS[".cfg"].replace("forward", "backward"),
    ".pda": "%order backward\n" + NOTATIONS[".pda"],
}
ALL = [*((ending, text, 1) for ending, text in NOTATIONS.items()), *((one, text, -1) for one, text in PREFIX.items())]


def read(ending: str, text: str, rule: str) -> Any:
    return read_rules_text(text.format(rule=rule), f"some{ending}")


def spell(rules: Any, up_to: int) -> set[Word]:
    """The words up to a length that the walk of a planner can spell, answers to decisions left out."""
    automaton = Lookahead(rules.pda() if isinstance(rules, Flowchart) else rules).automaton
    found: set[Word] = set()
    todo, seen = [((), automaton.start())], set()
    while todo:
        word, configuration = todo.pop()
        if (word, configuration) in seen:
            continue
        seen.add((word, configuration))
        if automaton.accepting(configuration):
            found.add(word)
        for move in automaton.moves(configuration):
            silent = move.read is None or "=" in move.read
            after = word if silent else (*word, move.read)
            if len(after) <= up_to:
                todo.append((after, automaton.step(configuration, move)))
    return found


@pytest.mark.filterwarnings("ignore:.*the empty sequence is allowed")
@pytest.mark.parametrize("sentence", MEANINGS)
@pytest.mark.parametrize(("ending", "text", "way"), ALL, ids=[f"{one[0]}{'-' if one[2] < 0 else ''}" for one in ALL])
def test_each_sentence_means_what_it_says_in_every_notation(ending: str, text: str, way: int, sentence: str) -> None:
    rules, up_to = read(ending, text, sentence), 6 if way > 0 or ending == ".cfg" else 5
    expected = {word for word in WORDS if len(word) <= up_to and MEANINGS[sentence](word)}
    assert {word[::way] for word in spell(rules, up_to)} == expected


@pytest.mark.parametrize("sentence", MEANINGS)
def test_a_sentence_its_formula_and_its_reverse_agree(sentence: str) -> None:
    rule = read_rule(sentence, dict.fromkeys(LETTERS, ""))
    dfa, backward = minimal_dfa(rule.formula(), LETTERS), minimal_dfa(reverse(rule.formula()), LETTERS)
    pda = read(".pda", NOTATIONS[".pda"], sentence)
    for word in WORDS:
        assert dfa.accepts(word) == backward.accepts(word[::-1]) == rule.accepts(word) == MEANINGS[sentence](word)
        assert pda.accepts(word) == MEANINGS[sentence](word)
    assert str(rule) == rule.text == sentence
