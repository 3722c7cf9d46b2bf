"""Reading the lines of a plan of an automaton that comes from no grammar, such as a flowchart.

A decision is no step. Where the lines leave decisions out, as a printed plan does, any may stand between the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from formal_llm.automata import PDA, Lookahead, Transition, Word
from formal_llm.automata.models.product import product
from formal_llm.errors import Undecided
from formal_llm.planning.plans.steps import Order
from formal_llm.planning.reading.candidates import Around, CandidateWords, build_run_candidates
from formal_llm.planning.reading.phrases import MovePhrases
from formal_llm.planning.reading.prose import ReadingProblem, StepLine, unknown_step

#: Of how many steps it is tried whether they could have stood somewhere.
_TRIED = 100


class AutomatonLines:
    """The words that lines tell of an automaton.

    Args:
        pda: the automaton.
        lines: the steps, from first to last; decisions may stand among them.
        order: whether a run goes from the last step to the first.
        strict: whether only what is printed is understood.

    Attributes:
        told: the words; there may be none.

    Raises:
        NotationError: a line tells nothing of the automaton.
    """

    def __init__(self, pda: PDA, lines: Sequence[StepLine], order: Order, *, strict: bool) -> None:
        self._moves, self._lines, self._order = MovePhrases(pda), lines, order
        self._matches = [self._moves.find_transitions(line.text, strict=strict) for line in lines]
        for line, match in zip(lines, self._matches, strict=True):
            if not match:
                raise unknown_step(line.text, self._moves.printed, line.place, line.source)
        self.told = self._find_candidates(self._matches)

    def is_decision(self, at: int) -> bool:
        """Whether a line tells a decision, and so no step."""
        return all(move.decision for move in self._matches[at])

    def _find_candidates(self, matches: Sequence[Collection[Transition]], around: Around = "") -> CandidateWords:
        backward = self._order == "backward"
        told = build_run_candidates(self._moves.pda, self._moves.silent, matches[::-1] if backward else matches, around)
        if not backward:
            return told
        return CandidateWords(told.pda, {move: len(matches) - 1 - line for move, line in told.lines.items()})

    def explain_failure(self, possible: Callable[[CandidateWords], bool]) -> ReadingProblem:
        """Why no plan is told: the first line that no plan has there, after the lines before it.

        Args:
            possible: whether some of the words follow the rules.
        """
        around: Around = "before" if self._order == "backward" else "after"
        low, high = 0, len(self._lines) + 1
        # Each beginning of the lines that some plan has, has only beginnings with which that is so: halving.
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (
                (middle, high) if possible(self._find_candidates(self._matches[:middle], around)) else (low, middle)
            )
        known = self._moves.printed
        could = []
        if len(known) <= _TRIED:
            before = self._matches[:low]
            could = [text for text, moves in known.items() if possible(self._find_candidates([*before, moves], around))]
        ends = possible(self._find_candidates(self._matches[:low]))
        if low < len(self._lines):
            line, after = self._lines[low], f" after line {self._lines[low - 1].place}" if low else ""
            problem = f"the plan must end{after}" if ends and not could else f"no plan has this step there{after}"
            problem = problem if low or ends else "no plan begins with this step"
            return ReadingProblem(problem, line, tuple(could))
        if not self._lines:
            return ReadingProblem("no plan is without steps", None, tuple(could))
        return ReadingProblem("a step is missing after this one", self._lines[-1], tuple(could))

    def guess_word(self) -> Word | None:
        """The terminals of the steps with decisions filled in as far as they go, where that is no word."""
        matches = self._matches[::-1] if self._order == "backward" else self._matches
        names = [
            tuple(name for name in self._moves.pda.terminals if name in {m.read for m in found}) for found in matches
        ]
        word = fill_decisions([one for one in names if one], self._moves.pda)
        return None if self._moves.pda.accepts(word) else word


# -- decisions that were left out ------------------------------------------------------------------------------------


def fill_decisions(steps: Sequence[tuple[str, ...]], pda: PDA) -> Word:
    """A shortest word of an automaton that has these steps, and between them decisions.

    Where there is none, a word that has decisions filled in as far as some word begins with the steps; the other steps
    follow as they are. A step may be one of several terminals; the transitions say which terminals are decisions.
    """
    found = _find_shortest_word(pda, steps, ends=True)
    if found is not None:
        return found
    low, high = 0, len(steps) + 1
    begun: Word = ()
    # Each beginning of the steps that can be gone on with has only beginnings with which that is so: halving.
    while high - low > 1:
        middle = (low + high) // 2
        word = _find_shortest_word(pda, steps[:middle], ends=False)
        if word is None:
            high = middle
        else:
            low, begun = middle, _cut_after_steps(word, steps[:middle])
    return (*begun, *(names[0] for names in steps[low:]))


def _find_shortest_word(pda: PDA, steps: Sequence[tuple[str, ...]], *, ends: bool) -> Word | None:
    """A shortest word that has the steps; it may go on after them unless it ``ends`` there. None for no such word."""
    both = product(pda, _build_chain(steps, _list_decisions(pda), () if ends else pda.terminals))
    try:
        return Lookahead(both).shortest_word()
    except Undecided:
        return None


def _list_decisions(pda: PDA) -> dict[str, None]:
    return dict.fromkeys(t.read for t in pda.transitions if t.decision and t.read is not None)


def _build_chain(steps: Sequence[tuple[str, ...]], decisions: Iterable[str], after: Iterable[str]) -> PDA:
    """The finite automaton that reads the steps, decisions between them, and after them anything of ``after``."""
    end = len(steps)
    moves = [Transition(at, name, None, at + 1) for at, names in enumerate(steps) for name in names]
    moves += [Transition(at, name, None, at) for at in range(end + 1) for name in decisions]
    moves += [Transition(end, name, None, end) for name in after]
    return PDA(moves, start=0, accepting=[end], check=False)


def _cut_after_steps(word: Word, steps: Sequence[tuple[str, ...]]) -> Word:
    """The beginning of a word that ends with the last of the steps."""
    at = 0
    for place, name in enumerate(word):
        if at == len(steps):
            return word[:place]
        at += name in steps[at]
    return word
