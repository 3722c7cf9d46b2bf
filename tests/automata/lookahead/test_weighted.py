"""Weighted rules against enumeration: every derivation listed, weighed and added up."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead
from formal_llm.automata import Word
from formal_llm.automata.lookahead.derivations import Feature
from formal_llm.automata.lookahead.weighted import WeightedRules
from formal_llm.errors import AutomatonError, InfiniteLanguage, Undecided
from tests.strategies import examples, limited_automata, limited_grammars, tool_grammars

#: The most runs, and the longest, that are listed.
RUNS, MOVES = 1_500, 40
OPENAGI = """
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


#: Nine tools of six types, each at most once: few enough for a table over all sets of tools.
SMALL = OPENAGI.replace(" | a3 | a4", "").replace(" | b3", "").replace(" | d3 | d4 | d5", " | d3")


def sum_over_sets(scores: Mapping[str, float]) -> float:
    """The sum of all weights, another way: for each type and each set of tools what uses just these tools."""
    tools = {"A": ["a1", "a2"], "B": ["b1", "b2"], "C": ["c"], "D": ["d1", "d2", "d3"], "E": ["e"], "F": ["f"]}
    bits = {name: 1 << place for place, name in enumerate(itertools.chain(*tools.values()))}
    weights = {name: math.exp(scores[name]) for name in scores}
    size = 1 << len(bits)
    text, image = np.zeros(size), np.zeros(size)
    text_plan, image_plan = np.zeros(size), np.zeros(size)
    text[0], image[0] = weights["text"], weights["image"]

    def pairs(left: Any, right: Any, used: int) -> float:
        total, part = 0.0, used
        while True:
            total += left[part] * right[used ^ part]
            if not part:
                return total
            part = part - 1 & used

    for used in range(1, size):

        def one_of(kind: str, rest: Any, used: int = used) -> float:
            return sum(weights[n] * rest(used ^ bits[n]) for n in tools[kind] if used & bits[n])

        of_text = (
            one_of("B", lambda rest: image[rest])
            + one_of("D", lambda rest: text[rest])
            + one_of("E", lambda rest: pairs(image, text, rest))
            + one_of("F", lambda rest: pairs(text, text, rest))
        )
        of_image = one_of("A", lambda rest: image[rest]) + one_of("C", lambda rest: text[rest])
        text_plan[used], image_plan[used] = of_text, of_image
        text[used] += of_text
        image[used] += of_image
    return float(text_plan.sum() + image_plan.sum())


class TestManyPlans:
    def test_sums_agree_with_a_table_over_all_sets_of_tools(self) -> None:
        rng = random.Random(3)
        rules = WeightedRules(CFG.from_string(SMALL))
        for scale in (0.0, 1.0, 4.0):
            scores = {str(name): rng.gauss(0, scale) if scale else 0.0 for name in rules.scores}
            assert rules.with_scores(scores).log_partition() == pytest.approx(
                math.log(sum_over_sets(scores)), rel=1e-12
            )

    def test_the_gradient_is_the_slope(self) -> None:
        rng = random.Random(4)
        rules = WeightedRules(CFG.from_string(OPENAGI))
        scores = {name: rng.gauss(0, 1) for name in rules.scores}
        values = {name: rng.gauss(0, 1) for name in rules.scores}
        here = rules.with_scores(scores)
        gradient, marginals, step = here.expectation(values).gradient, here.marginals(), 1e-5
        for name in rules.scores:
            up, down = (rules.with_scores({**scores, name: scores[name] + by}) for by in (step, -step))
            slope = (up.log_partition() - down.log_partition()) / (2 * step)
            assert marginals[name] == pytest.approx(slope, abs=1e-7)
            slope = (up.expectation(values).mean - down.expectation(values).mean) / (2 * step)
            assert gradient[name] == pytest.approx(slope, abs=1e-6)

    def test_the_best_plans_are_those_of_an_exhaustive_list(self) -> None:
        rng = random.Random(5)
        cfg = CFG.from_string(SMALL.replace("%limit 1\n", "%limit 1\n%limit 0 e f\n"))
        rules = WeightedRules(cfg, {name: rng.gauss(0, 2) for name in cfg.terminals if name not in "ef"})
        runs = list_runs(rules, most=100_000)
        assert runs is not None
        order = sorted((weight_of(occurring, rules.scores) for _, occurring in runs), reverse=True)
        assert [one.log_weight for one in rules.best_of(50)] == pytest.approx(order[:50], abs=1e-9)

    def test_samples_have_the_frequencies_of_the_distribution(self) -> None:
        rng = random.Random(6)
        rules = WeightedRules(CFG.from_string(OPENAGI), {"d1": 3.0, "a2": -2.0, "f": -1.0, "text": 0.5})
        drawn = rules.sample(rng, 4_000)
        accepts = rules._pda.accepts
        assert all(accepts(word) for word in drawn[:300])
        seen = Counter(itertools.chain(*drawn))
        for name, expected in rules.marginals().items():
            assert seen[str(name)] / len(drawn) == pytest.approx(expected, abs=0.12)

    def test_members_of_a_class_with_no_weight_do_not_occur(self) -> None:
        never = {"a1": -math.inf, "a2": -math.inf, "a3": -math.inf, "d1": -math.inf}
        rules = WeightedRules(CFG.from_string(OPENAGI), never)
        smaller = OPENAGI.replace("A -> a1 | a2 | a3 | a4", "A -> a4").replace("d1 | ", "")
        plain = WeightedRules(CFG.from_string(smaller))
        assert rules.log_partition() == pytest.approx(plain.log_partition(), rel=1e-12)
        assert {name: n for name, n in rules.marginals().items() if name not in never} == pytest.approx(
            plain.marginals()
        )
        assert not set(never) & set(itertools.chain(*rules.sample(random.Random(0), 50)))

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
        class Endless:
            def start(self) -> int:
                return 0

            def moves(self, now: int) -> list[Any]:
                return []

            def step(self, now: int, move: Any) -> int:
                return now

            def accepting(self, now: int) -> bool:
                return True

        with pytest.raises(AutomatonError, match="weights need a grammar or a pushdown automaton"):
            WeightedRules(Endless())  # type: ignore[arg-type]
