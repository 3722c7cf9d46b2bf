"""The search for the best plan, and estimated samples, where not all derivations are listed."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits
from formal_llm.automata.lookahead.derivations import Feature
from formal_llm.automata.lookahead.weighted import WeightedRules
from formal_llm.errors import InfiniteLanguage, Undecided
from tests.automata.lookahead.test_weighted import OPENAGI, random_scores
from tests.strategies import examples, limited_automata, limited_grammars, tool_grammars


def without_list(rules: WeightedRules) -> WeightedRules:
    """The same rules, as if they had too many states."""
    made = rules.with_scores(rules.scores)
    made._listed = Undecided("too many states; raise max_states")
    return made


def make_tools(count: int, seed: int) -> CFG:
    """Rules with tools that are used once each, in two places each, so that no two can replace each other."""
    rng = random.Random(seed)
    kinds = [f"T{number}" for number in range(8)]
    rules: dict[str, list[str]] = {kind: [] for kind in kinds}
    for tool in range(count):
        for _ in range(2):
            rules[rng.choice(kinds)].append(f"tool{tool} {rng.choice(kinds)}")
    lines = [f"{kind} -> {' | '.join([*ways, 'end'])}" for kind, ways in rules.items()]
    return CFG.from_string("\n".join([f"%limit 1 {' '.join(f'tool{tool}' for tool in range(count))}", *lines]))


class TestTheBest:
    @given(limited_grammars() | tool_grammars(), st.integers(0, 2**32), st.booleans(), st.none() | st.integers(0, 6))
    @examples(150)
    def test_it_is_that_of_the_list_for_grammars(
        self, cfg: CFG, seed: int, moves: bool, max_length: int | None
    ) -> None:
        self.compare(cfg, seed, moves, max_length)

    @given(limited_automata(), st.integers(0, 2**32), st.booleans(), st.none() | st.integers(0, 6))
    @examples(100)
    def test_it_is_that_of_the_list_for_automata(
        self, made: tuple[PDA, Limits], seed: int, moves: bool, max_length: int | None
    ) -> None:
        self.compare(made[0].with_limits(made[1]), seed, moves, max_length)

    def compare(self, source: CFG | PDA, seed: int, moves: bool, max_length: int | None) -> None:
        try:
            plain = WeightedRules(source, moves=moves, max_length=max_length, max_states=3_000)
        except InfiniteLanguage:
            assume(False)
        assume(plain.is_listed)
        rules = plain.with_scores(random_scores(plain.scores, random.Random(seed)))
        wanted = rules.best()
        try:
            found = without_list(rules).best()
        except Undecided as error:  # only where nothing bounds how often a step with a positive score is taken
            assert "positive score" in str(error)
            assert max(rules.scores.values()) > 0
            assert moves or max_length is None
            return
        if wanted is None or found is None:
            assert found is wanted
            return
        assert found.log_weight == pytest.approx(wanted.log_weight, abs=1e-9)
        assert rules.log_probability(found.word) > -math.inf

    @pytest.mark.slow
    def test_rules_without_a_plan_that_never_end(self) -> None:
        cfg = CFG.from_string("S -> T | ε | S S\nT -> a").with_limits(Limits({"a": 1}, at_least={"a": 2}))
        assert without_list(WeightedRules(cfg, {"a": 0.5})).best() is None

    @given(st.lists(st.integers(-3, 3), min_size=1, max_size=4), st.integers(-3, 0))
    @examples(30)
    def test_of_tools_that_can_replace_each_other_those_with_a_positive_score_are_used(
        self, worth: list[int], last: int
    ) -> None:
        names = [f"t{number}" for number in range(len(worth))]
        cfg = CFG.from_string(f"%limit 1 {' '.join(names)}\nS -> T S | d\nT -> {' | '.join(names)}")
        scores: dict[Feature, float] = {"d": last, **dict(zip(names, map(float, worth), strict=True))}
        best = without_list(WeightedRules(cfg, scores)).best()
        assert best is not None
        assert best.log_weight == pytest.approx(last + sum(max(one, 0) for one in worth))
        assert {name for name, one in zip(names, worth, strict=True) if one > 0} <= set(best.word)

    def test_rules_with_too_many_states_to_be_listed(self) -> None:
        cfg = make_tools(14, 1)
        rng = random.Random(6)
        listed, searched = WeightedRules(cfg), WeightedRules(cfg, max_states=1_000)
        assert listed.is_listed and not searched.is_listed
        for _ in range(5):
            scores: dict[Feature, float] = {f"tool{tool}": rng.gauss(-1, 2) for tool in range(14)}
            listed, searched = listed.with_scores(scores), searched.with_scores(scores)
            wanted, found = listed.best(), searched.best()
            assert wanted is not None and found is not None
            assert found.log_weight == pytest.approx(wanted.log_weight, abs=1e-9)
        for ask in (searched.log_partition, searched.marginals, searched.entropy, lambda: searched.best_of(2)):
            with pytest.raises(Undecided, match=r"raise max_states; without that, best\(\) and estimate_sample\(\)"):
                ask()
        with pytest.raises(Undecided):
            searched.sample(rng, 1)

    def test_a_search_that_visits_too_many_states_gives_up(self) -> None:
        cfg = make_tools(14, 1)
        rules = WeightedRules(cfg, {f"tool{tool}": 1.0 for tool in range(14)}, max_states=20)
        with pytest.raises(Undecided, match="raise max_states"):
            rules.best()

    def test_a_positive_score_that_nothing_bounds(self) -> None:
        cfg = CFG.from_string("S -> X X b\nX -> a | ε\n%limit 2 a")
        empty = next(one for one in cfg.productions if not one.body)
        rules = without_list(WeightedRules(cfg, {empty: 0.0}, max_length=5))
        assert rules.with_scores({empty: -1.0}).best() is not None
        with pytest.raises(Undecided, match="positive score"):
            without_list(WeightedRules(cfg, {empty: 1.0}, max_length=5)).best()


class TestEstimatedSamples:
    @pytest.mark.slow
    def test_they_follow_the_distribution(self) -> None:
        rng = random.Random(7)
        rules = WeightedRules(CFG.from_string(OPENAGI))
        rules = rules.with_scores({name: rng.gauss(-1, 1) for name in rules.scores})
        found = without_list(rules).estimate_sample(rng, 4_000)
        assert found.log_partition == pytest.approx(rules.log_partition(), abs=0.1)
        assert 100 < found.effective <= 40_000
        counts: Counter[Feature] = Counter(name for word in found.words for name in word)
        wanted = rules.marginals()
        for name, share in wanted.items():
            assert counts[name] / len(found.words) == pytest.approx(share, abs=0.15)

    @given(limited_grammars() | tool_grammars(), st.integers(0, 2**32), st.booleans())
    @examples(60)
    def test_they_are_plans(self, cfg: CFG, seed: int, moves: bool) -> None:
        rng = random.Random(seed)
        try:
            plain = WeightedRules(cfg, moves=moves, max_length=6, max_states=3_000)
        except InfiniteLanguage:
            assume(False)
        assume(plain.is_listed)
        rules = plain.with_scores(random_scores(plain.scores, rng))
        try:
            found = without_list(rules).estimate_sample(rng, 5, draws=200)
        except Undecided:
            assume(False)
        except ValueError:
            return  # no plan, or it is rare
        assert all(rules.log_probability(word) > -math.inf for word in found.words)
        assert 1 - 1e-9 <= found.effective <= 200 + 1e-6

    def test_without_plans(self) -> None:
        rules = WeightedRules(CFG.from_string("S -> a b"), {"a": -math.inf})
        with pytest.raises(ValueError, match="none of 1,000 draws"):
            without_list(rules).estimate_sample(random.Random(0), 1)
