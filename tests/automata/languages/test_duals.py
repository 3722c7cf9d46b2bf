from hypothesis import given

from formal_llm import CFG, PDA, Lookahead
from formal_llm.automata.languages.duals import DualPrices
from formal_llm.automata.languages.edits import UNIT_WEIGHTS
from formal_llm.automata.languages.nearest_words import nearest
from formal_llm.automata.languages.repairs import RepairGraph
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.counters import Counters
from tests.automata.languages.editing import distance, weights, words
from tests.oracles import keeps, language
from tests.strategies import examples, limited_grammars, tool_grammars

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
