from hypothesis import given

from formal_llm import CFG
from formal_llm.automata.languages.lengths import is_finite, longest_length, shortest_length
from tests.oracles import language, rules
from tests.strategies import examples, grammars


def pyformlang_is_finite(cfg):
    from pyformlang.cfg import CFG as Other
    from pyformlang.cfg import Epsilon, Production, Terminal, Variable

    table = rules(cfg)
    made = {
        Production(Variable(head), [Variable(n) if n in table else Terminal(n) for n in body] or [Epsilon()])
        for head, bodies in table.items()
        for body in bodies
    }
    return Other(start_symbol=Variable(cfg.start), productions=made).is_finite()


class TestLengths:
    @given(grammars())
    @examples(120)
    def test_finite_as_pyformlang_says_and_lengths_as_written_out(self, cfg):
        assert is_finite(cfg) == pyformlang_is_finite(cfg)
        lengths = {len(word) for word in language(cfg, 5)}
        if lengths:
            assert shortest_length(cfg) == min(lengths)
        else:
            assert shortest_length(cfg) is None or shortest_length(cfg) > 5
        if not is_finite(cfg) or shortest_length(cfg) is None:
            assert longest_length(cfg) is None
        elif longest_length(cfg) <= 5:
            assert longest_length(cfg) == max(lengths)

    def test_long_chains(self):
        rules = [(f"N{n}", (f"N{n + 1}", f"N{n + 1}")) for n in range(3_000)]
        cfg = CFG([*rules, ("N3000", ("a",)), ("N3000", ("a", "a"))])
        assert shortest_length(cfg) == 2**3000
        assert longest_length(cfg) == 2**3001

    def test_cycles_without_growth_are_finite(self):
        cfg = CFG.from_string("S -> A | E S | a a\nA -> S | a\nE -> ε")
        assert is_finite(cfg)
        assert longest_length(cfg) == 2
