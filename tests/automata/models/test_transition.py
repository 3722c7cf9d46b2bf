"""Transitions as values and as tuples."""

from formal_llm import Transition


class TestTransition:
    def test_text_of_a_transition(self):
        assert str(Transition("p", None, None, "q", ("X", "Y"))) == "(p, ε, ε -> q, X Y)"
        assert str(Transition("p", "a", "X", "q")) == "(p, a, X -> q, ε)"
