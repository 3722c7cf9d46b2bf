"""Reading a draft: a whole plan that a model wrote, which need not be one.

What is a plan is read as any plan is (:mod:`formal_llm.planning.reading.reader`). Of what is none, as many of the steps
as can be read are kept, in the order of the word, and what was written where one could not be read: so a draft with one
bad step is worth all its other steps.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from formal_llm.automata import PDA, Source, Transition
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.automaton import Move
from formal_llm.automata.models.clockwork import base_with_clock
from formal_llm.automata.models.symbols import turn_word
from formal_llm.errors import NotationError, Undecided
from formal_llm.planning.plans.vocabulary import Vocabulary
from formal_llm.planning.reading.candidates import write_step
from formal_llm.planning.reading.phrases import MovePhrases, Naming
from formal_llm.planning.reading.prose import is_rule, numbered_lines, strip_emphasis
from formal_llm.planning.reading.reader import Reading, read_plan

_LEAD = re.compile(r"\s*(?:>\s*)*(?:[-*+•‣◦–—]\s+)?(?:(?:step\s+)?\(?\d+[.):]+\s*|step\s+\d+\s+)?", re.IGNORECASE)
_TOKEN = re.compile(r"[^\s(),\[\]{}\"'`;]+")
_RESULT = re.compile(r"^\s*\w+\s*=\s+|^\s*\w+\s+=\s*")
#: What a step may end before: what it is applied to, what was chosen, a remark.
_CUTS = (" on ", ": ", " (", " - ", " — ")
#: How much of a draft is read: far more than any plan takes, so that endless text costs nothing.
_MOST = 50_000
#: What makes a transition the step that it prints, whatever product it is part of.
MoveIdentity = tuple[str | None, str, str, bool]


def identify_move(move: Move) -> MoveIdentity:
    """The text of a move."""
    if isinstance(move, Transition):
        return move.read, move.text, move.question, move.decision
    return move.read, "", "", False


@dataclass(frozen=True, slots=True)
class DraftStep:
    """A step of a draft.

    Attributes:
        text: as it was written.
        names: the terminals that it may be; none where it cannot be read.
        moves: of an automaton that comes from no grammar, the moves that it may be.
    """

    text: str
    names: frozenset[str] = frozenset()
    moves: frozenset[MoveIdentity] = frozenset()

    def is_made_by(self, move: Move) -> bool:
        """Whether a move is this step."""
        return identify_move(move) in self.moves if self.moves else move.read in self.names


@dataclass(frozen=True, slots=True)
class DraftSteps:
    """The contents of a draft.

    Attributes:
        steps: its steps, in the order of the word.
        loose: whether decisions may be left out between them.
        problem: why it is no plan, whatever the limits; empty where it is one.
    """

    steps: tuple[DraftStep, ...] = ()
    loose: bool = False
    problem: str = ""

    def __bool__(self) -> bool:
        """Whether it has any contents: a plan may have no steps, what cannot be read has none either."""
        return bool(self.steps) or not self.problem


def read_draft(text: str, source: Source) -> DraftSteps:
    """The steps of a draft; none where nothing in it can be read.

    Args:
        text: the draft.
        source: the rules, with constraints and limits.
    """
    return _DraftReader(source).read_text(text[:_MOST])


class _DraftReader:
    def __init__(self, source: Source) -> None:
        automaton = as_automaton(source)
        self._source = source
        self._pda = automaton if isinstance(automaton, PDA) else None
        self._base = base_with_clock(self._pda) if self._pda is not None else None
        words = Vocabulary(automaton)
        self._order = words.order
        self._terminals = dict.fromkeys(words.terminals)
        self._naming = Naming(words, self._terminals)
        self._moves = MovePhrases(self._base) if self._base is not None and self._base.cfg is None else None

    def read_text(self, text: str) -> DraftSteps:
        if not text.strip():
            return DraftSteps(problem="nothing was written")
        problem, steps = "", None
        try:
            reading = read_plan(text, self._source)
            steps = self._convert_reading(reading)
            problem = reading.wrong.problem if steps is None and reading.wrong is not None else ""
        except (NotationError, Undecided, ValueError, RecursionError) as error:
            problem = str(error).split("\n", 1)[0]
        if steps is None:
            steps, problem = tuple(self._salvage_steps(text)), problem or "this is no plan"
        return DraftSteps(steps, self._moves is not None, problem)

    def _convert_reading(self, reading: Reading) -> tuple[DraftStep, ...] | None:
        """The steps of what could be read; None where that describes no word."""
        if self._moves is not None and reading.lines:
            if not reading.candidates:
                return None
            lines = [self._read_step(line.text) for line in reading.lines]
            return tuple(turn_word(lines, self._order))
        word = reading.within(self._pda) if self._pda is not None else None
        word = reading.within() if word is None else word
        return None if word is None else tuple(self._make_terminal_step(name) for name in word)

    def _make_terminal_step(self, name: str) -> DraftStep:
        if self._moves is None:
            return DraftStep(name, frozenset((name,)))
        moves = [move for move in self._moves.pda.transitions if move.read == name]
        return DraftStep(name, frozenset((name,)), frozenset(map(identify_move, moves)))

    def _read_step(self, text: str) -> DraftStep:
        """What a text may be; a step without names where it is nothing."""
        if self._moves is not None:
            matching: Collection[Transition] = self._moves.find_transitions(text)
            names = frozenset(move.read for move in matching if move.read is not None)
            return DraftStep(text, names, frozenset(map(identify_move, matching)))
        return DraftStep(text, frozenset(self._naming.find_terminals(text)))

    def _salvage_steps(self, text: str) -> Iterator[DraftStep]:
        rows = [strip_emphasis(row) for _, row in numbered_lines(text) if not is_rule(row)]
        found = [steps for row in rows if (steps := self._salvage_row(row))]
        # A word and nested calls are on one line, in the order of the word; steps on lines are in that of the plan.
        lines = all(len(steps) == 1 for steps in found)
        for steps in found[::-1] if lines and self._order == "prefix" else found:
            yield from steps

    def _salvage_row(self, row: str) -> Sequence[DraftStep]:
        """The steps of a line; none where it is no line of the plan."""
        bare = row[len(_LEAD.match(row)[0]) :].strip()  # type: ignore[index]  # it matches the empty text
        for text in dict.fromkeys((row.strip(), bare, *(bare.split(cut)[0] for cut in _CUTS))):
            step = self._read_step(text)
            if step.names or step.moves:
                return (step,)
        tokens = _TOKEN.findall(_RESULT.sub("", bare))
        known = sum(token in self._terminals for token in tokens)
        if known and 2 * known >= len(tokens):
            return [
                self._make_terminal_step(token) if token in self._terminals else DraftStep(token) for token in tokens
            ]
        return (DraftStep(bare),) if bare != row.strip() and bare else ()


def is_silent(move: Move, *, loose: bool) -> bool:
    """Whether a move may come between the steps of a draft: it reads nothing, or only answers a question."""
    if not loose or not isinstance(move, Transition):
        return move.read is None
    return move.decision or write_step(move, "") is None
