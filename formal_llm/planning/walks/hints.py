"""What a question about a selection says of the sets that can be chosen, so that a model can name one of them.

Where few sets can be chosen, they are listed. Else the question says which options have to be among the choices, what
sums have to come to, and which sets are ruled out. All that is said is true; only the list says all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from formal_llm.automata.lookahead.limited import LimitedAutomaton
from formal_llm.automata.models.limits import SumLimit
from formal_llm.automata.models.quantities import amount
from formal_llm.automata.models.symbols import reach
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.journal import JournalEntry
from formal_llm.planning.walks.templates import fill_template
from formal_llm.planning.walks.wording import Wording

#: How many sets are listed at the most.
LISTED = 8


def list_hints(table: ChoiceTable, entry: JournalEntry, left: float, wording: Wording) -> Iterator[str]:
    """The lines that say what may be chosen together; none where any set of the options may.

    Args:
        table: the choices of the automaton.
        entry: a selection in the journal.
        left: how many more moves may be made.
        wording: the templates of the lines.
    """
    fork, part, taken = entry.fork, entry.fork.scope, entry.fork.scope.taken
    if taken:
        yield fill_template(wording.page_taken, {"options": ", ".join(map(table.vocabulary.label, sorted(taken)))})
    names = tuple(choice.reads[0] for choice in fork.choices) + ((part.marker,) if part.marker else ())
    few, all_of_them = table.few_subsets(entry.configuration, left, LISTED, entry.ruled_out, entry.subset_bounds)
    if all_of_them:
        answers = {part.make_answer(way.names) for way in few}
        if len(answers) < 2 ** len(names) - 1:
            yield fill_template(wording.selection_sets, {"sets": _write_sets(answers, names)})
        return
    # Only what is in all sets that were found can be in every set.
    always = (part.here - taken).intersection(*(way.names for way in few))
    sure = [n for n in always if not table.some_subset(entry.configuration, taken, part.all_members - {n}, left)]
    if sure:
        yield fill_template(wording.selection_with, {"options": _write_sets([sure], names)})
    yield from _hint_sums(table, entry.configuration, tuple(sorted(part.all_members)), wording)
    out = [key - taken for key in entry.excluded if isinstance(key, frozenset) and key - taken <= set(names)]
    if out:
        yield fill_template(wording.selection_not, {"sets": _write_sets(sorted(out, key=sorted)[:LISTED], names)})


def _write_sets(sets: Iterable[Collection[str]], names: Sequence[str]) -> str:
    """Sets of options by their numbers: ``1, 2; 3``."""
    numbers = ([number for number, name in enumerate(names, 1) if name in one] for one in sets)
    return "; ".join(", ".join(map(str, one)) for one in sorted(numbers, key=lambda one: (len(one), one)))


def _hint_sums(table: ChoiceTable, configuration: Any, names: Sequence[str], wording: Wording) -> Iterator[str]:
    """What the sums that the options carry have to come to; of an upper bound only where some set is too much."""
    automaton = table.automaton
    if not isinstance(automaton, LimitedAutomaton):
        return
    free = table.subset(configuration, frozenset(names), float("inf")) is not None
    later = _find_readable_below(table, configuration)
    for limit in automaton.limits.sums:
        most, least, scope = None, Fraction(0), wording.selection_sum
        for part in limit.parts():
            found = _find_amount_due(automaton, configuration, part)
            if found is None or not any(name in found[0] for name in names):
                continue
            if later is None or any(name in found[0] for name in later):
                scope = wording.selection_sum_later
            if part.at_most is None:
                least = found[1]
            elif not free:
                most = found[1]
        if most is not None or least:
            yield fill_template(scope, {"amount": _write_range(least, most), "quantity": limit.quantity})


def _find_amount_due(
    automaton: LimitedAutomaton[Any], configuration: Any, part: SumLimit
) -> tuple[Collection[str], Fraction] | None:
    """The terminals that count for a bound on a sum, and what is left or still needed of it."""
    line, counters = part.lines()[0], automaton.counters
    for (shift, mask), bound in zip(counters.fields, counters.bounds, strict=True):
        if bound.line == line and bound.terminal is None:
            upper = part.at_most is not None
            whole = bound.most if bound.most is not None else bound.least
            edge = Fraction(amount((part.at_most if upper else part.at_least) or 0))
            now = (configuration.remaining if upper else configuration.needed) >> shift & mask
            return bound.weights.keys(), edge * now / whole if whole else Fraction(0)
    return None


def _find_readable_below(table: ChoiceTable, configuration: Any) -> set[str] | None:
    """The terminals that may come after the selection on top of the stack, or more; None where that is not known."""
    pda = table.lookahead.pda
    if pda is None:
        return None
    leads_on: dict[Any, list[Any]] = {}
    for transition in pda.transitions:
        leads_on.setdefault(transition.state, []).append(transition)
    states = reach([configuration.inner.state], lambda state: (t.target for t in leads_on.get(state, ())))
    possible: dict[str | None, list[Any]] = {}
    for state in states:
        for transition in leads_on.get(state, ()):
            possible.setdefault(transition.pop, []).append(transition)
    # What pops nothing, kept under None, may come whatever is on the stack.
    first = (None, *configuration.inner.stack.rest)
    popped = reach(first, lambda name: (pushed for t in possible.get(name, ()) for pushed in t.push))
    return {t.read for name in popped for t in possible.get(name, ()) if t.read is not None}


def _write_range(least: Fraction, most: Fraction | None) -> str:
    if most is None:
        return f"at least {_write_number(least)}"
    if least == most:
        return f"exactly {_write_number(most)}"
    return f"between {_write_number(least)} and {_write_number(most)}" if least else f"at most {_write_number(most)}"


def _write_number(amount: Fraction) -> str:
    """A number that came from a decimal one, as that."""
    if amount.denominator == 1:
        return str(amount.numerator)
    return f"{(Decimal(amount.numerator) / Decimal(amount.denominator)).normalize():f}"
