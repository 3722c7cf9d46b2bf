import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Flowchart, Limits, Lookahead, Verdict
from formal_llm.agents.decoding.places import Places
from formal_llm.errors import NoValidPlan, Undecided
from tests.agents.decoding.spelling import bounded_grammars, plans_of
from tests.automata.lookahead.judging import Plain
from tests.strategies import examples


class TestPlaces:
    @given(bounded_grammars(), st.lists(st.integers(0, 9), max_size=6), st.sampled_from([0, 2, 1_000]))
    @examples(60)
    def test_what_may_follow(self, cfg, choices, most):
        words = plans_of(cfg)
        if not words:
            with pytest.raises(NoValidPlan):
                Places(cfg)
            return
        place = Places(cfg, max_configurations=most).start
        word = ()
        for choice in (*choices, 0):
            going_on = [one for one in words if one[: len(word)] == word]
            expected = tuple(name for name in cfg.terminals if any(one[len(word) :][:1] == (name,) for one in going_on))
            assert tuple(sorted(place.names)) == tuple(sorted(expected))
            assert place.may_stop == (word in words)
            assert place.complete
            assert (*word, *place.shortest) in words
            assert len(place.shortest) == min(map(len, going_on)) - len(word)
            if not place.names:
                return
            name = place.names[choice % len(place.names)]
            place, word = place.after(name), (*word, name)

    def test_beginnings_that_lead_alike_share_a_place(self):
        cfg = CFG.from_string("S -> a S | b S | c")
        places = Places(cfg)
        assert places.start.after("a") is places.start.after("b").after("a")
        counted = Places(cfg, Limits(at_most={"a": 1}))
        assert counted.start.after("a") is not counted.start.after("b")
        assert counted.start.after("a").after("b") is counted.start.after("b").after("a")
        assert counted.start.after("a").names == ("b", "c")

    def test_left_recursion_without_end(self):
        places = Places(CFG.from_string("S -> S a | S b | c"), Limits(at_most={"a": 1}, at_least={"b": 1}))
        place = places.start.after("c").after("a")
        assert (place.names, place.may_stop, place.shortest) == (("b",), False, ("b",))

    def test_a_flowchart(self):
        places = Places(Flowchart.from_string("flowchart TD\n  a([Begin]) --> b[Wash] --> c([End])\n"))
        assert len(places.start.names) == 1
        assert places.start.after(places.start.names[0]).may_stop

    def test_an_automaton_of_ones_own(self):
        place = Places(Plain()).start
        assert place.names
        assert place.after(place.names[0]).shortest is not None

    def test_what_is_not_decided_is_left_out_and_told(self, monkeypatch):
        completable = Lookahead.completable

        def judged(self, configuration=None):
            # Once b is used up, nothing is found out any more.
            if configuration is not None and configuration.remaining != self.automaton.start().remaining:
                return Verdict("unknown", "state budget")
            return completable(self, configuration)

        monkeypatch.setattr(Lookahead, "completable", judged)
        place = Places(CFG.from_string("S -> a S | b S | c\n%limit 1 b")).start
        assert (place.names, place.complete) == (("a", "c"), False)
        monkeypatch.setattr(Lookahead, "completable", lambda self, now=None: Verdict("unknown", "state budget"))
        with pytest.raises(Undecided, match="raise max_states"):
            Places(CFG.from_string("S -> a S | b"))
