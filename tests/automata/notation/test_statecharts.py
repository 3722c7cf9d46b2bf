"""State machines as automata, against a machine that is run event by event."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given

from formal_llm import PDA
from formal_llm.automata.languages.words import words
from formal_llm.errors import NotationError
from tests.automata.notation.machines import EVENTS, Machine, accepts, machines, scxml, xstate
from tests.strategies import examples


@given(machines())
@examples(150)
def test_a_machine_takes_the_events_that_it_would_take_in_a_run(machine: Machine) -> None:
    told = {
        word for n in range(4) for word in map("".join, itertools.product(EVENTS, repeat=n)) if accepts(machine, word)
    }
    for read, text in ((PDA.from_scxml, scxml(machine)), (PDA.from_xstate, xstate(machine))):
        try:
            pda = read(text)
        except NotationError as error:
            assert "no final state is reached" in str(error)
            assert not told
        else:
            assert {"".join(word) for word in words(pda, 3)} == told


def test_a_machine_that_begins_inside_of_itself() -> None:
    with pytest.raises(NotationError, match="a begins inside of itself"):
        PDA.from_scxml(
            '<scxml initial="a"><state id="a" initial="b"><state id="b" initial="a"><state id="c"/></state></state>'
            "</scxml>"
        )
