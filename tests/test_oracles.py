"""The slow answers of tests.oracles themselves, against words written out."""

import itertools

from hypothesis import given

from formal_llm import PDA, Limits, SumLimit, Symbol
from tests.oracles import Reference, bounds_of, keeps, language, runs
from tests.strategies import automata, limited_grammars


class TestReference:
    """The reference itself, against words written out."""

    @given(limited_grammars())
    def test_grammars(self, cfg):
        pda = PDA.from_cfg(cfg)
        fitting = [w for w in language(cfg, 4) if keeps(w, cfg.limits, list(cfg.terminals), cfg.symbols)]
        length = Reference(pda, cfg.limits).length(pda.start_state, pda.start_stack)
        if fitting:
            assert length == min(map(len, fitting))
        else:
            assert length > 4

    @given(automata(letters=("a", "b")))
    def test_automata(self, pda):
        words = [w for n in range(4) for w in itertools.product("ab", repeat=n)]
        verdicts = {w: runs(pda, w) for w in words}
        length = Reference(pda, Limits()).length(pda.start_state, pda.start_stack)
        accepted = [len(w) for w, verdict in verdicts.items() if verdict]
        if accepted:
            assert length <= min(accepted)
        if None not in verdicts.values():
            assert length == min(accepted, default=length)
            assert accepted or length > 3

    def test_bounds_are_read_from_limits(self):
        limits = Limits(at_most={"a": None}, at_least={"b": 2}, default=3, sums=(SumLimit("cost", 0.5),))
        symbols = {"a": Symbol(numbers={"cost": 0.25})}
        found = bounds_of(limits, ["a", "b"], symbols)
        assert [(dict(w), least, most) for w, least, most in found] == [
            ({"b": 1}, None, 3),
            ({"b": 1}, 2, None),
            ({"a": 0.25}, None, 0.5),
        ]
