"""Making the question of a choice: its options, its prompt, its outlook, and what it objects to.

A question may be pickled and answered elsewhere, and has to refuse there what it refuses here. So its objections are
values that carry what they decide by, the automaton with the walk's configuration; what the lookahead has worked out
stays behind.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

from formal_llm.automata import Transition
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.models.automaton import Move
from formal_llm.llms.question import Message, Option, Outlook, Prospect, Question, Term
from formal_llm.planning.plans.tree import Node, build_tree
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.forks import Choice, Fork
from formal_llm.planning.walks.hints import hints
from formal_llm.planning.walks.journal import ChoiceKey, JournalEntry, Past
from formal_llm.planning.walks.wording import Wording

_NUMBERS = count(1)
#: For each of so many options and terminals together it is told which of these the limits still leave after it.
_FINE = 50_000
#: What may come after each option is looked for, where options, terminals and what making the lookahead took come to no
#: more than this when they are multiplied.
_MADE = 30_000_000


class Asker:
    """Makes the questions of a walk, which has a task, a name, and a number for itself."""

    def __init__(self, table: ChoiceTable, wording: Wording, task: str, walk: str = "") -> None:
        self._table = table
        self.wording = wording
        self._task = task
        self.walk = walk
        self.id = next(_NUMBERS)
        #: The detours that were looked at last, and what they allow.
        self._allowed: tuple[dict[str, int] | None, tuple[tuple[Term, int], ...]] = (None, ())

    def tree(self, moves: Sequence[Move]) -> Node:
        """The tree of a plan."""
        return build_tree(moves, self._table.vocabulary.label, self._table.vocabulary.start)

    def ask(self, entry: JournalEntry, moves: Sequence[Move], journal: Sequence[JournalEntry], left: float) -> Question:
        """The question of a choice, after moves and earlier choices, when ``left`` more moves may be made."""
        wording = self.wording
        options = self._options(entry)
        last = journal[-1] if journal else None
        if last is not None and not (last.asked and last.past is not None):
            last = next((e for e in reversed(journal) if e.asked and e.past is not None), None)
        entry.past = past = Past(last, tuple(moves[0 if last is None else last.moves : entry.moves]))

        def prompt() -> str:
            texts = [option.text for option in options]
            before = past.moves
            shown = self.tree(before[: last.moves]) if wording.conversation and last is not None else None
            several, question = entry.fork.several, _asked(entry.offered)
            with self._table.in_time():
                told = tuple(hints(self._table, entry, left, wording)) if several else ()
            told = (entry.note, *told) if entry.note else told
            return wording.ask(
                self._task, self.tree(before), texts, several=several, shown=shown, question=question, hints=told
            )

        def messages() -> tuple[Message, ...]:
            earlier = past.answered if wording.conversation else ()
            talk = ((e.question.prompt, e.said) for e in earlier if e.question is not None)
            return wording.before(talk, self._task, self._table.rules)

        objection = Together.at(self._table, entry, left) if entry.fork.several else None
        return Question(
            prompt,
            options,
            several=entry.fork.several,
            task=self._task,
            messages=messages,
            outlook=lambda: self._outlook(entry, past.moves),
            objection=objection,
            begins=None if objection is None else SomeTogether(objection),
            walk=self.walk,
        )

    def texts(self, fork: Fork) -> tuple[str, ...]:
        """The texts of all choices of a fork."""
        if fork.several:
            return tuple(self._table.vocabulary.label(choice.reads[0]) for choice in fork.choices)
        return self.wording.options(fork.choices, self._table.vocabulary.label)

    def chosen_text(self, entry: JournalEntry) -> str:
        """The text of what was chosen at an entry."""
        return "" if entry.chosen is None else self.text(entry.fork, entry.chosen)

    def text(self, fork: Fork, choice: Choice) -> str:
        """The text of a choice of a fork by itself; of a selection, what is chosen together."""
        label = self._table.vocabulary.label
        return ", ".join(map(label, choice.reads)) if fork.several else self.wording.option(choice, label)

    def _options(self, entry: JournalEntry) -> tuple[Option, ...]:
        """The options of an entry; those of a fork with nothing ruled out are made once."""
        fork = entry.fork
        shown: tuple[Wording, tuple[Option, ...]] | None = fork.shown
        if shown is None or (shown[0] is not self.wording and shown[0] != self.wording):
            shown = fork.shown = (self.wording, _numbered(self.texts(fork)))
        if not entry.excluded or fork.several:
            return shown[1]
        text = {choice.index: option.text for choice, option in zip(fork.choices, shown[1], strict=True)}
        return _numbered([text[choice.index] for choice in entry.offered])

    def _outlook(self, entry: JournalEntry, moves: Sequence[Move]) -> Outlook:
        lookahead = self._table.lookahead
        after = [self._table.after(entry.configuration, choice) for choice in entry.offered]
        known = [(name, self._term(name)) for name in self._table.vocabulary.terminals]
        if lookahead.made * len(known) * len(after) <= _MADE:
            limits = len(known) * len(after) <= _FINE
            detours = [lookahead.detours(one, limits=limits) for one in after]
        else:  # what may still come here, whatever is chosen
            detours = [dict.fromkeys(lookahead.detours(entry.configuration), 0)] * len(after)
        prospect = partial(self._prospect, known=known)
        prospects = tuple(map(prospect, entry.offered, after, detours, lookahead.least_lengths(after)))
        so_far = tuple(self._term(move.read) for move in moves if move.read is not None)
        return Outlook(so_far, prospects, self.wording.backward)

    def _prospect(
        self, choice: Choice, after: Hashable, detours: dict[str, int], least: float, known: Sequence[tuple[str, Term]]
    ) -> Prospect:
        lookahead = self._table.lookahead
        of, allows = self._allowed
        if detours is not of:  # where nothing is limited, all options have the same
            known = known or [(name, self._term(name)) for name in detours]
            allows = tuple([(term, detours[name]) for name, term in known if name in detours])
            self._allowed = detours, allows
        return Prospect(
            uses=tuple(map(self._term, choice.reads)),
            allows=allows,
            length=int(least if least < INFINITE else lookahead.least_length(after, tries=0)),  # not known to be dead
        )

    def _term(self, name: str) -> Term:
        return Term(name, self._table.vocabulary.label(name), self._table.vocabulary.description(name))


def _asked(choices: Sequence[Choice]) -> str:
    """The question that the automaton asks where these can be chosen; empty where it has none, or several."""
    first = [choice.moves[0] for choice in choices if choice.moves]
    questions = {move.question if isinstance(move, Transition) else "" for move in first}
    return questions.pop() if len(questions) == 1 else ""


def _numbered(texts: Sequence[str]) -> tuple[Option, ...]:
    return tuple(Option(number, text) for number, text in enumerate(texts, 1))


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """What is wrong with choosing some options of a selection together.

    Attributes:
        table: the choices of the automaton.
        configuration: where the walk stands.
        members: what the options read, in their order.
        excluded: the sets of members that are ruled out.
        left: how many more moves may be made.
    """

    table: ChoiceTable
    configuration: object
    members: tuple[str, ...]
    excluded: frozenset[ChoiceKey]
    left: float

    @classmethod
    def at(cls, table: ChoiceTable, entry: JournalEntry, left: float) -> Together:
        """That of a selection in the journal."""
        members = tuple(choice.reads[0] for choice in entry.fork.choices)
        return cls(table, entry.configuration, members, entry.excluded, left)

    def __call__(self, numbers: tuple[int, ...]) -> str:
        """Why the options of these numbers cannot be chosen together; empty where they can."""
        names = frozenset(self.members[number - 1] for number in numbers)
        if names in self.excluded:
            return "this selection is ruled out"
        possible = self.table.subset(self.configuration, names, self.left) is not None
        return "" if possible else "these cannot be chosen together under the rules"

    def __deepcopy__(self, memo: object) -> Together:
        return self  # nothing of it changes

    def __reduce__(self) -> tuple[Callable[..., Together], tuple[object, ...]]:
        table = self.table
        return _rebuild, (table.lookahead, table.look, self.configuration, self.members, self.excluded, self.left)

    def _key(self) -> tuple[object, ...]:
        automaton = self.table.automaton.fingerprint
        return automaton, self.table.look, self.configuration, self.members, self.excluded, self.left

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Together) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


@dataclass(frozen=True, slots=True)
class SomeTogether:
    """Whether options can be chosen together with some of those after them."""

    rule: Together

    def __call__(self, numbers: tuple[int, ...]) -> bool:
        """Whether the options of these numbers can be chosen, with higher ones or alone."""
        rule = self.rule
        must = frozenset(rule.members[number - 1] for number in numbers)
        may = must | frozenset(rule.members[max(numbers) :])
        return rule.table.some_subset(rule.configuration, must, may, rule.left, rule.excluded)


def _rebuild(
    lookahead: Lookahead,
    look: bool,
    configuration: object,
    members: tuple[str, ...],
    excluded: frozenset[ChoiceKey],
    left: float,
) -> Together:
    return Together(ChoiceTable(lookahead, look=look), configuration, members, excluded, left)
