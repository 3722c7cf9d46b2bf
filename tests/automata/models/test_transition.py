"""Transitions as values and as tuples."""

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import PDA, Transition
from formal_llm.automata.models.transition import find_problem
from formal_llm.errors import AutomatonError
from tests.strategies import examples

names = st.sampled_from(["p", "q", "a", "X"])
transitions = st.builds(
    Transition, names, st.none() | names, st.none() | names, names, st.lists(names, max_size=2).map(tuple)
)


class TestErrors:
    @pytest.mark.parametrize(
        ("transitions", "more", "problem"),
        [
            ([("p", "a", None, "p")], {"accepting": []}, "no final state"),
            (
                [("p", "a", None, "pause")],
                {"accepting": ["pasue"]},
                "'pasue' is in no transition; did you mean 'pause'",
            ),
            (
                [("p", "a", None, "p"), ("q", "b", None, "p")],
                {},
                r"'q' cannot be reached from 'p': \(q, b, ε -> p, ε\)",
            ),
            ([("start", "a", None, "p")], {"start": "strat"}, "'start' cannot be reached from 'strat'"),
            ([("p", "a", "Tray", "p", ("Trai",))], {}, "'Tray' is popped but never pushed: .*did you mean 'Trai'"),
            ([("p", "a", "X", "p")], {"stack": ("Y",)}, "'X' is popped but never pushed"),
            ([("p", "a")], {}, "a transition is"),
            ([("p", "a", None, "p", (), "text", 1)], {}, "a transition is"),
        ],
    )
    def test_contradictions_are_named(self, transitions, more, problem):
        with pytest.raises(AutomatonError, match=problem) as caught:
            PDA(transitions, **{"start": "p", "accepting": ["p"], **more})
        assert isinstance(caught.value, ValueError)


transitions = st.lists(
    st.builds(
        Transition,
        st.sampled_from("pqrs"),
        st.none() | st.just("a"),
        st.none() | st.sampled_from("XY"),
        st.sampled_from("pqrs"),
        st.lists(st.sampled_from("XY"), max_size=2).map(tuple),
    ),
    max_size=6,
)


class TestFindProblem:
    @given(transitions, st.sets(st.sampled_from("pqrs")), st.sets(st.sampled_from("XY")))
    @examples(300)
    def test_what_is_wrong_is_wrong_and_nothing_else_is(self, made, accepting, below):
        graph = networkx.DiGraph([(t.state, t.target) for t in made])
        graph.add_node("p")
        reached = networkx.descendants(graph, "p") | {"p"}
        pushed = {*below, *(name for t in made for name in t.push)}
        problem = find_problem(made, "p", accepting, pushed)
        unknown = accepting - set(graph)
        if not accepting:
            assert "no final state" in problem.message
        elif unknown:
            assert problem.name in unknown
            assert "is in no transition" in problem.message
        elif not {t.state for t in made} <= reached:
            assert problem.name == problem.transition.state not in reached
            assert f"cannot be reached from 'p': {problem.transition}" in problem.message
        elif not {t.pop for t in made} - {None} <= pushed:
            assert problem.name == problem.transition.pop not in pushed
            assert f"is popped but never pushed: {problem.transition}" in problem.message
        else:
            assert problem is None
