"""From a formula to its minimal finite automaton.

The derivative of a formula by a state a is the formula for what may follow a: { w : aw in L(f) } (Brzozowski 1964). The
derivatives of a formula by all sequences are, up to the normal form of :mod:`formal_llm.automata.models.formula`,
finitely many; they are the states of a deterministic automaton, and a state accepts where its formula holds ε.
Partition refinement makes it the smallest one (Hopcroft 1971). A conjunction is the product of the automata of
its parts.

Names that the formula does not mention all behave alike, so one represents all of them until the table is written out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.formula import And, Formula, derivative
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import Symbol, find_reachable
from formal_llm.automata.models.tabulation import SubsetConstruction
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import Undecided

#: How many derivatives are made at most: nested complements can have more than could ever be stored.
MAX_STATES = 20_000
#: How many different states the name of a state of the automaton lists.
_LISTED = 3


class DFA(NamedTuple):
    """A deterministic finite automaton as plain data; its states are 0, 1, ..., and it starts in 0.

    Attributes:
        table: for each state, where each name leads from which acceptance can be reached; others are left out.
        accepting: the final states; empty for the empty language.
    """

    table: tuple[Mapping[str, int], ...]
    accepting: frozenset[int]

    def accepts(self, word: Iterable[str]) -> bool:
        """Whether ``word`` leads to a final state."""
        state = 0
        for name in word:
            following = self.table[state].get(name)
            if following is None:
                return False
            state = following
        return state in self.accepting


def minimal_dfa(formula: Formula, alphabet: Iterable[str], *, max_states: int = MAX_STATES) -> DFA:
    """The smallest automaton for the sequences over ``alphabet`` that are in ``formula``.

    Names of the formula that are not in the alphabet occur in no sequence.

    Raises:
        Undecided: the formula has more than ``max_states`` derivatives.
    """
    letters = tuple(dict.fromkeys(alphabet))
    named = set(formula.names)
    other = next((letter for letter in letters if letter not in named), None)
    kinds = [letter for letter in letters if letter in named or letter == other]
    #: For each letter the column of the letter that represents it.
    column = {letter: kinds.index(letter if letter in named else other or "") for letter in letters}

    def check_size(count: int) -> None:
        if count > max_states:
            raise Undecided(
                f"the formula needs an automaton of more than {max_states} states; "
                "bound repetitions by smaller numbers, or nest fewer of not, and, eventually"
            )

    steps: _Steps = (
        _multiply(formula.parts, kinds, max_states)
        if isinstance(formula, And)
        else (formula, derivative, attrgetter("nullable"))
    )
    start, follow, accepts = steps
    states = explore(start, kinds, follow, check_size)
    table = [[*row.values()] for row in states.values()]
    accepting = {number for number, state in enumerate(states) if accepts(state)}
    blocks = _equivalence_classes(table, accepting)
    before: list[list[int]] = [[] for _ in table]
    for state, row in enumerate(table):
        for target in row:
            before[target].append(state)
    alive = find_reachable(accepting, before.__getitem__)
    # Blocks are numbered in the order in which they are reached from the start, which is that of the derivatives.
    some_state = {block: state for state, block in enumerate(blocks)}

    def follow_block(block: int, letter: str) -> int | None:
        target = table[some_state[block]][column[letter]]
        return blocks[target] if target in alive else None

    rows = explore(blocks[0], letters, follow_block)
    return DFA(tuple(rows.values()), frozenset(n for n, block in enumerate(rows) if some_state[block] in accepting))


S = TypeVar("S", bound=Hashable)
#: The first state of an automaton, where a letter leads, and whether a state is final.
_Steps = tuple[Any, Callable[[Any, str], Any], Callable[[Any], bool]]


def explore(
    start: S,
    letters: Iterable[str],
    follow: Callable[[S, str], S | None],
    check: Callable[[int], None] = lambda _: None,
) -> dict[S, dict[str, int]]:
    """The states to which letters lead from the first one, in order, each with the numbers of those after it.

    Args:
        start: the first state.
        letters: the alphabet.
        follow: where a letter leads; None: nowhere.
        check: called with the number of states that there are so far.
    """
    rows: dict[S, dict[str, int]] = {}
    numbers, letters = {start: 0}, tuple(letters)
    for state in (todo := [start]):
        row = rows[state] = {}
        for letter in letters:
            after = follow(state, letter)
            if after is not None:
                number = row[letter] = numbers.setdefault(after, len(todo))
                if number == len(todo):
                    todo.append(after)
        check(len(todo))
    return rows


def _multiply(parts: Sequence[Formula], kinds: Sequence[str], max_states: int) -> _Steps:
    """A conjunction as the product of the automata of its parts, which is far cheaper than its derivatives."""
    dfas = [minimal_dfa(part, kinds, max_states=max_states) for part in parts]
    dead: tuple[int, ...] = ()

    def follow(now: tuple[int, ...], kind: str) -> tuple[int, ...]:
        after = [dfa.table[state].get(kind, -1) for dfa, state in zip(dfas, now, strict=False)]
        return dead if -1 in after else tuple(after)

    def accepts(now: tuple[int, ...]) -> bool:
        return now != dead and all(state in dfa.accepting for dfa, state in zip(dfas, now, strict=True))

    return (0,) * len(dfas), follow, accepts


def _equivalence_classes(table: Sequence[Sequence[int]], accepting: set[int]) -> list[int]:
    """For each state of a complete automaton the number of its class of equivalent states (Hopcroft's algorithm)."""
    kinds = range(len(table[0]) if table else 0)
    before: list[list[list[int]]] = [[[] for _ in table] for _ in kinds]
    for state, row in enumerate(table):
        for kind, target in enumerate(row):
            before[kind][target].append(state)
    classes = [part for part in (accepting, set(range(len(table))) - accepting) if part]
    class_of = [0 if state in classes[0] else 1 for state in range(len(table))]
    todo = {(number, kind) for number in range(len(classes)) for kind in kinds}
    while todo:
        number, kind = todo.pop()
        leading: dict[int, set[int]] = {}
        for target in classes[number]:
            for state in before[kind][target]:
                leading.setdefault(class_of[state], set()).add(state)
        for split, inside in leading.items():
            if len(inside) == len(classes[split]):
                continue
            # Some states of the class lead into the splitter and some do not. The smaller half gets the new number:
            # that every state moves to a new class at most log n times makes the algorithm fast.
            outside = classes[split] - inside
            smaller, larger = sorted((inside, outside), key=len)
            new = len(classes)
            classes.append(smaller)
            classes[split] = larger
            for state in smaller:
                class_of[state] = new
            todo.update((new, kind) for kind in kinds)
    return class_of


# -- as an automaton of the library -----------------------------------------------------------------------------


def finite_pda(
    dfa: DFA, *, name: str = "", symbols: Mapping[str, Symbol] | None = None, alphabet: Iterable[str] = ()
) -> PDA:
    """The automaton as a :class:`PDA` whose transitions leave the stack alone; ``alphabet`` are the declared terminals.

    Its states are named by what is read just before them: ``start``, ``after Act``, ``after Act or Obs``.
    """
    names, read = _name_states(dfa), {letter for row in dfa.table for letter in row}
    transitions = [
        Transition(names[state], letter, None, names[target])
        for state, row in enumerate(dfa.table)
        for letter, target in row.items()
    ]
    return PDA(
        transitions,
        start=names[0],
        accepting=[names[state] for state in sorted(dfa.accepting)],
        symbols=symbols,
        name=name,
        alphabet=[letter for letter in alphabet if letter not in read],
        check=False,
    )


def project(rule: PDA, names: Iterable[str]) -> DFA:
    """The words of an automaton without a stack, less all names but these (Rabin and Scott 1959).

    Limits of the automaton are left out.
    """
    letters, before = tuple(names), dict[State, list[State]]()
    for move in rule.transitions:
        before.setdefault(move.target, []).append(move.state)
    useful = find_reachable(rule.accepting_states, lambda state: before.get(state, ()))
    moves = [
        replace(move, read=move.read if move.read in letters else None)
        for move in rule.transitions
        if move.target in useful
    ]
    return determinize(moves, [rule.start_state], rule.accepting_states, letters)


def determinize(
    transitions: Iterable[Transition], start: Iterable[State], accepting: Iterable[State], letters: Iterable[str],
    check: Callable[[int], None] = lambda _: None,
) -> DFA:  # fmt: skip
    """The deterministic automaton of a finite one with several initial states; all of its states should be useful.

    Args:
        transitions: none of which touches a stack.
        start: the initial states.
        accepting: the final states.
        letters: its alphabet.
        check: as of :func:`explore`.
    """
    subsets = SubsetConstruction(transitions, start, accepting)
    rows = explore(subsets.start, letters, lambda states, letter: subsets.follow(states, letter) or None, check)
    final = frozenset(number for number, states in enumerate(rows) if subsets.is_accepting(states))
    return DFA(tuple(rows.values()), final)


def _name_states(dfa: DFA) -> list[str]:
    read: list[dict[str, None]] = [{} for _ in dfa.table]
    for row in dfa.table:
        for letter, target in row.items():
            read[target][letter] = None
    wanted = ["start"]
    for letters in read[1:]:
        listed = [*letters][:_LISTED]
        if len(letters) > _LISTED:
            listed[-1] = f"{len(letters) - _LISTED + 1} others"
        wanted.append("after " + " or ".join(listed))
    often = Counter(wanted)
    taken: dict[str, None] = {name: None for name in wanted if often[name] == 1}
    names = []
    for name in wanted:
        if often[name] > 1:
            name = next(new for number in count(1) if (new := f"{name} ({number})") not in taken)
        names.append(name)
        taken[name] = None
    return names
