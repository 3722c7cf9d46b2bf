"""Products of automata: the words that both sides allow."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Formula, Limits, Lookahead, Planner, SumLimit, constraint, verify
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.automata.models.dfa import finite_pda, minimal_dfa
from formal_llm.automata.models.formula import And, and_
from formal_llm.automata.models.product import product, split_conjunction
from formal_llm.errors import AutomatonError, NoValidPlan
from tests.automata.formula_matching import matches
from tests.automata.formulas import made, trees
from tests.oracles import all_words, language
from tests.strategies import automata, examples, grammars, limited_grammars

#: a after b is forbidden; c is not read at all.
NO_A_AFTER_B = PDA([("x", "a", None, "x"), ("x", "b", None, "y"), ("y", "b", None, "y")], start="x", accepting="xy")


class TestProduct:
    @given(automata(letters=("a", "b")), automata(finite=True, letters=("a", "b")))
    @examples(100)
    def test_accepts_what_both_accept(self, pda, finite):
        both = product(pda, finite)
        for word in all_words("ab", 4):
            assert both.accepts(word) == (pda.accepts(word) and finite.accepts(word))

    def test_keeps_labels_classes_texts_and_grammar(self):
        cfg = CFG.from_string('S -> T S "go on" | ε\nT -> a | b\na "the a"')
        both = product(PDA.from_cfg(cfg), NO_A_AFTER_B)
        assert both.label("a") == "the a"
        assert both.classes == {"T"}
        assert both.cfg is cfg
        assert {t.text for t in both.transitions} >= {"go on"}
        assert {t.production for t in both.transitions} >= set(cfg.productions)

    def test_both_with_a_stack(self):
        pda = PDA.from_cfg(CFG([("S", ("a",))]))
        for make in (lambda: product(pda, pda), lambda: pda.cfg & pda, lambda: pda & pda.cfg):
            with pytest.raises(AutomatonError, match="both automata use their stack"):
                make()
        with pytest.raises(AutomatonError, match="both are grammars"):
            pda.cfg & pda.cfg

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


RULES = """
    %limit 2
    %limit * c
    S -> a S | b S | c
"""


class TestIntersection:
    @given(grammars(), trees("abc"))
    @examples(80)
    def test_words_of_the_grammar_that_satisfy_the_formula(self, cfg, tree):
        formula = made(tree)
        both = cfg & finite_pda(minimal_dfa(formula, cfg.terminals))
        assert isinstance(both, PDA)
        words = {word for word in language(cfg, 4) if formula_over(formula, word, cfg)}
        assert {word for word in all_words(cfg.terminals, 4) if both.accepts(word)} == words

    @given(limited_grammars(), trees("abc"), trees("abc"))
    @examples(40)
    def test_order_and_brackets_make_no_difference(self, cfg, one, other):
        first, second = (finite_pda(minimal_dfa(made(tree), cfg.terminals)) for tree in (one, other))
        products = [cfg & first & second, cfg & (first & second), first & cfg & second, (second & first) & cfg]
        words = [{w for w in all_words(cfg.terminals, 3) if both.accepts(w)} for both in products]
        assert words[1:] == words[:-1]
        assert [len(both.factors) for both in products] == [3, 3, 3, 3]
        assert all(both.factors[0] == PDA.from_cfg(cfg) for both in products[:2])
        assert [both.limits for both in products] == [cfg.limits] * 4

    def test_limits_stay_on_top(self):
        cfg = CFG.from_string(RULES)
        both = cfg & constraint("(not (eventually (next a b)))", cfg)
        assert both.limits == cfg.limits
        assert both.accepts("bac") and not both.accepts("abc") and not both.accepts("aaac")
        assert Lookahead(both).count() == sum(map(both.accepts, all_words("abc", 5)))
        assert verify(tuple("bbac"), both).valid
        assert verify(tuple("abc"), both).nearest is not None
        assert "after a" in both.to_mermaid()
        plan = Planner(both, "test:random=5").plan("x")
        assert both.accepts(plan.word)

    def test_no_plan_names_both_sides(self):
        cfg = CFG.from_string("%require 1 a\nS -> a S | b")
        with pytest.raises(NoValidPlan) as caught:
            Planner(cfg & constraint("(always b)", cfg)).plan("x")
        assert caught.value.constraints == ("(always b)",)
        assert caught.value.limits == ("%require 1 a",)

    def test_limits_of_a_terminal_that_the_other_side_lacks(self):
        cfg = CFG.from_string("%require 1 a\nS -> a S | b")
        both = constraint("(next b)", ["b"]) & cfg
        assert Lookahead(both).completable().value == "no"
        only = constraint("(always any)", ["b", "a"]).with_limits(Limits(at_least={"a": 2}))
        assert Lookahead(constraint("b", ["b"]) & only).completable().value == "no"
        assert Lookahead(only & constraint("(always any)", ["a"])).shortest_word() == ("a", "a")

    def test_numbers_of_both_sides_count(self):
        cheap = CFG.from_string("%limit cost <= 5\nS -> a S | ε\na cost=2")
        quick = CFG.from_string("S -> a S | ε\na minutes=3")
        side = PDA([("s", "a", None, "s")], start="s", accepting="s", symbols=quick.symbols)
        both = cheap & side.with_limits(Limits(sums=(SumLimit("minutes", 3),)))
        assert Lookahead(both).count() == 2
        other = PDA([("s", "a", None, "s")], start="s", accepting="s", symbols=cheap.symbols)
        dear = CFG.from_string("S -> a S | ε\na cost=3")
        with pytest.raises(AutomatonError, match="a has cost=3 and cost=2"):
            dear & other

    def test_what_is_no_automaton(self):
        cfg = CFG.from_string("S -> a")
        for other in (3, "a", None):
            with pytest.raises(TypeError):
                cfg & other


def formula_over(formula: Formula, word, cfg) -> bool:
    """Direct evaluation, for letters that may not all be terminals of the grammar."""
    return set(word) <= set(cfg.terminals) and matches(formula, word)


@given(st.lists(trees("abc"), min_size=1, max_size=3), st.integers(0, 2))
@examples(60)
def test_a_conjunction_that_is_split_allows_the_same(parts, most):
    formulas = [made(part) for part in parts]
    try:
        behaviour = Behaviour("rules", "abc", and_(*formulas), Limits(at_most={"a": most}))
    except AutomatonError:
        return  # no sequence is allowed
    split = split_conjunction(behaviour)
    for word in all_words("abc", 3):
        assert split.accepts(word) == behaviour.accepts(word)
    if isinstance(behaviour.formula, And):
        assert [one.name for one in split.factors[1:]] == [str(part) for part in behaviour.formula.parts]
