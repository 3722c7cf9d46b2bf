"""Certificates: plans with their proofs, for those who do not want to trust this library.

Rules are compiled to plain data: the productions of a grammar or the transitions of an automaton, the transitions of
each constraint, and each limit as weights and a bound. The certificate of a plan is its derivation or run, the run of
each constraint and the sum of each limit. A file of 120 lines that imports nothing of ours checks one against the other
(:mod:`formal_llm.planning.checking.certificate_checker`, where both are written down).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from copy import deepcopy
from fractions import Fraction
from functools import lru_cache

from formal_llm.automata import PDA, Limits, Lookahead, Source, Transition
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.automaton import Configuration, Move, State
from formal_llm.automata.models.product import product
from formal_llm.automata.models.quantities import amount
from formal_llm.errors import AutomatonError
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.vocabulary import write_word

#: The moves that are left where they are not known: more than any that are.
_UNKNOWN = 1e18


def find_run(pda: PDA, word: Sequence[str]) -> tuple[Transition, ...]:
    """The transitions by which an automaton reads a word, few of them where there are several ways.

    The automaton that reads this word and no other is put on top: its lookahead knows which moves lead to the end.

    Raises:
        AutomatonError: the word is none of the language.
        Undecided: it was not found within the budget of states.
    """
    chain = PDA([(at, name, None, at + 1) for at, name in enumerate(word)], start=0, accepting=[len(word)], check=False)
    both = product(pda, chain)
    lookahead = Lookahead(both)
    here = both.start()
    moves: list[Transition] = []
    left: float = INFINITE
    exact = False
    while not both.accepting(here):
        after = [both.step(here, move) for move in both.moves(here)]
        found = [_count_moves_left(lookahead, one, exact) for one in after]
        if not exact and min(found, default=INFINITE) >= left < INFINITE:
            # The completions that are known from here are longer than that from before: it could go round in circles.
            exact, left = True, INFINITE
            continue
        left = min(found, default=INFINITE)
        if left == INFINITE:
            shown = write_word(word, pda.order)
            raise AutomatonError(f"this is no plan of these rules, so it is not drawn; verify it to see why: {shown}")
        place = found.index(left)
        moves.append(both.moves(here)[place])
        here = after[place]
    # A state of the product is a pair: the first is that of the automaton that is drawn.
    known = {transition.parts(): transition for transition in pda.transitions}
    return tuple(known[m.state[0], m.read, m.pop, m.target[0], m.push] for m in moves)  # type: ignore[index]


def _count_moves_left(lookahead: Lookahead, configuration: Configuration, exact: bool) -> float:
    """The moves of a completion: of some that is found, or of the shortest one; infinite where there is none."""
    if exact:
        least = lookahead.fewest_moves(configuration)
        return INFINITE if least is None else least
    verdict = lookahead.completable(configuration)
    return INFINITE if not verdict.possible else _UNKNOWN if verdict.steps is None else verdict.steps


_RULES, _CERTIFICATE = "formal_llm.rules/1", "formal_llm.certificate/1"


def compiled_rules(rules: Source, limits: Limits | None = None) -> dict[str, JSON]:
    """Rules as JSON data that a certificate is about.

    Args:
        rules: a grammar, flowchart, behaviour, automaton, or a product.
        limits: more limits.

    Raises:
        AutomatonError: it is an automaton of one's own, whose rules are code.
    """
    return deepcopy(_compile_rules(pda_of(rules, limits)))


def certificate(
    rules: Source, word: Sequence[str], moves: Sequence[Move] | None = None, *, limits: Limits | None = None
) -> dict[str, JSON]:
    """The proof that a word is a plan of rules, as JSON data.

    Args:
        rules: as of :func:`compiled_rules`.
        word: the word.
        moves: a run of the rules that reads it; found where left out.
        limits: more limits.

    Raises:
        AutomatonError: the word is none of these rules, or as of :func:`compiled_rules`.
    """
    pda, word = pda_of(rules, limits), tuple(word)
    broken = next((bound.line for bound in pda.bounds if not bound.holds(word)), None)
    if broken is not None:
        raise AutomatonError(f"this is no plan of these rules: {broken} is broken by {write_word(word, pda.order)}")
    made = moves if moves is not None else find_run(pda.without_limits, word)
    base, constraints = parts_of(pda)
    text = json.dumps(_compile_rules(pda), sort_keys=True, separators=(",", ":"))
    return {
        "format": _CERTIFICATE,
        "rules": hashlib.sha256(text.encode()).hexdigest(),
        "claim": "plan",
        "word": list(word),
        "run": RunNumbers(pda, base).number_moves(made),
        "constraints": [_find_constraint_run(constraint, word) for constraint in constraints],
        "sums": [
            write_exact(sum(weights.get(step, Fraction(0)) for step in word)) for _, weights, _, _ in _list_limits(pda)
        ],
    }


# -- the parts of rules -----------------------------------------------------------------------------------------------


def pda_of(rules: Source, limits: Limits | None) -> PDA:
    """Rules as an automaton that can be compiled; raises as :func:`compiled_rules`."""
    automaton = as_automaton(rules, limits)
    if not isinstance(automaton, PDA):
        raise AutomatonError(
            f"there is no certificate for {type(rules).__name__}: the rules of an automaton of one's own are code, "
            "which no checker reads; a PDA, grammar, flowchart or behaviour has one"
        )
    return automaton


def parts_of(pda: PDA) -> tuple[PDA, tuple[PDA, ...]]:
    """What an automaton is made of: the base and the constraints; itself where it cannot be taken apart."""
    base, *constraints = pda.factors or (pda,)
    if any(one.uses_stack or one.factors for one in constraints):
        return pda, ()
    return base, tuple(constraints)


def number_states(pda: PDA) -> dict[State, JSON]:
    """The states as JSON: texts where they are texts, else numbers."""
    states = dict.fromkeys((*pda.states, *sorted(pda.accepting_states - pda.states.keys(), key=repr)))
    if all(isinstance(state, str) for state in states):
        return {state: str(state) for state in states}
    return {state: number for number, state in enumerate(states)}


def _list_limits(pda: PDA) -> list[tuple[str, dict[str, Fraction], str, Fraction]]:
    """Each limit as (how it is written, weights, ``at_most`` or ``at_least``, bound), in its author's numbers."""
    found: list[tuple[str, dict[str, Fraction], str, Fraction]] = []
    for name in pda.terminals:
        most, least = pda.limits.most(name), pda.limits.at_least.get(name)
        if most is not None:
            found.append((f"%limit {most} {name}", {name: Fraction(1)}, "at_most", Fraction(most)))
        if least:
            found.append((f"%require {least} {name}", {name: Fraction(1)}, "at_least", Fraction(least)))
    for limit in pda.limits.sums:
        carried = {name: symbol.numbers for name, symbol in pda.symbols.items() if name in pda.terminals}
        weights = {n: Fraction(has[limit.quantity]) for n, has in carried.items() if limit.quantity in has}
        for part in limit.parts():
            kind, edge = ("at_least", part.at_least) if part.at_most is None else ("at_most", part.at_most)
            found.append((part.lines()[0], weights, kind, Fraction(amount(edge or 0))))
    return found


