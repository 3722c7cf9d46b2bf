from hypothesis import assume, given

from formal_llm import CFG, Limits, Lookahead
from formal_llm.automata.languages.ambiguity import derivations
from formal_llm.automata.languages.lengths import is_finite
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.cycles import find_cycles, fixed_counts
from formal_llm.automata.lookahead.ways import find_ways
from formal_llm.automata.models.pda import LOOP
from tests.strategies import examples, grammars


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
