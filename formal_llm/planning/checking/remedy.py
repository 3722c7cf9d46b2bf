"""The nearest valid plan to the lines of somebody's plan, and what to change in them.

Steps are counted here and not terminals: a decision that is in no line costs nothing. A step that is there is kept
where that can be: to insert one costs 1, to take one out or to replace it costs 2. So what is missing is put in before
what is there is given up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from formal_llm.automata import PDA, Limits, Lookahead, SumLimit, Symbol, Transition, Word
from formal_llm.automata.languages.edits import Edit, EditWeights, edits
from formal_llm.automata.languages.nearest import nearest
from formal_llm.planning.plans.runs import find_run
from formal_llm.planning.plans.steps import Order
from formal_llm.planning.reading.candidates import write_step
from formal_llm.planning.reading.phrases import MovePhrases
from formal_llm.planning.reading.prose import StepLine, fold_text

#: What a step costs that is put in, taken out, replaced.
KEEPING = EditWeights(insert=1, delete=2, substitute=2)


@dataclass(frozen=True)
class PlanRemedy:
    """A nearest valid plan.

    Attributes:
        steps: its steps as they are printed, from first to last.
        changes: what to do with the lines that there are, in sentences, from first to last.
        distance: what that costs.
    """

    steps: tuple[str, ...]
    changes: tuple[str, ...]
    distance: int | float


def find_remedy(rules: PDA, lines: Sequence[StepLine], order: Order, *, max_states: int) -> PlanRemedy | None:
    """The nearest valid plan of an automaton that comes from no grammar; None where none is found.

    Args:
        rules: the automaton with its constraints and limits.
        lines: the steps, from first to last.
        order: whether a run goes from the last step to the first.
        max_states: the budget of states.
    """
    steps = _StepAutomaton(rules, lines if order == "forward" else lines[::-1])
    if steps.limited is None:
        return None
    word = tuple(map(_make_line_terminal, range(len(lines))))
    found = nearest(Lookahead(steps.limited, max_states=max_states), word, KEEPING, max_states=max_states)
    if found.word is None:
        return None
    # A line may say the step of several moves: the run tells of which. Limits count what is read, so any run will do.
    run = find_run(steps.limited.without_limits, found.word)
    told = {move.read or "": steps.printed[move] for move in run if move in steps.printed}
    texts = [steps.printed[move] for move in run if move in steps.printed]
    texts = [text for text in (texts if order == "forward" else texts[::-1]) if text]
    changes = [
        _describe_edit(edit, lines, told.get(edit.new or "", "")) for edit in _order_edits(found.edits, lines, order)
    ]
    return PlanRemedy(tuple(texts), tuple(changes), found.distance)


def _order_edits(made: Sequence[Edit], lines: Sequence[StepLine], order: Order) -> Sequence[Edit]:
    """The edits with positions in the lines, where the word may run from the last of them to the first."""
    if order == "forward":
        return made
    # What is inserted before a place in the word comes behind it in the lines.
    last = len(lines) - 1
    turned = [replace(edit, position=last - edit.position + (edit.kind == "insert")) for edit in made]
    return turned[::-1]


def _make_line_terminal(at: int) -> str:
    """The terminal for the line at an index."""
    return f"\0{at}"


class _StepAutomaton:
    """An automaton that reads steps: a line of the plan, or a step as it is printed; all else is read silently.

    Attributes:
        limited: the automaton, with the limits counted on steps; None where they count what is no step.
        printed: what each of its moves that read something prints.
    """

    def __init__(self, rules: PDA, lines: Sequence[StepLine]) -> None:
        moves = MovePhrases(rules)
        matches = [moves.find_transitions(line.text) for line in lines]
        self.printed: dict[Transition, str] = {}
        numbers: dict[str, dict[str, int]] = {}
        made: list[Transition] = []
        fits = True
        for move in rules.transitions:
            text = write_step(move, rules.label(move.read or ""))
            weights = {f"q{at}": bound.weights.get(move.read or "", 0) for at, bound in enumerate(rules.bounds)}
            names = [_make_line_terminal(at) for at, match in enumerate(matches) if move in match]
            if text is None:
                made.append(replace(move, read=None, decision=False))
                fits = fits and not any(weights.values())
            else:
                names.append(f"{move.read or ''}\0{text}")
            for name in names:
                made.append(replace(move, read=name))
                self.printed[made[-1]] = text or ""
                fits = fits and numbers.setdefault(name, weights) == weights
        sums = tuple(SumLimit(f"q{at}", bound.most, bound.least or None) for at, bound in enumerate(rules.bounds))
        pda = PDA(
            made, start=rules.start_state, accepting=rules.accepting_states, stack=rules.start_stack, check=False,
            symbols={name: Symbol(numbers=amounts) for name, amounts in numbers.items()},
        )  # fmt: skip
        self.limited = pda.with_limits(Limits(sums=sums)) if fits else None


def _describe_edit(edit: Edit, lines: Sequence[StepLine], new: str) -> str:
    """An edit of the lines, told as the file counts them."""
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
    made = edits(tuple(fold_text(line.text) for line in lines), tuple(map(fold_text, texts)), KEEPING)
    shown = {fold_text(text): text for text in texts}
    return tuple(_describe_edit(edit, lines, shown.get(edit.new or "", "")) for edit in made)


def describe_word_edit(edit: Edit, word: Word, rules: PDA) -> str:
    """An edit of a word, told with labels."""
    label = rules.label
    if edit.kind == "delete":
        return f"take out {label(edit.old or '')}"
    if edit.kind == "substitute":
        return f"replace {label(edit.old or '')} by {label(edit.new or '')}"
    if edit.position < len(word):
        return f"insert {label(edit.new or '')} before {label(word[edit.position])}, as the word runs"
    return f"insert {label(edit.new or '')} at the end, as the word runs"
