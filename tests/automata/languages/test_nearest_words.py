"""The nearest words and the edits to them."""

import pytest
from hypothesis import assume, given

from formal_llm import CFG, PDA, Limits, Lookahead, SumLimit
from formal_llm.automata.languages.edits import UNIT_WEIGHTS, Edit, EditWeights, apply_edits, find_edits, weigh_edits
from formal_llm.automata.languages.edits import UNIT_WEIGHTS as UNIT
from formal_llm.automata.languages.nearest_words import DualPrices, Nearest, nearest
from formal_llm.automata.languages.repairs import RepairGraph, WorkPoints
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.models.pda import LOOP
from formal_llm.errors import AutomatonError
from tests.automata.languages.editing import distance, weights, words
from tests.automata.lookahead.judging import Plain
from tests.oracles import all_words, keeps, language
from tests.strategies import (
    automata,
    direct_automata,
    examples,
    grammars,
    limited_automata,
    limited_grammars,
    tool_grammars,
)


class TestEdits:
    @given(words, words, weights)
    def test_they_turn_one_word_into_the_other_for_the_least(self, word, other, weights):
        made = find_edits(word, other, weights)
        assert apply_edits(made, word) == other
        assert weigh_edits(made, weights) == distance(word, other, weights)
        assert [edit.position for edit in made] == sorted(edit.position for edit in made)

    def test_what_they_say(self):
        made = find_edits(("a", "b", "c"), ("b", "x", "d"))
        assert weigh_edits(made) == 3
        assert str(Edit("insert", 2, new="x")) == "insert x at place 3"
        assert str(Edit("delete", 2, "x")) == "delete x at place 3"
        assert str(Edit("substitute", 2, "x", "y")) == "replace x at place 3 by y"

    @pytest.mark.parametrize("weight", [-1, float("inf"), float("nan")])
    def test_weights_are_numbers_from_zero(self, weight):
        with pytest.raises(ValueError, match="the weight of delete"):
            EditWeights(delete=weight)


UP_TO = 5


@given(grammars(), words, weights)
@examples(80)
def test_of_grammars(cfg, word, weights):
    found = RepairGraph(PDA.from_cfg(cfg), word, weights).cheapest_word()
    within = language(cfg, UP_TO)
    if found is None:
        assert not within
        return
    assert cfg.accepts(found)
    least = min((distance(word, other, weights) for other in within), default=INFINITE)
    assume(len(found) <= UP_TO or within)
    assert distance(word, found, weights) <= least
    if len(found) <= UP_TO:
        assert distance(word, found, weights) == least


@given(automata() | direct_automata(), words, weights)
@examples(60)
def test_the_cost_of_the_goal_is_the_distance(pda, word, weights):
    repairs = RepairGraph(pda, word, weights)
    found = repairs.cheapest_word()
    if found is None:
        assert not [other for other in all_words(pda.terminals, 3) if pda.accepts(other)]
        return
    assert pda.accepts(found)
    assert repairs.costs[repairs.goal] == distance(word, found, weights)


def test_what_is_explored_is_what_costs_no_more_than_the_bound():
    repairs = RepairGraph(PDA.from_cfg(CFG.from_string("S -> a S b | c")), ("a", "a", "a", "b"), UNIT, keep=True)
    assert repairs.explore_up_to(1, 10_000)
    assert not repairs.done[repairs.goal]  # a a a b needs two edits to be a word
    assert repairs.next_priority > 1
    assert repairs.explore_up_to(2, 10_000)
    assert repairs.done[repairs.goal]
    assert not RepairGraph(PDA.from_cfg(CFG.from_string("S -> a S b | c")), ("a",) * 9, UNIT).explore_up_to(99, 5)


def points(text="S -> a S B | c\nB -> b | d"):
    return WorkPoints(PDA.from_cfg(CFG.from_string(text)))


def test_what_only_reads_one_terminal_is_a_leaf():
    made = points()
    assert made.get_shape(LOOP, "a").leaves == {LOOP: ("a",)}
    assert made.get_shape(LOOP, "B").leaves == {LOOP: ("b", "d")}
    assert made.get_shape(LOOP, "S").leaves is None


def test_points_are_made_once():
    made = points()
    shape = made.get_shape(LOOP, "S")
    (_, first), (_, other) = made.list_moves(shape)
    assert (first.rest, other.rest) == (("a", "S", "B"), ("c",))
    second = made.point_after_symbol(first, LOOP)
    assert second.rest == ("S", "B")
    assert second.inner is shape
    assert made.point_after_symbol(first, LOOP) is second
    assert made.point_after_symbol(made.point_after_symbol(second, LOOP), LOOP).inner is None


def test_where_a_symbol_is_deleted():
    made = points("P -> S S | Q\nS -> a S | c | ε\nQ -> E\nE -> ε")
    assert made.may_delete(made.get_shape(LOOP, "S"))  # it reads
    assert not made.may_delete(made.get_shape(LOOP, "E"))  # it reads nothing at all
    assert made.may_delete(made.get_shape(LOOP, "Q"))  # what it begins with does not
    assert not made.may_delete(made.get_shape(LOOP, "P"))  # S and Q do


