"""Making the question of a choice: its options, its prompt, its outlook, and what it objects to.

A question may be pickled and answered elsewhere, and has to refuse there what it refuses here. So its objections are
values that carry what they decide by, the automaton with the walk's configuration; what the lookahead has worked out
stays behind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import count
from typing import Any

from formal_llm.automata import Transition
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.limited import LimitedAutomaton
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.models.automaton import Move
from formal_llm.automata.models.limits import SumLimit
from formal_llm.automata.models.quantities import amount
from formal_llm.automata.models.symbols import find_reachable
from formal_llm.llms.question import Message, Option, Outlook, Prospect, Question, Term
from formal_llm.planning.plans.tree import Node, build_tree
from formal_llm.planning.walks.choices import Choice, ChoiceFork, ChoiceTable, RuledOut, SelectionPart
from formal_llm.planning.walks.journal import ChoiceKey, JournalEntry, QuestionPast
from formal_llm.planning.walks.pages import Pager, Pages, number_options
from formal_llm.planning.walks.wording import Wording, fill_template

#: How many sets are listed at the most.
LISTED = 8


def list_hints(table: ChoiceTable, entry: JournalEntry, left: float, wording: Wording) -> Iterator[str]:
    """The lines about what may be chosen together; none where any set of the options may.

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
    states = find_reachable([configuration.inner.state], lambda state: (t.target for t in leads_on.get(state, ())))
    possible: dict[str | None, list[Any]] = {}
    for state in states:
        for transition in leads_on.get(state, ()):
            possible.setdefault(transition.pop, []).append(transition)
    # What pops nothing, kept under None, may come whatever is on the stack.
    first = (None, *configuration.inner.stack.rest)
    popped = find_reachable(first, lambda name: (pushed for t in possible.get(name, ()) for pushed in t.push))
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


_NUMBERS = count(1)
#: The most options times terminals for which each option shows what the limits still leave after it.
_FINE = 50_000
#: With more options times transitions, what may still come is shown for all of them together.
_LARGE = 200_000


