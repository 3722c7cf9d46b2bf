"""Being the model: a walk that a person answers, its position, the options left out, and what lies behind options.

The page of the studio and ``planner.step_through`` are two views of the same value, :class:`Stepping`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import combinations, islice
from typing import Literal

from formal_llm.automata import Lookahead, Word
from formal_llm.automata.languages.word_lists import FURTHER
from formal_llm.automata.lookahead.limited import LimitedAutomaton, LimitedConfiguration
from formal_llm.automata.models.quantities import Amount, format_amount, read_amount
from formal_llm.automata.models.rules import Source
from formal_llm.errors import FormalLLMError, InfiniteLanguage, InvalidAnswer, NoValidPlan, Undecided
from formal_llm.llms.question import Option, Question
from formal_llm.pictures.drawable import SVG, Drawable, picture_of
from formal_llm.pictures.page import escape_text
from formal_llm.pictures.picture import Picture
from formal_llm.planning.checking.reasons import LeftOut, Reasons
from formal_llm.planning.plans.overlay import position_picture, way_picture
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.walks.walk import Walk

#: How many options of a question have what lies behind them counted; how many symbols of a stack are shown.
_BRANCHES, _STACK = 60, 40
#: How many questions are unfolded in a notebook, beneath the options that lead to them.
_UNFOLDED = 24
HTML = "text/html"


@dataclass(frozen=True, slots=True)
class LimitLeft:
    """What is left of a limit.

    Attributes:
        line: the limit as it is written.
        terminal: the terminal whose uses it bounds; None for the sum of a number.
        kind: ``"left"``: the amount may still be used; ``"needed"``: it must still be.
        now, whole: how much, and how much at the start; counts, or for sums as parts of one another.
    """

    line: str
    terminal: str | None
    kind: Literal["left", "needed"]
    now: int
    whole: int

    @property
    def amount(self) -> str:
        """How much of how much, in the unit of the limit: ``"1h55 of 2h"``."""
        if self.terminal is not None:
            return f"{self.now} of {self.whole}"
        edge = read_amount(self.line.rpartition(" ")[2])
        now = Decimal(edge) * self.now / (self.whole or 1)
        return f"{format_amount(Amount(now, edge.unit) if isinstance(edge, Amount) else now)} of {format_amount(edge)}"

    def __str__(self) -> str:
        return f"{self.line} ({self.amount} {self.kind})"


@dataclass(frozen=True, slots=True)
class Behind:
    """What lies behind an answer.

    Attributes:
        numbers: the answer.
        text: the texts of its options.
        plans: how many plans begin so; None where that is not known within the budget.
        longest: only plans of at most this many terminals were counted, as there are infinitely many; None for all.
        done: whether the plan is finished with it.
    """

    numbers: tuple[int, ...]
    text: str
    plans: int | None
    longest: int | None
    done: bool


class Stepping(Drawable):
    """A walk that a person takes: :attr:`options`, :meth:`choose`, :meth:`back`, and a picture of its position.

    At a Python prompt it shows its question. In a notebook it shows the rules as well, with the state or the top of the
    stack marked, and each option can be unfolded to the question behind it; no widget library is needed for that.

    Args:
        walk: the walk; it is moved by :meth:`choose` and :meth:`back`.
        rules: the rules as they are written, for the picture.
    """

    def __init__(self, walk: Walk, rules: Source) -> None:
        self.walk = walk
        self.rules = rules

    # -- its position ---------------------------------------------------------------------------------------------

    @property
    def question(self) -> Question | None:
        """The question to answer now; None when the plan is finished."""
        return self.walk.question

    @property
    def options(self) -> tuple[Option, ...]:
        """What can be chosen, each with its number; empty when the plan is finished."""
        question = self.walk.question
        return () if question is None else tuple(question.options)

    @property
    def done(self) -> bool:
        """Whether the plan is finished."""
        return self.walk.done

    @property
    def plan(self) -> Plan:
        """The finished plan, or as much of it as there is."""
        return self.walk.partial

    @property
    def lookahead(self) -> Lookahead:
        """What can be completed."""
        return self.walk.table.lookahead

    @property
    def state(self) -> str:
        """The state of the automaton; a product's has one for each part."""
        if self.lookahead.pda is None:
            return str(self.walk.configuration)
        return _format_state(self.lookahead.uncounted(self.walk.configuration).state)

    @property
    def stack(self) -> Word:
        """The stack, its top first; empty for an automaton that has none."""
        return () if self.lookahead.pda is None else tuple(self.lookahead.uncounted(self.walk.configuration).stack)

    @property
    def limits(self) -> tuple[LimitLeft, ...]:
        """What is left of each limit."""
        automaton, here = self.lookahead.automaton, self.walk.configuration
        if not isinstance(automaton, LimitedAutomaton) or not isinstance(here, LimitedConfiguration):
            return ()
        counters, found = automaton.counters, []
        for bound, (shift, mask) in zip(counters.bounds, counters.fields, strict=True):
            upper = bound.most is not None
            now = (here.remaining if upper else here.needed) >> shift & mask
            whole = bound.most if bound.most is not None else bound.least
            found.append(LimitLeft(bound.line, bound.terminal, "left" if upper else "needed", now, whole))
        return tuple(found)

    @cached_property
    def _reasons(self) -> Reasons:
        return Reasons(self.walk.table)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The options that the rules would have here without their limits and constraints, each with why it is missing.

        Raises:
            AutomatonError: the rules are an automaton of one's own.
            Undecided: the budget was not enough to determine why.
        """
        return () if self.done else tuple(self._reasons.left_out(self.walk))

    def why(self, text: str) -> str:
        """Why a step (by name or label), or an option that is left out, is not offered here; or that it is.

        Raises:
            NotationError: the text may mean several steps.
            AutomatonError, Undecided: as :attr:`left_out`.
        """
        return self._reasons.about(self.walk, text)

    def branches(self, most: int = _BRANCHES) -> Iterator[Behind | None]:
        """What lies behind each answer, one at a time; None at the end where there are more than ``most``."""
        question, walk, lookahead = self.walk.question, self.walk, self.lookahead
        if question is None:
            return
        # One bound for all branches, so that the counts of an infinite language can be compared.
        longest = len(walk.word) + (lookahead.shortest(walk.configuration) or 0) + FURTHER
        shown_ = 0
        for chosen in _list_answers(question):
            twin = walk.fork()
            try:
                twin.answer(chosen)
            except (InvalidAnswer, NoValidPlan):
                continue  # a set that the rules do not have, or a dead end that is found only now: no plan lies there
            if shown_ == most:
                yield None
                return
            shown_ += 1
            text = ", ".join(question.options[number - 1].text for number in chosen)
            plans, bounded = _count_plans(lookahead, twin, longest)
            yield Behind(chosen, text, plans, longest if bounded else None, twin.done)

    def choose(self, *numbers: int) -> Stepping:
        """Answer with the number of an option, or of several where the question allows that; gives itself back.

        Raises:
            InvalidAnswer: it is no answer to the question; nothing has changed.
            WalkError: the plan is finished.
            BudgetExceeded, NoValidPlan: as :attr:`Walk.question` does.
        """
        self.walk.answer(numbers)
        return self

    def back(self) -> Stepping:
        """Take the last answer back; gives itself back.

        Raises:
            WalkError: no question has been answered yet.
        """
        self.walk.back()
        return self

    # -- what it looks like ---------------------------------------------------------------------------------------

    @property
    def picture(self) -> Picture:
        """The rules with the position of the walk marked; when it is finished, with the plan's way marked.

        Raises:
            TypeError: the rules are an automaton of one's own, which has no drawing.
        """
        if self.lookahead.pda is None:
            return picture_of(self.rules)
        if self.done:
            return way_picture(self.rules, self.walk.word, self.walk.wording.reads)
        return position_picture(self.rules, self.lookahead.uncounted(self.walk.configuration))

    def __repr__(self) -> str:
        question = self.walk.question
        if question is None:
            return f"{self.plan}\n\nThe plan is finished. .plan has it, .back() takes the last answer back."
        how = ".choose(1, 2, ...) takes one or several" if question.several else ".choose(1) takes the first"
        return f"{question.prompt.rstrip()}\n\n{self._describe_position()}\n{how}, .back() takes the last answer back."

    def _describe_position(self) -> str:
        stack = self.stack
        more = f" and {len(stack) - _STACK} more" if len(stack) > _STACK else ""
        lines = [f"State {self.state}; stack {' '.join(islice(stack, _STACK)) or 'empty'}{more}"]
        open_limits = (one for one in self.limits if (one.now if one.kind == "needed" else one.now < one.whole))
        return "\n".join([*lines, *(f"Limit {one}" for one in open_limits)])

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        """For notebooks: as of all that has a picture, and beside that HTML with the options to unfold."""
        bundle = super()._repr_mimebundle_(include, exclude)
        if (not include or HTML in include) and HTML not in (exclude or ()):
            bundle[HTML] = self._render_html(bundle.get(SVG))
        return bundle

    def _render_html(self, svg: str | None) -> str:
        image = (
            f'<img alt="" style="max-width:100%" src="data:{SVG};base64,{b64encode(svg.encode()).decode()}">'
            if svg
            else ""
        )
        text, _, _ = repr(self).rpartition("\n")
        unfolded = _render_unfolded(self)
        return (
            f"<pre>{escape_text(text)}</pre>\n{image}\n{unfolded}"
            if unfolded
            else f"<pre>{escape_text(text)}</pre>\n{image}"
        )


def _format_state(state: object) -> str:
    """A state as it is shown; a product's is a pair."""
    return ", ".join(map(_format_state, state)) if isinstance(state, tuple) else str(state)


