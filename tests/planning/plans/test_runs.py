"""Runs over a word."""

from __future__ import annotations

import pytest

from formal_llm import CFG, PDA
from formal_llm.errors import AutomatonError
from formal_llm.planning.plans.runs import run_of


def test_a_run_reads_the_word() -> None:
    pda = PDA.from_cfg(CFG.from_string("S -> a S b | c"))
    moves = run_of(pda, tuple("aacbb"))
    here = pda.start()
    for move in moves:
        assert move in pda.moves(here)
        here = pda.step(here, move)
    assert pda.accepting(here)
    assert [move.read for move in moves if move.read] == list("aacbb")
    with pytest.raises(AutomatonError, match="this is no plan of these rules"):
        run_of(pda, ("a",))
