"""Checks that a strategy has a plan for every answer of the world, and needs nothing but Python: copy it anywhere.

    python strategy_checker.py RULES.json CERTIFICATE.json

Prints what is proved and ends with 0, or why nothing is and ends with 1. It searches nothing: it follows every branch.

RULES are as in certificate_checker.py, and "world" there is a list of the symbols, or of the states of an automaton, at
which the world decides. The world is bound by the grammar or the automaton, and not by constraints and limits.

CERTIFICATE: {"format": "formal_llm.certificate/1", "rules": SHA-256 of the rules (keys sorted, no blanks),
  "claim": "strategy", "start": branch, "nodes": [[branch, ...], ...]}; a branch is {"run": the numbers, from 0, of
  productions or transitions, "node": the number of an earlier node}. A node without branches ends the plan.

Wherever the world decides, there is one branch for each of its answers; ending is one of them where the automaton
accepts. Anywhere else there is one branch. Every branch ends with a plan that follows all the rules.
"""

import hashlib
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

Data = dict[str, Any]  # a JSON object
#: The state of the base, its stack (first on top), the states of each constraint, the sum of each limit.
Place = tuple[Any, tuple[str, ...], tuple[frozenset[Any], ...], tuple[Fraction, ...]]


class NotProved(Exception):
    """What is claimed is not proved; the message gives the reason."""


def must_hold(holds: object, why: str) -> None:
    """Refuse where something does not hold."""
    if not holds:
        raise NotProved(why)


def check(rules: Data, certificate: Data) -> str:
    """What the certificate proves about the rules, as a sentence; NotProved where it proves nothing."""
    try:
        formats = (rules["format"], certificate["format"], certificate["claim"])
        wanted = ("formal_llm.rules/1", "formal_llm.certificate/1", "strategy")
        must_hold(formats == wanted, f"unknown formats {formats}")
        known = hashlib.sha256(json.dumps(rules, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        must_hold(certificate["rules"] == known, "the certificate is about other rules")
        return StrategyFollower(rules, certificate).confirm()
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise NotProved(f"not as it should be: {error!r}") from None


class StrategyFollower:
    """A strategy beside the rules that it claims to follow."""

    def __init__(self, rules: Data, certificate: Data) -> None:
        self.start, self.nodes = certificate["start"], certificate["nodes"]
        self.world, self.limits, self.constraints = rules.get("world", []), rules["limits"], rules["constraints"]
        self.grammar = "grammar" in rules
        if self.grammar:
            self.base: Data = {"start": 0, "stack": [rules["grammar"]["start"]], "accepting": [0]}
            self.rows = [[0, None, head, 0, body] for head, body in rules["grammar"]["productions"]]
        else:
            self.base, self.rows = rules["automaton"], rules["automaton"]["transitions"]
        self.heads = {row[2] for row in self.rows}

    def confirm(self) -> str:
        """Follow every branch from the start."""
        empty = tuple(self.close(one, {one["start"]}) for one in self.constraints)
        sums = tuple(Fraction(0) for _ in self.limits)
        place = self.settle((self.base["start"], tuple(self.base["stack"]), empty, sums))
        todo = [(place, self.start, len(self.nodes), True)]
        seen: set[Any] = set()
        while todo:
            here, branch, above, first = todo.pop()
            run, number = branch["run"], branch["node"]
            must_hold(type(number) is int and 0 <= number < above, f"node {number} does not come before node {above}")
            node = self.nodes[number]
            for at, move in enumerate(run):
                if at or first:
                    self.check_answers(here, [move])
                here = self.make_move(here, move)
            if not node and (run or first):
                self.check_answers(here, [None])
            if (here, number) in seen:
                continue
            seen.add((here, number))
            if not node:
                self.check_end(here)
            else:
                self.check_answers(here, [one["run"][0] if one["run"] else None for one in node])
                todo += [(here, one, number, False) for one in node]
        return (
            f"proved: every branch of this strategy follows the rules, whatever the world answers ({len(seen)} places)"
        )

    def check_answers(self, place: Place, taken: list[int | None]) -> None:
        """Check that there is one branch for each answer of the world, and one where it does not decide."""
        state, stack, _, _ = place
        if not (stack[:1] and stack[0] in self.world if self.grammar else state in self.world):
            must_hold(len(taken) == 1, f"{len(taken)} branches at {state!r}, where the world does not decide")
            return
        answers: list[int | None] = [
            at for at, row in enumerate(self.rows) if row[0] == state and row[2] in (None, *stack[:1])
        ]
        answers += [None] if not self.grammar and state in self.base["accepting"] else []
        missing = [answer for answer in answers if answer not in taken]
        at = stack[0] if self.grammar else state
        must_hold(not missing, f"the world can answer {missing} at {at!r}, and there is no branch for that")
        must_hold(len(taken) == len(answers), f"branches {taken} at {at!r}, and the world can answer {answers}")

    def make_move(self, place: Place, number: int) -> Place:
        """The place after a production or transition."""
        must_hold(type(number) is int and number >= 0, f"{number!r} is no number of a move")
        source, step, popped, target, pushed = self.rows[number]
        state, stack, constraints, sums = place
        must_hold(source == state, f"move {number} does not start in {state!r}")
        must_hold(popped is None or stack[:1] == (popped,), f"move {number} cannot take {popped!r} from the stack")
        place = (target, (*pushed, *stack[popped is not None :]), constraints, sums)
        return self.settle(place if step is None else self.read(place, step))

    def settle(self, place: Place) -> Place:
        """Read what comes first and is no head of a grammar's production."""
        while self.grammar and place[1] and place[1][0] not in self.heads:
            place = self.read((place[0], place[1][1:], *place[2:]), place[1][0])
        return place

    def read(self, place: Place, step: str) -> Place:
        """The place after a step: each constraint reads it, each sum grows."""
        state, stack, constraints, sums = place
        after = []
        for one, states in zip(self.constraints, constraints, strict=True):
            targets = {target for source, name, target in one["transitions"] if source in states and name == step}
            must_hold(targets, f"constraint {one['name']!r} does not allow {step}")
            after.append(self.close(one, targets))
        added = [Fraction(str(one["weights"].get(step, 0))) for one in self.limits]
        return state, stack, tuple(after), tuple(a + b for a, b in zip(sums, added, strict=True))

    @staticmethod
    def close(constraint: Data, states: set[object]) -> frozenset[object]:
        """These states, and those that moves without a step lead to."""
        todo = list(states)
        while todo:
            state = todo.pop()
            more = {t for s, name, t in constraint["transitions"] if s == state and name is None} - states
            states |= more
            todo += more
        return frozenset(states)

    def check_end(self, place: Place) -> None:
        """Check that a plan may end here."""
        state, stack, constraints, sums = place
        must_hold(state in self.base["accepting"] and not (self.grammar and stack), f"no plan may end in {state!r}")
        for one, states in zip(self.constraints, constraints, strict=True):
            must_hold(states & set(one["accepting"]), f"constraint {one['name']!r} does not accept")
        for limit, total in zip(self.limits, sums, strict=True):
            least, most = Fraction(str(limit.get("at_least", 0))), Fraction(str(limit.get("at_most", total)))
            must_hold(least <= total <= most, f"{limit['name']} is broken: the sum is {total}")


if __name__ == "__main__":
    try:
        sys.stdout.write(check(*(json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:3])) + "\n")
    except (NotProved, OSError, ValueError, TypeError, RecursionError) as problem:
        sys.exit(f"refused: {problem}")
