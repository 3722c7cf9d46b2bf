"""Runs over a word."""

from __future__ import annotations

import pytest
from hypothesis import given

from formal_llm import CFG, PDA
from formal_llm.errors import AutomatonError
from formal_llm.planning.plans.runs import find_run
from tests import strategies
from tests.oracles import language


def test_a_run_reads_the_word() -> None:
    pda = PDA.from_cfg(CFG.from_string("S -> a S b | c"))
    moves = find_run(pda, tuple("aacbb"))
    here = pda.start()
    for move in moves:
        assert move in pda.moves(here)
        here = pda.step(here, move)
    assert pda.accepting(here)
    assert [move.read for move in moves if move.read] == list("aacbb")
    with pytest.raises(AutomatonError, match="this is no plan of these rules"):
        find_run(pda, ("a",))


@given(strategies.grammars())
@strategies.examples(80)
def test_each_word_has_a_run_whatever_goes_round_in_circles(cfg: CFG) -> None:
    pda = PDA.from_cfg(cfg)
    for word in sorted(language(cfg, 4))[:8]:
        here = pda.start()
        for move in find_run(pda, word):
            assert move in pda.moves(here)
            here = pda.step(here, move)
        assert pda.accepting(here)


def test_a_run_does_not_go_round_in_circles() -> None:
    """The completions that are known from one place to the next need not become shorter here."""
    pda = PDA.from_cfg(CFG.from_string("S -> some(b) | some(c, a, b) S | b S S | S | ε"))
    for word in ("aba", "ca", "caba", "bcabab"):
        assert [move.read for move in find_run(pda, tuple(word)) if move.read] == list(word)
