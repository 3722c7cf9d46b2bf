"""Repetitions and groups, against regular expressions read by brute force."""

from __future__ import annotations

import re
from functools import cache
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Lookahead
from formal_llm.automata.lookahead.derivations import derivations
from formal_llm.automata.models.repetition import (
    describe_repetition,
    expand_sugar,
    list_held_symbols,
    parse_group,
    parse_repetition,
    problem_of,
    write_group,
    write_repetition,
)
from formal_llm.errors import GrammarError
from tests.strategies import bounds, examples, grammars, productions, repeating

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


def symbol(one: Expression) -> str:
    if isinstance(one, str):
        return one
    if is_repetition(one):
        inner = write_group([[symbol(one[0])]]) if is_repetition(one[0]) else symbol(one[0])
        return write_repetition(inner, *one[1:])
    return write_group([[symbol(part) for part in body] for body in one])


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


@given(expressions)
@examples(150)
def test_they_mean_what_regular_expressions_mean_and_add_no_ambiguity(one: Expression) -> None:
    try:
        cfg = CFG([("S", (symbol(one),))])
    except GrammarError as error:
        # Refused is just what repeats something that may be empty.
        assert "may be empty" in str(error)
        of = re.match(r"(.*) may be empty", error.problem)[1]
        assert CFG([("S", (of,))]).accepts(()) if _fine(of) else True
        return
    compiled = re.compile(pattern(one))
    for word in WORDS:
        assert cfg.accepts(tuple(word)) == bool(compiled.fullmatch(word))
        found = derivations(cfg, tuple(word), 20)
        assert len(found.found) == min(20, ways(one, word))


def _fine(of: str) -> bool:
    try:
        CFG([("S", (of,))])
    except GrammarError:
        return False
    return True


@given(expressions)
@examples(60)
def test_plans_are_counted_as_regular_expressions_read_them(one: Expression) -> None:
    try:
        cfg = CFG([("S", (symbol(one), "end"))])
    except GrammarError:
        return
    matched = sum(bool(re.fullmatch(pattern(one), word)) for word in WORDS)
    assert Lookahead(cfg).count(of="words", max_length=LONGEST + 1) == matched


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
@given(expressions, st.data())
@examples(100)
def test_what_is_printed_is_read_back(one: Expression, data: st.DataObject) -> None:
    made = data.draw(repeating(data.draw(productions())))
    for cfg in (lambda: CFG([("S", (symbol(one),))]), lambda: CFG(made)):
        try:
            grammar = cfg()
            text = str(grammar)
        except GrammarError:
            continue
        try:
            again = CFG.from_string(text)
        except GrammarError as error:
            assert "no finite word" in str(error) or "empty" in str(error) or "end" in str(error), error
        else:
            assert again == grammar
            assert str(again) == text


@given(grammars(), st.data())
@examples(40)
def test_every_repetition_has_just_its_own_rules(_: CFG, data: st.DataObject) -> None:
    cfg = CFG(data.draw(repeating(data.draw(productions()))))
    for production in cfg.productions[len(cfg.authored) :]:
        assert production in expand_sugar(production.head)
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
    assert describe_repetition(name, "X") == words
    assert problem_of(name) is None


@pytest.mark.parametrize("name", ["a", "*", "+", "?", "}", "{3}", "a{}", "a{x}", "a}", "some(a, b)", "(a b)"])
def test_other_names(name) -> None:
    assert parse_repetition(name) is None or name in ("a{}",)


def test_groups() -> None:
    assert parse_group("(a b | c)") == (("a", "b"), ("c",))
    assert parse_group("(a (b | c)* | ε)") == (("a", "(b | c)*"), ())
    assert parse_group("(a some(b, c))") == (("a", "some(b, c)"),)
    assert parse_group("(a) b)") is None
    assert list_held_symbols("((a b)+ c | d)*") == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("a{0,1}", "is written a?"),
        ("a{0}", "never"),
        ("a{2000}", "go up to 1000"),
        ("a+*", "repeats a repetition"),
        ("some(a, b)*", "repeats a selection"),
        ("(a  b)", "is no group"),
        ("()", "is no group"),
        ("(" * 30 + "a" + ")" * 30, "deep"),
    ],
)
def test_what_is_refused(body, problem) -> None:
    with pytest.raises(GrammarError, match=re.escape(problem)):
        CFG([("S", (body,))])


def test_a_repetition_has_no_rule_and_no_label_of_its_own() -> None:
    with pytest.raises(GrammarError, match="no rule of its own"):
        CFG([("S", ("a*",)), ("a*", ("b",))])
    with pytest.raises(GrammarError, match="no label of its own"):
        CFG([("S", ("a*",))]).with_labels({"a*": "many"})
