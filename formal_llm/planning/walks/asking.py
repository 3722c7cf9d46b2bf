"""Making the question of a choice: its options, its prompt, its outlook."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.automata import Transition
from formal_llm.automata.models.automaton import Move
from formal_llm.llms.question import Message, Option, Outlook, Prospect, Question, Term
from formal_llm.planning.plans.tree import Node, build_tree
from formal_llm.planning.plans.vocabulary import Vocabulary
from formal_llm.planning.walks.choices import Choice, ChoiceTable, Fork
from formal_llm.planning.walks.journal import JournalEntry
from formal_llm.planning.walks.together import SomeTogether, Together
from formal_llm.planning.walks.wording import Wording


class Asker:
    """Makes the questions of a walk.

    Args:
        table: the choices of the automaton.
        wording: how questions are put.
        task: the description of the task.
        walk: the name of the walk.
    """

    def __init__(self, table: ChoiceTable, wording: Wording, task: str, walk: str = "") -> None:
        self._table = table
        self.wording = wording
        self._task = task
        self.walk = walk
        self._vocabulary = Vocabulary(table.lookahead.source)

    def tree(self, moves: Sequence[Move]) -> Node:
        """The tree of a plan."""
        return build_tree(moves, self._vocabulary.label, self._vocabulary.start)

    def ask(self, entry: JournalEntry, moves: Sequence[Move], journal: Sequence[JournalEntry], left: float) -> Question:
        """The question of a choice.

        Args:
            entry: the choice.
            moves: the moves of the plan so far.
            journal: the earlier choices.
            left: how many more moves may be made.
        """
        wording = self.wording
        options = self._options(entry)
        earlier = [e for e in journal if e.asked and e.question is not None] if wording.conversation else []
        before = tuple(moves[: entry.moves])

        def prompt() -> str:
            texts = [option.text for option in options]
            shown = self.tree(before[: earlier[-1].moves]) if earlier else None
            return wording.ask(
                self._task,
                self.tree(before),
                texts,
                several=entry.fork.several,
                shown=shown,
                question=_asked(entry.offered),
            )

        def messages() -> tuple[Message, ...]:
            talk = ((e.question.prompt, e.said) for e in earlier if e.question is not None)
            return wording.before(talk, self._task, self._table.rules)

        objection = Together.at(self._table, entry, left) if entry.fork.several else None
        return Question(
            prompt,
            options,
            several=entry.fork.several,
            task=self._task,
            messages=messages,
            outlook=lambda: self._outlook(entry, before),
            objection=objection,
            # Sets that are ruled out one by one say nothing of those around them: then sets are tried.
            begins=None if objection is None or objection.excluded else SomeTogether(objection),
            walk=self.walk,
        )

    def texts(self, fork: Fork) -> tuple[str, ...]:
        """The texts of all choices of a fork."""
        if fork.several:
            return tuple(self._vocabulary.label(choice.reads[0]) for choice in fork.choices)
        return self.wording.options(fork.choices, self._vocabulary.label)

    def chosen_text(self, entry: JournalEntry) -> str:
        """The text of what was chosen at an entry."""
        if entry.chosen is None:
            return ""
        if entry.fork.several:
            return ", ".join(map(self._vocabulary.label, sorted(entry.members)))
        return self.wording.option(entry.chosen, self._vocabulary.label)

    def _options(self, entry: JournalEntry) -> tuple[Option, ...]:
        """The options of an entry; those of a fork with nothing ruled out are made once."""
        fork = entry.fork
        shown: tuple[Wording, tuple[Option, ...]] | None = fork.shown
        if shown is None or shown[0] is not self.wording:
            shown = fork.shown = (self.wording, _numbered(self.texts(fork)))
        if len(entry.offered) == len(fork.choices):
            return shown[1]
        text = {choice.index: option.text for choice, option in zip(fork.choices, shown[1], strict=True)}
        return _numbered([text[choice.index] for choice in entry.offered])

    def _outlook(self, entry: JournalEntry, moves: Sequence[Move]) -> Outlook:
        prospects = tuple(self._prospect(entry, choice) for choice in entry.offered)
        so_far = tuple(self._term(move.read) for move in moves if move.read is not None)
        return Outlook(so_far, prospects, self.wording.order == "backward")

    def _prospect(self, entry: JournalEntry, choice: Choice) -> Prospect:
        lookahead = self._table.lookahead
        after = self._table.after(entry.configuration, choice)
        detours = lookahead.detours(after)
        return Prospect(
            uses=tuple(map(self._term, choice.reads)),
            allows=tuple((self._term(n), detours[n]) for n in self._vocabulary.terminals or detours if n in detours),
            length=int(lookahead.least_length(after)),
        )

    def _term(self, name: str) -> Term:
        return Term(name, self._vocabulary.label(name), self._vocabulary.description(name))


def _asked(choices: Sequence[Choice]) -> str:
    """The question that the automaton asks where these can be chosen; empty where it has none, or several."""
    first = [choice.moves[0] for choice in choices if choice.moves]
    questions = {move.question if isinstance(move, Transition) else "" for move in first}
    return questions.pop() if len(questions) == 1 else ""


def _numbered(texts: Sequence[str]) -> tuple[Option, ...]:
    return tuple(Option(number, text) for number, text in enumerate(texts, 1))
