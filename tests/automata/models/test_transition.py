"""Transitions as values and as tuples."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import AutomatonError, Production, Transition
from formal_llm.automata.models.transition import transition_of

names = st.sampled_from(["p", "q", "a", "X"])
transitions = st.builds(
    Transition, names, st.none() | names, st.none() | names, names, st.lists(names, max_size=2).map(tuple)
)


class TestTransition:
    def test_text_of_a_transition(self):
        assert str(Transition("p", None, None, "q", ("X", "Y"))) == "(p, ε, ε -> q, X Y)"
        assert str(Transition("p", "a", "X", "q")) == "(p, a, X -> q, ε)"

    @given(transitions, transitions)
    def test_equal_exactly_when_the_parts_are(self, one, other):
        assert (one == other) == (one.parts() == other.parts())
        assert len({one, other}) == (1 if one.parts() == other.parts() else 2)
        assert one != one.parts()

    def test_what_an_option_says_makes_no_difference(self):
        plain = Transition("p", "a", None, "q")
        told = Transition(
            "p", "a", None, "q", text="Go on", production=Production("S", ("a",)), question="Where to?", decision=True
        )
        assert plain == told
        assert hash(plain) == hash(told)

    def test_does_not_change(self):
        with pytest.raises(AttributeError):
            Transition("p", "a", None, "q").read = "b"


class TestTransitionOf:
    @given(transitions)
    def test_is_made_of_its_parts(self, transition):
        assert transition_of(transition.parts()) == transition
        assert transition_of((*transition.parts(), "Go on")).text == "Go on"
        if not transition.push:
            assert transition_of(transition.parts()[:4]) == transition

    def test_empty_strings_are_epsilon(self):
        assert transition_of(("p", "", "", "q", "")).parts() == ("p", None, None, "q", ())

    @pytest.mark.parametrize("parts", [(), ("p", "a", None), ("p", "a", None, "q", (), "text", 1)])
    def test_too_few_and_too_many(self, parts):
        with pytest.raises(AutomatonError, match=r"a transition is \(state, read, pop, target, push"):
            transition_of(parts)
