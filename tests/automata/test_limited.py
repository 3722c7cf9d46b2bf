import pytest
from hypothesis import given

from formal_llm import CFG, PDA, AutomatonError, Limits, Lookahead, SumLimit, Symbol, Transition
from formal_llm.automata import LimitedAutomaton
from formal_llm.automata.languages.why_empty import clash
from formal_llm.automata.models.limited import limited, split
from tests.oracles import all_words, keeps, language
from tests.strategies import automata, choices, examples, limited_automata, limited_grammars, walk

ABC = CFG.from_string("S -> a S | b S | c S | ε")


class TestAccepts:
    @given(limited_grammars())
    @examples(80)
    def test_words_of_the_grammar_that_keep_all_limits(self, cfg):
        automaton = limited(PDA.from_cfg(cfg), cfg.limits)
        words = language(cfg, 4)
        for word in all_words(list(cfg.terminals)[:3], 4):
            fits = keeps(word, cfg.limits, list(cfg.terminals), cfg.symbols)
            assert automaton.accepts(word) == (word in words and fits)

    @given(limited_automata(), choices)
    @examples(120)
    def test_a_run_keeps_upper_bounds_all_the_time_and_lower_bounds_at_the_end(self, source, picks):
        pda, bounds = source
        automaton = limited(pda, bounds)
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

    @given(limited_automata())
    def test_broken_names_the_limits(self, source):
        pda, bounds = source
        automaton = LimitedAutomaton(pda, bounds)
        for word in all_words(list(pda.terminals)[:2], 3):
            broken = list(automaton.broken(word))
            assert (not broken) == keeps(word, bounds, list(pda.terminals), pda.symbols)

    def test_many_bounds_of_different_sizes_do_not_run_into_each_other(self):
        names = [f"t{number}" for number in range(40)]
        most = {name: 2**number % 1000 for number, name in enumerate(names)}
        cfg = CFG([("S", (name, "S")) for name in names] + [("S", ())], limits=Limits(most))
        automaton = limited(PDA.from_cfg(cfg), cfg.limits)
        counters = automaton.counters
        remaining = counters.remaining
        for name in names:
            for _ in range(most[name]):
                assert counters.affords(name, remaining)
                remaining -= counters.need[name]
            assert not counters.affords(name, remaining)
        assert not any(counters.affords(name, remaining) for name in names)

    def test_a_weight_above_the_bound_is_never_paid(self):
        cfg = CFG.from_string("%limit cost <= 3\nS -> a S | b\na cost=1000000\nb cost=2")
        automaton = limited(PDA.from_cfg(cfg), cfg.limits)
        assert automaton.accepts("b")
        assert not automaton.accepts("ab")
        assert not automaton.counters.affords("a", automaton.counters.remaining)


class TestComposition:
    def test_no_limits_no_wrapper(self):
        pda = PDA.from_cfg(ABC)
        assert limited(pda) is pda
        assert limited(pda, Limits()) is pda
        assert split(pda) == (pda, Limits())

    def test_never_wrapped_twice(self):
        pda = PDA.from_cfg(ABC)
        one, two = Limits({"a": 2}), Limits({"a": 1}, {"b": 1})
        twice = limited(limited(pda, one), two)
        assert twice.automaton is pda
        assert twice.limits == one & two
        assert split(twice) == (pda, one & two)
        assert split(LimitedAutomaton(LimitedAutomaton(pda, one), two)) == (pda, one & two)

    @given(automata())
    def test_unknown_terminals_are_refused_with_the_nearest(self, pda):
        with pytest.raises(AutomatonError, match="unknown terminal in a limit: paint"):
            limited(pda, Limits({"paint": 1}))

    def test_suggestion(self):
        pda = PDA([("p", "paint", None, "p")], start="p", accepting=["p"])
        with pytest.raises(AutomatonError, match=r"did you mean paint\?"):
            limited(pda, Limits(at_least={"piant": 1}))

    def test_an_alphabet_that_was_given_is_kept(self):
        class AsOften:
            """Any word of a, by an automaton that does not tell its alphabet."""

            def start(self):
                return 0

            def moves(self, configuration):
                return [Transition(0, "a", None, 0)]

            def step(self, configuration, move):
                return 0

            def accepting(self, configuration):
                return True

        given = LimitedAutomaton(AsOften(), Limits(), terminals=["a", "b"])
        # Also where there is no limit yet: the next one needs it.
        once = limited(limited(given), Limits(at_most={"a": 2}))
        twice = limited(once, Limits(at_least={"a": 1}))
        assert list(limited(given).terminals) == list(once.terminals) == list(twice.terminals) == ["a", "b"]
        assert [bound.line for bound in twice.counters.bounds] == ["%limit 2 a", "%require 1 a"]
        lookahead = Lookahead(once, Limits(at_least={"a": 2}))
        assert lookahead.shortest_word() == ("a", "a")
        assert clash(limited(once, Limits(at_least={"a": 3}))) == ["%limit 2 a", "%require 3 a"]

    def test_tells_what_the_automaton_inside_tells(self):
        cfg = CFG([("S", ("T", "some(a, b)")), ("T", ("a",))], symbols={"a": Symbol("the a")}, limits=Limits(default=1))
        automaton = limited(PDA.from_cfg(cfg), cfg.limits)
        assert automaton.label("a") == "the a"
        assert automaton.cfg is cfg
        assert list(automaton.terminals) == ["a", "b"]
        now, _ = walk(automaton, [0, 0])
        assert automaton.at_class(now)
        now, _ = walk(automaton, [0, 0, 0, 0])
        assert automaton.selection(now) == ("a", "b")
        with pytest.raises(AttributeError):
            _ = automaton.nothing_like_that

    def test_fingerprint_tells_limits_apart(self):
        pda = PDA.from_cfg(ABC)
        some = [Limits({"a": 1}), Limits({"a": 2}), Limits({"b": 1}), Limits(at_least={"a": 1}), Limits(default=1)]
        names = [limited(pda, bounds).fingerprint for bounds in some]
        assert len({pda.fingerprint, *names}) == 6
        assert limited(pda, Limits({"a": 1})).fingerprint == names[0]

    def test_limits_come_on_top_of_those_of_the_grammar(self):
        cfg = CFG.from_string("%limit 2 a\nS -> a S | b S | ε")
        lookahead = Lookahead(cfg, Limits({"b": 0}))
        accepted = [w for w in all_words("ab", 3) if lookahead.automaton.accepts(w)]
        assert accepted == [(), ("a",), ("a", "a")]
