"""An automaton written by hand, and all that a notation must keep of one."""

from formal_llm import (
    Symbol,
)

PACKING = """
# Boxes that are opened are closed again.
%start room
%accept done
%stack floor
%limit 2 pack     # not too much
%require 1 pack
%limit kg <= 12.5
%ask box "What now?"
%decide room "Do we travel?"

room, ε,     ε     -> box,  ε "yes"
room, ε,     ε     -> done, ε "no"
box,  open,  ε     -> box,  lid
box,  pack,  *     → box,  *
box,  close, lid   -> box,  ε
box,  ε,     floor -> done, ε "carry it away" ask "Finished?"

open "Open a box" "a large one"
pack "Pack a thing" kg=5.5
"""


def everything(pda):
    rows = [(t.parts(), t.text, t.question, t.decision) for t in pda.transitions]
    symbols = {name: symbol for name, symbol in pda.symbols.items() if symbol != Symbol()}
    return rows, pda.start_state, pda.accepting_states, pda.start_stack, symbols, pda.limits, pda.name, pda.order
