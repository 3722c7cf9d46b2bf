"""The cheapest repairs, against the distances to all short words."""

from hypothesis import assume, given

from formal_llm import CFG, PDA
from formal_llm.automata.languages.edits import UNIT_WEIGHTS as UNIT
from formal_llm.automata.languages.repairs import RepairGraph
from formal_llm.automata.lookahead.cheapest import INFINITE
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