@lru_cache(maxsize=64)
def _compile_rules(pda: PDA) -> dict[str, JSON]:
    base, constraints = parts_of(pda)
    rules: dict[str, JSON] = {"format": _RULES}
    if base.is_of_cfg and base.cfg is not None:
        productions = [[production.head, list(production.body)] for production in base.cfg.expanded]
        rules["grammar"] = {"start": base.cfg.start, "productions": productions}
    else:
        state = number_states(base)
        rules["automaton"] = {
            "start": state[base.start_state],
            "stack": list(base.start_stack),
            "accepting": [state[one] for one in state if one in base.accepting_states],
            "transitions": [[state[t.state], t.read, t.pop, state[t.target], list(t.push)] for t in base.transitions],
        }
    rules["constraints"] = [_compile_constraint(constraint, place) for place, constraint in enumerate(constraints, 1)]
    rules["limits"] = [
        {
            "name": name,
            "weights": {step: write_exact(weight) for step, weight in weights.items()},
            kind: write_exact(edge),
        }
        for name, weights, kind, edge in _list_limits(pda)
    ]
    return rules


def _compile_constraint(pda: PDA, place: int) -> dict[str, JSON]:
    state = number_states(pda)
    return {
        "name": pda.name or f"constraint {place}",
        "start": state[pda.start_state],
        "accepting": [state[one] for one in state if one in pda.accepting_states],
        "transitions": [[state[t.state], t.read, state[t.target]] for t in pda.transitions],
    }


def write_exact(amount: Fraction | int) -> int | str:
    """A number as JSON, exactly."""
    return int(amount) if Fraction(amount).denominator == 1 else str(Fraction(amount))


# -- runs -------------------------------------------------------------------------------------------------------------


class RunNumbers:
    """Numbers the moves of an automaton as its compiled rules do.

    Args:
        pda: the automaton, which makes the moves.
        base: the part of it whose productions or transitions are numbered (:func:`parts_of`).
    """

    def __init__(self, pda: PDA, base: PDA) -> None:
        self._of_productions = base.is_of_cfg and base.cfg is not None
        if base.is_of_cfg and base.cfg is not None:
            self._known: dict[object, int] = {
                (p.head, p.body): number for number, p in reversed(list(enumerate(base.cfg.expanded)))
            }
        else:
            self._known = {transition.parts(): number for number, transition in enumerate(base.transitions)}
        self._depth = 0 if base is pda or not pda.factors else len(pda.factors) - 1

    def number_moves(self, moves: Iterable[Move]) -> list[int]:
        """The numbers of moves; what a grammar only reads, and what only a constraint does, has none."""
        run = []
        for move in moves:
            if not isinstance(move, Transition):
                continue
            if self._of_productions:
                run += [] if move.production is None else [self._known[move.production.head, move.production.body]]
                continue
            here, there = _unpair_state(move.state, self._depth), _unpair_state(move.target, self._depth)
            number = self._known.get((here, move.read, move.pop, there, move.push))
            run += [] if number is None else [number]
        return run


def _unpair_state(state: State, depth: int) -> State:
    """The base's state in a state of a product: a pair of what it was and the constraint's, once for each of these."""
    for _ in range(depth):
        state = state[0]  # type: ignore[index]  # states of products are pairs
    return state


def _find_constraint_run(pda: PDA, word: Sequence[str]) -> list[int]:
    """The numbers of the transitions by which a finite automaton reads a word; states are visited once each."""
    rows: dict[State, list[tuple[int, Transition]]] = {}
    for number, transition in enumerate(pda.transitions):
        rows.setdefault(transition.state, []).append((number, transition))
    come: dict[tuple[int, State], tuple[tuple[int, State], int] | None] = {(0, pda.start_state): None}
    todo = list(come)
    for here in todo:
        at, state = here
        if at == len(word) and state in pda.accepting_states:
            run: list[int] = []
            while (before := come[here]) is not None:
                here, number = before  # the way back
                run.append(number)
            return run[::-1]
        for number, move in rows.get(state, ()):
            after = (at + (move.read is not None), move.target)
            if (move.read is None or word[at : at + 1] == (move.read,)) and after not in come:
                come[after] = here, number
                todo.append(after)
    raise AutomatonError(f"this is no plan of these rules: {pda.name or 'a constraint'} does not accept it")