class QuestionBuilder:
    """Makes the questions of a walk, which has a task, a name, and a number for itself."""

    def __init__(
        self, table: ChoiceTable, wording: Wording, task: str, walk: str = "", pages: Pages | None = None
    ) -> None:
        self._table = table
        self.wording = wording
        self._pager = None if pages is None else Pager(pages, wording, task, table.vocabulary)
        self._task = task
        self.walk = walk
        self.id = next(_NUMBERS)
        #: The detours that were looked at last, and what they allow.
        self._allowed: tuple[dict[str, int] | None, tuple[tuple[Term, int], ...]] = (None, ())

    def build_plan_tree(self, moves: Sequence[Move]) -> Node:
        """The tree of a plan."""
        return build_tree(moves, self._table.vocabulary.label, self._table.vocabulary.start)

    def build_question(
        self, entry: JournalEntry, moves: Sequence[Move], journal: Sequence[JournalEntry], left: float
    ) -> Question:
        """The question of a choice, after moves and earlier choices, when ``left`` more moves may be made."""
        wording = self.wording
        options = self._make_options(entry)
        last = journal[-1] if journal else None
        if last is not None and not (last.asked and last.past is not None):
            last = next((e for e in reversed(journal) if e.asked and e.past is not None), None)
        entry.past = past = QuestionPast(last, tuple(moves[0 if last is None else last.moves : entry.moves]))

        def write_prompt() -> str:
            texts = [option.text for option in options]
            before = past.moves
            shown = self.build_plan_tree(before[: last.moves]) if wording.conversation and last is not None else None
            several, question = (
                entry.fork.several,
                _find_common_question([next(choice.iter_choices()) for choice in entry.offered_choices]),
            )
            with self._table.in_time():
                hints = tuple(list_hints(self._table, entry, left, wording)) if several else ()
            hints = (entry.note, *hints) if entry.note else hints
            part = entry.fork.part
            wanted = "" if part is None else fill_template(wording.page_wanted, {"count": len(part.all_members)})
            return wording.ask(
                self._task, self.build_plan_tree(before), texts, self._table.vocabulary.order,
                several=several, shown=shown, question=question, wanted=wanted, hints=hints,
            )  # fmt: skip

        def write_messages() -> tuple[Message, ...]:
            earlier = past.answered_entries if wording.conversation else ()
            talk = ((e.question.prompt, e.answer_text) for e in earlier if e.question is not None)
            return wording.before(talk, self._task, self._table.rules)

        objection = SelectionObjection.for_entry(self._table, entry, left) if entry.fork.several else None
        return Question(
            write_prompt,
            options,
            several=entry.fork.several,
            task=self._task,
            messages=write_messages,
            outlook=lambda: self._make_outlook(entry, past.moves),
            objection=objection,
            begins=None if objection is None else SelectionBeginning(objection),
            walk=self.walk,
        )

    def take_first_page(self, fork: ChoiceFork, last: frozenset[str] = frozenset()) -> ChoiceFork:
        """The first page of a fork; the fork itself where it is small enough, and where there are no pages."""
        return fork if self._pager is None else self._pager.make_first_page(fork, self.describe_choices, last)

    def describe_choices(self, fork: ChoiceFork) -> tuple[str, ...]:
        """The texts of all choices of a fork."""
        if fork.several:
            return tuple(self._table.vocabulary.label(choice.reads[0]) for choice in fork.choices)
        return self.wording.options(fork.choices, self._table.vocabulary.label, self._table.vocabulary.order)

    def describe_chosen(self, entry: JournalEntry) -> str:
        """The text of what was chosen at an entry."""
        return "" if entry.chosen is None else self.describe_choice(entry.fork, entry.chosen)

    def describe_choice(self, fork: ChoiceFork, choice: Choice) -> str:
        """The text of a choice of a fork by itself; of a selection, what is chosen together."""
        vocabulary = self._table.vocabulary
        label = vocabulary.label
        parts = [*map(label, choice.reads)] if fork.several else []
        parts += [choice.menu.text] if choice.menu is not None else []
        return ", ".join(parts) if parts else self.wording.option(choice, label, vocabulary.order)

    def _make_options(self, entry: JournalEntry) -> tuple[Option, ...]:
        """The options of an entry; those of a fork with nothing ruled out are made once."""
        fork = entry.fork
        shown: tuple[Wording, tuple[Option, ...]] | None = fork.shown
        if shown is None or (shown[0] is not self.wording and shown[0] != self.wording):
            texts = self.describe_choices(fork)
            shown = fork.shown = (self.wording, number_options(fork, fork.choices, texts, self.wording))
        if not entry.excluded or fork.several:
            return shown[1]
        kept = {choice.index: option for choice, option in zip(fork.choices, shown[1], strict=True)}
        return tuple(replace(kept[choice.index], number=n) for n, choice in enumerate(entry.offered_choices, 1))

    def _make_outlook(self, entry: JournalEntry, moves: Sequence[Move]) -> Outlook:
        lookahead = self._table.lookahead
        # What comes after "more" is as good as the best of it, which comes first.
        more = entry.fork.more
        offered = [
            next(choice.iter_choices())
            for choice in (*entry.offered_choices, *(more.items[:1] if more is not None else ()))
        ]
        after = [self._table.after(entry.configuration, choice) for choice in offered]
        known = [(name, self._make_term(name)) for name in self._table.vocabulary.terminals]
        size = 1 if lookahead.pda is None else len(lookahead.pda.transitions)
        if size * len(after) <= _LARGE:
            limits = len(known) * len(after) <= _FINE
            detours = [lookahead.detours(one, limits=limits) for one in after]
        else:  # what may still come here, whatever is chosen
            detours = [dict.fromkeys(lookahead.detours(entry.configuration), 0)] * len(after)
        prospect = partial(self._make_prospect, known=known)
        prospects = tuple(map(prospect, offered, after, detours, lookahead.least_lengths(after)))
        so_far = tuple(self._make_term(move.read) for move in moves if move.read is not None)
        return Outlook(so_far, prospects, self._table.vocabulary.order == "prefix")

    def _make_prospect(
        self, choice: Choice, after: Hashable, detours: dict[str, int], least: float, known: Sequence[tuple[str, Term]]
    ) -> Prospect:
        lookahead = self._table.lookahead
        of, allows = self._allowed
        if detours is not of:  # where nothing is limited, all options have the same
            known = known or [(name, self._make_term(name)) for name in detours]
            allows = tuple([(term, detours[name]) for name, term in known if name in detours])
            self._allowed = detours, allows
        if least == INFINITE:  # not known to be dead, unless there is no lookahead
            least = lookahead.least_length(after, tries=0)
        length = int(least) if least < INFINITE else INFINITE
        return Prospect(tuple(map(self._make_term, choice.reads)), allows, length)

    def _make_term(self, name: str) -> Term:
        return Term(name, self._table.vocabulary.label(name), self._table.vocabulary.describe_terminal(name))


