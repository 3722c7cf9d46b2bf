import pytest
from hypothesis import assume, given
from oracles import INF, Reference, all_words, language
from strategies import automata, examples, grammars

from formal_llm import CFG, PDA, AutomatonError, Limits, Lookahead, Symbol
from formal_llm.automata.product import constrained, product


def paired(pda, finite):
    """Their product, or None where they say that they have no run in common."""
    try:
        return product(pda, finite)
    except AutomatonError as error:
        assert "no word in common" in str(error)
        return None


#: a after b is forbidden; c is not read at all.
NO_A_AFTER_B = PDA([("x", "a", None, "x"), ("x", "b", None, "y"), ("y", "b", None, "y")], start="x", accepting="xy")


class TestProduct:
    @given(automata(letters=("a", "b")), automata(finite=True, letters=("a", "b")))
    @examples(100)
    def test_accepts_what_both_accept(self, pda, finite):
        both = paired(pda, finite)
        for word in all_words("ab", 4):
            expected = pda.accepts(word) and finite.accepts(word)
            assert (both is not None and both.accepts(word)) == expected

    @given(automata(letters=("a", "b")), automata(finite=True, letters=("a", "b")))
    @examples(40)
    def test_either_order(self, pda, finite):
        one, other = paired(pda, finite), paired(finite, pda)
        assert (one is None) == (other is None)
        for word in all_words("ab", 3) if one else ():
            assert one.accepts(word) == other.accepts(word)

    @given(grammars(), automata(finite=True))
    @examples(80)
    def test_grammars_under_a_constraint(self, cfg, finite):
        both = paired(PDA.from_cfg(cfg), finite)
        assume(both is not None)
        words = language(cfg, 3)
        for word in all_words("abc", 3):
            assert both.accepts(word) == (word in words and finite.accepts(word))

    @given(grammars(), automata(finite=True))
    @examples(60)
    def test_lookahead_works_on_products(self, cfg, finite):
        both = paired(PDA.from_cfg(cfg), finite)
        assume(both is not None)
        bounds = Limits(default=2)
        slow = Reference(both, bounds)
        length = slow.length(both.start_state, both.start_stack)
        lookahead = Lookahead(both, bounds)
        assert lookahead.shortest() == (None if length == INF else length)
        word = lookahead.shortest_word()
        if word is not None:
            assert cfg.accepts(word)
            assert finite.accepts(word)

    def test_a_constraint_by_hand(self):
        both = product(PDA.from_cfg(CFG.from_string("S -> a S b | b S a | c | ε")), NO_A_AFTER_B)
        accepted = [word for word in all_words("abc", 4) if both.accepts(word)]
        assert accepted == [(), ("a", "b"), ("a", "a", "b", "b")]

    def test_keeps_labels_classes_texts_and_grammar(self):
        cfg = CFG.from_string('S -> T S "go on" | ε\nT -> a | b\na "the a"')
        both = product(PDA.from_cfg(cfg), NO_A_AFTER_B)
        assert both.label("a") == "the a"
        assert both.classes == {"T"}
        assert both.cfg is cfg
        assert {t.text for t in both.transitions} >= {"go on"}
        assert {t.production for t in both.transitions} >= set(cfg.productions)

    def test_labels_of_the_grammar_win(self):
        finite = PDA([("x", "a", None, "x")], start="x", accepting="x", symbols={"a": Symbol("other")})
        labelled = CFG([("S", ("a",))], symbols={"a": Symbol("mine")})
        assert product(PDA.from_cfg(labelled), finite).label("a") == "mine"

    def test_only_reachable_pairs_are_made(self):
        both = product(PDA.from_cfg(CFG([("S", ("a",))])), NO_A_AFTER_B)
        assert set(both.states) == {("start", "x"), ("loop", "x"), ("accept", "x")}

    def test_both_with_a_stack(self):
        pda = PDA.from_cfg(CFG([("S", ("a",))]))
        with pytest.raises(AutomatonError, match="both automata use their stack"):
            product(pda, pda)

    def test_nothing_in_common(self):
        only_b = PDA([("x", "b", None, "y")], start="x", accepting="y")
        with pytest.raises(AutomatonError, match="no word in common"):
            product(PDA([("p", "a", None, "q")], start="p", accepting="q"), only_b)


class TestConstrained:
    def test_all_constraints_hold(self):
        even = PDA([(n, x, None, 1 - n if x == "a" else n) for n in (0, 1) for x in "ab"], start=0, accepting=[0])
        pda = PDA.from_cfg(CFG.from_string("S -> a S | b S | ε"))
        both = constrained(pda, [NO_A_AFTER_B, even])
        for word in all_words("ab", 4):
            text = "".join(word)
            assert both.accepts(word) == ("ba" not in text and text.count("a") % 2 == 0)
        assert constrained(pda, []) is pda
