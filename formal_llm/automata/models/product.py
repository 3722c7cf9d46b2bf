"""Products: the words that several automata accept.

The intersection of a context-free and a regular language is context-free (Hopcroft, Motwani and Ullman, section 7.3.4):
a pushdown automaton and a finite one run side by side, and the pair is a pushdown automaton again, so that lookahead,
membership and drawing work on it as on any other.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache, reduce
from math import prod

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.automata.models.cfg import CFG
from formal_llm.automata.models.declare import Sentence
from formal_llm.automata.models.dfa import DFA, finite_pda, minimal_dfa
from formal_llm.automata.models.formula import EVERYTHING, And, reverse
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import Symbol
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import AutomatonError, Undecided


def product(pda: PDA, finite: PDA) -> PDA:
    """The automaton for the words that both accept; only pairs of states that can be reached are made.

    Args:
        pda: any pushdown automaton.
        finite: one whose transitions leave the stack alone. A terminal that none of its transitions reads is forbidden.

    The product remembers its factors (:attr:`PDA.factors`): those of ``pda`` and, as one more factor,
    ``finite``. It may have no word at all; as for any automaton, lookahead decides (``Lookahead(both).completable()``).

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
    pairs, transitions = _reachable_pairs(pda, finite)
    accepting = [p for p in pairs if p[0] in pda.accepting_states and p[1] in finite.accepting_states]
    names = dict.fromkeys((*pda.symbols, *finite.symbols))
    symbols = {name: _merge_symbols(pda.symbols.get(name), finite.symbols.get(name)) for name in names}
    alphabet = dict.fromkeys(name for factor in factors for name in factor.terminals)
    return PDA(
        transitions, start=pairs[0], accepting=accepting, stack=pda.start_stack, symbols=symbols, classes=pda.classes,
        cfg=pda.cfg, order=pda.order, factors=factors, limits=pda.limits & finite.limits, alphabet=alphabet,
        times=pda.times & finite.times, check=False,
    )  # fmt: skip


def _reachable_pairs(pda: PDA, finite: PDA) -> tuple[list[tuple[State, State]], list[Transition]]:
    """The pairs of states that can be reached, the start first, and the transitions between them."""
    first: dict[State, list[Transition]] = {}
    for transition in pda.transitions:
        first.setdefault(transition.state, []).append(transition)
    second: dict[tuple[State, str | None], list[Transition]] = {}
    for transition in finite.transitions:
        second.setdefault((transition.state, transition.read), []).append(transition)
    start = (pda.start_state, finite.start_state)
    pairs = {start: None}
    todo = [start]
    transitions: list[Transition] = []
    while todo:
        one_state, other_state = pair = todo.pop()
        made: list[Transition] = []
        for one in first.get(one_state, ()):
            if one.read is None:
                made.append(_retarget_transition(one, pair, (one.target, other_state)))
            else:
                after = [other.target for other in second.get((other_state, one.read), ())]
                made += [_retarget_transition(one, pair, (one.target, target)) for target in after]
        made += [
            _retarget_transition(other, pair, (one_state, other.target))
            for other in second.get((other_state, None), ())
        ]
        for transition in made:
            if transition.target not in pairs:
                pairs[transition.target] = None  # type: ignore[index]  # targets made here are pairs
                todo.append(transition.target)  # type: ignore[arg-type]
        transitions += made
    return list(pairs), transitions


def _retarget_transition(one: Transition, state: State, target: State) -> Transition:
    # Spelled out: a product of many has very many, and dataclasses.replace takes three times as long.
    return Transition(state, one.read, one.pop, target, one.push, one.text, one.production, one.question, one.decision)


def project_transition(one: Transition) -> Transition:
    """The transition of the first automaton that a transition of a product makes."""
    return _retarget_transition(one, one.state[0], one.target[0])  # type: ignore[index]


def _merge_symbols(one: Symbol | None, other: Symbol | None) -> Symbol:
    """What is known of a symbol on either side; the first has the last word."""
    one, other = one or Symbol(), other or Symbol()
    return Symbol(one.label or other.label, one.description or other.description, {**other.numbers, **one.numbers})


