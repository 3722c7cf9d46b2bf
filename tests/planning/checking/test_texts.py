"""Verdicts on texts: printed plans, and all single-place changes of them, against an oracle that reads nothing."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Verifier
from formal_llm.errors import NotationError, Undecided
from formal_llm.planning.checking.texts import verify_text
from formal_llm.planning.plans.steps import Order
from tests.planning.printing import changes, is_print_of, plans, printed, some_run_prints
from tests.strategies import examples, grammars, limited_grammars, told_automata, told_grammars

ORDERS: tuple[Order, ...] = ("backward", "forward")
LONGEST, SOME, CHANGED = 4, 12, 25


def is_valid(text: str, verifier: Verifier, order: Order, *, strict: bool) -> tuple[bool, tuple[str, ...]]:
    """The verdict, and the word that it is about; what cannot be read is not valid."""
    try:
        found = verify_text(text, verifier, order=order, strict=strict, repair=False)
    except NotationError:
        return False, ()
    return found.valid, found.word


def check_all(source: CFG | PDA, order: Order, seed: int) -> None:
    """Printed plans are valid, and what is changed in them is where the oracle says so."""
    pda = PDA.from_cfg(source).with_limits(source.limits) if isinstance(source, CFG) else source
    verifier = Verifier(source)
    every = list(islice(plans(pda, order, LONGEST), 200))
    rng = random.Random(seed)
    for form in ("steps", "call"):
        known = {printed(plan, form) for plan in every} - {None}
        texts = sorted(text for text in known if text and (form == "call" or text.startswith("Step 1: ")))
        other = sorted({line.split(": ", 1)[1] for text in texts if form == "steps" for line in text.split("\n")})
        rng.shuffle(texts)
        for text in texts[:SOME]:
            for strict in (True, False):
                assert is_valid(text, verifier, order, strict=strict)[0], (text, strict)
        changed = [new for text in texts[:3] for new in changes(text, other[:4]) if new]  # no text is the empty word
        for new in rng.sample(changed, min(CHANGED, len(changed))):
            valid, word = is_valid(new, verifier, order, strict=True)
            assert valid or new not in known, new
            if " on " in new or isinstance(source, PDA) or order == "forward":  # else inputs may be left out
                assert is_valid(new, verifier, order, strict=False)[0] == valid, new
            if not isinstance(source, CFG):
                assert valid == some_run_prints(pda, new, order), new
            elif valid and new not in known:
                assert is_print_of(new, source, word, order, form) is not False, (new, word)


@given(told_grammars() | told_grammars(tools=True), st.sampled_from(ORDERS), st.integers(0, 99))
@examples(60)
def test_grammars_with_texts(cfg: CFG, order: Order, seed: int) -> None:
    with suppress(Undecided):
        check_all(cfg, order, seed)


@given(grammars() | limited_grammars(), st.sampled_from(ORDERS), st.integers(0, 99))
@examples(40)
def test_grammars_without_texts(cfg: CFG, order: Order, seed: int) -> None:
    with suppress(Undecided):
        check_all(cfg, order, seed)


@given(told_automata(), st.sampled_from(ORDERS), st.integers(0, 99))
@examples(40)
def test_automata(pda: PDA, order: Order, seed: int) -> None:
    check_all(pda, order, seed)
