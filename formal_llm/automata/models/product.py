"""Products: the words that several automata accept.

The intersection of a context-free and a regular language is context-free (Hopcroft, Motwani and Ullman, section 7.3.4):
a pushdown automaton and a finite one run side by side, and the pair is a pushdown automaton again, so that lookahead,
membership and drawing work on it as on any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.limited import LimitedAutomaton, split
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import Symbol
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import AutomatonError


def product(pda: PDA, finite: PDA) -> PDA:
    """The automaton for the words that both accept; only pairs of states that can be reached are made.

    Args:
        pda: any pushdown automaton.
        finite: one whose transitions leave the stack alone. A terminal that none of its transitions reads is forbidden.

    The product remembers what it was made of (:attr:`PDA.factors`): what ``pda`` was made of and, as one more factor,
    ``finite``. It may have no word at all; as for any automaton, lookahead tells (``Lookahead(both).completable()``).

    Raises:
        AutomatonError: both use their stacks (the intersection may not be context-free).
    """
    factors = (*(pda.factors or (pda,)), finite)
    if finite.uses_stack:
        if pda.uses_stack:
            raise AutomatonError(
                "both automata use their stack, and the intersection of two context-free languages need not be "
                "context-free; a constraint must be a finite automaton (transitions that neither pop nor push)"
            )
        pda, finite = finite, pda
    first: dict[State, list[Transition]] = {}
    for transition in pda.transitions:
        first.setdefault(transition.state, []).append(transition)
    second: dict[State, list[Transition]] = {}
    for transition in finite.transitions:
        second.setdefault(transition.state, []).append(transition)
    start = (pda.start_state, finite.start_state)
    pairs = {start: None}
    todo = [start]
    transitions: list[Transition] = []
    while todo:
        pair = todo.pop()
        made: list[Transition] = []
        for one in first.get(pair[0], ()):
            if one.read is None:
                made.append(_moved(one, pair, (one.target, pair[1])))
            else:
                made += (
                    _moved(one, pair, (one.target, other.target))
                    for other in second.get(pair[1], ())
                    if other.read == one.read
                )
        for other in second.get(pair[1], ()):
            if other.read is None:
                made.append(_moved(other, pair, (pair[0], other.target)))
        for transition in made:
            if transition.target not in pairs:
                pairs[transition.target] = None  # type: ignore[index]  # targets made here are pairs
                todo.append(transition.target)  # type: ignore[arg-type]
        transitions += made
    accepting = [p for p in pairs if p[0] in pda.accepting_states and p[1] in finite.accepting_states]
    names = dict.fromkeys((*pda.symbols, *finite.symbols))
    symbols = {name: _merged(pda.symbols.get(name), finite.symbols.get(name)) for name in names}
    return PDA(
        transitions,
        start=start,
        accepting=accepting,
        stack=pda.start_stack,
        symbols=symbols,
        classes=pda.classes,
        cfg=pda.cfg,
        factors=factors,
        limits=pda.limits & finite.limits,
        check=False,
    )


def _moved(transition: Transition, state: State, target: State) -> Transition:
    return replace(transition, state=state, target=target)


def _merged(one: Symbol | None, other: Symbol | None) -> Symbol:
    """What is known of a symbol on either side; the first has the last word."""
    one, other = one or Symbol(), other or Symbol()
    return Symbol(one.label or other.label, one.description or other.description, {**other.numbers, **one.numbers})


def constrained(pda: PDA, constraints: Iterable[PDA]) -> PDA:
    """``pda`` with every constraint on top."""
    return reduce(product, constraints, pda)


def intersection(one: Any, other: Any) -> Any:
    """``one & other``: the words that both allow, under the limits of both.

    Each side is a grammar, a :class:`PDA`, one under limits, or a behaviour. The side that needs a stack, as a grammar
    does, is the base, wherever it stands, and the other side is a constraint on it. A terminal that one side does not
    know is forbidden by it.

    Returns:
        A :class:`PDA`, or where there are limits a :class:`LimitedAutomaton` around one. Both can be planned with.

    Raises:
        AutomatonError: both sides need a stack, or a terminal has two numbers for one quantity.
    """
    left, right = _parts(one), _parts(other)
    if left is None or right is None:
        return NotImplemented
    (base, limits), (constraint, more) = left, right
    if constraint.uses_stack and not base.uses_stack:
        base, constraint = constraint, base
    for name, symbol in constraint.symbols.items():
        known = base.symbols.get(name, Symbol()).numbers
        for quantity, number in symbol.numbers.items():
            if known.get(quantity, number) != number:
                raise AutomatonError(f"{name} has {quantity}={known[quantity]} and {quantity}={number}")
    # A product is taken apart again, so that messages can name each of the constraints, however they were bracketed.
    factors = [factor.without_limits for factor in constraint.factors]
    if not factors or any(factor.uses_stack for factor in factors):
        factors = [constraint]
    both = constrained(base, factors)
    limits &= more
    return LimitedAutomaton(both, limits, tuple({**base.terminals, **constraint.terminals})) if limits else both


def _parts(source: Any) -> tuple[PDA, Limits] | None:
    """A source as an automaton without limits, and its limits; None for what is no source."""
    inner, limits = split(source)
    if isinstance(inner, CFG):
        return PDA.from_cfg(inner), limits & inner.limits
    if not isinstance(inner, PDA):
        inner = getattr(inner, "pda", None)
    return (inner.without_limits, limits & inner.limits) if isinstance(inner, PDA) else None
