"""A walk: one plan being made, one question at a time.

A walk does no I/O. It has a :attr:`Walk.question`, it takes an answer, and it ends with a :attr:`Walk.plan`; its driver
decides who answers. It remembers the configuration of every choice, which is cheap because configurations share their
parts, so it can return to any of them:

- at a dead end (with lookahead off, or undecided) it restores the state and stack of the last choice, removes the
  failed branch, and asks again if two or more are left (Formal-LLM, section 3);
- :meth:`Walk.back` takes the last answer back, :meth:`Walk.rule_out` removes a branch that failed outside the walk.

:mod:`formal_llm.planning.walks.trail` moves it; its journal is its checkpoint. It can :meth:`fork`.
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
from formal_llm.planning.walks.trail import DraftFollower, Stage, Trail, make_budget_error
from formal_llm.planning.walks.wording import Wording

LookaheadMode = Literal["on", "off"]


class SharedSettings(TypedDict, total=False):
    """The settings that a walk and a planner have in common."""

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
        limits: more limits, if ``source`` is not a table.
        lookahead: ``"on"``, or ``"off"`` to offer whatever the automaton allows next and backtrack from dead ends.
        wording: how questions are phrased.
        pages: how questions with many options are split; None to never split them.
        budget: what the walk may use. It may be replaced at any time.
        prices: the prices of tokens, if known.
        name: the name of the walk, which its questions and events carry.

    Raises:
        NoValidPlan: no plan follows all the rules; raised before any question.
        TypeError: the source is not a set of rules; the message suggests what to write instead.
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
        self.wording = wording or Wording()
        self.budget = budget or Budget()
        self._asker = QuestionBuilder(table, self.wording, self.task.description, name, Pages.of(pages))
        self._trail = Trail(table, self._asker, Meter(prices), on_event)
        with suppress(BudgetExceeded):  # raised again when the question is accessed
            self._advance_walk()

    def _advance_walk(self) -> None:
        trail = self._trail
        trail.advance_to_choice(self.budget, lambda: self.partial)
        if trail.state is Stage.DONE and trail.on_event is not None:
            trail.on_event(Finished(self.plan, self.name, id=self.id))

    @property
    def id(self) -> int:
        """A number unique to this walk and its forks within this process; its events carry it."""
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
        """The current configuration of the automaton."""
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
        """The current question; None when the plan is finished. It always has two options or more.

        Raises:
            BudgetExceeded: the budget is used up. Replace it by a larger one to continue the walk.
            NoValidPlan: every branch was tried or ruled out.
        """
        entry = self._trail.state
        if not isinstance(entry, JournalEntry):
            if self.done:
                return None
            entry = self._trail.state
            assert isinstance(entry, JournalEntry)  # advanced as far as possible, and not finished
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
        """The questions whose answers led here, in order, without those of abandoned branches."""
        return tuple(entry.question for entry in self._trail.journal if entry.asked and entry.question is not None)

    @property
    def answered(self) -> int:
        """How many questions were answered so far, including those of abandoned branches."""
        return self._trail.meter.questions

    @property
    def left(self) -> float:
        """The moves that may still be made; infinite without a step budget."""
        return self._trail.count_moves_left(self.budget)

    @property
    def undecided(self) -> bool:
        """Whether :attr:`question` offers an option after which it is not known that a plan can be finished."""
        return isinstance(self._trail.state, JournalEntry) and bool(self._trail.state.fork.unknown)

    @property
    def capped(self) -> bool:
        """Whether a branch was abandoned because of the step budget."""
        return self._trail.meter.capped

    @property
    def log_probability(self) -> float | None:
        """The logarithm of the probability of the answers that led here (see :attr:`Plan.log_probability`)."""
        return sum_log_probability(self._trail.journal)

    @property
    def plan(self) -> Plan:
        """The finished plan.

        Raises:
            WalkError: the plan is not finished.
        """
        if not self.done:
            raise WalkError("the plan is not finished: answer walk.question, or look at walk.partial")
        return self.partial

    @property
    def partial(self) -> Plan:
        """The plan so far."""
        asker, table, moves = self._asker, self.table, tuple(self._trail.moves)
        return Plan(
            self.task.description, lambda: asker.build_plan_tree(moves), order=table.vocabulary.order, usage=self.usage,
            complete=self._trail.state is Stage.DONE, log_probability=self.log_probability,
            run=lambda: (table.lookahead.source, moves),
        )  # fmt: skip

    @property
    def usage(self) -> Usage:
        """What the walk has used so far."""
        return self._count_usage()

    def _count_usage(self, besides: TokenUsage | None = None) -> Usage:
        return self._trail.meter.count_usage(sum(entry.asked for entry in self._trail.journal), besides)

    def afford(self, tokens: TokenUsage | None = None, *, question: bool = True) -> None:
        """Raise an error if the budget does not allow another question.

        Args:
            tokens: what attempts at the current question have used, which the walk has not counted yet.
            question: False for a request that is not a question.

        Raises:
            BudgetExceeded: with the partial plan.
        """
        usage = self._count_usage(tokens)
        spent = (self.budget if question else replace(self.budget, questions=None)).spent(usage)
        if spent is not None:
            raise make_budget_error(self.table, *spent, self.partial.with_usage(usage))

    def cost(self, tokens: TokenUsage) -> float | None:
        """Return the cost of tokens; None without prices."""
        return self._trail.meter.price_tokens(tokens)

    def charge(self, tokens: TokenUsage, questions: int = 0) -> None:
        """Count wasted usage: by a question that got no answer, or by answers that led to no plan."""
        self._trail.meter.tokens += tokens
        self._trail.meter.questions += questions

    # -- answering ----------------------------------------------------------------------------------------------

    def answer(self, given: Answer | int | Sequence[int]) -> None:
        """Answer :attr:`question` by numbers, an :class:`Answer`, or a text (:meth:`Question.read`).

        Raises:
            InvalidAnswer: it does not answer the question; the walk is unchanged.
            WalkError: there is no question.
            BudgetExceeded, NoValidPlan: as in :attr:`question`.
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
            assert chosen is not None  # the question's objection has ensured that
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

    def back(self) -> None:
        """Take the last answer back: its question is asked again with all its options.

        Raises:
            WalkError: no question has been answered yet.
        """
        self._trail.take_back(self.budget)

    def rule_out(self, position: int | None = None) -> None:
        """Rule out a branch for an external reason and continue from the choice that led into it.

        Args:
            position: the index in :attr:`word` of the terminal that is unavailable (its tool failed); the last choice
                before it is ruled out. By default the last choice of all.

        Raises:
            WalkError: the position is not in the word.
            NoValidPlan: no branch is left. The walk is then over.
        """
        self._trail.mark_dead_end(position)
        self._advance_walk()

    def fork(self, *, on_event: EventCallback | None = None) -> Walk:
        """Create an independent walk at the same position.

        It copies short lists only, all else is shared. ``on_event`` is called with the events of the new walk.
        """
        twin = object.__new__(type(self))
        twin.name, twin.task, twin.wording, twin.budget = self.name, self.task, self.wording, self.budget
        twin.draft, twin._asker = self.draft, self._asker
        twin._trail = self._trail.copy(on_event)
        return twin

    def follow(self, fork: Walk, usage: Usage | None = None) -> None:
        """Move to the position of a fork of this walk, or of its forks, keeping this walk's budget and event callback.

        ``usage`` is the total usage if it exceeds what the fork has counted (because other forks were tried in vain).

        Raises:
            WalkError: the other walk is over other choices.
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
        """Return the walk as JSON data: the journal of choices and the automaton's fingerprint."""
        return Checkpoint.from_trail(self._trail, self.task.description, self.usage, self.draft).to_data()

    @classmethod
    def restore(
        cls, snapshot: Mapping[str, JSON] | str, source: Source | ChoiceTable, **settings: Unpack[WalkSettings]
    ) -> Walk:
        """Restore a walk from a snapshot, at exactly the same position.

        Args:
            snapshot: the result of :meth:`snapshot`, or the same as JSON text.
            source: the rules of the walk.
            **settings: the other arguments of the constructor; ``task`` is needed if it has a goal or limits.

        Raises:
            RecordError: it is damaged, or was taken from a walk with another automaton or another lookahead setting.
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
