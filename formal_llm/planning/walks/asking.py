"""Making the question of a choice: its options, its prompt, its outlook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from formal_llm.llms.question import Message, Option, Outlook, Prospect, Question, Term
from formal_llm.planning.plans.tree import Node
from formal_llm.planning.walks.choices import Choice, ChoiceTable, Fork
from formal_llm.planning.walks.journal import Entry
from formal_llm.planning.walks.together import SomeTogether, Together
from formal_llm.planning.walks.wording import Wording


class Asker:
    """Makes questions for the walks over one automaton.

    Args:
        table: the choices of the automaton.
        wording: how questions are put.
        task: the description of the task.
        tree: makes the tree of a plan from its moves.
        walk: the name of the walk.
    """

    def __init__(
        self,
        table: ChoiceTable,
        wording: Wording,
        task: str,
        tree: Callable[[Sequence[Any]], Node],
        walk: str = "",
    ) -> None:
        self._table = table
        self._wording = wording
        self._task = task
        self._tree = tree
        self._walk = walk

    def ask(self, entry: Entry, moves: Sequence[Any], journal: Sequence[Entry], left: float) -> Question:
        """The question of a choice.

        Args:
            entry: the choice.
            moves: the moves of the plan so far.
            journal: the earlier choices.
            left: how many more moves may be made.
        """
        wording = self._wording
        options = self._options(entry)
        earlier = [e for e in journal if e.asked and e.question is not None] if wording.conversation else []
        before = tuple(moves[: entry.moves])

        def prompt() -> str:
            texts = [option.text for option in options]
            shown = self._tree(before[: earlier[-1].moves]) if earlier else None
            return wording.ask(
                self._task,
                self._tree(before),
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
            walk=self._walk,
        )

    def texts(self, fork: Fork) -> tuple[str, ...]:
        """The texts of all choices of a fork."""
        if fork.several:
            return tuple(self._table.automaton.label(choice.reads[0]) for choice in fork.choices)
        return self._wording.options(fork.choices, self._table.automaton)

    def chosen_text(self, entry: Entry) -> str:
        """The text of what was chosen at an entry."""
        if entry.chosen is None:
            return ""
        if entry.fork.several:
            return ", ".join(map(self._table.automaton.label, sorted(entry.members)))
        return self._wording.option(entry.chosen, self._table.automaton)

    def _options(self, entry: Entry) -> tuple[Option, ...]:
        """The options of an entry; those of a fork with nothing ruled out are made once."""
        fork = entry.fork
        shown: tuple[Wording, tuple[Option, ...]] | None = fork.shown
        if shown is None or shown[0] is not self._wording:
            shown = fork.shown = (self._wording, _numbered(self.texts(fork)))
        if len(entry.offered) == len(fork.choices):
            return shown[1]
        text = {choice.index: option.text for choice, option in zip(fork.choices, shown[1], strict=True)}
        return _numbered([text[choice.index] for choice in entry.offered])

    def _outlook(self, entry: Entry, moves: Sequence[Any]) -> Outlook:
        prospects = tuple(self._prospect(entry, choice) for choice in entry.offered)
        so_far = tuple(self._term(move.read) for move in moves if move.read is not None)
        return Outlook(so_far, prospects, self._wording.order == "backward")

    def _prospect(self, entry: Entry, choice: Choice) -> Prospect:
        lookahead = self._table.lookahead
        after = self._table.after(entry.configuration, choice)
        detours = lookahead.detours(after)
        return Prospect(
            uses=tuple(map(self._term, choice.reads)),
            allows=tuple((self._term(n), detours[n]) for n in self._table.automaton.terminals if n in detours),
            length=int(lookahead.least_length(after)),
        )

    def _term(self, name: str) -> Term:
        symbols: Mapping[str, Any] = getattr(self._table.automaton, "symbols", {})
        description = symbols[name].description if name in symbols else ""
        return Term(name, self._table.automaton.label(name), description)


def _asked(choices: Sequence[Choice]) -> str:
    """The question that the automaton asks where these can be chosen; empty where it has none, or several."""
    questions = {getattr(choice.moves[0], "question", "") for choice in choices if choice.moves}
    return questions.pop() if len(questions) == 1 else ""


def _numbered(texts: Sequence[str]) -> tuple[Option, ...]:
    return tuple(Option(number, text) for number, text in enumerate(texts, 1))
