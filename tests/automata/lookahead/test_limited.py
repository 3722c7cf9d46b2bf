import pytest
from hypothesis import given

from formal_llm import CFG, PDA, Behaviour, Flowchart, Limits, Lookahead, SumLimit, Symbol, Transition
from formal_llm.automata.languages.emptiness import why_empty
from formal_llm.automata.lookahead.limited import (
    LimitedAutomaton,
    add_counters,
    as_automaton,
)
from formal_llm.errors import AutomatonError
from tests.oracles import all_words, keeps, language
from tests.strategies import choices, examples, limited_automata, limited_grammars, walk

ABC = CFG.from_string("S -> a S | b S | c S | ε")


def counted(source, limits=None):
    return add_counters(as_automaton(source, limits))


class TestAccepts:
    @given(limited_grammars())
    @examples(80)
    def test_words_of_the_grammar_that_keep_all_limits(self, cfg):
        automaton = counted(cfg)
        words = language(cfg, 4)
        for word in all_words(list(cfg.terminals)[:3], 4):
            fits = keeps(word, cfg.limits, list(cfg.terminals), cfg.symbols)
            assert automaton.accepts(word) == (word in words and fits)

    @given(limited_automata(), choices)
    @examples(120)
    def test_a_run_keeps_upper_bounds_all_the_time_and_lower_bounds_at_the_end(self, source, picks):
        pda, bounds = source
        automaton = counted(pda, bounds)
        now, word = walk(automaton, picks)
        letters = list(pda.terminals)
        upper = Limits(bounds.at_most, {}, bounds.default, tuple(SumLimit(s.quantity, s.at_most) for s in bounds.sums))
        assert keeps(word, upper, letters, pda.symbols)
        inner = getattr(now, "inner", now)
        assert automaton.accepting(now) == (
            inner.state in pda.accepting_states and keeps(word, bounds, letters, pda.symbols)
        )
        open_moves = set(automaton.moves(now))
        for move in pda.moves(inner):
            longer = word if move.read is None else (*word, move.read)
            assert (move in open_moves) == keeps(longer, upper, letters, pda.symbols)

    def test_an_automaton_keeps_its_limits_and_a_grammar_is_asked_what_it_derives(self):
        cfg = CFG.from_string("%limit 1 a\n%require 1 b\nS -> a S | b S | ε")
        assert all(map(cfg.accepts, ("", "a", "aab")))
        pda = as_automaton(cfg)
        assert [word for word in ("", "a", "b", "ab", "aab") if pda.accepts(word)] == ["b", "ab"]
        assert all(map(pda.without_limits.accepts, ("", "a", "aab")))
        by_hand = PDA([("p", "a", None, "p")], start="p", accepting="p", limits=Limits({"a": 1}))
        assert (by_hand.accepts("a"), by_hand.accepts("aa")) == (True, False)

    def test_so_does_a_product(self):
        cfg = CFG.from_string("%limit 1 a\nS -> a S | b S | ε")
        no_b_first = PDA(
            [("x", "a", None, "y"), ("y", "a", None, "y"), ("y", "b", None, "y")], start="x", accepting="y"
        )
        both = cfg & no_b_first
        assert isinstance(both, PDA)
        assert both.limits == cfg.limits
        assert [word for word in ("a", "b", "ab", "aa", "aba") if both.accepts(word)] == ["a", "ab"]
        # A terminal that only the other side knows is a terminal still: requiring it leaves no word.
        knows_c = PDA(
            [("x", name, None, "x") for name in "abc"], start="x", accepting="x", limits=Limits(at_least={"c": 1})
        )
        assert list((cfg & knows_c).terminals) == ["a", "b", "c"]
        assert Lookahead(cfg & knows_c).completable().value == "no"
        assert why_empty(cfg & knows_c).limits == ("%require 1 c",)

    def test_a_weight_above_the_bound_is_never_paid(self):
        cfg = CFG.from_string("%limit cost <= 3\nS -> a S | b\na cost=1000000\nb cost=2")
        automaton = counted(cfg)
        assert automaton.accepts("b")
        assert not automaton.accepts("ab")
        assert not automaton.counters.can_afford("a", automaton.counters.remaining)


class TestComposition:
    def test_limits_are_carried_by_the_automaton(self):
        pda = PDA.from_cfg(ABC)
        one, two = Limits({"a": 2}), Limits({"a": 1}, {"b": 1})
        twice = as_automaton(as_automaton(pda, one), two)
        assert isinstance(twice, PDA)
        assert twice.limits == one & two
        assert twice.without_limits is pda
        around = add_counters(twice)
        assert isinstance(around, LimitedAutomaton)
        assert around.automaton is pda
        # What runs is a source as well, and is never wrapped twice.
        assert as_automaton(around) is twice
        assert as_automaton(around, Limits({"c": 0})).limits == one & two & Limits({"c": 0})

    @pytest.mark.parametrize("rules", ["S -> paint", "%limit 1\nS -> paint"])
    def test_unknown_terminals_are_refused_with_the_nearest(self, rules):
        for limits in (Limits({"piant": 1}), Limits(at_least={"piant": 1})):
            with pytest.raises(AutomatonError, match=r"unknown terminal in a limit: piant \(did you mean paint\?\)"):
                as_automaton(CFG.from_string(rules), limits)

    def test_an_automaton_of_ones_own_tells_its_alphabet(self):
        class AsOften:
            """Any word of a."""

            def start(self):
                return 0

            def moves(self, configuration):
                return [Transition(0, "a", None, 0)]

            def step(self, configuration, move):
                return 0

            def accepting(self, configuration):
                return True

        class Told(AsOften):
            terminals = ("a", "b")

        once = as_automaton(Told(), Limits(at_most={"a": 2}))
        twice = as_automaton(once, Limits(at_least={"a": 1}))
        assert list(once.terminals) == list(twice.terminals) == ["a", "b"]
        assert [bound.line for bound in twice.counters.bounds] == ["%limit 2 a", "%require 1 a"]
        assert Lookahead(once, Limits(at_least={"a": 2})).shortest_word() == ("a", "a")
        assert why_empty(as_automaton(once, Limits(at_least={"a": 3}))).limits == ("%limit 2 a", "%require 3 a")
        assert as_automaton(AsOften()).start() == 0
        assert once.at_class(once.start()) is False and once.selection(once.start()) is None
        with pytest.raises(AutomatonError, match="does not tell its own"):
            as_automaton(AsOften(), Limits({"a": 1}))

    def test_tells_what_the_automaton_inside_tells(self):
        cfg = CFG([("S", ("T", "some(a, b)")), ("T", ("a",))], symbols={"a": Symbol("the a")}, limits=Limits(default=1))
        automaton = counted(cfg)
        assert automaton.label("a") == "the a"
        assert automaton.source.cfg is cfg
        assert list(automaton.terminals) == ["a", "b"]
        now, _ = walk(automaton, [0, 0])
        assert automaton.at_class(now)
        now, _ = walk(automaton, [0, 0, 0, 0])
        assert automaton.selection(now) == ("a", "b")

    def test_rules_of_each_kind_are_automata_and_a_text_is_none(self):
        chart = Flowchart.from_string("flowchart TD\n  a([Start]) --> b[Go] --> c([End])")
        behaviour = Behaviour.load("react")
        assert isinstance(as_automaton(chart), PDA)
        assert isinstance(as_automaton(behaviour), PDA)
        with pytest.raises(TypeError, match=r"not 'S -> a'; CFG\.from_string reads the text of one"):
            as_automaton("S -> a")
        with pytest.raises(TypeError, match=r"not 3$"):
            as_automaton(3)
