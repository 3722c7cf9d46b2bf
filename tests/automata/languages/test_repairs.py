"""The cheapest repairs, against the distances to all short words."""

from hypothesis import assume, given

from formal_llm import CFG, PDA
from formal_llm.automata.languages.edits import UNIT_WEIGHTS as UNIT
from formal_llm.automata.languages.repairs import RepairGraph, WorkPoints
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.models.pda import LOOP
from tests.automata.languages.editing import distance, weights, words
from tests.oracles import all_words, language
from tests.strategies import automata, direct_automata, examples, grammars

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
