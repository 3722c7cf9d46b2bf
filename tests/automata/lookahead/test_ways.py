from hypothesis import given

from formal_llm import CFG, PDA, Limits
from formal_llm.automata.lookahead.counters import Counters
from formal_llm.automata.lookahead.flow import FlowGrammar
from formal_llm.automata.lookahead.ways import find_leaves, find_ways, least_taken
from formal_llm.automata.models.pda import LOOP
from tests.oracles import language
from tests.strategies import examples, grammars


def known(cfg, limits=None):
    """The flow grammar of a grammar under limits, and the symbol of its start symbol."""
    pda = PDA.from_cfg(cfg).with_limits(limits or Limits(default=1))
    grammar = FlowGrammar(pda, Counters(pda.bounds))
    return grammar, grammar.get_symbol(LOOP, cfg.start, LOOP)


class TestWays:
    def test_leaves_are_merged_into_those_who_lead_to_them(self):
        grammar, start = known(CFG.from_string("S -> A b S | c\nA -> a"))
        leaves = find_leaves(grammar)
        assert set(leaves.values()) == {"a", "b", "c"}
        ways = find_ways(grammar, leaves)[start.index]
        # S -> A b S: the move itself, A -> a and its match are two symbols of which only a and b are left to read.
        assert [(sorted(reads), children) for reads, children, _ in ways] == [(["b"], ways[0][1]), (["c"], ())]
        assert start.index in ways[0][1]

    def test_links_and_what_one_way_leads_to_are_merged_as_well(self):
        # Line is a link, and Day is used once. End is neither: two ways lead to it.
        grammar, start = known(CFG.from_string("S -> Day Line | c Line\nDay -> a | b\nLine -> End\nEnd -> S | d"))
        ways = find_ways(grammar, find_leaves(grammar))[start.index]
        assert sorted(reads for reads, _, _ in ways) == [("a",), ("b",), ("c",)]
        (end,) = {child for _, children, _ in ways for child in children}
        assert grammar.symbols[end].key[1] == "End"
        assert sorted(steps for _, _, steps in ways) == [3, 4, 4]

    @given(grammars())
    @examples(60)
    def test_each_takes_at_least_what_every_word_uses(self, cfg):
        grammar, start = known(cfg)
        places = {name: number for number, name in enumerate(cfg.terminals)}

        def takes(reads):
            return {places[name]: reads.count(name) for name in reads}

        ways = find_ways(grammar, find_leaves(grammar))
        least = least_taken(grammar.symbols, ways, takes)
        words = language(cfg, 4)
        for name, place in places.items():
            for word in words:
                assert least[start.index].get(place, 0) <= word.count(name)
        # A fixpoint: no way takes less than its symbol is said to.
        for index, group in ways.items():
            for reads, children, _ in group:
                total = takes(reads)
                for child in children:
                    for place, amount in least[child].items():
                        total[place] = total.get(place, 0) + amount
                assert all(least[index][place] <= total.get(place, 0) for place in least[index])

    def test_what_every_word_uses_is_found(self):
        cfg = CFG.from_string("S -> a T T | a a T c\nT -> b T | b")
        grammar, start = known(cfg)
        places = {"a": 0, "b": 1, "c": 2}
        least = least_taken(
            grammar.symbols,
            find_ways(grammar, find_leaves(grammar)),
            lambda reads: {places[name]: reads.count(name) for name in reads},
        )
        assert least[start.index] == {0: 1, 1: 1}
