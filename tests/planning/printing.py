"""An oracle on printed plans that reads nothing: all runs of an automaton, printed.

What a text tells is valid where some run over a valid word prints it. Here runs are tried one after the other, and
derivations of a word are found by Knuth's algorithm (``languages/derivations``); neither knows of lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from formal_llm import CFG, PDA, Plan, Production, Transition
from formal_llm.automata.lookahead.derivations import derivations
from formal_llm.planning.plans.steps import Order
from formal_llm.planning.plans.tree import build_tree

#: How many runs are tried, and how many moves one may have beyond those that read.
RUNS, SILENT = 3_000, 8


def plan_of(cfg: CFG, derivation: tuple[Production, ...], order: Order) -> Plan:
    """The plan of a leftmost derivation."""
    moves: list[Transition] = []
    todo, chosen = [cfg.start], iter(derivation)
    while todo:
        symbol = todo.pop()
        if symbol in cfg.terminals:
            moves.append(Transition(0, symbol, symbol, 0))
        else:
            production = next(chosen)
            moves.append(Transition(0, None, symbol, 0, production.body, production=production))
            todo += reversed(production.body)
    return Plan("", build_tree(moves, cfg.label, cfg.start), order=order)


def read_in(source: CFG | PDA, order: Order) -> CFG | PDA:
    """The same rules, their words read in this order."""
    if isinstance(source, CFG):
        return source.with_order(order)
    return PDA(
        source.transitions, start=source.start_state, accepting=source.accepting_states, stack=source.start_stack,
        symbols=source.symbols, classes=source.classes, limits=source.limits, order=order,
    )  # fmt: skip


def plans(pda: PDA, order: Order, longest: int) -> Iterator[Plan]:
    """Plans of an automaton, by trying all its runs, the short ones first; of words that keep its limits."""
    start = pda.cfg.start if pda.cfg is not None else None
    runs = [(pda.start(), ())]
    for tried, (configuration, moves) in enumerate(runs):  # it grows
        if tried >= RUNS:
            return
        word = [move.read for move in moves if move.read is not None]
        if pda.accepting(configuration) and all(bound.holds(word) for bound in pda.bounds):
            yield Plan("", build_tree(moves, pda.label, start), order=order)
        for move in pda.moves(configuration):
            length = len(word) + (move.read is not None)
            if length <= longest and len(moves) + 1 - length <= SILENT + 3 * length:
                runs.append((pda.step(configuration, move), (*moves, move)))


def is_print_of(text: str, cfg: CFG, word: tuple[str, ...], order: Order, form: str) -> bool | None:
    """Whether some derivation of a word prints this text; None where not all were looked at.

    Nested calls may also be written as a list of steps, with each terminal that no text speaks for; and their steps in
    any order in which each result is made before it is used.
    """
    found = derivations(cfg, word, 300)
    for one in found.found:
        steps = [str(step).split(": ", 1)[1] for step in plan_of(cfg, one, "forward").steps]
        listed = [f"Step {at}: {step}" for at, step in enumerate(steps if order == "forward" else steps[::-1], 1)]
        shown = printed(plan_of(cfg, one, order), form)
        if text in (shown, "\n".join(listed)) or (shown and flow_of(text) and flow_of(text) == flow_of(shown)):
            return True
    return False if found.complete else None


def flow_of(text: str) -> str | None:
    """What steps are applied to, whatever their order; None where they do not tell it of all but one step."""
    made: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        row = line.split(": ", 1)[-1]
        for found in re.findall(r"result of step (\d+)", row):
            if found not in made:
                return None
            row = row.replace(f"the result of step {found}", f"({made.pop(found)})", 1)
        made[str(number)] = row
    return made.popitem()[1] if len(made) == 1 else None


def some_run_prints(pda: PDA, text: str, order: Order, *, deepest: int = 12) -> bool | None:
    """Whether some run of an automaton without limits prints this text; None where only a deeper stack might."""
    lines = text.split("\n")
    if any(not line.startswith(f"Step {at}: ") for at, line in enumerate(lines, 1)):
        return False
    steps = [line.split(": ", 1)[1] for line in lines][:: 1 if order == "forward" else -1]
    todo = [(pda.start(), 0)]
    seen = set(todo)
    cut = False
    for here, at in todo:  # it grows
        if at == len(steps) and pda.accepting(here):
            return True
        for move in pda.moves(here):
            says = move.text or (f"Use {pda.label(move.read)}" if move.read else "")
            silent = move.decision or not says
            after = (pda.step(here, move), at + (not silent))
            fits = silent or (at < len(steps) and steps[at] == says)
            cut = cut or (fits and after[0].stack.depth > deepest)
            if fits and after not in seen and after[0].stack.depth <= deepest:
                seen.add(after)
                todo.append(after)
    return None if cut else False


def printed(plan: Plan, form: str) -> str | None:
    """A plan in one of the forms that are printed."""
    if form == "steps":
        return str(plan)
    return str(plan.call) if plan.call is not None else None


def changes(text: str, other_lines: list[str]) -> Iterator[str]:
    """All single-place changes of a printed plan.

    Two lines are swapped, with their numbers and without; one is dropped, or written twice, and the rest numbered anew
    or not; one is numbered otherwise; one is that of another plan; a result is that of another step; the brackets and
    arguments of a call are moved.
    """
    lines = text.split("\n")
    bare = [re.sub(r"^Step \d+: ", "", line) for line in lines]

    def numbered(rows: list[str]) -> str:
        return "\n".join(f"Step {at}: {row}" for at, row in enumerate(rows, 1))

    if not text.startswith("Step "):
        yield from _call_changes(text)
        return
    for at in range(len(lines)):
        for to in range(at):
            for rows, show in ((lines, "\n".join), (bare, numbered)):
                swapped = [*rows]
                swapped[at], swapped[to] = swapped[to], swapped[at]
                yield show(swapped)
        yield "\n".join(lines[:at] + lines[at + 1 :])
        yield numbered(bare[:at] + bare[at + 1 :])
        yield numbered(bare[: at + 1] + bare[at:])
        yield "\n".join([*lines[:at], f"Step {at + 3}: {bare[at]}", *lines[at + 1 :]])
        for other in other_lines:
            yield numbered([*bare[:at], other, *bare[at + 1 :]])
        for found in re.finditer(r"result of step (\d+)", bare[at]):
            for number in range(1, len(lines) + 1):
                yield numbered(
                    [*bare[:at], bare[at][: found.start(1)] + str(number) + bare[at][found.end(1) :], *bare[at + 1 :]]
                )


def _call_changes(call: str) -> Iterator[str]:
    pieces = re.findall(r"[(),]|[^(),]+", call)
    for at, piece in enumerate(pieces):
        if piece == ")" and at + 1 < len(pieces):
            # The bracket is closed one place later, where there is one; or the next piece comes before it.
            yield "".join([*pieces[:at], *pieces[at + 1 : at + 3], ")", *pieces[at + 3 :]])
        if piece == "(":
            close = next((n for n in range(at, len(pieces)) if pieces[n] == ")"), len(pieces) - 1)
            yield "".join([*pieces[:at], ", ", *pieces[at + 1 : close], *pieces[close + 1 :]])
    yield re.sub(r"^\w+ = ", "other = ", call)
