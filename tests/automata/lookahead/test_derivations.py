"""Counts, sums, best plans, samples and derivations against enumeration: every run listed, weighed and added up."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead, Production, TaskPack, constraint
from formal_llm.automata import Word
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.derivations import Feature, derivations, derive
from formal_llm.automata.lookahead.flow import FlowGrammar
from formal_llm.automata.lookahead.limited import LimitedConfiguration
from formal_llm.automata.lookahead.unambiguous import is_unambiguous, list_words
from formal_llm.automata.lookahead.weighted import WeightedRules
from formal_llm.automata.models.limits import Bound
from formal_llm.errors import AutomatonError, InfiniteLanguage, Undecided
from tests import oracles
from tests.automata.lookahead.judging import Plain, search_of
from tests.oracles import rules as rules_of
from tests.strategies import (
    automata,
    choices,
    direct_automata,
    examples,
    grammars,
    limited_automata,
    limited_grammars,
    tool_grammars,
    walk,
)

#: The most runs, and the longest, that are listed.
RUNS, MOVES = 1_500, 40
OPENAGI = """
%order prefix
%limit 1
%limit * image text
plan -> text_plan | image_plan
text_plan -> B I | D T | E I T | F T T
image_plan -> A I | C T
T -> B I | D T | E I T | F T T | text
I -> A I | C T | image
A -> a1 | a2 | a3 | a4
B -> b1 | b2 | b3
C -> c
D -> d1 | d2 | d3 | d4 | d5
E -> e
F -> f
"""


def list_runs(rules: WeightedRules, most: int = RUNS) -> list[tuple[Word, Counter[Any]]] | None:
    """All accepting runs within the bounds, as (word, what occurs how often); None where there are too many."""
    pda, bounds = rules._pda, rules._bounds
    upper = [bound for bound in bounds if bound.most is not None]
    found: list[tuple[Word, Counter[Any]]] = []
    todo: list[tuple[Any, Word, tuple[Any, ...]]] = [(pda.start(), (), ())]
    while todo:
        now, word, moves = todo.pop()
        if pda.accepting(now) and all(bound.holds(word) for bound in bounds):
            found.append((word, Counter(word) + Counter(moves)))
        if len(moves) > MOVES or len(found) > most or len(todo) > 20_000:
            return None
        for move in pda.moves(now):
            longer = word if move.read is None else (*word, move.read)
            if all(bound.least or bound.holds(longer) for bound in upper):
                todo.append((pda.step(now, move), longer, (*moves, move.production or move)))
    return found


def random_scores(features: Any, rng: random.Random) -> dict[Feature, float]:
    return {one: rng.choice([rng.gauss(0, 2), 0.0, -math.inf if rng.random() < 0.1 else 1.0]) for one in features}


def weight_of(occurring: Mapping[Any, int], scores: Mapping[Any, float]) -> float:
    return sum(scores[one] * times for one, times in occurring.items() if one in scores)


def judge(rules: WeightedRules, runs: list[tuple[Word, Counter[Any]]], rng: random.Random) -> None:
    """Compare everything with the list of all runs."""
    scores = rules.scores
    weights = [weight_of(occurring, scores) for _, occurring in runs]
    total = sum(map(math.exp, weights))
    if not total:
        assert rules.log_partition() == -math.inf
        assert rules.best() is None and rules.best_of(3) == []
        with pytest.raises(ValueError, match="no plan"):
            rules.sample(rng, 1)
        return
    log_total = math.log(total)
    assert rules.log_partition() == pytest.approx(log_total, abs=1e-9)
    shares = [math.exp(weight) / total for weight in weights]
    counts = {
        one: math.fsum(share * occurring[one] for share, (_, occurring) in zip(shares, runs, strict=True))
        for one in scores
    }
    assert rules.marginals() == pytest.approx(counts, abs=1e-9)
    entropy = -math.fsum(share * math.log(share) for share in shares if share)
    assert rules.entropy() == pytest.approx(entropy, abs=1e-8)
    values: dict[Any, float] = {one: rng.gauss(0, 1) for one in scores}
    rewards = [weight_of(occurring, values) for _, occurring in runs]
    mean = math.fsum(share * reward for share, reward in zip(shares, rewards, strict=True))
    expected = rules.expectation(values)
    assert expected.mean == pytest.approx(mean, abs=1e-8)
    covariance = {
        one: math.fsum(s * r * o[one] for s, r, (_, o) in zip(shares, rewards, runs, strict=True)) - mean * counts[one]
        for one in scores
    }
    assert expected.gradient == pytest.approx(covariance, abs=1e-8)
    best: dict[Word, float] = {}
    of_word: defaultdict[Word, float] = defaultdict(float)
    for (word, _), weight, share in zip(runs, weights, shares, strict=True):
        of_word[word] += share
        if weight > -math.inf:
            best[word] = max(best.get(word, -math.inf), weight)
    order = sorted(best.values(), reverse=True)
    found = rules.best_of(len(order) + 1)
    assert [one.log_weight for one in found] == pytest.approx(order, abs=1e-9)
    assert {one.word: one.log_weight for one in found} == pytest.approx(best, abs=1e-9)
    assert rules.best() == found[0]
    for word in rng.sample(sorted(of_word), min(4, len(of_word))):
        log_share = math.log(of_word[word]) if of_word[word] else -math.inf
        assert rules.log_probability(word) == pytest.approx(log_share, abs=1e-8)
    drawn = rules.sample(rng, 5)
    assert all(of_word[word] for word in drawn)


class TestAgainstEnumeration:
    @given(limited_grammars() | tool_grammars(), st.integers(0, 2**32), st.booleans(), st.none() | st.integers(0, 6))
    @examples(150)
    def test_grammars(self, cfg: CFG, seed: int, moves: bool, max_length: int | None) -> None:
        self.compare(cfg, seed, moves, max_length)

    @given(limited_automata(), st.integers(0, 2**32), st.booleans(), st.none() | st.integers(0, 6))
    @examples(100)
    def test_automata(self, made: tuple[PDA, Limits], seed: int, moves: bool, max_length: int | None) -> None:
        self.compare(made[0].with_limits(made[1]), seed, moves, max_length)

    def compare(self, source: CFG | PDA, seed: int, moves: bool, max_length: int | None) -> None:
        rng = random.Random(seed)
        try:
            plain = WeightedRules(source, moves=moves, max_length=max_length, max_states=3_000)
        except (InfiniteLanguage, Undecided):
            assume(False)
        runs = list_runs(plain)
        assume(runs is not None)
        assert runs is not None
        count = Lookahead(source).count(of="derivations", max_length=max_length)
        assert math.exp(plain.log_partition()) == pytest.approx(count, rel=1e-9)
        judge(plain.with_scores(random_scores(plain.scores, rng)), runs, rng)


#: Six tools of four types, each at most once: few enough for a list.
SMALL = OPENAGI.replace(" | a3 | a4", "").replace(" | b3", "").replace(" | d3 | d4 | d5", "")
SMALL = SMALL.replace("%limit 1\n", "%limit 1\n%limit 0 e f\n")


class TestManyPlans:
    def test_all_is_as_in_an_exhaustive_list(self) -> None:
        rng = random.Random(5)
        cfg = CFG.from_string(SMALL)
        rules = WeightedRules(cfg)
        runs = list_runs(rules, most=20_000)
        assert runs is not None and len(runs) > 500
        judge(rules.with_scores(random_scores(rules.scores, rng)), runs, rng)

    def test_samples_have_the_frequencies_of_the_distribution(self) -> None:
        rng = random.Random(6)
        rules = WeightedRules(CFG.from_string(OPENAGI), {"d1": 3.0, "a2": -2.0, "f": -1.0, "text": 0.5})
        drawn = rules.sample(rng, 4_000)
        accepts = rules._pda.accepts
        assert all(accepts(word) for word in drawn[:300])
        seen = Counter(itertools.chain(*drawn))
        for name, expected in rules.marginals().items():
            assert seen[str(name)] / len(drawn) == pytest.approx(expected, abs=0.12)

    def test_large_scores_do_not_overflow(self) -> None:
        rules = WeightedRules(CFG.from_string(OPENAGI), {"d1": 2_000.0, "c": -2_000.0})
        assert 2_000 < rules.log_partition() < 2_050
        assert rules.marginals()["d1"] == pytest.approx(1)
        assert rules.entropy() >= 0


class TestScores:
    def test_a_move_has_a_score_of_its_own(self) -> None:
        cfg = CFG.from_string("S -> a S | b\n%limit 3 a")
        again = cfg.productions[0]
        rules = WeightedRules(cfg, {again: math.log(2)})
        assert math.exp(rules.log_partition()) == pytest.approx(1 + 2 + 4 + 8)
        assert rules.marginals()[again] == pytest.approx((2 + 2 * 4 + 3 * 8) / 15)
        assert rules.best() == (("a", "a", "a", "b"), pytest.approx(3 * math.log(2)))

    def test_what_is_scored_must_be_there(self) -> None:
        cfg = CFG.from_string("S -> walk | swim")
        with pytest.raises(AutomatonError, match="wlak is no terminal of the rules; did you mean walk"):
            WeightedRules(cfg, {"wlak": 1.0})
        other = CFG.from_string("S -> run").productions[0]
        with pytest.raises(AutomatonError, match="is no move of the rules"):
            WeightedRules(cfg, {other: 1.0})
        with pytest.raises(AutomatonError, match="is no move"):
            WeightedRules(cfg).with_scores({cfg.productions[0]: 1.0})
        for bad in (math.nan, math.inf):
            with pytest.raises(ValueError, match="it is a number, or -inf"):
                WeightedRules(cfg, {"walk": bad})

    def test_no_plan_and_infinitely_many(self) -> None:
        nothing = WeightedRules(CFG.from_string("S -> a"), {"a": 1.0}, limits=Limits({"a": 0}))
        assert nothing.log_partition() == -math.inf and nothing.best() is None
        for ask in (nothing.marginals, nothing.entropy, lambda: nothing.sample(random.Random(0), 1)):
            with pytest.raises(ValueError, match="there is no plan"):
                ask()
        endless = CFG.from_string("S -> a S | a")
        with pytest.raises(InfiniteLanguage):
            WeightedRules(endless)
        assert math.exp(WeightedRules(endless, max_length=4).log_partition()) == pytest.approx(4)

    def test_an_ambiguous_plan_has_all_its_derivations(self) -> None:
        rules = WeightedRules(CFG.from_string("S -> S S | a"), {"a": 0.0}, max_length=4)
        assert rules.log_probability("aaaa") == pytest.approx(math.log(5 / 9))  # 1, 1, 2 and 5 trees
        assert rules.log_probability("aaaaa") == rules.log_probability("b") == -math.inf

    def test_only_pushdown_automata_have_weights(self) -> None:
        with pytest.raises(AutomatonError, match="weights need a grammar or a pushdown automaton"):
            WeightedRules(Plain())

    def test_there_is_a_bound_of_states(self) -> None:
        with pytest.raises(Undecided, match="raise max_states"):
            WeightedRules(CFG.from_string(OPENAGI), max_states=100)


class TestTheChart:
    def test_tools_of_a_type_are_a_class_and_keep_it_small(self) -> None:
        pda = Lookahead(CFG.from_string(OPENAGI)).pda
        assert pda is not None
        states = derive(pda, pda.bounds)
        assert sorted(states.members.values()) == [
            ["a1", "a2", "a3", "a4"], ["b1", "b2", "b3"], ["d1", "d2", "d3", "d4", "d5"],
        ]  # fmt: skip
        assert states.chart.size < 3_000
        assert states.count() == Lookahead(CFG.from_string(OPENAGI)).count()

    def test_symbols_without_limits_are_nodes_beside_the_path(self) -> None:
        """Forty free choices are forty nodes, not the product of their states."""
        names = range(40)
        rules = "\n".join(f"C{n} -> a{n} | b{n}" for n in names)
        cfg = CFG.from_string(f"%limit 1 t\nS -> {' '.join(f'C{n}' for n in names)} t\n{rules}")
        assert WeightedRules(cfg, max_states=50).log_partition() == pytest.approx(40 * math.log(2))
        assert Lookahead(cfg).count() == 2**40

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("%limit 1\nS -> A x A y\nA -> a | b", {"a x b y", "b x a y"}),  # filled from left to right
            ("%limit 1\nS -> X Y\nX -> a | b\nY -> a | b", {"a b", "b a"}),  # in two places
            ("%limit 1\nS -> b T | T b\nT -> c | e", {"b c", "b e", "c b", "e b"}),  # alone in two ways
        ],
    )
    def test_members_of_classes_stand_where_they_are_read(self, text: str, found: set[str]) -> None:
        rules = WeightedRules(CFG.from_string(text))
        assert {" ".join(one.word) for one in rules.best_of(10)} == found
        assert {" ".join(word) for word in rules.sample(random.Random(0), 60)} == found


# -- counts and samples of a lookahead --------------------------------------------------------------------------------

LENGTH = 4


def words_of(cfg: CFG, up_to: int) -> set[tuple[str, ...]]:
    return {w for w in oracles.language(cfg, up_to) if oracles.keeps(w, cfg.limits, cfg.terminals, cfg.symbols)}


@examples(80)
@given(limited_grammars() | tool_grammars())
def test_words_and_derivations_up_to_a_length(cfg: CFG) -> None:
    found = words_of(cfg, LENGTH)
    lookahead = Lookahead(cfg)
    assert lookahead.count(max_length=LENGTH) == len(found)
    word = lookahead.sample(random.Random(1), max_length=LENGTH)
    assert word in found if found else word is None
    assert word == Lookahead(cfg).sample(random.Random(1), max_length=LENGTH)
    try:
        count = lookahead.count(of="derivations", max_length=LENGTH)
    except InfiniteLanguage:
        assert any(not derivations(cfg, word, 300).complete for word in found)
        return
    assert count == sum(len(derivations(cfg, word, 2_000).found) for word in found)


@examples(40)
@given(limited_grammars())
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


def pyformlang_is_finite(cfg):
    from pyformlang.cfg import CFG as Other
    from pyformlang.cfg import Epsilon, Production, Terminal, Variable

    table = rules_of(cfg)
    made = {
        Production(Variable(head), [Variable(n) if n in table else Terminal(n) for n in body] or [Epsilon()])
        for head, bodies in table.items()
        for body in bodies
    }
    return Other(start_symbol=Variable(cfg.start), productions=made).is_finite()


@examples(80)
@given(grammars())
def test_without_limits_they_are_infinite_where_the_language_is(cfg: CFG) -> None:
    try:
        count = Lookahead(cfg).count()
    except InfiniteLanguage:
        assert not pyformlang_is_finite(cfg)
    else:
        assert count == len(list(words(cfg, 30)))


@examples(60)
@given(limited_grammars() | tool_grammars(), choices)
def test_from_any_configuration(cfg: CFG, picks: list[int]) -> None:
    lookahead = Lookahead(cfg)
    automaton = lookahead.automaton
    now, read = walk(automaton, picks)
    fitting = {word[len(read) :] for word in words_of(cfg, len(read) + 3) if word[: len(read)] == read}
    word = lookahead.sample(random.Random(0), now, max_length=3)
    assert word is None or word in fitting
    try:
        whole = lookahead.count(now, of="derivations", max_length=4)
        parts = sum(
            lookahead.count(automaton.step(now, move), of="derivations", max_length=4 - (move.read is not None))
            for move in automaton.moves(now)
        )
    except InfiniteLanguage:
        assume(False)
    assert whole == automaton.accepting(now) + parts


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


def test_words_and_derivations_differ_where_the_grammar_is_ambiguous() -> None:
    cfg = CFG.from_string("S -> S S | a")
    lookahead = Lookahead(cfg)
    assert lookahead.count(max_length=6) == 6
    assert lookahead.count(of="derivations", max_length=6) == 1 + 1 + 2 + 5 + 14 + 42  # Catalan's numbers
    with pytest.raises(InfiniteLanguage, match="max_length"):
        lookahead.count()
    with pytest.raises(ValueError, match="words"):
        lookahead.count(of="letters")  # type: ignore[arg-type]


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


@examples(60)
@given(
    limited_grammars(selections=False),
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


def test_runs_that_look_alike_are_several():
    """Two moves do the same: one does not look at the stack, the other takes Y and puts it back."""
    pda = PDA([("q", "a", None, "q"), ("q", "a", "Y", "q", ("Y",))], start="q", stack=("Y",), accepting={"q"})
    assert Lookahead(pda).count(of="derivations", max_length=3) == 1 + 2 + 4 + 8


def test_what_is_infinite_is_told_by_what_grows() -> None:
    with pytest.raises(InfiniteLanguage, match="max_length"):
        Lookahead(CFG.from_string("S -> a S | b")).count(of="derivations")
    circle = Lookahead(CFG([("S", ("S",)), ("S", ("b",))]))
    with pytest.raises(InfiniteLanguage, match="count words instead"):
        circle.count(of="derivations")
    assert circle.count() == 1


def test_what_is_not_counted() -> None:
    lookahead = Lookahead(CFG.from_string("S -> a S | b S | S S | c"), Limits(default=5))
    with pytest.raises(Undecided, match="too many words to list"):
        lookahead.count()
    with pytest.raises(ValueError, match="max_length counts from 0"):
        lookahead.count(max_length=-1)
    with pytest.raises(AutomatonError, match="counting needs a grammar"):
        Lookahead(Plain()).count()


# -- words that have one derivation -----------------------------------------------------------------------------------


def told_apart(lookahead: Lookahead, now: Any) -> bool:
    return is_unambiguous(search_of(lookahead).demands.grammar, *lookahead.uncounted(now))


@examples(150)
@given(grammars() | automata() | direct_automata(), choices)
def test_where_words_are_told_apart_there_are_as_many_as_runs(source: CFG | PDA, picks: list[int]) -> None:
    lookahead = Lookahead(source)
    now, _ = walk(lookahead.automaton, picks)
    if told_apart(lookahead, now):
        count = lookahead.count(now, max_length=4)
        assert count == lookahead.count(now, of="derivations", max_length=4)
        assert lookahead.pda is not None
        four = Bound(dict.fromkeys(lookahead.pda.terminals, 1), 0, 4, "length <= 4")
        grammar = FlowGrammar(lookahead.pda, Counters([four]))
        begin = LimitedConfiguration(lookahead.uncounted(now), grammar.counters.remaining, 0)
        assert count == len(list_words(grammar, begin))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("S -> a S b | ε", True),
        ("S -> a S | a b", True),  # they begin alike
        ("A -> f x | f y", True),
        ("S -> a S | b S | a b S | c", False),  # a b c in two ways
        ("S -> A a\nA -> a | ε", True),  # read from the end
        ("S -> A B\nA -> ε\nB -> ε | b", True),
        ("S -> A | B\nA -> ε\nB -> ε", False),  # two ways to the empty word
        ("S -> S a | b", True),  # left recursion
        ("S -> S S | a", False),
        ("S -> A | B\nA -> a\nB -> a", False),
        ("S -> some(a, b, c)", True),
    ],
)
def test_which_are_told_apart(text: str, expected: bool) -> None:
    lookahead = Lookahead(CFG.from_string(text))
    assert told_apart(lookahead, lookahead.automaton.start()) == expected


def test_productions_that_differ_in_their_texts_alone_have_derivations_of_their_own() -> None:
    plain = (Production("S", ()), Production("S", ("S", "S", "a")), Production("S", ("a",)))
    one = derivations(CFG(plain, "S"), ("a", "a"))
    both = derivations(CFG((*plain, Production("S", (), "Nothing")), "S"), ("a", "a"))
    assert one.complete and both.complete and one.found
    # Each step that leaves nothing is taken with either text.
    assert len(set(both.found)) == sum(2 ** sum(not step.body for step in each) for each in one.found)
    assert {step.text for each in both.found for step in each} == {None, "Nothing"}