def _find_common_question(choices: Sequence[Choice]) -> str:
    """The question that the automaton asks where these can be chosen; empty where it has none, or several."""
    first = [choice.moves[0] for choice in choices if choice.moves]
    questions = {move.question if isinstance(move, Transition) else "" for move in first}
    return questions.pop() if len(questions) == 1 else ""


@dataclass(frozen=True, slots=True, eq=False)
class SelectionObjection:
    """What is wrong with choosing some options of a selection together.

    Attributes:
        table: the choices of the automaton.
        configuration: that of the walk.
        members: what the options read, in their order.
        excluded: the sets of members that are ruled out.
        left: how many more moves may be made.
        part: the part of the selection that is asked; where pages come after it, one more option leads to them.
    """

    table: ChoiceTable
    configuration: object
    members: tuple[str, ...]
    excluded: frozenset[ChoiceKey]
    left: float
    part: SelectionPart

    @classmethod
    def for_entry(cls, table: ChoiceTable, entry: JournalEntry, left: float) -> SelectionObjection:
        """That of a selection in the journal."""
        fork = entry.fork
        members = tuple(choice.reads[0] for choice in fork.choices)
        return cls(table, entry.configuration, members, entry.excluded, left, fork.scope)

    def collect_names(self, numbers: Iterable[int]) -> frozenset[str]:
        """What is chosen with these numbers, earlier pages included."""
        return self.part.taken.union(self.members[number - 1] for number in numbers if number <= len(self.members))

    def __call__(self, numbers: tuple[int, ...]) -> str:
        """Why the options of these numbers cannot be chosen together; empty where they can."""
        names, further = self.collect_names(numbers), max(numbers) > len(self.members)
        if (names | {self.part.marker} if further else names) in self.excluded:
            return "this selection is ruled out"
        if not further:
            possible = self.table.subset(self.configuration, names, self.left) is not None
            return "" if possible else "these cannot be chosen together under the rules"
        may, out = names | self.part.later, self.excluded | {names}
        possible = self.table.some_subset(self.configuration, names, may, self.left, out)
        return "" if possible else "nothing more can be chosen together with these under the rules"

    def __deepcopy__(self, memo: object) -> SelectionObjection:
        return self  # nothing of it changes

    def __reduce__(self) -> tuple[Callable[..., SelectionObjection], tuple[object, ...]]:
        return _rebuild_objection, (self.table.lookahead, self.table.look, *self._list_facts())

    def _list_facts(self) -> tuple[object, ...]:
        return self.configuration, self.members, self.excluded, self.left, self.part

    def _make_key(self) -> tuple[object, ...]:
        return self.table.automaton.fingerprint, self.table.look, *self._list_facts()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SelectionObjection) and self._make_key() == other._make_key()

    def __hash__(self) -> int:
        return hash(self._make_key())


@dataclass(frozen=True, slots=True)
class SelectionBeginning:
    """Whether options can be chosen together with some of those after them."""

    rule: SelectionObjection

    def __call__(self, numbers: tuple[int, ...]) -> bool:
        """Whether the options of these numbers can be chosen, with higher ones or alone."""
        rule = self.rule
        if max(numbers) > len(rule.members):  # nothing comes after "more"
            return not rule(numbers)
        must = rule.collect_names(numbers)
        may = must.union(rule.members[max(numbers) :], rule.part.later)
        out = RuledOut(rule.excluded, rule.part) if rule.part.marker else rule.excluded
        return rule.table.some_subset(rule.configuration, must, may, rule.left, out)


def _rebuild_objection(lookahead: Lookahead, look: bool, *facts: Any) -> SelectionObjection:
    return SelectionObjection(ChoiceTable(lookahead, look=look), *facts)