def check(lookahead, word, weights, short_words):
    """``short_words``: all words of the language within the limits, up to the length ``UP_TO``."""
    found = nearest(lookahead, word, weights)
    assume(found.decided)
    best = min((distance(word, other, weights) for other in short_words), default=float("inf"))
    assert found.distance <= best
    if found.word is None:
        assert found == Nearest(None)
        return
    assert lookahead.automaton.accepts(found.word)
    assert apply_edits(found.edits, word) == found.word
    assert weigh_edits(found.edits, weights) == found.distance
    if len(found.word) <= UP_TO:
        assert found.distance == best


class TestNearest:
    @given(limited_grammars() | tool_grammars(), words, weights)
    @examples(80)
    def test_grammars_under_limits(self, cfg, word, weights):
        within = [w for w in language(cfg, UP_TO) if keeps(w, cfg.limits, cfg.terminals, cfg.symbols)]
        check(Lookahead(cfg), word, weights, within)

    @given(limited_grammars(), words, weights)
    @examples(80)
    def test_grammars_without_limits(self, cfg, word, weights):
        check(Lookahead(PDA.from_cfg(cfg)), word, weights, language(cfg, UP_TO))

    @given(limited_automata(), words, weights)
    @examples(80)
    def test_automata(self, source, word, weights):
        pda, bounds = source
        within = [
            w
            for w in all_words(pda.terminals, UP_TO)
            if keeps(w, bounds, pda.terminals, pda.symbols) and pda.accepts(w)
        ]
        check(Lookahead(*source), word, weights, within)

    def test_limits_on_sums_and_lower_bounds(self):
        cfg = CFG.from_string("S -> a S | b S | c\na cost=2\nb cost=3\n")
        found = nearest(Lookahead(cfg, Limits(sums=(SumLimit("cost", 7, 7),))), ("a", "a", "a", "c"))
        assert (sorted(found.word), found.distance) == (["a", "a", "b", "c"], 1)
        found = nearest(Lookahead(cfg, Limits(at_least={"b": 2})), ("a", "a", "c"), EditWeights(substitute=5))
        assert (sorted(found.word), found.distance) == (["a", "a", "b", "b", "c"], 2)

    def test_left_recursion_empty_productions_and_unit_cycles(self):
        cfg = CFG.from_string("S -> S N | S | a\nN -> b | ε | N N\n%limit 2 b")
        assert nearest(Lookahead(cfg), ("c", "b", "b", "b")).distance == 2
        assert nearest(Lookahead(cfg), ()).word == ("a",)

    def test_no_word_at_all(self):
        assert nearest(Lookahead(CFG.from_string("S -> a b").with_limits(Limits({"a": 0}))), ("a",)) == Nearest(None)
        assert nearest(Lookahead(CFG([("S", ("S",))])), ("a",)) == Nearest(None)

    def test_symbols_that_the_automaton_does_not_know(self):
        found = nearest(Lookahead(CFG.from_string("S -> a S b | c")), ("x", "a", "y", "z", "b"))
        assert found.distance == 3
        assert not {"x", "y", "z"} & set(found.word)

    def test_long_words(self):
        cfg = CFG.from_string("S -> a S b | c")
        word = ("a",) * 150 + ("c",) + ("b",) * 147
        assert nearest(Lookahead(cfg), word).distance == 3

    def test_the_budget_ends_it_honestly(self):
        names = [f"t{number}" for number in range(12)]
        cfg = CFG([("S", (name, "S")) for name in names] + [("S", ())], limits=Limits(default=1))
        word = ("t0",) * 6 + ("t1",) * 6
        assert nearest(Lookahead(cfg), word, EditWeights(delete=3), max_states=5) == Nearest(None, decided=False)

    def test_only_for_pushdown_automata(self):
        with pytest.raises(AutomatonError, match="pushdown"):
            nearest(Lookahead(Plain()), ())


TOOLS = CFG.from_string("%limit 1\nS -> T | T S\nT -> a | b | c | d | e | f")


def climbed(cfg, word, prices):
    """The prices for a word's limits, its repairs, and what they say that a repair costs at least."""
    repairs = RepairGraph(PDA.from_cfg(cfg), word, prices, keep=True)
    repairs.explore_up_to(INFINITE, 20_000)
    duals = DualPrices(Counters(Lookahead(cfg).bounds), word, prices)
    return duals, repairs, duals.improve_prices(repairs)


@given(limited_grammars() | tool_grammars(), words, weights)
@examples(40)
def test_no_word_within_the_limits_is_nearer(cfg, word, prices):
    within = [w for w in language(cfg, 4) if keeps(w, cfg.limits, cfg.terminals, cfg.symbols)]
    if within:
        assert climbed(cfg, word, prices)[2] <= min(distance(word, other, prices) for other in within)


def test_what_is_used_too_often_is_paid_for():
    duals, repairs, least = climbed(TOOLS, tuple("aabbbcddda"), UNIT_WEIGHTS)
    assert least == 6  # of ten symbols four are different
    assert duals.lower_bound(repairs.goal, 0, 10) <= 10  # it never says more than what a repair costs


def test_a_nearest_word_is_found_where_limits_leave_many_choices():
    cfg = CFG.from_string("%limit 1\nS -> T | T S\nT -> " + " | ".join(f"t{n}" for n in range(20)))
    word = tuple(f"t{n * n % 17}" for n in range(30))
    found = nearest(Lookahead(cfg), word, max_states=5_000)
    assert found.decided
    assert found.distance == 30 - len(set(word))
