"""Automata printed: what is written reads back."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Limits, SumLimit, Symbol, Transition
from formal_llm.automata.models.product import product
from formal_llm.errors import NotationError
from tests.automata.messages import quiet
from tests.automata.packing import everything
from tests.strategies import amounts, examples, texts

NAMES = st.one_of(
    st.text(st.characters(blacklist_categories=("Cs",)), min_size=1, max_size=4),
    st.sampled_from(
        ["ε", "%empty", "*", "for", "in", "ask", "decide", "->", "q{t}", "a=1", "%start", "'", "\\", "#", "\n"]
    ),
)


@st.composite
def written_automata(draw):
    """Random automata with all that the notation can say; every state is reached, and something is accepted."""
    states = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    letters = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    stack = draw(st.lists(NAMES, max_size=2, unique=True))
    asked = st.one_of(st.just(("", False)), st.tuples(texts.filter(bool), st.booleans()))

    def transition(state, target):
        question, decision = draw(asked)
        return Transition(
            state, draw(st.none() | st.sampled_from(letters)), draw(st.sampled_from([None, *stack])), target,
            tuple(draw(st.lists(st.sampled_from(stack), max_size=2))) if stack else (), draw(texts),
            question=question, decision=decision,
        )  # fmt: skip

    made = [transition(one, other) for one, other in pairwise(states)]
    made += [transition(states[0], states[0])]
    made += [
        transition(draw(st.sampled_from(states)), draw(st.sampled_from(states))) for _ in range(draw(st.integers(0, 4)))
    ]
    used = list(dict.fromkeys(t.read for t in made if t.read is not None))
    symbols = {
        name: Symbol(
            draw(texts), draw(texts), draw(st.dictionaries(st.sampled_from(["cost", "kg"]), amounts, max_size=2))
        )
        for name in used
    }
    limits = Limits(
        draw(st.dictionaries(st.sampled_from(used), st.none() | st.integers(0, 3), max_size=2)) if used else {},
        default=draw(st.none() | st.integers(1, 3)),
        sums=(SumLimit("kg", draw(amounts)),) if any("kg" in s.numbers for s in symbols.values()) else (),
    )
    return PDA(made, start=states[0], accepting=states, stack=stack, symbols=symbols, limits=limits, name=draw(texts),
               order=draw(st.sampled_from([None, "backward", "forward"])))  # fmt: skip


class TestWriting:
    @given(written_automata())
    @examples(300)
    def test_reading_what_was_written(self, pda):
        again = PDA.from_string(str(pda))
        assert everything(again) == everything(pda)
        assert str(again) == str(pda)

    def test_by_hand(self):
        text = """%name "trip"
%order backward
%start p
%accept f
%stack Z
%limit 1
%require 2 a
%limit cost <= 5

p, a, Z -> p, Z Z "go \\"on\\"" decide "Further?"
p, ε, ε -> f, ε ask "Or back?"

a "Ah" "oh" cost=2
"""
        with pytest.raises(NotationError, match="no run accepts: these limits clash"):
            PDA.from_string(text)
        text = text.replace("%require 2", "%require 1")
        assert str(PDA.from_string(text)) == text

    def test_automata_that_were_not_written_by_hand(self):
        pda = PDA.from_cfg(CFG.from_string('S "s" -> a S b | some(a, c) | ε'))
        again = PDA.from_string(str(pda))
        assert [t.parts() for t in again.transitions] == [t.parts() for t in pda.transitions]
        both = product(pda, PDA([(1, n, None, 1) for n in "abc"], start=1, accepting=[1]))
        with quiet():
            assert len(PDA.from_string(str(both)).transitions) == len(both.transitions)
