"""State machines of XState in JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formal_llm import PDA
from formal_llm.automata.languages.words import words
from formal_llm.automata.notation.files import read_rules
from formal_llm.errors import GrammarWarning, NotationError

ORDER = {
    "id": "order",
    "initial": "cart",
    "context": {"items": 0},
    "states": {
        "cart": {"on": {"ADD": {"actions": "add"}, "PAY": [{"target": "pay", "guard": "known"}, "login"]}},
        "login": {"invoke": {"src": "ask", "onDone": {"target": "pay"}, "onError": "#order.gone"}},
        "pay": {
            "initial": "card",
            "onDone": {"target": "sent"},
            "on": {"CANCEL": "gone"},
            "states": {"card": {"on": {"OK": "paid", "FAIL": {"target": "card"}}}, "paid": {"type": "final"}},
        },
        "sent": {"type": "final"},
        "gone": {"type": "final"},
    },
}


def test_an_order(tmp_path: Path) -> None:
    (tmp_path / "order.xstate").write_text(json.dumps(ORDER))
    pda = read_rules(tmp_path / "order.xstate")
    assert isinstance(pda, PDA)
    assert pda.name == "order"
    assert {" ".join(word) for word in words(pda, 3)} == {
        "PAY OK", "PAY CANCEL", "PAY ask.error", "ADD PAY OK", "ADD PAY CANCEL", "ADD PAY ask.error", "PAY FAIL OK",
        "PAY FAIL CANCEL", "PAY ask.done OK", "PAY ask.done CANCEL",
    }  # fmt: skip


def test_transitions_without_events_and_targets_by_path() -> None:
    machine = {
        "initial": "a",
        "states": {
            "a": {"always": [{"target": "b", "guard": {"type": "large"}}, {"target": "c"}]},
            "b": {"initial": "x", "on": {"GO": ".y"}, "states": {"x": {}, "y": {"on": {"OUT": "#deep"}}}},
            "c": {"on": {"E": "end"}},
            "end": {"type": "final", "id": "deep"},
        },
    }
    pda = PDA.from_xstate(json.dumps(machine))
    assert set(words(pda, 4)) == {("GO", "OUT"), ("GO", "GO", "OUT"), ("GO", "GO", "GO", "OUT"), ("E",)}
    assert {move.text for move in pda.transitions if move.read is None} == {"large", "go on to c"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "this is no JSON"),
        ("[1]", "no machine of XState"),
        ('{"states": {"a": {"type": "parallel"}}}', "the state a is parallel, which is not covered"),
        ('{"states": {"a": {"on": {"E": "b"}}}}', "unknown target of a transition: b"),
        ('{"states": {"a": {"on": {"E": {"target": ["a", "a"]}}}}}', "several targets"),
        ('{"states": {"a": {}}}', "no final state is reached"),
        ("[" * 100_000, "nested too deeply"),
        ('{"states": {"a": ' * 150 + "{}" + "}}" * 150, "more than 100 deep"),
    ],
)
def test_what_is_refused(text: str, said: str) -> None:
    with pytest.raises(NotationError, match=said):
        PDA.from_xstate(text)


def test_timers_are_left_out() -> None:
    with pytest.warns(GrammarWarning, match=r"the timers \(after\) of a are left out"):
        pda = PDA.from_xstate('{"states": {"a": {"after": {"99": "b"}, "on": {"E": "b"}}, "b": {"type": "final"}}}')
    assert list(words(pda, 3)) == [("E",)]
