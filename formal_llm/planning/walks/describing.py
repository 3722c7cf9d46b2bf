"""The rules of a plan in words: its steps, what may follow what, how often and up to which sums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from formal_llm.automata import CFG, PDA, Limits, Production
from formal_llm.automata.models.automaton import State
from formal_llm.automata.models.clockwork import base_with_clock
from formal_llm.automata.models.symbols import selection_members
from formal_llm.automata.models.transition import Transition
from formal_llm.planning.walks.choices import ChoiceTable


def describe_names(table: ChoiceTable, names: Iterable[str] | None = None) -> str:
    """The names that a plan is made of, a line each with what they stand for; those that no plan may have left out."""
    words, limits = table.vocabulary, table.lookahead.limits
    pda = _find_base(table)
    texts: dict[str, set[str]] = {}
    for move in pda.transitions if pda is not None and pda.cfg is None else ():
        if move.read is not None:
            answer = f"{move.question} {move.text or words.label(move.read)}"
            texts.setdefault(move.read, set()).add(answer if move.decision else move.text)
    lines = []
    for name in words.terminals if names is None else names:
        if limits.at_most.get(name, 1) != 0:
            printed = sorted(texts.get(name, ()))
            text = printed[0] if len(printed) == 1 else ""
            symbol = words.symbols.get(name)
            numbers = [f"{quantity}={n}" for quantity, n in symbol.numbers.items()] if symbol is not None else []
            description = (text or words.label(name), words.describe_terminal(name), *numbers)
            about = [one for one in description if one not in ("", name)]
            lines.append(f"- {name}: {', '.join(about)}" if about else f"- {name}")
    return "\n".join(lines)


def describe_rules(table: ChoiceTable, *, calls: bool = False) -> str:
    """What may follow what; of nested ``calls`` only the constraints.

    The productions of calls speak of kinds of results, from the last step to the first. A model of 1.5 billion weights
    that was shown them wrote plans of nearly all tools.
    """
    pda = _find_base(table)
    if pda is None or (pda.cfg is None and not _is_chart(pda)):
        return table.rules()
    lines = [] if calls else list(_describe_grammar(pda.cfg) if pda.cfg is not None else _describe_chart(pda))
    factors = table.lookahead.pda.factors[1:] if table.lookahead.pda is not None else ()
    return "\n".join([*lines, *(f"- and: {one.name}" for one in factors if one.name)])


def describe_limits(table: ChoiceTable) -> str:
    """How often names may be used, and what their numbers may come to."""
    limits = table.lookahead.limits
    sums = [line for one in limits.sums for line in one.lines()]
    times = [line for line in limits.lines() if not line.startswith(("%limit", "%require"))]
    return "\n".join([*_describe_counts(limits), *(f"- {line.removeprefix('%limit ')}" for line in (*sums, *times))])


def _find_base(table: ChoiceTable) -> PDA | None:
    pda = table.lookahead.pda
    return None if pda is None else base_with_clock(pda)


def _describe_grammar(cfg: CFG) -> Iterator[str]:
    yield f"A plan is one {cfg.start}. Each line says what a symbol is made of, in this order; | parts the choices."
    by_head: dict[str, list[Production]] = {}
    if len(cfg.authored) < len(cfg.productions):
        yield (
            "X* stands for X any number of times, X+ for once or more, X? for once or not at all, X{1,3} for one to "
            "three times; (a | b) for one of the choices in it."
        )
    for production in cfg.authored:
        by_head.setdefault(production.head, []).append(production)
    for head, productions in by_head.items():
        label = cfg.label(head)
        shown = f' "{label}"' if label != head.replace("_", " ") else ""
        yield f"- {head}{shown}: {' | '.join(' '.join(one.body) or '(nothing)' for one in productions)}"


def _describe_chart(pda: PDA) -> Iterator[str]:
    begins, ends = ("ends", "begins") if pda.order == "prefix" else ("begins", "ends")
    yield f"A plan {begins} at {pda.start_state}; each step leads from one place to another."
    leaving: dict[object, list[str]] = {}
    selecting = _find_selecting(pda)
    within = {move.target for move in selecting}
    for move in pda.transitions:
        if move in selecting:
            members = f"one or more of {', '.join(selection_members(move.push[0]) or ())} -> {selecting[move]}"
        else:
            members = f"{move.read or '(nothing)'} -> {move.target}"
        if move.state not in within:
            leaving.setdefault(move.state, []).append(members)
    yield from (f"- from {state}: {', '.join(steps)}" for state, steps in leaving.items())
    yield f"It {ends} at {', '.join(sorted(map(str, pda.accepting_states)))}."


def _find_selecting(pda: PDA) -> dict[Transition, State]:
    """The transitions that begin a selection, each with where it leads in the end."""
    after = {move.pop: move.target for move in pda.transitions if move.pop is not None}
    return {
        move: after[move.push[1]]
        for move in pda.transitions
        if move.pop is None
        and len(move.push) == 2
        and selection_members(move.push[0]) is not None
        and move.push[1] in after
    }


def _is_chart(pda: PDA) -> bool:
    """Whether the stack is used for selections alone."""
    selecting = _find_selecting(pda)
    within = {move.target for move in selecting}
    return all(
        move in selecting or move.state in within or (move.pop is None and not move.push) for move in pda.transitions
    )


def _describe_counts(limits: Limits) -> Iterator[str]:
    if limits.default is not None:
        yield f"- each name {_write_most(limits.default)}, where nothing else is said"
    grouped: dict[str, list[str]] = {}
    for name, most in limits.at_most.items():
        grouped.setdefault(_write_most(most), []).append(name)
    for name, least in limits.at_least.items():
        grouped.setdefault(f"at least {_write_times(least)}", []).append(name)
    yield from (f"- {how}: {', '.join(names)}" for how, names in grouped.items())


def _write_most(count: int | None) -> str:
    return "as often as you like" if count is None else f"at most {_write_times(count)}" if count else "never"


def _write_times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
