"""Repetitions and groups, against regular expressions read by brute force."""

from __future__ import annotations

import re
from functools import cache
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Lookahead
from formal_llm.automata.lookahead.derivations import derivations
from formal_llm.automata.models.repetition import Repetition, parse_repetition
from formal_llm.errors import GrammarError
from tests.automata.messages import quiet
from tests.strategies import bounds, examples, productions, repeating

#: A letter; alternatives of sequences; something repeated from least to most times.
Expression = str | tuple[tuple["Expression", ...], ...] | tuple["Expression", int, "int | None"]
LONGEST = 4
WORDS = ["".join(word) for length in range(LONGEST + 1) for word in product("ab", repeat=length)]

expressions = st.recursive(
    st.sampled_from("ab"),
    lambda inner: (
        st.lists(st.lists(inner, min_size=1, max_size=2).map(tuple), min_size=1, max_size=2).map(tuple)
        | st.builds(lambda of, many: (of, *many), inner, bounds)
    ),
    max_leaves=5,
)


def is_repetition(one: Expression) -> bool:
    return isinstance(one, tuple) and not isinstance(one[-1], tuple)


def written(one: Expression) -> str:
    """An expression as a grammar's body has it."""
    if isinstance(one, str):
        return one
    if is_repetition(one):
        inner = f"({written(one[0])})" if is_repetition(one[0]) else written(one[0])
        return str(Repetition(inner, *one[1:]))
    return f"({' | '.join(' '.join(map(written, body)) for body in one)})"


def grammar(one: Expression, more: str = "") -> CFG:
    with quiet():
        return CFG.from_string(f"S -> {written(one)} {more}")


def canonical(one: Expression) -> Expression:
    """The same expression with each alternative once."""
    if isinstance(one, str):
        return one
    if is_repetition(one):
        return (canonical(one[0]), *one[1:])
    return tuple(dict.fromkeys(tuple(map(canonical, body)) for body in one))


def pattern(one: Expression) -> str:
    if isinstance(one, str):
        return one
    if is_repetition(one):
        return f"(?:{pattern(one[0])}){{{one[1]},{'' if one[2] is None else one[2]}}}"
    return "(?:" + "|".join("".join(map(pattern, body)) for body in one) + ")"


@cache
def ways(one: Expression, word: str) -> int:
    """In how many ways a regular expression reads a word: all splits, counted."""
    if isinstance(one, str):
        return int(word == one)
    if not is_repetition(one):
        return sum(sequence(body, word) for body in dict.fromkeys(one))
    of, least, most = one
    return sum(sequence((of,) * count, word) for count in range(least, (len(word) if most is None else most) + 1))


def sequence(parts: tuple[Expression, ...], word: str) -> int:
    if not parts:
        return int(not word)
    return sum(
        ways(parts[0], word[:cut]) * sequence(parts[1:], word[cut:])
        for cut in range(len(word) + 1)
        if ways(parts[0], word[:cut])
    )


def may_be_empty(one: Expression) -> bool:
    return bool(re.fullmatch(pattern(one), ""))


def repeats_what_may_be_empty(one: Expression) -> bool:
    if isinstance(one, str):
        return False
    if is_repetition(one):
        return (may_be_empty(one[0]) and one[1:] != (1, 1)) or repeats_what_may_be_empty(one[0])
    return any(repeats_what_may_be_empty(part) for body in one for part in body)


@given(expressions)
@examples(150)
def test_they_mean_what_regular_expressions_mean_and_add_no_ambiguity(one: Expression) -> None:
    if repeats_what_may_be_empty(one):
        with pytest.raises(GrammarError, match="may be empty"):
            grammar(one)
        return
    cfg = grammar(one)
    compiled = re.compile(pattern(one))
    for word in WORDS:
        assert cfg.accepts(tuple(word)) == bool(compiled.fullmatch(word))
        found = derivations(cfg, tuple(word), 20)
        assert len(found.found) == min(20, ways(canonical(one), word))


@given(expressions)
@examples(60)
def test_plans_are_counted_as_regular_expressions_read_them(one: Expression) -> None:
    assume(not repeats_what_may_be_empty(one))
    matched = sum(bool(re.fullmatch(pattern(one), word)) for word in WORDS)
    assert Lookahead(grammar(one, "end")).count(of="words", max_length=LONGEST + 1) == matched


@given(expressions, st.data())
@examples(100)
def test_what_is_printed_is_read_back(one: Expression, data: st.DataObject) -> None:
    made = [CFG(data.draw(repeating(data.draw(productions()))))]
    if not repeats_what_may_be_empty(one):
        made.append(grammar(one))
    for cfg in made:
        text = str(cfg)
        try:
            with quiet():
                again = CFG.from_string(text)
        except GrammarError as error:
            assert "no finite word" in str(error) or "empty" in str(error) or "end" in str(error), error
        else:
            assert again == cfg
            assert str(again) == text
        assert CFG(cfg.productions, cfg.start) == cfg  # to give them again changes nothing


@pytest.mark.parametrize(
    ("name", "least", "most", "words"),
    [
        ("a*", 0, None, "any number of X"),
        ("a+", 1, None, "one or more X"),
        ("a?", 0, 1, "X or nothing"),
        ("a{3}", 3, 3, "X, 3 times"),
        ("a{2,}", 2, None, "X, at least 2 times"),
        ("a{0,4}", 0, 4, "X, at most 4 times"),
        ("a{2,4}", 2, 4, "X, 2 to 4 times"),
        ("(a b | c)*", 0, None, "any number of X"),
    ],
)
def test_names_tell_what_they_mean(name, least, most, words) -> None:
    found = parse_repetition(name)
    assert (found.least, found.most) == (least, most)
    assert str(found) == name
    assert found.describe("X") == words
    cfg = CFG.from_string(f"%order forward\nS -> {name}")
    assert cfg.label(name) == found.describe(cfg.label(found.of))


@pytest.mark.parametrize("name", ["a", "*", "+", "?", "}", "{3}", "a{}", "a{x}", "a}", "some(a, b)", "(a b)"])
def test_other_names(name) -> None:
    assert parse_repetition(name) is None or name in ("a{}",)


def test_groups() -> None:
    cfg = CFG.from_string("%order forward\nS -> ((a b)+ c | d)* ( a ( b | c )* | ε )")
    assert cfg.authored[0].body == ("((a b)+ c | d)*", "(a (b | c)* | ε)")
    assert list(cfg.terminals) == ["a", "b", "c", "d"]
    assert cfg.label("(a (b | c)* | ε)") == "a, any number of b or c or nothing"


def test_they_are_made_by_the_reader_alone() -> None:
    for rules in ([("S", ("a*",))], [("S", ("a*",)), ("a*", ("b",))], [("S", ("(a b)",)), ("(a b)", ("a",))]):
        with pytest.raises(GrammarError, match="no rules of its own") as caught:
            CFG(rules)
        assert "CFG.from_string" in caught.value.suggestion
    with pytest.raises(GrammarError, match="no label of its own"):
        CFG.from_string("%order forward\nS -> a*").with_labels({"a*": "many"})
