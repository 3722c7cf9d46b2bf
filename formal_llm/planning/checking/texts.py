"""Is the plan that a text describes valid? All that the text contains is checked, and all that it may stand for.

A text may stand for many words, since a plan does not print everything. It is valid where one of them follows the
rules: then a valid plan has just this text, and carrying out the text carries out that plan. Where it may also be
read as a word that breaks a rule, that is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from formal_llm.automata import PDA, Limits, Lookahead, SumLimit, Symbol, Transition, Word
from formal_llm.automata.languages.nearest_words import Edit, EditWeights, find_edits, nearest, turn_edits
from formal_llm.automata.models.clockwork import base_with_clock
from formal_llm.automata.models.symbols import turn_word
from formal_llm.planning.checking.verify import Verification, Verifier
from formal_llm.planning.plans.certificates import find_run
from formal_llm.planning.plans.overlay import Overlay
from formal_llm.planning.plans.printed import StepLine, StepTexts, fold_text, write_step
from formal_llm.planning.plans.steps import Order
from formal_llm.planning.plans.vocabulary import write_word
from formal_llm.planning.reading import CandidateWords, Reading, ReadingProblem, apply_rules, read_plan

#: What a step costs that is put in, taken out, replaced.
KEEPING = EditWeights(insert=1, delete=2, substitute=2)


@dataclass(frozen=True)
class PlanRemedy:
    """A nearest valid plan.

    Attributes:
        steps: its steps as they are printed, from first to last.
        changes: what to do with the lines that there are, in sentences, from first to last.
        distance: what that costs.
        word: its word.
    """

    steps: tuple[str, ...]
    changes: tuple[str, ...]
    distance: int | float
    word: Word


def find_remedy(rules: PDA, lines: Sequence[StepLine], order: Order, *, max_states: int) -> PlanRemedy | None:
    """The nearest valid plan of an automaton; None where none is found.

    Args:
        rules: the automaton with its constraints and limits; of a grammar one whose moves print steps.
        lines: the steps, from first to last.
        order: which way a run is read.
        max_states: the budget of states.
    """
    steps = _StepAutomaton(rules, turn_word(lines, order))
    if steps.limited is None:
        return None
    word = tuple(map(_make_line_terminal, range(len(lines))))
    found = nearest(Lookahead(steps.limited, max_states=max_states), word, KEEPING, max_states=max_states)
    if found.word is None:
        return None
    # A line may be the step of several moves: the run determines which. Limits count what is read, so any run will do.
    run = find_run(steps.limited.without_limits, found.word)
    printed_steps = {move.read or "": steps.printed[move] for move in run if move in steps.printed}
    texts = [steps.printed[move] for move in run if move in steps.printed]
    texts = [text for text in turn_word(texts, order) if text]
    changes = [
        _describe_edit(edit, lines, printed_steps.get(edit.new or "", ""))
        for edit in turn_edits(found.edits, len(lines), order)
    ]
    read = (steps.original[move].read for move in run)
    return PlanRemedy(tuple(texts), tuple(changes), found.distance, tuple(name for name in read if name is not None))


def _make_line_terminal(at: int) -> str:
    return f"\0{at}"


class _StepAutomaton:
    """An automaton that reads steps: a line of the plan, or a step as it is printed; all else is read silently.

    Attributes:
        limited: the automaton, with the limits counted on steps; None where they count what is no step.
        printed: what each of its moves that read something prints.
        original: the move of the rules that each of its moves was made of.
    """

    def __init__(self, rules: PDA, lines: Sequence[StepLine]) -> None:
        moves = StepTexts(rules)
        matches = [moves.find_moves(line.text) for line in lines]
        self.printed: dict[Transition, str] = {}
        self.original: dict[Transition, Transition] = {}
        numbers: dict[str, dict[str, int]] = {}
        made: list[Transition] = []
        fits = True
        for move in rules.transitions:
            text = write_step(move, rules.label(move.read or ""))
            weights = {f"q{at}": bound.weights.get(move.read or "", 0) for at, bound in enumerate(rules.bounds)}
            names = [_make_line_terminal(at) for at, match in enumerate(matches) if move in match]
            if text is None:
                made.append(replace(move, read=None, decision=False))
                self.original[made[-1]] = move
                fits = fits and not any(weights.values())
            else:
                names.append(f"{move.read or ''}\0{text}")
            for name in names:
                made.append(replace(move, read=name))
                self.original[made[-1]] = move
                self.printed[made[-1]] = text or ""
                fits = fits and numbers.setdefault(name, weights) == weights
        sums = tuple(SumLimit(f"q{at}", bound.most, bound.least or None) for at, bound in enumerate(rules.bounds))
        pda = PDA(
            made, start=rules.start_state, accepting=rules.accepting_states, stack=rules.start_stack, check=False,
            symbols={name: Symbol(numbers=amounts) for name, amounts in numbers.items()},
        )  # fmt: skip
        self.limited = pda.with_limits(Limits(sums=sums)) if fits else None


def _describe_edit(edit: Edit, lines: Sequence[StepLine], new: str) -> str:
    at = edit.position
    if edit.kind == "delete":
        return f"take out line {lines[at].place}: {lines[at].text}"
    if edit.kind == "substitute":
        return f"replace line {lines[at].place}, {lines[at].text!r}, by: {new}"
    if not lines:
        return f"write: {new}"
    return f"insert {f'after line {lines[at - 1].place}' if at else f'before line {lines[0].place}'}: {new}"


def describe_line_changes(lines: Sequence[StepLine], steps: Sequence[str]) -> tuple[str, ...]:
    """What to change in the lines to get these steps, which are as they are printed."""
    texts = [step.split(": ", 1)[-1] for step in steps]
    made = find_edits(tuple(fold_text(line.text) for line in lines), tuple(map(fold_text, texts)), KEEPING)
    shown = {fold_text(text): text for text in texts}
    return tuple(_describe_edit(edit, lines, shown.get(edit.new or "", "")) for edit in made)


def describe_word_edit(edit: Edit, word: Sequence[str], rules: PDA) -> str:
    """An edit of a word, described with labels."""
    label = rules.label
    if edit.kind == "delete":
        return f"take out {label(edit.old or '')}"
    if edit.kind == "substitute":
        return f"replace {label(edit.old or '')} by {label(edit.new or '')}"
    if edit.position < len(word):
        return f"insert {label(edit.new or '')} before {label(word[edit.position])}"
    return f"insert {label(edit.new or '')} at the end"


#: How many of the steps that were possible at a place are listed.
_LISTED = 8


@dataclass(frozen=True)
class TextVerification(Verification):
    """The verification of a text.

    Attributes:
        line: the line of the text where it goes wrong, from 1; None where it is valid, or it is no matter of a line.
        also: a word that the text may be read as, too, and that is not valid; None where none is known.
        steps: the nearest valid plan, as it is printed.
        changes: what to change in the text to get there, in sentences.
    """

    line: int | None = None
    also: Word | None = None
    steps: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.changes:
            return super().__str__()
        rows = [f"not valid: {self.reason}", "nearest valid plan:", *(f"  {step}" for step in self.steps)]
        return "\n".join([*rows, "to get there:", *(f"  {change}" for change in self.changes)])


def verify_text(text: str, verifier: Verifier, *, repair: bool = True) -> TextVerification:
    """Whether the plan that anybody wrote is valid, where it goes wrong if not, and a nearest valid one.

    Args:
        text: the plan; for the forms see :func:`~formal_llm.planning.reading.read_plan`.
        verifier: of the rules.
        repair: whether to look for a nearest valid plan.

    Raises:
        NotationError: the text cannot be read.
        Undecided: there are too many ways to read it, or the budget of states ran out.
    """
    rules = verifier.lookahead.pda
    assert rules is not None  # a verifier is of a pushdown automaton
    reading = read_plan(text, rules)
    word = reading.within(rules, max_states=verifier.lookahead.max_states)
    if word is None:
        return _InvalidText(reading, verifier, rules).build_verification(repair)
    other = reading.within()
    also = other if other is not None and not rules.accepts(other) else None
    reason = "it follows all the rules"
    if also is not None:
        shown = ", ".join(map(verifier.label, turn_word(also, rules.order)))
        reason += f"; but it may also be read as {shown}, and that is not valid"
    return TextVerification(word, True, reason, may_stop=True, nearest=word, distance=0, order=rules.order, also=also)


class _InvalidText:
    """The verification of a text that stands for no valid word."""

    def __init__(self, reading: Reading, verifier: Verifier, rules: PDA) -> None:
        self._reading, self._verifier, self._rules = reading, verifier, rules
        self._max_states = verifier.lookahead.max_states
        #: Its lines as moves that print them; those of a grammar without texts are terminals.
        self._moved = reading.steps if reading.steps is not None and reading.steps.pda.cfg is None else None

    def build_verification(self, repair: bool) -> TextVerification:
        reading = self._reading
        word = reading.within()
        known = word if word is not None else reading.guess
        base = self._verifier.verify(known, repair=repair and not reading.lines) if known is not None else _UNKNOWN
        found = TextVerification(**{name: getattr(base, name) for name in Verification.__dataclass_fields__})
        if self._moved is not None:
            wrong = self._moved.explain_failure(self._is_possible)
            found = self._add_reason(replace(found, position=None, allowed=()), wrong, found)
        elif reading.wrong is not None:
            found = self._add_reason(found, reading.wrong, None)
        elif word is not None and reading.lines:
            found = self._locate_in_lines(found, word)
        return self._add_repair(found, known) if repair and reading.lines else found

    def _is_possible(self, candidates: CandidateWords) -> bool:
        return candidates.find_word(self._rules, self._max_states) is not None

    def _add_reason(
        self, found: TextVerification, wrong: ReadingProblem, blamed: Verification | None
    ) -> TextVerification:
        line = wrong.line
        place = f"line {line.place} ({line.text}): " if line is not None else ""
        reason = f"{place}{wrong.problem}"
        rules = [] if blamed is None else [*(f"constraint {name!r}" for name in blamed.constraints), *blamed.limits]
        reason += f", because of {'; '.join(rules)}" if rules else ""
        if wrong.expected:
            shown = list(wrong.expected[:_LISTED]) + (["..."] if len(wrong.expected) > _LISTED else [])
            reason += f"; there could stand: {' / '.join(shown)}"
        return replace(found, reason=reason, line=line.place if line is not None else None)

    def _locate_in_lines(self, found: TextVerification, word: Word) -> TextVerification:
        """The verification of a word that lines stand for, reported with its line."""
        matching = next((one for one in self._reading.candidates if one.pda.accepts(word)), None)
        if matching is None or found.position is None:
            return found
        reads = [move for move in find_run(matching.pda, word) if move.read is not None]
        at = matching.lines.get(reads[found.position]) if found.position < len(reads) else None
        if at is None:
            return found
        line = self._reading.lines[at]
        return replace(found, line=line.place, reason=f"line {line.place} ({line.text}): {found.reason}")

    def _add_repair(self, found: TextVerification, known: Word | None) -> TextVerification:
        lines = self._reading.lines
        if (made := self._find_remedy()) is not None:
            steps = tuple(f"Step {number}: {step}" for number, step in enumerate(made.steps, 1))
            changes = made.changes
            if self._of_grammar:  # what is chosen for a text is in the plan alone
                steps = tuple(map(str, Overlay(made.word, self._rules).steps))
                changes = describe_line_changes(lines, steps)
            return replace(
                found, nearest=made.word, distance=made.distance, nearest_decided=True, steps=steps, changes=changes
            )
        if known is None:
            return replace(found, nearest_decided=False)
        near = nearest(self._verifier.lookahead, known, KEEPING, max_states=self._max_states)
        found = replace(
            found, nearest=near.word, edits=near.edits, distance=near.distance if near.decided else None,
            nearest_decided=near.decided,
        )  # fmt: skip
        if near.word is None or not near.edits:
            return found
        order = self._rules.order
        printed = Overlay(near.word, self._rules).steps
        steps = tuple(map(str, printed)) or (write_word(near.word, order),)
        if not any(step.inputs and not step.has_own_text for step in printed):
            return replace(found, steps=steps, changes=describe_line_changes(lines, steps))
        edits, turned = turn_edits(near.edits, len(known), order), turn_word(known, order)
        return replace(
            found, steps=steps, changes=tuple(describe_word_edit(edit, turned, self._rules) for edit in edits)
        )

    @property
    def _of_grammar(self) -> bool:
        return base_with_clock(self._rules).cfg is not None

    def _find_remedy(self) -> PlanRemedy | None:
        """The nearest plan by lines; None where there is none, or steps say what they are applied to, by numbers."""
        lines = self._reading.lines
        if self._moved is None or (self._of_grammar and any("result of step" in line.text for line in lines)):
            return None
        rules = apply_rules(self._moved.pda, self._rules) if self._of_grammar else self._rules
        return find_remedy(rules, lines, self._rules.order, max_states=self._max_states)


_UNKNOWN = Verification((), False, "", decided=False, nearest_decided=False)
