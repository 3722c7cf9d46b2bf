"""State machines as automata, against the algorithm of the recommendation, run event by event."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import PDA
from formal_llm.automata.languages.word_lists import words
from formal_llm.automata.notation.statecharts import matches
from formal_llm.errors import NotationError
from tests.automata.notation.machines import EndlessError, Interpreter, Machine, machines, scxml, xstate
from tests.strategies import examples


@given(machines())
@examples(250)
def test_a_machine_takes_the_events_that_it_would_take_in_a_run(machine: Machine) -> None:
    interpreter = Interpreter(machine)
    try:
        ended, waited = interpreter.words(3, anywhere=False), interpreter.words(3, anywhere=True)
    except EndlessError:
        assume(False)
    for read, text in ((PDA.from_scxml, scxml(machine)), (PDA.from_xstate, xstate(machine))):
        with warnings.catch_warnings(record=True, action="always") as caught:
            try:
                pda = read(text)
            except NotationError as error:
                assert "never waits" in error.problem or "without end" in error.problem
                assert not waited or "without end" in error.problem
                continue
        anywhere = any("a plan may end wherever the machine waits" in str(one.message) for one in caught)
        assert not anywhere or not ended
        assert {"".join(word) for word in words(pda, 3)} == (waited if anywhere else ended)


@given(machines(), st.data())
@examples(150)
def test_the_world_decides_in_marked_states_and_those_in_them(machine: Machine, data: st.DataObject) -> None:
    """States are named so that those in a state begin with its name, and regions are separated by ``+``."""
    states = {state.name: state for state in machine.all() if state.name and state.kind != "final"}
    marked = data.draw(st.sets(st.sampled_from(sorted(states)), min_size=1, max_size=2))
    for name in marked:
        states[name].is_world = True
    for read, text in ((PDA.from_scxml, scxml(machine)), (PDA.from_xstate, xstate(machine))):
        with warnings.catch_warnings(action="ignore"):
            try:
                pda = read(text)
            except NotationError as error:
                assert re.search("never waits|without end|beside it|more than .* configurations", error.problem)
                continue
        atoms = {state: [atom.rpartition(".")[2] for atom in str(state).split("+")] for state in pda.states}
        assert pda.world == {
            state for state, names in atoms.items() if any(one.startswith(tuple(marked)) for one in names)
        }
        with warnings.catch_warnings(action="ignore"):  # of a state from which nothing leads on
            assert PDA.from_string(str(pda)).world == pda.world


@pytest.mark.parametrize(
    ("descriptor", "event", "expected"),
    [
        ("*", "a.b", True),
        ("a", "a", True),
        ("a", "a.b", False),
        ("a.*", "a", True),
        ("a.*", "a.b.c", True),
        ("a.*", "ab", False),
        ("a.b.*", "a", False),
    ],
)
def test_what_a_descriptor_is_for(descriptor: str, event: str, expected: bool) -> None:
    assert matches(descriptor, event) == expected


@pytest.mark.parametrize(
    ("guard", "decided"),
    [("In('b')", True), ('In( "c" )', False), ("!In('c')", True), ("not In('b')", False), ("In('x')", None),
     ("x && In('b')", None), ("true", True), ("false", False)],
)  # fmt: skip
def test_a_guard_that_asks_for_a_state_is_decided(guard: str, decided: bool | None) -> None:
    written = guard.replace("&", "&amp;").replace('"', "&quot;")
    with warnings.catch_warnings(action="ignore"):
        pda = PDA.from_scxml(
            f'<scxml><parallel id="p"><state id="a"><transition event="e" cond="{written}" target="f"/>'
            '<transition event="e" target="g"/></state><state id="b0"><state id="b"/><state id="c"/></state></parallel>'
            '<final id="f"/><final id="g"/></scxml>'
        )
    reached = {move.target for move in pda.transitions}
    assert reached == {None: {"f", "g"}, True: {"f"}, False: {"g"}}[decided]


def test_one_guard_holds_for_all_regions_or_for_none() -> None:
    regions = "".join(
        f'<state id="{r}"><state id="{r}1"><transition event="e" cond="g" target="{r}2"/></state><state id="{r}2"/>'
        "</state>"
        for r in "ab"
    )
    with warnings.catch_warnings(action="ignore"):
        pda = PDA.from_scxml(f'<scxml><parallel id="p">{regions}</parallel></scxml>')
    assert set(pda.states) == {"a1+b1", "a2+b2"}
