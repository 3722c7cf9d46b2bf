"""Checks that a plan follows its rules, and needs nothing but Python: copy this file anywhere.

    python certificate_checker.py RULES.json CERTIFICATE.json

Prints what is proved and ends with 0, or why nothing is and ends with 1. It searches nothing: whoever wrote the
certificate did that, and is not believed. Numbers are whole, or texts such as "7/2".

RULES: {"format": "formal_llm.rules/1",
    "grammar": {"start": S, "productions": [[head, [symbol, ...]], ...]},        a symbol that is no head is a step
 or "automaton": {"start": q, "stack": [top, ...], "accepting": [q, ...],
                  "transitions": [[q, step or null, popped or null, q, [pushed, first on top]], ...]},
    "constraints": [{"name": text, "start": q, "accepting": [q, ...], "transitions": [[q, step or null, q], ...]}],
    "limits": [{"name": text, "weights": {step: amount}, "at_most": amount} or the same with "at_least"]}
A plan is a row of steps that the grammar derives or the automaton accepts (a run that ends in an accepting state,
whatever is on the stack then), that each constraint accepts, and whose sum of weights keeps each limit.

CERTIFICATE: {"format": "formal_llm.certificate/1", "rules": SHA-256 of the rules (keys sorted, no
  blanks), "claim": "plan", "word": the steps;
  "run": the numbers, from 0, of the productions of a leftmost derivation, or of transitions;
  "constraints": for each constraint the numbers of its transitions; "sums": for each limit the sum}
"""

import hashlib
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

Data = dict[str, Any]  # a JSON object


class Refused(Exception):
    """What is claimed is not proved; the message gives the reason."""


def must_hold(holds: object, why: str) -> None:
    """Refuse where something does not hold."""
    if not holds:
        raise Refused(why)


def read_number(value: object) -> Fraction:
    """An exact number."""
    must_hold(type(value) is int or (type(value) is str and "e" not in value.lower()), f"{value!r} is no exact number")
    return Fraction(str(value))


def check(rules: Data, certificate: Data) -> str:
    """What the certificate proves about the rules, as a sentence; Refused where it proves nothing."""
    try:
        formats = (rules["format"], certificate["format"])
        must_hold(formats == ("formal_llm.rules/1", "formal_llm.certificate/1"), f"unknown formats {formats}")
        known = hashlib.sha256(json.dumps(rules, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
        must_hold(certificate["rules"] == known, "the certificate is about other rules")
        weights = [weight for limit in rules["limits"] for weight in limit["weights"].values()]
        must_hold(all(read_number(weight) >= 0 for weight in weights), "a weight is negative")
        runs = [certificate.get("run", []), *certificate.get("constraints", [])]
        must_hold(all(type(at) is int and at >= 0 for numbers in runs for at in numbers), "a run is no row of numbers")
        must_hold(certificate["claim"] == "plan", f"unknown claim {certificate['claim']!r}")
        return confirm_plan(rules, certificate)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise Refused(f"not as it should be: {error!r}") from None


def confirm_plan(rules: Data, certificate: Data) -> str:
    """Check that a word is a plan."""
    word, numbers = certificate["word"], certificate["run"]
    read = derive_word(rules["grammar"], numbers) if "grammar" in rules else replay_run(rules["automaton"], numbers)
    must_hold(read == word, f"the run reads {read}, not the word")
    for constraint, numbers in zip(rules["constraints"], certificate["constraints"], strict=True):
        rows = [[source, step, None, target, []] for source, step, target in constraint["transitions"]]
        read = replay_run({**constraint, "transitions": rows, "stack": []}, numbers)
        must_hold(read == word, f"constraint {constraint['name']!r}: its run does not read the word")
    for limit, claimed in zip(rules["limits"], certificate["sums"], strict=True):
        total = sum((read_number(limit["weights"].get(step, 0)) for step in word), Fraction(0))
        must_hold(total == read_number(claimed), f"{limit['name']}: the sum is {total}, not {claimed}")
        kept = read_number(limit.get("at_least", 0)) <= total <= read_number(limit.get("at_most", claimed))
        must_hold(kept, f"{limit['name']} is broken: the sum is {total}")
    return f"proved: this plan follows the rules: {' '.join(word)}"


def derive_word(grammar: Data, numbers: list[int]) -> list[str]:
    """What a leftmost derivation derives."""
    heads = {head for head, _ in grammar["productions"]}
    stack, read = [grammar["start"]], []
    for at in numbers:
        while stack and stack[-1] not in heads:
            read.append(stack.pop())
        head, body = grammar["productions"][at]
        must_hold(stack and stack[-1] == head, f"production {at} does not expand the leftmost symbol")
        stack[-1:] = reversed(body)
    must_hold(heads.isdisjoint(stack), "the derivation is not finished")
    return read + stack[::-1]


def replay_run(automaton: Data, numbers: list[int]) -> list[str]:
    """What a run of an automaton reads, if it accepts."""
    state, stack, read = automaton["start"], automaton["stack"][::-1], list[str]()
    for at in numbers:
        source, step, popped, target, pushed = automaton["transitions"][at]
        must_hold(source == state, f"transition {at} does not start in {state!r}")
        must_hold(popped is None or stack[-1:] == [popped], f"transition {at} cannot take {popped!r} from the stack")
        stack[len(stack) - (popped is not None) :] = pushed[::-1]
        read += [step] * (step is not None)
        state = target
    must_hold(state in automaton["accepting"], f"the run ends in {state!r}, which does not accept")
    return read


if __name__ == "__main__":
    try:
        print(check(*(json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:3])))
    except (Refused, OSError, ValueError, TypeError, RecursionError) as problem:
        sys.exit(f"refused: {problem}")
