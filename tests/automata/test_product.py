import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, AutomatonError, Limits, Lookahead, Symbol
from formal_llm.automata.models.product import constrained, product
from tests.oracles import INF, Reference, all_words, language
from tests.strategies import automata, examples, grammars

#: a after b is forbidden; c is not read at all.
NO_A_AFTER_B = PDA([("x", "a", None, "x"), ("x", "b", None, "y"), ("y", "b", None, "y")], start="x", accepting="xy")


class TestProduct:
    @given(automata(letters=("a", "b")), automata(finite=True, letters=("a", "b")))
    @examples(100)
    def test_accepts_what_both_accept(self, pda, finite):
        both = product(pda, finite)
        for word in all_words("ab", 4):
            assert both.accepts(word) == (pda.accepts(word) and finite.accepts(word))

    @given(automata(letters=("a", "b")), automata(finite=True, letters=("a", "b")))
    @examples(40)
    def test_either_order(self, pda, finite):
        one, other = product(pda, finite), product(finite, pda)
        for word in all_words("ab", 3):
            assert one.accepts(word) == other.accepts(word)

    @given(grammars(), automata(finite=True))
    @examples(80)
    def test_grammars_under_a_constraint(self, cfg, finite):
        both = product(PDA.from_cfg(cfg), finite)
        words = language(cfg, 3)
        for word in all_words("abc", 3):
            assert both.accepts(word) == (word in words and finite.accepts(word))

    @given(grammars(), automata(finite=True), st.integers(0, 1))
    @examples(60)
    def test_lookahead_works_on_products(self, cfg, finite, needed):
        both = product(PDA.from_cfg(cfg), finite)
        bounds = Limits(default=2, at_least=dict.fromkeys(list(cfg.terminals)[:needed], 1))
        slow = Reference(both, bounds, cfg.terminals)
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
        only_a = PDA([("p", "a", None, "q")], start="p", accepting="q")
        both = product(only_a, PDA([("x", "b", None, "y")], start="x", accepting="y"))
        assert not any(both.accepts(word) for word in all_words("ab", 3))
        lookahead = Lookahead(both)
        assert lookahead.completable().value == "no"
        assert lookahead.shortest_word() is None
        assert lookahead.count() == 0

    def test_the_alphabet_is_that_of_the_base(self):
        # c is forbidden by the constraint; a limit may still name it, and one that needs it leaves no word.
        pda = PDA.from_cfg(CFG.from_string("S -> a S | b S | c S | ε"))
        both = product(pda, NO_A_AFTER_B)
        assert tuple(both.terminals) == ("a", "b", "c")
        assert Lookahead(both, Limits(at_least={"c": 1})).completable().value == "no"
        assert Lookahead(both, Limits(at_most={"c": 1})).shortest() == 0
        with pytest.raises(AutomatonError, match="unknown terminal in a limit: d"):
            Lookahead(both, Limits(at_least={"d": 1}))

    def test_remembers_what_it_was_made_of(self):
        pda = PDA.from_cfg(CFG([("S", ("a",))]))
        one, other = (PDA([("x", "a", None, "x")], start="x", accepting="x", name=name) for name in ("one", "other"))
        assert pda.factors == ()
        assert product(pda, one).factors == (pda, one)
        # In the order in which they were given, whichever has the stack.
        assert product(one, pda).factors == (one, pda)
        assert product(product(pda, one), other).factors == (pda, one, other)
        # A constraint that is a product is one constraint.
        both = product(one, other)
        assert product(pda, both).factors == (pda, both)
        assert (one.name, pda.name, both.name) == ("one", "", "")


class TestConstrained:
    def test_all_constraints_hold(self):
        even = PDA([(n, x, None, 1 - n if x == "a" else n) for n in (0, 1) for x in "ab"], start=0, accepting=[0])
        pda = PDA.from_cfg(CFG.from_string("S -> a S | b S | ε"))
        both = constrained(pda, [NO_A_AFTER_B, even])
        for word in all_words("ab", 4):
            text = "".join(word)
            assert both.accepts(word) == ("ba" not in text and text.count("a") % 2 == 0)
        assert both.factors == (pda, NO_A_AFTER_B, even)
        assert constrained(pda, []) is pda