def constrained(pda: PDA, constraints: Iterable[PDA]) -> PDA:
    """``pda`` with every constraint on top."""
    return reduce(product, constraints, pda)


#: How many transitions a product with rules about order may have.
_MOST_TRANSITIONS = 1_000_000


@lru_cache(maxsize=32)
def apply_rules(pda: PDA, rules: tuple[Sentence, ...]) -> PDA:
    """The words of an automaton that keep rules about order: a product with one constraint for each, named by its text.

    Rules speak of the steps as they are carried out: over prefix grammars their formulas are reversed. An
    answer to a decision is no step; only a rule that names it reads it.

    Raises:
        Undecided: a rule, or all of them together, need too large an automaton.
    """
    for rule in rules:
        formula = reverse(rule.formula()) if pda.order == "prefix" else rule.formula()
        ignored = pda.answers - {*rule.names}
        try:
            dfa = minimal_dfa(formula, [name for name in pda.terminals if name not in ignored])
        except Undecided as error:
            raise Undecided(f"{rule.text}: {error}") from None
        rows = [{**row, **dict.fromkeys(ignored, state)} for state, row in enumerate(dfa.table)]
        constraint = finite_pda(DFA(tuple(rows), dfa.accepting), name=rule.text, alphabet=pda.terminals)
        pda = product(pda, constraint)
        if len(pda.transitions) > _MOST_TRANSITIONS:
            raise Undecided(f"these rules need too large an automaton together: {'; '.join(one.text for one in rules)}")
    return pda


#: A conjunction whose parts have more states, multiplied, is not split.
_SPLIT = 50_000


def split_conjunction(behaviour: Behaviour) -> PDA:
    """The allowed sequences of a behaviour as a product with a constraint for each part of its conjunction.

    So messages can name the part that is broken: by its formula. Where there is no conjunction, or its parts
    have too many states, it is the behaviour's own automaton.
    """
    parts = behaviour.formula.parts if isinstance(behaviour.formula, And) else ()
    dfas = [minimal_dfa(part, behaviour.states) for part in parts]
    if not dfas or prod(len(dfa.table) for dfa in dfas) > _SPLIT:
        return behaviour.pda
    everything = minimal_dfa(EVERYTHING, behaviour.states)
    base, *constraints = (
        finite_pda(dfa, name=name, symbols=behaviour.symbols, alphabet=behaviour.states)
        for dfa, name in zip([everything, *dfas], [behaviour.name, *map(str, parts)], strict=True)
    )
    return constrained(base, constraints).with_limits(behaviour.limits)


def intersection(one: object, other: object) -> PDA:
    """``one & other``: the words that both allow, under the limits of both.

    Each side is a grammar, a :class:`PDA` or a behaviour. The side that needs a stack, as a grammar does, is the base,
    on whichever side it is, and the other side is a constraint on it. A terminal that one side does not know is
    forbidden by it.

    Returns:
        A :class:`PDA` with the limits of both; ``NotImplemented`` where one side is none of these.

    Raises:
        AutomatonError: both sides need a stack, a terminal has two numbers for one quantity, or their limits have two
            units or two clocks.
    """
    if not isinstance(one, (CFG, PDA, Behaviour)) or not isinstance(other, (CFG, PDA, Behaviour)):
        return NotImplemented  # type: ignore[no-any-return]  # what an operator's method gives
    base, constraint = _pda_of(one), _pda_of(other)
    try:
        limits = base.limits & constraint.limits
    except ValueError as error:
        raise AutomatonError(str(error)) from None
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
        factors = [constraint.without_limits]
    return constrained(base.without_limits, factors).with_limits(limits)


def _pda_of(source: CFG | PDA | Behaviour) -> PDA:
    """A source as an automaton with its limits."""
    if isinstance(source, CFG):
        return PDA.from_cfg(source).with_limits(source.limits)
    return source if isinstance(source, PDA) else source.pda
