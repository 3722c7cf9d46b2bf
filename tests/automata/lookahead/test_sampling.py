"""Counting and sampling: exact numbers against words written out, uniformity by a chi-squared test."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead, TaskPack, constraint
from formal_llm.errors import InfiniteLanguage, Undecided
from tests import oracles, strategies
from tests.strategies import examples

LENGTH = 4


def words_of(cfg: CFG, up_to: int) -> set[tuple[str, ...]]:
    return {w for w in oracles.language(cfg, up_to) if oracles.keeps(w, cfg.limits, cfg.terminals, cfg.symbols)}


def derivations_of(cfg: CFG, up_to: int) -> int | None:
    """Leftmost derivations of words up to a length, one by one; None where there are too many to tell."""
    table: dict[str, list[tuple[str, ...]]] = {}
    for production in cfg.expanded:
        table.setdefault(production.head, []).append(production.body)
    least = {head: float("inf") for head in table}
    for _ in table:
        for head, bodies in table.items():
            for body in bodies:
                least[head] = min(least[head], sum(least.get(name, 1) for name in body))
    found = steps = 0
    todo: list[tuple[tuple[str, ...], tuple[str, ...]]] = [((), (cfg.start,))]
    while todo:
        steps += 1
        if steps > 4_000 or len(todo) > 5_000:
            return None
        word, rest = todo.pop()
        while rest and rest[0] not in table:
            word, rest = (*word, rest[0]), rest[1:]
        if len(word) + sum(least.get(name, 1) for name in rest) > up_to or len(rest) > 12:
            if len(rest) > 12 and len(word) + sum(least.get(name, 1) for name in rest) <= up_to:
                return None
            continue
        if not rest:
            found += oracles.keeps(word, cfg.limits, cfg.terminals, cfg.symbols)
            continue
        todo += ((word, body + rest[1:]) for body in table[rest[0]])
    return found


@examples(40)
@given(strategies.limited_grammars())
def test_words_up_to_a_length(cfg: CFG) -> None:
    assert Lookahead(cfg).count(max_length=LENGTH) == len(words_of(cfg, LENGTH))


@examples(40)
@given(strategies.limited_grammars())
def test_derivations_up_to_a_length(cfg: CFG) -> None:
    expected = derivations_of(cfg, LENGTH)
    try:
        count = Lookahead(cfg).count(of="derivations", max_length=LENGTH)
    except InfiniteLanguage:
        assert expected is None  # a cycle that adds nothing: writing them out never ends
        return
    assert expected is None or count == expected


@examples(40)
@given(strategies.limited_grammars())
def test_without_a_bound_it_counts_what_is_finite_and_says_what_is_not(cfg: CFG) -> None:
    try:
        count = Lookahead(cfg).count()
    except InfiniteLanguage:
        # Some word is longer than any of these could be, were the language finite: pumping gives ever longer ones.
        least = Lookahead(cfg).shortest() or 0
        assume(least <= 4)  # a sum of cents that has to come to much takes long words
        assert len(words_of(cfg, least + 6)) > len(words_of(cfg, least))
        return
    except Undecided:
        assume(False)
    longest = 7
    found = words_of(cfg, longest)
    if not found:
        assert count == 0 or (Lookahead(cfg).shortest() or 0) > longest
    elif max(map(len, found)) < longest - 3:
        assert count == len(found)
    else:
        assert count >= len(found)


@examples(30)
@given(strategies.limited_automata())
def test_hand_written_automata(source: tuple[PDA, Limits]) -> None:
    pda, limits = source
    count = Lookahead(pda, limits).count(max_length=3)
    letters = list(pda.terminals)
    found = 0
    for word in oracles.all_words(letters, 3):
        if oracles.keeps(word, limits, letters, pda.symbols):
            accepted = oracles.runs(pda, word)
            assume(accepted is not None)
            found += bool(accepted)
    assert count == found


@examples(30)
@given(strategies.limited_grammars(), strategies.choices)
def test_from_any_configuration(cfg: CFG, picks: list[int]) -> None:
    lookahead = Lookahead(cfg)
    now, _ = strategies.walk(lookahead.automaton, picks)
    moves = lookahead.automaton.moves(now)
    assume(moves)
    stops = int(lookahead.automaton.accepting(now))
    try:
        whole = lookahead.count(now, of="derivations", max_length=4)
        parts = sum(
            lookahead.count(
                lookahead.automaton.step(now, move), of="derivations", max_length=4 - (move.read is not None)
            )
            for move in moves
        )
    except InfiniteLanguage:
        assume(False)
    assert whole == stops + parts


# -- OpenAGI ---------------------------------------------------------------------------------------------------------


def plans_by_hand(tools: dict[str, int], *, images: int) -> int:
    """Complete plans from an image to a text, each tool at most once: a recursion over types, written out."""

    def complete(stack: str, left: tuple[int, ...], images: int) -> int:
        if not stack:
            return 1
        a, b, c, d, e, f = left
        rest, total = stack[1:], 0
        if stack[0] == "T":
            total += b and b * complete("I" + rest, (a, b - 1, c, d, e, f), images)
            total += d and d * complete("T" + rest, (a, b, c, d - 1, e, f), images)
            total += e and e * complete("IT" + rest, (a, b, c, d, e - 1, f), images)
            total += f and f * complete("TT" + rest, (a, b, c, d, e, f - 1), images)
        else:
            total += a and a * complete("I" + rest, (a - 1, b, c, d, e, f), images)
            total += c and c * complete("T" + rest, (a, b, c - 1, d, e, f), images)
            total += complete(rest, left, images - 1) if images else 0
        return total

    return complete("T", tuple(tools[name] for name in "ABCDEF"), images)


@pytest.mark.parametrize(
    ("tools", "images"),
    [
        ({"A": 4, "B": 3, "C": 0, "D": 5, "E": 0, "F": 0}, 1),
        ({"A": 2, "B": 2, "C": 1, "D": 2, "E": 1, "F": 1}, 1),
        ({"A": 2, "B": 2, "C": 1, "D": 2, "E": 1, "F": 1}, 3),
        ({"A": 1, "B": 3, "C": 1, "D": 1, "E": 1, "F": 1}, 2),
    ],
)
def test_reduced_openagi_against_a_recursion(tools: dict[str, int], images: int) -> None:
    pack = TaskPack.load("openagi")
    banned = {p.body[0] for head in "ABCDEF" for p in pack.cfg.by_head[head][tools[head] :]}
    limits = Limits({**dict.fromkeys(banned, 0), "input_text": 0, "input_image": images})
    assert Lookahead(pack.cfg.with_start("text_plan"), limits).count() == plans_by_hand(tools, images=images)


def test_openagi_image_to_text() -> None:
    pack = TaskPack.load("openagi")
    once = Limits({"input_text": 0, "input_image": 1})
    assert Lookahead(pack.cfg.with_start("text_plan"), once).count() == 2_617_716
    # With visual question answering as a fourth tool from image to text, its question being no input of the plan.
    wider = CFG([*pack.cfg.productions, ("B", ("look",))], "text_plan", pack.cfg.symbols, pack.cfg.limits)
    assert Lookahead(wider, once).count() == 5_193_052


def test_limits_of_more_than_one_use() -> None:
    cfg = CFG.from_string("S -> A S | ε\nA -> a | b")
    for most in range(4):
        words = {w for n in range(2 * most + 1) for w in itertools.product("ab", repeat=n)}
        expected = [w for w in words if w.count("a") <= most and w.count("b") <= most]
        assert Lookahead(cfg, Limits(default=most)).count() == len(expected)


def test_a_terminal_read_alone_in_two_ways_to_the_same_place() -> None:
    lookahead = Lookahead(CFG.from_string("%limit 1\nS -> b T | T b\nT -> c | e"))
    words = {("b", "c"), ("b", "e"), ("c", "b"), ("e", "b")}
    assert lookahead.count() == lookahead.count(of="derivations") == len(words)
    rng = random.Random(0)
    drawn = Counter(lookahead.sample(rng) for _ in range(400))
    assert drawn.keys() == words
    assert min(drawn.values()) > 60


def test_selections_and_required_uses() -> None:
    cfg = CFG.from_string("S -> some(a, b, c, d)")
    assert Lookahead(cfg).count() == 15
    assert Lookahead(cfg, Limits({}, {"a": 1})).count() == 8
    assert Lookahead(cfg, Limits({"b": 0}, {"a": 1})).count() == 4
    assert Lookahead(cfg, Limits({"a": 0}, {"a": 1})).count() == 0


def test_words_and_derivations_differ_where_the_grammar_is_ambiguous() -> None:
    cfg = CFG.from_string("S -> S S | a")
    lookahead = Lookahead(cfg)
    assert lookahead.count(max_length=6) == 6
    assert lookahead.count(of="derivations", max_length=6) == 1 + 1 + 2 + 5 + 14 + 42  # Catalan's numbers
    with pytest.raises(InfiniteLanguage, match="max_length"):
        lookahead.count()
    with pytest.raises(ValueError, match="words"):
        lookahead.count(of="letters")  # type: ignore[arg-type]


# -- samples ----------------------------------------------------------------------------------------------------------


def chi_squared(counts: list[int]) -> float:
    mean = sum(counts) / len(counts)
    return sum((count - mean) ** 2 / mean for count in counts)


@pytest.mark.parametrize(
    "text",
    [
        "%limit 1\n%limit * i\nT -> B I | D T\nI -> A I | i\nA -> a1 | a2\nB -> b1 | b2\nD -> d1",
        "S -> S S | a | b\n%limit 2",
        "S -> a S b | S c | ε\n%limit 2 a\n%limit 1 c",
        "S -> A | B\nA -> a | b b\nB -> a | c some(d, e)",
    ],
)
def test_samples_are_uniform_over_words(text: str) -> None:
    lookahead = Lookahead(CFG.from_string(text))
    words = lookahead.count()
    rng = random.Random(17)
    drawn = Counter(lookahead.sample(rng) for _ in range(40 * words))
    assert len(drawn) == words
    # Mean n - 1, variance 2 (n - 1): five standard deviations, with a fixed seed.
    assert chi_squared(list(drawn.values())) < (words - 1) + 5 * (2 * (words - 1)) ** 0.5


def test_samples_of_derivations_weigh_a_word_by_its_derivations() -> None:
    lookahead = Lookahead(CFG.from_string("S -> a | B\nB -> a | b"))
    rng = random.Random(3)
    drawn = Counter(lookahead.sample(rng, of="derivations") for _ in range(3_000))
    assert 1_850 < drawn["a",] < 2_150


@examples(30)
@given(strategies.limited_grammars(), st.integers(0, 99))
def test_samples_are_words_within_the_limits(cfg: CFG, seed: int) -> None:
    word = Lookahead(cfg).sample(random.Random(seed), max_length=LENGTH)
    words = words_of(cfg, LENGTH)
    assert word in words if words else word is None
    assert word == Lookahead(cfg).sample(random.Random(seed), max_length=LENGTH)


@strategies.examples(60)
@given(
    strategies.limited_grammars(selections=False),
    st.sampled_from(["(not (eventually (next a b)))", "(until any a)", "(eventually b)"]),
)
def test_words_of_a_product_are_counted_by_the_factors(cfg: CFG, formula: str) -> None:
    """Where the grammar is unambiguous the product is, and its words are counted without being listed."""
    assume({"a", "b"} <= set(cfg.terminals))
    both = cfg & constraint(formula, cfg)
    bare = Lookahead(cfg)
    words = [word for word in oracles.language(cfg, 6) if bare.automaton.accepts(word)]
    kept = constraint(formula, cfg)
    expected = sum(kept.accepts(word) for word in words)
    assert Lookahead(both).count(max_length=6) == expected


def test_a_large_product_is_counted() -> None:
    cfg = CFG.from_string("S -> " + " | ".join(f"x{number} S" for number in range(20)) + " | end")
    both = cfg & constraint("(not (eventually (next x1 x2)))", cfg)
    # Words of n symbols x.. and the end, n at most 5, no x2 right after an x1: told by the last symbol.
    other, x1, total = 1, 0, 1
    for _ in range(5):
        other, x1 = 19 * other + 18 * x1, other + x1
        total += other + x1
    assert Lookahead(both).count(max_length=6) == total
