import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, Lookahead
from formal_llm.automata.languages.prefixes import ViablePrefixes
from formal_llm.automata.models.product import product
from formal_llm.errors import AutomatonError
from tests.automata.languages.editing import words
from tests.automata.lookahead.judging import Plain
from tests.oracles import Reference, keeps
from tests.strategies import examples, limited_automata, limited_grammars, tool_grammars


def viable(pda, bounds, prefix):
    """Whether a word within the limits begins with ``prefix``, by the slow reference on both automata side by side."""
    steps = [(at, name, None, at + 1) for at, name in enumerate(prefix)]
    loops = [(len(prefix), name, None, len(prefix)) for name in pda.terminals]
    begins = PDA([*steps, *loops], start=0, accepting=[len(prefix)], check=False)
    # The letters are those of the automaton, so that no limit on what cannot be read after the prefix is lost.
    return not Reference(product(pda, begins), bounds, pda.terminals).empty


def check_prefixes(pda, bounds, word, **options):
    prefixes = ViablePrefixes(Lookahead(pda, bounds), **options)
    length, decided = prefixes.longest_viable(word)
    assert decided
    found = [viable(pda, bounds, word[:end]) for end in range(len(word) + 1)]
    assert found == [end <= length for end in range(len(word) + 1)]
    assert found == [prefixes.is_viable(word[:end]) for end in range(len(word) + 1)]
    if length >= 0:
        start = word[:length]
        allowed, may_stop, decided = prefixes.next_terminals(start)
        assert decided
        assert may_stop == (pda.accepts(start) and keeps(start, bounds, pda.terminals, pda.symbols))
        assert allowed == tuple(name for name in pda.terminals if viable(pda, bounds, (*start, name)))


class TestPrefixes:
    @given(limited_grammars() | tool_grammars(), words, st.sampled_from([0, 3, 1_000]))
    @examples(60)
    def test_grammars(self, cfg, word, most):
        check_prefixes(PDA.from_cfg(cfg), cfg.limits, word, max_configurations=most)

    @given(limited_grammars(), words, st.sampled_from([0, 3, 1_000]))
    @examples(40)
    def test_grammars_without_limits(self, cfg, word, most):
        check_prefixes(PDA.from_cfg(cfg), Limits(), word, max_configurations=most)

    @given(limited_automata(), words, st.sampled_from([0, 3, 1_000]))
    @examples(60)
    def test_automata(self, source, word, most):
        check_prefixes(*source, word, max_configurations=most)

    def test_left_recursion_without_end(self):
        cfg = CFG.from_string("S -> S a | S b | c")
        prefixes = ViablePrefixes(Lookahead(cfg), max_configurations=20)
        assert prefixes.longest_viable(("c", "a", "b", "c", "a")) == (3, True)
        assert prefixes.next_terminals(("c", "a")) == (("a", "b"), True, True)
        limited_too = ViablePrefixes(Lookahead(cfg, Limits(at_most={"a": 1}, at_least={"b": 2})), max_configurations=5)
        assert limited_too.longest_viable(("c", "a", "a")) == (2, True)
        assert limited_too.next_terminals(("c", "a", "b")) == (("b",), False, True)
        assert limited_too.longest_viable(("x",)) == (0, True)

    def test_long_words_with_left_recursion(self):
        prefixes = ViablePrefixes(Lookahead(CFG.from_string("S -> S a | b")), max_configurations=20)
        word = ("b",) + ("a",) * 60 + ("b",) + ("a",) * 20
        assert prefixes.longest_viable(word) == (61, True)

    @given(limited_grammars() | tool_grammars(), words, st.sampled_from([0.0, 0.0003]))
    @examples(40)
    def test_what_is_certain_in_little_time_is_right(self, cfg, word, seconds):
        hasty, exact = ViablePrefixes(Lookahead(cfg), search_time=seconds), ViablePrefixes(Lookahead(cfg))
        assert hasty.is_viable(word) in (None, exact.is_viable(word))
        length, decided = hasty.longest_viable(word)
        assert length == exact.longest_viable(word)[0] if decided else length <= exact.longest_viable(word)[0]
        allowed, may_stop, decided = hasty.next_terminals(word[:1])
        sure = exact.next_terminals(word[:1])
        assert (set(allowed), may_stop) == (set(sure[0]), sure[1]) if decided else set(allowed) <= set(sure[0])

    def test_many_options_are_followed_one_by_one(self):
        names = [f"t{number}" for number in range(400)]
        prefixes = ViablePrefixes(Lookahead(CFG.from_string(f"%limit 1\nS -> T S | T\nT -> {' | '.join(names)}")))
        allowed, may_stop, decided = prefixes.next_terminals(("t3",))
        assert (len(allowed), may_stop, decided) == (399, True, True)
        assert prefixes.fronts.after_word(("t3",)).word is None

    def test_only_for_pushdown_automata(self):
        with pytest.raises(AutomatonError, match="pushdown"):
            ViablePrefixes(Lookahead(Plain()))
