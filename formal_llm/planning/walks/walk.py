"""A walk: one plan being made, one question at a time.

A walk does no input or output. It has a :attr:`Walk.question`, it takes an answer, and it ends with a
:attr:`Walk.plan`; who answers is its driver's business. It remembers the configuration of every choice, which costs
nothing since configurations share their parts, so it can go back to any of them:

- on a dead end (where lookahead is off, or answered "unknown") it restores the state and stack of the last choice,
  removes the branch that died, and asks again if two or more are left (Formal-LLM, section 3);
- :meth:`Walk.back` takes the last answer back, :meth:`Walk.rule_out` removes a branch that has failed outside.

How it advances is described in :mod:`formal_llm.planning.walks.trail`; its journal is its checkpoint. It can
:meth:`fork`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Literal, TypedDict, Unpack

from formal_llm.automata import Automaton, Limits, Source, Word
from formal_llm.automata.models.automaton import Move
from formal_llm.errors import BudgetExceeded, WalkError
from formal_llm.llms.question import Answer, Question
from formal_llm.llms.usage import Prices, TokenUsage
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.plans.vocabulary import fingerprint_of
from formal_llm.planning.source import source_of
from formal_llm.planning.task import Task
from formal_llm.planning.walks.asking import QuestionBuilder
from formal_llm.planning.walks.budget import Budget, Meter
from formal_llm.planning.walks.checkpoint import Checkpoint
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.events import EventCallback, Finished
from formal_llm.planning.walks.journal import JournalEntry, normalise_probabilities, sum_log_probability
from formal_llm.planning.walks.pages import Pages
from formal_llm.planning.walks.trail import DraftFollower, Stage, Trail
from formal_llm.planning.walks.wording import Wording

LookaheadMode = Literal["on", "off"]


class SharedSettings(TypedDict, total=False):
    """The settings that a walk and a planner share."""

    limits: Limits | None
    lookahead: LookaheadMode
    wording: Wording | None
    pages: Pages | int | None
    budget: Budget | None
    prices: Prices | None
    on_event: EventCallback | None


class WalkSettings(SharedSettings, total=False):
    """The settings of a :class:`~formal_llm.planning.walks.walk.Walk`."""

    task: str | Task
    name: str


class Walk(DraftFollower):
    """One plan being made.

    Args:
        source: a grammar, a flowchart, a behaviour, an automaton; or the :class:`ChoiceTable` that many walks share.
        task: what the plan is for.
        limits: more limits, where ``source`` is no table.
        lookahead: ``"on"``, or ``"off"`` to offer whatever the automaton allows next and backtrack from dead ends.
        wording: how questions are put.
        pages: how questions with many options are split; None for not at all.
        budget: what the walk may use. It may be replaced on the way.
        prices: what tokens cost, where that is known.
        name: a name for the walk: its questions and events have it.
        on_event: called with what happens.

    Raises:
        NoValidPlan: nothing follows all the rules; before any question.
        TypeError: the source is no rules; the message shows what to write instead.
    """

    def __init__(
        self,
        source: Source | ChoiceTable,
        task: str | Task = "",
        *,
        limits: Limits | None = None,
        lookahead: LookaheadMode = "on",
        wording: Wording | None = None,
        pages: Pages | int | None = None,
        budget: Budget | None = None,
        prices: Prices | None = None,
        name: str = "",
        on_event: EventCallback | None = None,
    ) -> None:
        self.name = name
        self.task = Task.of(task)
        if isinstance(source, ChoiceTable):
            table = source
        else:
            both = self.task.limits & limits if limits else self.task.limits
            table = ChoiceTable.of(source_of(source, "Walk"), goal=self.task.goal, limits=both, lookahead=lookahead)
        self.wording = (wording or Wording()).settled(table)
        self.budget = budget or Budget()
        self._asker = QuestionBuilder(table, self.wording, self.task.description, name, Pages.of(pages))
        self._trail = Trail(table, self._asker, Meter(prices), on_event)
        with suppress(BudgetExceeded):  # raised again when the question is looked at
            self._advance_walk()

    def _advance_walk(self) -> None:
        trail = self._trail
        trail.advance_to_choice(self.budget, lambda: self.partial)
        if trail.state is Stage.DONE and trail.on_event is not None:
            trail.on_event(Finished(self.plan, self.name, id=self.id))

    @property
    def id(self) -> int:
        """The number that this walk and its forks have for themselves in this process; its events have it."""
        return self._asker.id

    @property
    def table(self) -> ChoiceTable:
        """The choices of the automaton that the walk is on."""
        return self._trail.table

    @property
    def automaton(self) -> Automaton[Hashable, Move]:
        """The automaton that the walk is on, limits included."""
        return self.table.automaton

    @property
    def configuration(self) -> Hashable:
        """Where the walk stands."""
        return self._trail.configuration

    @property
    def done(self) -> bool:
        """Whether the plan is finished."""
        if isinstance(self._trail.state, Stage) and self._trail.state is not Stage.DONE:
            self._advance_walk()
        return self._trail.state is Stage.DONE

    @property
    def word(self) -> Word:
        """The terminals so far."""
        return self._trail.word

    @property
    def question(self) -> Question | None:
        """The question to answer now; None when the plan is finished. It always has two options or more.

        Raises:
            BudgetExceeded: the budget is used up. Put a larger one in its place and the walk continues.
            NoValidPlan: every branch was tried or ruled out.
        """
        entry = self._trail.state
        if not isinstance(entry, JournalEntry):
            if self.done:
                return None
            entry = self._trail.state
            assert isinstance(entry, JournalEntry)  # it has settled, and not at the end
        if entry.question is None:
            if not self.budget.allows_question(self._trail.meter.questions):
                self.afford()
            trail = self._trail
            entry.question = self._asker.build_question(
                entry, trail.moves, trail.journal, trail.count_moves_left(self.budget)
            )
        return entry.question

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions whose answers led here, the first one first; those of branches that were left do not count."""
        return tuple(entry.question for entry in self._trail.journal if entry.asked and entry.question is not None)

    @property
    def answered(self) -> int:
        """How many questions were answered so far, those of branches that were left among them."""
        return self._trail.meter.questions

    @property
    def left(self) -> float:
        """The moves that may still be made; infinite without a step budget."""
        return self._trail.count_moves_left(self.budget)

    @property
    def undecided(self) -> bool:
        """Whether it is not known of some option of :attr:`question` that a plan can be finished after it."""
        return isinstance(self._trail.state, JournalEntry) and bool(self._trail.state.fork.unknown)

    @property
    def capped(self) -> bool:
        """Whether a branch was given up for the step budget."""
        return self._trail.meter.capped

    @property
    def log_probability(self) -> float | None:
        """The logarithm of the probability of the answers that led here (see :attr:`Plan.log_probability`)."""
        return sum_log_probability(self._trail.journal)

    @property
    def plan(self) -> Plan:
        """The finished plan.

        Raises:
            WalkError: it is not finished.
        """
        if not self.done:
            raise WalkError("the plan is not finished: answer walk.question, or look at walk.partial")
        return self.partial

    @property
    def partial(self) -> Plan:
        """The plan as far as it is made."""
        asker, table, moves = self._asker, self.table, tuple(self._trail.moves)
        return Plan(
            self.task.description, lambda: asker.build_plan_tree(moves), order=self.wording.reads, usage=self.usage,
            complete=self._trail.state is Stage.DONE, log_probability=self.log_probability,
            run=lambda: (table.lookahead.source, moves),
        )  # fmt: skip

    @property
    def usage(self) -> Usage:
        """What the walk took so far."""
        return self._count_usage()

    def _count_usage(self, besides: TokenUsage | None = None) -> Usage:
        return self._trail.meter.count_usage(sum(entry.asked for entry in self._trail.journal), besides)

    def afford(self, tokens: TokenUsage | None = None, *, question: bool = True) -> None:
        """Raise if the budget leaves nothing for another question.

        Args:
            tokens: what was used besides what the walk knows of, by tries at a question that is not answered yet.
            question: False for a request that is no question.

        Raises:
            BudgetExceeded: with the partial plan.
        """
        usage = self._count_usage(tokens)
        spent = (self.budget if question else replace(self.budget, questions=None)).spent(usage)
        if spent is not None:
            raise BudgetExceeded(*spent, self.partial.with_usage(usage))

    def cost(self, tokens: TokenUsage) -> float | None:
        """What tokens cost; None without prices."""
        return self._trail.meter.price_tokens(tokens)

    def charge(self, tokens: TokenUsage, questions: int = 0) -> None:
        """Count what was used in vain: for a question that got no answer, or for answers that led to no plan."""
        self._trail.meter.tokens += tokens
        self._trail.meter.questions += questions

    # -- answering ----------------------------------------------------------------------------------------------

    def answer(self, given: Answer | int | Sequence[int]) -> None:
        """Take an answer to :attr:`question`: numbers, an :class:`Answer`, a text (:meth:`Question.read`).

        Raises:
            InvalidAnswer: it is no answer to the question; nothing has changed.
            WalkError: there is no question.
            BudgetExceeded, NoValidPlan: as :attr:`question` does.
        """
        question = self.question
        if question is None:
            raise WalkError("there is no question: the plan is finished")
        entry = self._trail.state
        assert isinstance(entry, JournalEntry)
        answer = given if type(given) is Answer else question.check(given)
        numbers, offered = answer.numbers, entry.offered_choices
        if entry.fork.several:
            question.check(answer)
            chosen = entry.find_choice(entry.resolve_key(numbers), self._trail.table, self.left)
            assert chosen is not None  # the question's objection has seen to that
        else:
            if len(numbers) != 1 or not 1 <= numbers[0] <= len(offered):
                question.check(answer)
            if (
                answer.probabilities is not None
                and (found := normalise_probabilities(answer, len(offered))) is not None
            ):
                entry.probability = found[numbers[0] - 1]
            chosen = offered[numbers[0] - 1]
        self._trail.meter.questions += 1
        if answer.usage.requests:
            self._trail.meter.tokens += answer.usage
        entry.asked = True
        question.let_go(prompt=not self.wording.conversation)
        self._trail.take_checked(entry, chosen)
        self._advance_walk()

    def ponder(self) -> bool:
        """Look beforehand at one :attr:`undecided` option, for as long as :meth:`answer` would; False: none is left."""
        return self._trail.ponder_option()

    def back(self) -> None:
        """Take the last answer back: its question is asked again, with all its options.

        Raises:
            WalkError: no question has been answered yet.
        """
        self._trail.take_back(self.budget)

    def rule_out(self, position: int | None = None) -> None:
        """Remove a branch for a reason from outside, and continue from the choice that led into it.

        Args:
            position: the place in :attr:`word` of the terminal that cannot be had (its tool failed); the last choice
                before it is the one that is ruled out. The last choice of all where left out.

        Raises:
            WalkError: the position is not in the word.
            NoValidPlan: no branch is left. Then the walk is over.
        """
        self._trail.mark_dead_end(position)
        self._advance_walk()

    def fork(self, *, on_event: EventCallback | None = None) -> Walk:
        """A second walk that stands where this one does; what is done to either does not touch the other.

        It costs short lists, all else is shared. ``on_event`` hears what happens on the new walk.
        """
        twin = object.__new__(type(self))
        twin.name, twin.task, twin.wording, twin.budget = self.name, self.task, self.wording, self.budget
        twin.draft, twin._asker = self.draft, self._asker
        twin._trail = self._trail.copy(on_event)
        return twin

    def follow(self, fork: Walk, usage: Usage | None = None) -> None:
        """Go to where a fork of this walk, or of its forks, stands; budget and event callback stay this walk's.

        ``usage`` is what it took to get there, where it was more than the fork knows (other forks, tried in vain).

        Raises:
            WalkError: it is a walk over other choices.
        """
        if fork.table is not self.table:
            raise WalkError("a walk can follow its own forks only")
        on_event = self._trail.on_event
        self._trail, self.draft = fork._trail.copy(on_event), fork.draft
        if usage is not None:
            self._trail.meter.restore_usage(usage)
        if self._trail.state is Stage.DONE and on_event:
            on_event(Finished(self.plan, self.name, id=self.id))

    def snapshot(self) -> dict[str, JSON]:
        """The walk as JSON data: the journal of choices, and the automaton's fingerprint."""
        return Checkpoint.from_trail(self._trail, self.task.description, self.usage, self.draft).to_data()

    @classmethod
    def restore(
        cls, snapshot: Mapping[str, JSON] | str, source: Source | ChoiceTable, **settings: Unpack[WalkSettings]
    ) -> Walk:
        """The walk of a snapshot, exactly where it stood.

        Args:
            snapshot: what :meth:`snapshot` returned, or that as JSON text.
            source: what the walk was made from.
            **settings: the other arguments of the constructor; ``task`` is needed where it had a goal or limits.

        Raises:
            SnapshotError: it is damaged, or was taken from a walk over another automaton or with other lookahead.
        """
        checkpoint = Checkpoint.from_data(snapshot)
        if not isinstance(source, ChoiceTable):
            settings.setdefault("lookahead", "on" if checkpoint.look else "off")
        settings.setdefault("task", checkpoint.task)
        walk = cls(source, **settings)
        checkpoint.check_automaton(fingerprint_of(walk.table.automaton), walk.table.look)
        checkpoint.replay(walk._trail, walk.budget, lambda: walk.partial)
        walk.draft = checkpoint.draft
        return walk
