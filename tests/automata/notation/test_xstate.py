"""State machines of XState in JSON."""

from __future__ import annotations

import json
import os
import re
import warnings
from pathlib import Path

import pytest

from formal_llm import PDA
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.notation.files import read_rules
from formal_llm.automata.notation.xstate import COVERAGE
from formal_llm.errors import NotationError

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


def read(text: str | dict[str, object], **options: object) -> tuple[PDA, list[str]]:
    """The automaton of a machine, and what is warned of."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        pda = PDA.from_xstate(text if isinstance(text, str) else json.dumps(text), **options)  # type: ignore[arg-type]
    return pda, [str(one.message) for one in caught]


def spelled(pda: PDA, length: int) -> set[str]:
    return {" ".join(word) for word in words(pda, length)}


#: The keys of XState 4 and 5: of states and machines, of transitions, and of invoked services.
KEYS = {
    "state": "key initial parallel type history states invoke on onEntry entry onExit exit onDone after always "
    "activities parent strict meta data id delimiter order tags preserveActionOrder predictableActionArguments "
    "description context version schema tsTypes output target route options transitions types",
    "transition": "cond actions in internal target meta description guard reenter source eventType toJSON delay event",
    "invoke": "id src autoForward forward data onDone onError meta systemId input onSnapshot toJSON",
}
#: The file types.d.ts of XState, where there is one on this machine.
TYPES = os.environ.get("FORMAL_LLM_XSTATE_TYPES")


@pytest.mark.parametrize("name", [f"{kind}@{key}" for kind, keys in KEYS.items() for key in keys.split()])
def test_each_key_is_in_a_table(name: str) -> None:
    assert COVERAGE.get_treatment(name) != "unknown"


@pytest.mark.skipif(TYPES is None, reason="FORMAL_LLM_XSTATE_TYPES names no types.d.ts of XState")
def test_each_key_of_the_types_is_in_a_table() -> None:
    text = re.sub(r"/\*.*?\*/", "", Path(str(TYPES)).read_text(), flags=re.DOTALL)
    kinds = {"StateNodeConfig": "state", "MachineConfig": "state", "StateNodeDefinition": "state",
             "TransitionConfig": "transition", "TransitionDefinition": "transition", "InvokeConfig": "invoke",
             "InvokeDefinition": "invoke"}  # fmt: skip
    for type_, kind in kinds.items():
        body = re.search(rf"(?:interface|type) {type_}\b.*?\{{\n(.*?)\n\}}", text, re.DOTALL)
        assert body is not None
        keys = re.findall(r"^ {4}([$\w]+)\??:", body[1], re.MULTILINE)
        assert [key for key in keys if COVERAGE.get_treatment(f"{kind}@{key}") == "unknown"] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "this is no JSON"),
        ("[1]", "no machine of XState"),
        ('{"rules": 1, "name": 2}', "no machine of XState: its keys are rules, name"),
        ('{"states": {"a": {"type": "history", "history": "deep"}}}', "'history' of the state a is not covered: which"),
        ('{"states": {"a": {"type": "history"}}}', "the history state a is not covered: which"),
        ('{"states": {"a": {"type": "paralel"}}}', "the state a has an unknown type: paralel"),
        ('{"states": {"a": {"on": {"E": "b"}}}}', "unknown target of a transition: b"),
        ('{"states": {"a": {"on": {"E": {"target": ["a", "b"]}}}, "b": {}}}', "a and b cannot be active together"),
        ("[" * 100_000, "nested too deeply"),
        ('{"states": {"a": ' * 150 + "{}" + "}}" * 150, "more than 100 deep"),
    ],
)
def test_what_is_refused(text: str, problem: str) -> None:
    with pytest.raises(NotationError, match=problem):
        PDA.from_xstate(text)


def test_what_is_left_out_is_reported_with_its_state() -> None:
    pda, warned = read(
        {
            "foo": 1,
            "states": {"a": {"after": {"99": "b"}, "on": {"E": {"target": "b", "then": 1}}}, "b": {"type": "final"}},
        }
    )
    assert len(warned) == 3
    assert "'foo' of the machine is left out: XState has no such part" in warned[0]
    assert "'after' of the state a is left out: plans have no clock of their own" in warned[1]
    assert "'then' of the transition a is left out: XState has no such part" in warned[2]
    assert spelled(pda, 3) == {"E"}
    _, (warning,) = read({"states": {"a": {"on": {"xstate.after(99)#a": "b", "E": "b"}}, "b": {"type": "final"}}})
    assert "the timer xstate.after(99)#a is left out" in warning


PARALLEL = {
    "type": "parallel",
    "states": {
        "a": {"initial": "x", "states": {"x": {"on": {"A": "y"}}, "y": {"type": "final"}}},
        "b": {
            "initial": "x",
            "states": {"x": {"on": {"B": {"target": "y", "in": "#done"}}}, "y": {"type": "final"}},
        },
    },
}


def test_a_parallel_machine_is_done_when_its_regions_are() -> None:
    pda, warned = read(json.loads(json.dumps(PARALLEL).replace('"in": "#done"', '"meta": 1')))
    assert warned == []
    assert spelled(pda, 3) == {"A B", "B A"}
    text = json.dumps(PARALLEL).replace('"y": {"type": "final"}', '"y": {"type": "final", "id": "done"}', 1)
    assert spelled(read(text)[0], 3) == {"A B"}


def test_several_targets_and_what_is_done_in_a_state() -> None:
    machine = {
        "initial": "off",
        "states": {
            "off": {"on": {"GO": {"target": ["on.a.y", "on.b.y"]}}},
            "on": {"type": "parallel", "onDone": "end", "states": PARALLEL["states"]},
            "end": {"type": "final"},
        },
    }
    assert spelled(read(json.loads(json.dumps(machine).replace('"in": "#done"', '"meta": 1')))[0], 3) == {"GO"}


def test_names_come_before_wildcards() -> None:
    pda, _ = read(
        {
            "states": {
                "a": {"on": {"*": "c", "pay.*": "b", "pay.card": "end", "quit": "end"}},
                "b": {"on": {"pay.cash": "end"}},
                "c": {"on": {"quit": "a"}},
                "end": {"type": "final"},
            }
        }
    )
    assert spelled(pda, 2) == {"pay.card", "quit", "pay pay.cash", "pay.cash pay.cash"}


def test_what_an_action_raises_is_followed() -> None:
    pda, (warning,) = read(
        {
            "states": {
                "a": {"on": {"E": {"target": "b", "actions": [{"type": "xstate.raise", "event": {"type": "X"}}]}}},
                "b": {"on": {"X": "end", "F": "a"}},
                "end": {"type": "final"},
            }
        }
    )
    assert "the machine itself raises X: plans have no such steps" in warning
    assert spelled(pda, 3) == {"E"}


def test_the_states_in_which_plans_end_are_named_by_path_or_id() -> None:
    machine = {
        "states": {
            "a": {"on": {"E": "b.c"}},
            "b": {"states": {"c": {"id": "deep", "on": {"E": "#b2"}}}},
            "d": {"id": "b2"},
        }
    }
    pda, (warning,) = read(machine)
    assert "a plan may end wherever the machine waits" in warning
    assert spelled(pda, 2) == {"", "E", "E E"}
    assert spelled(read(machine, final=["b.c"])[0], 2) == spelled(read(machine, final=["#deep"])[0], 2) == {"E"}
    assert spelled(read(machine, final=["b"])[0], 2) == {"E"}
