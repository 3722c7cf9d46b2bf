"""What contradicts itself in automata written by hand."""

import pytest

from formal_llm import PDA, AutomatonError


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
