"""The trail of a walk: how it came to its position, and how it goes back.

A trail advances by itself as far as there is nothing to choose, and stops at a choice. On a dead end it returns
to the last choice, rules out the branch that died, and stops there again if two branches or more are left. It asks no
questions, and knows of a budget only its steps and backtracks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from formal_llm.automata import Word
from formal_llm.automata.lookahead.cheapest import INFINITE
from formal_llm.automata.lookahead.lookahead import Lookahead
from formal_llm.automata.models.automaton import Move
from formal_llm.automata.models.limits import SumLimit
from formal_llm.errors import BudgetExceeded, NoValidPlan, Undecided, WalkError
from formal_llm.llms.usage import TokenUsage
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.walks.asking import QuestionBuilder
from formal_llm.planning.walks.budget import Budget, Meter
from formal_llm.planning.walks.choices import Choice, ChoiceFork, ChoiceTable, collect_indices
from formal_llm.planning.walks.events import Backtracked, EventCallback, Forced
from formal_llm.planning.walks.journal import ChoiceKey, JournalEntry
from formal_llm.planning.walks.wording import Wording


class Stage(Enum):
    """The state of a trail that is at no choice."""

    ON_THE_WAY = "on the way"
    DEAD = "dead"
    DONE = "done"


#: Looking a member up in its class takes several times as long as all else that is done with it.
_ON_THE_WAY: Final = Stage.ON_THE_WAY
_DEAD: Final = Stage.DEAD
_DONE: Final = Stage.DONE
#: After each two dead ends, how many times as long a question may be searched.
_GROWTH = (1, 4, 20)


def make_budget_error(table: ChoiceTable, kind: str, budget: float, plan: Plan) -> BudgetExceeded:
    """The error of a budget that is used up; where options were uncertain it names the rule and what to set."""
    if not plan.usage.uncertain:
        return BudgetExceeded(kind, budget, plan)
    rule = describe_hard_rule(table.lookahead) or "the rules"
    hard = f"{plan.usage.uncertain:,} options were offered undecided, since it takes long to search by {rule}"
    solver = ', or pip install "formal-llm[solver]"' if table.lookahead.lacks_solver else ""
    return BudgetExceeded(kind, budget, plan, hard=f"{hard}; set search_time=1.0, patience=60{solver}")


def describe_hard_rule(lookahead: Lookahead) -> str:
    """The rule that is the hardest to search by, as its author would write it; empty where there is none.

    Exact sums are the hardest, then sums with two bounds, then others, the largest first; then the constraint with the
    most states.
    """
    pda = lookahead.pda
    constraints = sorted(pda.factors[1:] if pda is not None else (), key=lambda one: len(one.states))
    sums = sorted(lookahead.limits.sums, key=_rate_hardness)
    return "; ".join(sums[-1].lines()) if sums else constraints[-1].name if constraints else ""


def _rate_hardness(limit: SumLimit) -> tuple[bool, bool, float]:
    most, least = limit.edges
    return most is not None and least == most, None not in (least, most), float(most or least or 0)


class Trail:
    """The moves and choices made so far.

    Attributes:
        table: the choices of the automaton.
        asker: knows how choices are called.
        meter: counts dead ends, and choices that were forced.
        on_event: called with what happens.
        journal: the choices made, the first one first.
        moves: all moves made.
        configuration: where they lead.
        state: the choice to make now; or a :class:`Stage`.
        silent: choices that were taken since a search ruled out the others: after how many moves, and what. Elsewhere
            such a search may not be decided in its time.
        stops: the moves after which the trail stops, however little there is to choose.
        opening: whether it has come to another page of a choice, and has not seen yet what is left there.

    Raises:
        NoValidPlan: nothing follows all the rules.
    """

    __slots__ = (
        "asker", "configuration", "journal", "meter", "moves", "on_event", "opening", "silent", "state", "stops",
        "table",
    )  # fmt: skip

    def __init__(
        self, table: ChoiceTable, asker: QuestionBuilder, meter: Meter, on_event: EventCallback | None
    ) -> None:
        self.table = table
        self.asker = asker
        self.meter = meter
        self.on_event = on_event
        self.journal: list[JournalEntry] = []
        self.moves: list[Move] = []
        self.configuration: Hashable = table.automaton.start()
        self.state: JournalEntry | Stage = _ON_THE_WAY
        self.silent: list[tuple[int, ChoiceKey]] = []
        self.stops: frozenset[int] = frozenset()
        self.opening = False
        if not table.begin(self.configuration).possible:
            raise self._make_no_plan_error()

    def copy(self, on_event: EventCallback | None) -> Trail:
        """A trail that continues from here by itself. It costs two short lists: all else is shared."""
        twin = Trail.__new__(Trail)
        twin.table, twin.asker, twin.on_event = self.table, self.asker, on_event
        twin.meter = self.meter.copy()
        twin.journal, twin.moves = self.journal.copy(), self.moves.copy()
        twin.silent, twin.stops, twin.opening = self.silent.copy(), self.stops, self.opening
        twin.configuration = self.configuration
        twin.state = self.state.copy() if isinstance(self.state, JournalEntry) else self.state
        return twin

    @property
    def word(self) -> Word:
        """The terminals so far."""
        return tuple([move.read for move in self.moves if move.read is not None])

    def count_moves_left(self, budget: Budget) -> float:
        """The moves that may still be made; infinite without a step budget."""
        return INFINITE if budget.steps is None else budget.steps - len(self.moves)

    # -- going on -----------------------------------------------------------------------------------------------

    def take_choice(self, entry: JournalEntry, choice: Choice) -> None:
        """Choose."""
        entry.chosen = choice
        self.journal.append(entry)
        if choice.menu is not None:
            page = choice.menu.make(frozenset(choice.reads))
            self.state = JournalEntry(self.configuration, page, len(self.moves))
            self.state.excluded = entry.ruled_out_on(page)
            self.opening = bool(self.state.excluded)
        else:
            self._make_moves(choice)

    def _open_page(self, left: float) -> None:
        """See what is left of a page on which something may be ruled out already."""
        self.opening = False
        if isinstance(entry := self.state, JournalEntry):
            self._stop_at_choice(entry, left)

    def _stop_at_choice(self, entry: JournalEntry, left: float) -> None:
        """Stop at a choice; take the only branch that is left, and mark a dead end where none is."""
        if (only := entry.find_only_choice(self.table, left)) is not None:
            self.take_choice(entry, only)
        else:
            self.state = _DEAD if entry.is_dead(self.table, left) else entry

    def _make_moves(self, choice: Choice) -> None:
        if choice.moves:
            self.configuration = self.table.after(self.configuration, choice)
            self.moves += choice.moves
            self.state = _ON_THE_WAY
        else:
            self.state = _DONE
            self.meter.stop_clock()

    def advance_to_choice(self, budget: Budget, partial: Callable[[], Plan]) -> None:
        """Advance to the next choice or to the end: take what leaves no choice, go back from dead ends.

        Raises:
            BudgetExceeded: steps or backtracks are used up; with the partial plan.
            NoValidPlan: every branch was tried or ruled out.
        """
        table, most = self.table, INFINITE if budget.steps is None else budget.steps
        while (state := self.state) is _ON_THE_WAY or state is _DEAD or self.opening:
            left = most - len(self.moves)
            if self.opening:
                self._open_page(left)
                continue
            if state is _DEAD:
                self._leave_dead_end(budget, partial)
                continue
            fork = self._find_fork(self.configuration, left)
            self.meter.verdicts += fork.tally
            count = len(fork.choices)
            if left < 0 or (not table.look and table.lookahead.least_steps(self.configuration) > left):
                self.meter.capped = True
                self.state = _DEAD
            elif (count > 1 and fork.only is None) or (count and self.stops and len(self.moves) in self.stops):
                self.state = JournalEntry(self.configuration, self.asker.take_first_page(fork), len(self.moves))
                # Members that were not decided in time may all be dead, which the search for a single set finds.
                if fork.several and fork.open and self.state.is_dead(table, left):
                    self.state = _DEAD
            elif count:
                self._take_forced(fork, left)
            else:
                self.state = _DEAD
                if left < INFINITE and table.at(self.configuration, INFINITE).choices:
                    self.meter.capped = True

    def _find_fork(self, configuration: Hashable, left: float) -> ChoiceFork:
        """The choices of a configuration, with more time to decide them after dead ends."""
        seconds, meter = self.table.search_time, self.meter
        growth = _GROWTH[min(meter.backtracks // 2, len(_GROWTH) - 1)]
        if seconds is None or growth == 1 or meter.searched + growth * seconds > self.table.patience:
            return self.table.at(configuration, left, seconds)
        work = self.table.lookahead.work
        work.used = 0.0
        fork = self.table.at(configuration, left, growth * seconds)
        meter.searched += work.used
        return fork

    def _take_forced(self, fork: ChoiceFork, left: float) -> None:
        choice = fork.choices[0]
        if fork.several:
            only = self.table.subset(self.configuration, fork.only or frozenset(choice.reads), left)
            if only is None:
                self.state = _DEAD
                return
            choice = only
        if fork.total > 1:
            self.meter.forced += 1
            if not fork.is_certain:
                self.silent.append((len(self.moves), frozenset(choice.reads) if fork.several else choice.index))
            if self.on_event is not None:
                others = 2**fork.total - 2 if fork.several else fork.total - 1
                text = self.asker.describe_choice(fork, choice)
                self.on_event(Forced(text, others, self.asker.walk, id=self.asker.id))
        self._make_moves(choice)

    def take_silently(self, choice: Choice, key: ChoiceKey) -> None:
        """Take what once was the only choice, without a question."""
        self.silent.append((len(self.moves), key))
        self._make_moves(choice)

    def start_over(self) -> None:
        """Return to the beginning, before any choice."""
        self.journal, self.moves, self.silent = [], [], []
        self.configuration, self.state = self.table.automaton.start(), _ON_THE_WAY

    def take_checked(self, entry: JournalEntry, choice: Choice) -> None:
        """Choose; what was not decided in time is looked at once more, and may turn out to be a dead end."""
        self.take_choice(entry, choice)
        if entry.fork.open and self._is_open(entry, choice):
            verdict = self.table.second_look(entry.configuration, choice)
            if verdict.value == "no":
                self.table.rule_out(entry.configuration, choice, verdict)
                self.state = _DEAD

    @staticmethod
    def _is_open(entry: JournalEntry, choice: Choice) -> bool:
        is_open = bool(entry.fork.open) and (entry.fork.several or choice.index in entry.fork.open)
        return is_open and choice.menu is None

    # -- going back ---------------------------------------------------------------------------------------------

    def _leave_dead_end(self, budget: Budget, partial: Callable[[], Plan]) -> None:
        """Leave a dead end: restore the last choice, remove the branch, stop there again if two or more are left."""
        if not self.journal:
            if self.meter.capped and budget.steps is not None:
                self.meter.capped, self.state = False, _ON_THE_WAY
                needed, decided = None, True
                try:
                    least = self.table.lookahead.fewest_moves(self.configuration, search_time=self.table.start_time)
                    needed = None if least is None else len(self.moves) + least
                except Undecided:
                    decided = False
                raise BudgetExceeded("steps", budget.steps, partial(), needed, decided=decided)
            raise self._make_no_plan_error()
        if budget.backtracks is not None and self.meter.backtracks >= budget.backtracks:
            raise make_budget_error(self.table, "backtracks", budget.backtracks, partial())
        self.meter.backtracks += 1
        entry = self.journal.pop()
        self._return_to(entry, entry.excluded | entry.branch, budget)

    def _return_to(self, entry: JournalEntry, excluded: frozenset[ChoiceKey], budget: Budget) -> None:
        """Return to a choice, less the branches that are ruled out there."""
        self.meter.resume_clock()
        self.configuration = entry.configuration
        del self.moves[entry.moves :]
        self.silent = [(moves, key) for moves, key in self.silent if moves < entry.moves]
        if self.on_event is not None and entry.chosen is not None and entry.key in excluded:
            text = self.asker.describe_chosen(entry)
            self.on_event(Backtracked(text, self.word, self.asker.walk, id=self.asker.id))
        left, fork = self.count_moves_left(budget), entry.fork
        if fork.open and not fork.several and self.meter.backtracks > 1:
            again = self._find_fork(entry.configuration, left)
            # What a page offers is only a part of what is decided here.
            if (
                collect_indices(again.choices) <= collect_indices(fork.choices)
                and self.asker.take_first_page(again) is again
            ):
                fork = again
        fresh = JournalEntry(entry.configuration, fork, entry.moves)
        fresh.excluded = excluded
        self.opening = False
        self._stop_at_choice(fresh, left)

    def put_last(self, entry: JournalEntry, last: frozenset[str], left: float) -> None:
        """Order the first page of a choice anew, with what reads one of some names last."""
        whole = self._find_fork(entry.configuration, left)
        if entry.fork is not whole and entry.fork is self.asker.take_first_page(whole) and not whole.several:
            entry.fork = self.asker.take_first_page(whole, last)

    def take_back(self, budget: Budget) -> None:
        """Return to the last choice that was asked, with all its branches.

        Raises:
            WalkError: no question has been answered yet.
        """
        for place in range(len(self.journal) - 1, -1, -1):
            entry = self.journal[place]
            if entry.asked:
                del self.journal[place:]
                self._return_to(entry, entry.excluded, budget)
                return
        raise WalkError("nothing to go back to: no question has been answered yet")

    def mark_dead_end(self, position: int | None) -> None:
        """Go back to a dead end behind the last choice, or behind the last one before a place in the word.

        Raises:
            WalkError: the position is not in the word.
        """
        keep = len(self.journal)
        if position is not None:
            reads = [number for number, move in enumerate(self.moves) if move.read is not None]
            if not 0 <= position < len(reads):
                raise WalkError(f"the word has {len(reads)} terminals; there is no position {position}")
            keep = sum(entry.moves <= reads[position] for entry in self.journal)
        del self.journal[keep:]
        self.state = _DEAD

    def _make_no_plan_error(self) -> NoValidPlan:
        if self.journal or self.meter.questions or self.meter.backtracks or self.state is _DEAD:
            return NoValidPlan("every branch was tried or ruled out")
        table = self.table
        from formal_llm.automata.languages.emptiness import why_empty  # only where there is no plan

        why = why_empty(table.lookahead.source, max_states=table.lookahead.max_states, search_time=table.start_time)
        return NoValidPlan(
            why.reason, symbols=why.symbols, limits=why.limits, constraints=why.constraints, remedy=why.remedy
        )


@dataclass(frozen=True, slots=True)
class WalkDraft:
    """A draft of a plan.

    Attributes:
        text: as it was written.
        at: how many of its steps are done with.
    """

    text: str
    at: int = 0


class DraftFollower:
    """What a walk does with a draft.

    Attributes:
        draft: the draft that it goes along; None where there is none, or where another one is due.
    """

    draft: WalkDraft | None = None
    budget: Budget
    wording: Wording
    _trail: Trail

    @abstractmethod
    def _advance_walk(self) -> None:
        """Advance to the next question or to the end."""

    @property
    @abstractmethod
    def done(self) -> bool:
        """Whether the plan is finished."""

    @property
    @abstractmethod
    def left(self) -> float:
        """The moves that may still be made."""

    @property
    def choice(self) -> JournalEntry | None:
        """The choice to make now, whether or not the budget leaves a question; None when the plan is finished.

        Raises:
            BudgetExceeded, NoValidPlan: as :attr:`Walk.question` does.
        """
        if not isinstance(self._trail.state, JournalEntry):
            _ = self.done  # which advances as far as it can
        return self._trail.state if isinstance(self._trail.state, JournalEntry) else None

    @property
    def moves(self) -> list[Move]:
        """The moves that were made; not to be changed."""
        return self._trail.moves

    @property
    def decisions(self) -> int:
        """How many choices were asked, those that are split into pages once each."""
        return sum(e.asked and (e.chosen is None or e.chosen.menu is None) for e in self._trail.journal)

    @property
    def backtracks(self) -> int:
        """Dead ends from which the walk went back."""
        return self._trail.meter.backtracks

    def take(self, key: ChoiceKey) -> bool:
        """Make the choice that a draft has made; False where it is not offered now.

        Args:
            key: the index of a choice, or of a selection the names of its members.

        Raises:
            BudgetExceeded, NoValidPlan: as :attr:`Walk.question` does.
        """
        entry = self.choice
        chosen = (
            None if entry is None or key in entry.excluded else entry.find_choice(key, self._trail.table, self.left)
        )
        if entry is None or chosen is None:
            return False
        entry.drafted = True
        self._trail.meter.drafted += 1
        self._trail.take_checked(entry, chosen)
        self._advance_walk()
        return True

    def note(self, text: str, last: frozenset[str] = frozenset()) -> None:
        """Add a note to the question that is asked now, and announce it again if its note was another one.

        Where there are pages, what reads one of the names ``last`` comes last.
        """
        entry = self.choice
        if entry is not None and entry.note != text:
            self._trail.put_last(entry, last, self.left)
            entry.note, entry.question = text, None

    def count_draft(self, tokens: TokenUsage) -> None:
        """Count a draft that came, and what it cost."""
        self._trail.meter.drafts += 1
        self._trail.meter.tokens += tokens
