"""Counting and sampling."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead, TaskPack, constraint
from formal_llm.automata.languages.ambiguity import derivations
from formal_llm.automata.languages.word_lists import is_finite, words
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.counting import DerivationCounter, find_cycles, fixed_counts
from formal_llm.automata.lookahead.sampling import WordEnumeration
from formal_llm.automata.lookahead.ways import find_ways
from formal_llm.automata.models.pda import LOOP
from formal_llm.errors import InfiniteLanguage, Undecided
from tests import oracles, strategies
from tests.automata.lookahead.judging import parts, sources
from tests.oracles import INF, Reference, keeps, language
from tests.strategies import choices, examples, grammars, limited_grammars, tool_grammars, walk

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


def listed_words(lookahead, now, max_words=2_000):
    (state, stack), remaining, needed = lookahead._split_configuration(now)
    return WordEnumeration(lookahead._search.grammar, max_words).enumerate_words(state, stack, remaining, needed)


@given(limited_grammars())
@examples(60)
def test_all_words_within_the_limits_once_and_sorted(cfg):
    lookahead = Lookahead(cfg)
    try:
        found = listed_words(lookahead, lookahead.automaton.start())
    except Undecided:
        assume(False)
    assert found == sorted(set(found))
    assert all(keeps(word, cfg.limits, cfg.terminals, cfg.symbols) and cfg.accepts(word) for word in found)
    fitting = {word for word in language(cfg, 4) if keeps(word, cfg.limits, cfg.terminals, cfg.symbols)}
    assert {word for word in found if len(word) <= 4} == fitting


@given(sources, choices)
@examples(40)
def test_listed_from_any_configuration(source, picks):
    lookahead = Lookahead(*source)
    now, read = walk(lookahead.automaton, picks)
    try:
        found = listed_words(lookahead, now, 300)
    except Undecided:
        assume(False)
    pda = lookahead.pda
    shortest = Reference(pda, lookahead.limits).length(*parts(now), read)
    assert min(map(len, found), default=INF) == shortest
    letters = list(pda.terminals)
    assert all(keeps((*read, *word), lookahead.limits, letters, pda.symbols) for word in found)


def test_too_many_words_are_told():
    lookahead = Lookahead(CFG.from_string("S -> a S | b S | S S | c"), Limits(default=4))
    with pytest.raises(Undecided, match="more than 50 words"):
        listed_words(lookahead, lookahead.automaton.start(), 50)


def counter(lookahead, max_states=100_000):
    return DerivationCounter(lookahead.pda, lookahead.bounds, max_states)


def count(lookahead, now, max_states=100_000):
    (state, stack), remaining, needed = lookahead._split_configuration(now)
    return counter(lookahead, max_states).count_derivations(state, stack, remaining, needed)


@given(limited_grammars() | tool_grammars())
@examples(60)
def test_as_many_as_the_words_within_the_limits_have(cfg):
    lookahead = Lookahead(cfg)
    try:
        number = count(lookahead, lookahead.automaton.start())
    except (InfiniteLanguage, Undecided):
        assume(False)
    fitting = [word for word in language(cfg, 6) if keeps(word, cfg.limits, cfg.terminals, cfg.symbols)]
    assume(max(map(len, fitting), default=0) < 6)
    longest = lookahead.count(max_length=6, of="derivations")
    assume(longest == number)  # else there are longer words, which are not written out
    assert number == sum(len(derivations(cfg, word, 2_000).found) for word in fitting)


@given(tool_grammars(), choices)
@examples(60)
def test_the_moves_share_them_out(cfg, picks):
    lookahead = Lookahead(cfg)
    now, _ = walk(lookahead.automaton, picks)
    automaton = lookahead.automaton
    try:
        whole = count(lookahead, now)
        parts = [count(lookahead, automaton.step(now, move)) for move in automaton.moves(now)]
    except (InfiniteLanguage, Undecided):
        assume(False)
    assert whole == sum(parts) + automaton.accepting(now)


def test_runs_that_look_alike_are_several():
    """Two moves do the same: one does not look at the stack, the other takes Y and puts it back."""
    pda = PDA([("q", "a", None, "q"), ("q", "a", "Y", "q", ("Y",))], start="q", stack=("Y",), accepting={"q"})
    assert Lookahead(pda).count(of="derivations", max_length=3) == 1 + 2 + 4 + 8


def test_what_is_infinite_is_told_by_what_grows():
    for text, grows in (("S -> a S | b", True), ("S -> S | b", False)):
        lookahead = Lookahead(CFG.from_string(text))
        (state, stack), *_ = lookahead._split_configuration(lookahead.automaton.start())
        with pytest.raises(InfiniteLanguage, match="max_length" if grows else "count words instead"):
            counter(lookahead).count_derivations(state, stack, 0, 0)
        if grows:
            with pytest.raises(InfiniteLanguage):
                counter(lookahead).check_words(state, stack, 0, 0)
        else:
            counter(lookahead).check_words(state, stack, 0, 0)


def test_the_budget_ends_it():
    names = [f"t{number}" for number in range(12)]
    cfg = CFG([("S", (name, "S", other)) for name, other in pairwise(names)] + [("S", ())])
    lookahead = Lookahead(cfg, Limits(default=2))
    with pytest.raises(Undecided, match="raise max_states"):
        count(lookahead, lookahead.automaton.start(), max_states=5)


def known(cfg, limits=None):
    search = Lookahead(cfg, limits)._search
    leaves = search.demands.resources.leaves
    start = search.grammar.get_symbol(LOOP, cfg.start, LOOP)
    return search.grammar.symbols, find_ways(search.grammar, leaves), start.index


def named(cfg, found):
    symbols, _, _ = known(cfg)
    return {symbols[index].key[1] for index in found}


def reached(ways, start):
    found, todo = {start}, [start]
    while todo:
        for _, children, _ in ways[todo.pop()]:
            todo += set(children) - found
            found |= set(children)
    return found


class TestCycles:
    def test_which_grow_words(self):
        cfg = CFG.from_string("S -> S | A\nA -> a A | b")
        symbols, ways, _ = known(cfg)
        cyclic, growing = find_cycles(symbols, ways, ())
        assert named(cfg, cyclic) == {"S", "A"}
        assert named(cfg, growing) == {"A"}

    def test_what_takes_from_a_limit_is_no_cycle(self):
        cfg = CFG.from_string("S -> a S | b")
        symbols, ways, _ = known(cfg)
        assert find_cycles(symbols, ways, {"a"}) == (set(), set())
        assert find_cycles(symbols, ways, {"b"})[0]

    def test_the_next_production_may_be_a_cycle(self):
        cfg = CFG.from_string("S -> a S | b S | c")
        symbols, ways, _ = known(cfg)
        assert [named(cfg, found) for found in find_cycles(symbols, ways, {"a"})] == [{"S"}, {"S"}]

    def test_what_stands_beside_a_cycle_must_take_nothing_and_makes_it_grow(self):
        for text, limited, cycles, grows in (
            ("S -> S X | c\nX -> a", "a", 0, 0),
            ("S -> X S | c\nX -> a", "a", 0, 0),
            ("S -> S X | c\nX -> a | ε", "a", 1, 0),
            ("S -> S X | c\nX -> a | ε", "", 1, 1),
            ("S -> X S | c\nX -> Y Y\nY -> a | ε", "", 1, 1),
            ("S -> X S | c\nX -> Y Y\nY -> a | ε", "a", 1, 0),
            ("S -> X S | c\nX -> Y Z\nY -> b\nZ -> a", "a", 0, 0),
            ("S -> X S | c\nX -> Y Z\nY -> b | ε\nZ -> a | ε", "a", 1, 1),
        ):
            cfg = CFG.from_string(text)
            # What a symbol can do without taking anything is known of the limits.
            symbols, ways, _ = known(cfg, Limits(dict.fromkeys(limited, 1)))
            found = find_cycles(symbols, ways, set(limited))
            assert [("S" in named(cfg, one)) for one in found] == [bool(cycles), bool(grows)], text

    @given(grammars())
    @examples(80)
    def test_without_limits_a_language_is_infinite_where_a_cycle_grows_that_is_of_use(self, cfg):
        symbols, ways, start = known(cfg)
        assume(symbols[start].least_steps < INFINITE)
        _, growing = find_cycles(symbols, ways, ())
        assert bool(growing & reached(ways, start)) == (not is_finite(cfg))


class TestFixedCounts:
    @given(grammars(selections=False))
    @examples(60)
    def test_as_many_as_the_words_have_together(self, cfg):
        symbols, ways, start = known(cfg)
        count = fixed_counts(ways, ())[start]
        assert (count == INFINITE) == bool(find_cycles(symbols, ways, ())[0] & reached(ways, start))
        assume(count < 200)
        found = [derivations(cfg, word, 300) for word in words(cfg, 30)]
        assert all(one.complete for one in found)
        assert count == sum(len(one.found) for one in found)

    def test_what_a_limit_touches_has_none(self):
        cfg = CFG.from_string("S -> A B\nA -> a | b\nB -> c | d | e")
        symbols, ways, start = known(cfg, Limits(at_most={"a": 1}))
        counts = {symbols[index].key[1]: count for index, count in fixed_counts(ways, {"a"}).items()}
        assert counts["B"] == 3
        assert start not in fixed_counts(ways, {"a"})
        assert "A" not in counts
