"""Checks that a plan follows its rules, or that no plan does, and needs nothing but Python: copy this file anywhere.

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
  blanks), "claim": "plan" or "no plan", ...}
  plan: "word": the steps; "run": the numbers, from 0, of the productions of a leftmost derivation, or of transitions;
    "constraints": for each constraint the numbers of its transitions; "sums": for each limit the sum.
  no plan: "how": "search" where there is no proof, or how it was found; see check_refutation().
"""

import hashlib
import itertools
import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

Data = dict[str, Any]  # a JSON object
State = tuple[Any, ...]  # of all parts together, and sums


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
        return {"plan": confirm_plan, "no plan": check_refutation}[certificate["claim"]](rules, certificate)
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


def check_refutation(rules: Data, certificate: Data) -> str:
    """Check a proof that nothing follows the rules.

    "multipliers" has a number from 0 on for each limit: a step's price is the sum of multiplier times weight, negative
    for a lower limit. What keeps the limits costs at most the same sum over the bounds. "prices" shows that whatever
    follows the other rules costs more, or does not exist. "states" has all states that are reached, the start first:
    [q of the automaton, q of constraint 1, ..., and for each limit whose number (from 0) is in "counted" the sum so
    far, that of a lower limit up to its bound]. A row [i, X, j, p] of "prices" means: a run from i that takes X, and
    what it puts there, off the stack, to state j, costs p or more (null: no claim). j is -1 for a run that accepts
    before X is gone; X is null for the end of the stack. What has no row, or breaks a limit by itself, is not done.
    """
    must_hold(certificate["how"] != "search", "that there is no plan was found by search: there is no proof to check")
    base, limits = rules["automaton"] if "automaton" in rules else as_automaton(rules["grammar"]), rules["limits"]
    parts, counted = [base, *rules["constraints"]], [limits[at] for at in certificate.get("counted", [])]
    factors = [max(Fraction(0), read_number(value)) for value in certificate["multipliers"]]
    signed = [(m if "at_most" in one else -m, one) for m, one in zip(factors, limits, strict=True)]
    bound = sum((m * read_number(one.get("at_most", one.get("at_least"))) for m, one in signed), Fraction(0))
    price: dict[str | None, Fraction] = {None: Fraction(0)}
    for step in {transition[1] for transition in base["transitions"]} - {None}:
        used = [read_number(one["weights"].get(step, 0)) for one in limits]
        if all("at_most" not in one or amount <= read_number(one["at_most"]) for amount, one in zip(used, limits)):
            price[step] = sum((m * amount for amount, (m, _) in zip(used, signed)), Fraction(0))
    states = [(*one[: len(parts)], *map(read_number, one[len(parts) :])) for one in certificate["states"]]
    place = {state: at for at, state in enumerate(states)}
    must_hold(states[0] == (*(one["start"] for one in parts), *[0] * len(counted)), "the states begin elsewhere")
    prices: dict[tuple[int, str | None], dict[int, Any]] = {}
    for i, symbol, j, value in certificate["prices"]:
        must_hold(type(i) is int and type(j) is int, "the number of a state is no number")
        prices.setdefault((i, symbol), {})[j] = float("-inf") if value is None else read_number(value)

    every = [*{*base["stack"], *(name for t in base["transitions"] for name in (t[2], *t[4]))} - {None}, None]
    prices |= {(-1, symbol): {-1: Fraction(0)} for symbol in every}

    def price_stack(reached: dict[int, Any], stack: list[str | None]) -> dict[int, Any]:  # the least, of taking it off
        for symbol in stack:
            ways = [(j, so_far + p) for i, so_far in reached.items() for j, p in prices.get((i, symbol), {}).items()]
            reached = dict(sorted(ways, key=lambda way: -way[1]))
        return reached

    for i, state in enumerate(states):
        found = [(x, {-1: Fraction(0)}) for x in every["grammar" in rules and -1 :] if may_end(state, parts, counted)]
        for step, top, target, pushed in list_moves(state, parts, counted):
            to = {place[target]: price[step]} if step in price else {}
            found += [(x, price_stack(to, [*pushed, x] if top is None else pushed)) for x in every if top in (None, x)]
        for symbol, j, value in ((symbol, *way) for symbol, ways in found for way in ways.items()):
            known = prices.get((i, symbol), {}).get(j)
            must_hold(known is not None and known <= value, f"state {i}, {symbol!r} to {j} costs {value}, not {known}")
    least = price_stack({0: Fraction(0)}, [*base["stack"], None]).get(-1)
    must_hold(least is None or least > bound, f"a plan may cost {least}, and the limits allow {bound}")
    return "proved: no plan follows the rules"


def as_automaton(grammar: Data) -> Data:
    """One state, the start symbol on the stack: expand a head, read any other symbol; a plan ends with the stack."""
    heads = {head for head, _ in grammar["productions"]}
    steps = {grammar["start"], *(name for _, body in grammar["productions"] for name in body)} - heads
    rows = [[0, None, head, 0, body] for head, body in grammar["productions"]] + [[0, s, s, 0, []] for s in steps]
    return {"start": 0, "stack": [grammar["start"]], "accepting": [0], "transitions": rows}


def may_end(state: State, parts: list[Data], counted: list[Data]) -> bool:
    """Whether a plan may end in a state of all together."""
    enough = all(q >= read_number(one.get("at_least", 0)) for q, one in zip(state[len(parts) :], counted, strict=True))
    return enough and all(q in one["accepting"] for q, one in zip(state, parts))


def list_moves(state: State, parts: list[Data], counted: list[Data]) -> Iterator[tuple[Any, ...]]:
    """What can be done in a state of all together: (step, popped, state after it, pushed)."""
    for at, constraint in enumerate(parts[1:], 1):
        silent = [target for source, step, target in constraint["transitions"] if source == state[at] and step is None]
        yield from ((None, None, (*state[:at], target, *state[at + 1 :]), []) for target in silent)
    for source, step, popped, target, pushed in parts[0]["transitions"]:
        if source == state[0]:
            ways = [[t[2] for t in c["transitions"] if t[:2] == [now, step]] for now, c in zip(state[1:], parts[1:])]
            for total, limit in zip(state[len(parts) :], counted, strict=True):
                total += read_number(limit["weights"].get(step, 0))
                kept = "at_least" in limit or total <= read_number(limit["at_most"])
                ways.append([min(total, read_number(limit.get("at_least", str(total))))] * kept)
            for after in [state[1:]] if step is None else itertools.product(*ways):
                yield step, popped, (target, *after), pushed


if __name__ == "__main__":
    try:
        print(check(*(json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:3])))
    except (Refused, OSError, ValueError, TypeError, RecursionError) as problem:
        sys.exit(f"refused: {problem}")