def _list_answers(question: Question) -> Iterator[tuple[int, ...]]:
    numbers = [one.number for one in question.options]
    if not question.several:
        return ((number,) for number in numbers)
    return (chosen for size in range(1, len(numbers) + 1) for chosen in combinations(numbers, size))


def _count_plans(lookahead: Lookahead, walk: Walk, longest: int) -> tuple[int | None, bool]:
    """How many plans begin as a walk does, and whether only those of a bounded length; None where it is not counted."""
    try:
        return lookahead.count(walk.configuration), False
    except InfiniteLanguage:
        pass
    except Undecided:
        return None, False
    try:
        return lookahead.count(walk.configuration, max_length=max(0, longest - len(walk.word))), True
    except Undecided:
        return None, True


def _render_unfolded(root: Stepping) -> str:
    """The options of a question as HTML that folds: in each the question behind it, the nearest ones first."""
    walks: list[Walk] = [root.walk]
    behind: dict[int, dict[int, int]] = {}
    for place, walk in enumerate(walks):
        if len(walks) > _UNFOLDED or (question := walk.question) is None or question.several or walk.undecided:
            continue
        behind[place] = {}
        for option in question.options:
            twin = walk.fork()
            try:
                twin.answer(option.number)
            except FormalLLMError:
                continue  # a dead end that is found only now, or the budget is used up
            behind[place][option.number] = len(walks)
            walks.append(twin)
    texts: dict[int, str] = {}
    for place in reversed(range(len(walks))):  # inner walks come later in the list, so nothing recurses
        rows = [
            f"<details><summary>{option.number}: {escape_text(option.text)}</summary>"
            f'<div style="margin-left:1.5em">{texts.pop(behind[place][option.number])}</div></details>'
            for option in (walks[place].question.options if place in behind else ())  # type: ignore[union-attr]
            if option.number in behind[place]
        ]
        texts[place] = (
            "" if place == 0 else _render_position(Stepping(walks[place], root.rules), bool(rows))
        ) + "".join(rows)
    return texts[0]


def _render_position(here: Stepping, unfolded: bool) -> str:
    """A walk in a notebook: so far, state, stack; the options too where they are not unfolded."""
    label = here.lookahead.automaton.label
    so_far = ", ".join(map(label, here.walk.word)) or "nothing yet"
    if here.done:
        return f"<p>The plan is finished:</p><pre>{escape_text(str(here.plan))}</pre>"
    lines = [so_far, here._describe_position()]
    if not unfolded:
        lines += [f"{one.number}: {one.text}" for one in here.options]
    return f"<pre>{escape_text(chr(10).join(lines))}</pre>"
