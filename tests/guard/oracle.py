"""What guards must decide, found out another way: sentences as formulas over single events, multiplied out, and the
fixpoint of Ramadge and Wonham on the whole product. It shares nothing with the guard but formulas and their automata.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from formal_llm.automata.models.dfa import DFA, minimal_dfa
from formal_llm.automata.notation.formula import read_formula

#: Single events: two tools without results, one with a good and a bad one, and the user.
EVENTS = ("a", "b", "t", "ok", "no", "u")
OUTSIDE = ("ok", "no", "u")
CALLS = {"a", "b", "t"}
ALL = "(until any empty)"


def either(events: Iterable[str]) -> str:
    wanted = set(events)
    found = [event for event in EVENTS if event in wanted]
    return f"(or {' '.join(found)})" if found else "(and a b)"  # nothing is both


def but(events: Iterable[str]) -> str:
    return either(set(EVENTS).difference(events))


def up_to(most: int, counted: set[str], among: set[str]) -> str:
    """Sequences of events among these that hold at most so many that are counted."""
    rest = f"(until {either(among - counted)} empty)"
    return f"(next {rest} (until_{most} (next {either(among & counted)} {rest}) empty))"


def formula(kind: str, one: set[str], other: set[str], count: int) -> str:
    every = set(EVENTS)
    match kind:
        case "never":
            return f"(always (not {either(one)}))"
        case "only":
            return f"(always (not {either(CALLS - one - other)}))"
        case "within":
            plain, missed = f"(until {but(one | CALLS)} empty)", either(CALLS - one)
            late = f"{plain} {f'{missed} {plain} ' * count}{either(CALLS)} {ALL}"
            return (
                f"(not (or (next {ALL} {either(other)} (until {but(one)} empty)) (next {ALL} {either(other)} {late})))"
            )
        case "never after":
            return f"(not (next {ALL} {either(other)} {ALL} {either(one)} {ALL}))"
        case "before":
            return f"(not (next {up_to(count - 1, one, every)} {either(other)} {ALL}))"
        case "before each":
            few = up_to(count - 1, one, every - other)
            fewer = up_to(count - 2, one, every - other) if count > 1 else "(and a b)"
            again = f"(next {ALL} (or (next {either(other - one)} {few}) (next {either(other & one)} {fewer})) {either(other)} {ALL})"
            return f"(not (or (next {few} {either(other)} {ALL}) {again}))"
        case "after each":
            return f"(not (next {ALL} {either(other)} (until {but(one)} empty)))"
        case "at least":
            return f"(next {ALL} {' '.join(f'{either(one)} {ALL}' for _ in range(count))})"
        case "at most":
            return f"(not (next {ALL} {' '.join(f'{either(one)} {ALL}' for _ in range(count + 1))}))"
        case "at most since":
            plain, counted = f"(until {either(every - one - other)} empty)", either(one - other)
            run = " ".join(f"{plain} {counted}" for _ in range(count))
            return f"(not (next (or empty (next {ALL} {either(other)})) {run} {plain} {either(one)} {ALL}))"
    raise AssertionError(kind)


class Oracle:
    """The whole product of some rules and the plant."""

    def __init__(self, formulas: Iterable[str]) -> None:
        self.dfas: list[DFA] = [minimal_dfa(read_formula(text, EVENTS), EVENTS) for text in formulas]
        #: No word at all keeps a rule.
        self.empty = any(not dfa.accepting for dfa in self.dfas)
        self.start = (*(0 for _ in self.dfas), False)
        states = [*product(*(range(len(dfa.table)) for dfa in self.dfas), (False, True))]
        self.edges = {state: [(event, self.step(state, event)) for event in EVENTS if self.comes(state, event)]
                      for state in states}  # fmt: skip
        self.some = set() if self.empty else self._reaching(set(states))
        self.whatever = self._largest(set(states)) if not self.empty else set()

    @staticmethod
    def comes(state: tuple[int, ...], event: str) -> bool:
        if event == "t":
            return not state[-1]
        return bool(state[-1]) if event in ("ok", "no") else True

    def step(self, state: tuple[int, ...], event: str) -> tuple[int, ...] | None:
        after = [dfa.table[now].get(event) for dfa, now in zip(self.dfas, state[:-1], strict=True)]
        if None in after:
            return None
        waiting = True if event == "t" else False if event in ("ok", "no") else state[-1]
        return (*after, waiting)

    def accepting(self, state: tuple[int, ...]) -> bool:
        return all(now in dfa.accepting for dfa, now in zip(self.dfas, state[:-1], strict=True))

    def _reaching(self, inside: set) -> set:
        found = {state for state in inside if self.accepting(state)}
        while True:
            more = {state for state in inside - found if any(after in found for _, after in self.edges[state])}
            if not more:
                return found
            found |= more

    def _largest(self, inside: set) -> set:
        while True:
            kept = {
                state for state in inside
                if all(after in inside for event, after in self.edges[state] if event in OUTSIDE)
            }  # fmt: skip
            kept = self._reaching(kept)
            if kept == inside:
                return inside
            inside = kept
