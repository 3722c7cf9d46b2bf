"""A walk: one plan being made, one question at a time.

A walk does no input or output. It has a :attr:`Walk.question`, it takes an answer, and it ends with a
:attr:`Walk.plan`; who answers is its driver's business. It remembers the configuration of every choice, which costs
nothing since configurations share their parts, so it can go back to any of them:

- on a dead end (where lookahead is off, or had to say "unknown") it restores the state and the stack of the last
  choice, removes the branch that died, and asks again if two or more are left (Formal-LLM, section 3);
- :meth:`Walk.back` takes the last answer back;
- :meth:`Walk.rule_out` removes a branch for a reason from outside, such as a tool that failed.

:meth:`Walk.fork` parts a walk in two, for those who look at several answers to one question
(:mod:`formal_llm.planning.drivers.search`).

The journal of choices is the walk's checkpoint: replaying it restores the walk exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from formal_llm.automata import Limits
from formal_llm.automata.languages.why_empty import why_empty
from formal_llm.automata.lookahead.flow import INFINITE
from formal_llm.errors import BudgetExceeded, NoValidPlan, SnapshotError, Undecided, WalkError
from formal_llm.llms.question import Answer, Prices, Question, TokenUsage
from formal_llm.planning.plans.plan import Plan, Usage
from formal_llm.planning.plans.tree import Node, build_tree
from formal_llm.planning.task import Task
from formal_llm.planning.walks.asking import Asker
from formal_llm.planning.walks.budget import Budget, Meter
from formal_llm.planning.walks.checkpoint import Checkpoint, Row
from formal_llm.planning.walks.choices import Choice, ChoiceTable, Fork
from formal_llm.planning.walks.events import Backtracked, EventCallback, Finished, Forced
from formal_llm.planning.walks.journal import Entry, log_probability, shares
from formal_llm.planning.walks.wording import Wording


class Walk:
    """One plan being made.

    Args:
        source: a grammar or automaton; or the :class:`ChoiceTable` of one, which many walks can share.
        task: what the plan is for.
        limits: more limits, where ``source`` is no table.
        lookahead: ``"on"``, or ``"off"`` to offer whatever the automaton allows next and backtrack from dead ends.
        wording: how questions are put.
        budget: what the walk may use. It may be replaced on the way.
        prices: what tokens cost, where that is known.
        name: a name for the walk, where several are under way: its questions and events tell it.
        on_event: called with what happens.

    Raises:
        NoValidPlan: nothing follows all the rules; before any question.
    """

    def __init__(
        self,
        source: Any,
        task: str | Task = "",
        *,
        limits: Limits | None = None,
        lookahead: str = "on",
        wording: Wording | None = None,
        budget: Budget | None = None,
        prices: Prices | None = None,
        name: str = "",
        on_event: EventCallback | None = None,
    ) -> None:
        self.name = name
        self.task = Task.of(task)
        if not isinstance(source, ChoiceTable):
            both = self.task.limits & limits if limits else self.task.limits
            source = ChoiceTable.of(source, goal=self.task.goal, limits=both, lookahead=lookahead)
        self._table: ChoiceTable = source
        self.wording = wording or Wording.default(source)
        self.budget = budget or Budget()
        self._asker = Asker(self._table, self.wording, self.task.description, self._tree, name)
        self._on_event = on_event
        self._journal: list[Entry] = []
        self._moves: list[Any] = []
        self._now = self._table.automaton.start()
        self._here: Entry | None = None  # the choice that is asked now
        self._dead = False
        self._stopped = False
        self._capped = False
        self._meter = Meter(prices)
        if not self._table.lookahead.completable(self._now).possible:
            raise self._no_plan()
        with suppress(BudgetExceeded):  # raised again when the question is looked at
            self._settle()

    # -- looking ------------------------------------------------------------------------------------------------

    @property
    def automaton(self) -> Any:
        """The automaton that the walk is on, limits included."""
        return self._table.automaton

    @property
    def configuration(self) -> Any:
        """Where the walk stands."""
        return self._now

    @property
    def done(self) -> bool:
        """Whether the plan is finished."""
        if not self._stopped and self._here is None:
            self._settle()
        return self._stopped

    @property
    def word(self) -> tuple[str, ...]:
        """The terminals so far."""
        return tuple([move.read for move in self._moves if move.read is not None])

    @property
    def question(self) -> Question | None:
        """The question to answer now; None when the plan is finished. It always has two options or more.

        Raises:
            BudgetExceeded: the budget is used up. Put a larger one in its place and the walk goes on.
            NoValidPlan: every branch was tried or ruled out.
        """
        if self._stopped:
            return None
        if self._here is None:
            self._settle()
            if self._here is None:
                return None
        entry: Entry = self._here
        if entry.question is None:
            if self.budget.metered:
                self.afford()
            entry.question = self._ask(entry)
        return entry.question

    @property
    def questions(self) -> tuple[Question, ...]:
        """The questions whose answers led here, the first one first; those of branches that were left do not count."""
        return tuple(entry.question for entry in self._journal if entry.asked and entry.question is not None)

    def afford(self, tokens: TokenUsage | None = None) -> None:
        """Raise if the budget leaves nothing for another question.

        Args:
            tokens: what was used besides what the walk knows of, by tries at a question that is not answered yet.

        Raises:
            BudgetExceeded: with the partial plan.
        """
        usage = self.usage
        if tokens is not None:
            both = self._meter.tokens + tokens
            usage = replace(
                usage,
                requests=both.requests,
                input_tokens=both.input_tokens,
                output_tokens=both.output_tokens,
                cost=self.cost(both),
            )
        kind = self.budget.spent(usage)
        if kind is not None:
            partial = self.partial
            partial.usage = usage
            raise BudgetExceeded(kind, getattr(self.budget, kind), partial)

    def cost(self, tokens: TokenUsage) -> float | None:
        """What tokens cost; None without prices."""
        return self._meter.cost(tokens)

    def charge(self, tokens: TokenUsage) -> None:
        """Count what was used in vain, for a question that got no answer."""
        self._meter.tokens += tokens

    @property
    def left(self) -> float:
        """The moves that may still be made; infinite without a step budget."""
        return INFINITE if self.budget.steps is None else self.budget.steps - len(self._moves)

    @property
    def capped(self) -> bool:
        """Whether a branch was given up because it did not end within the step budget."""
        return self._capped

    @property
    def log_probability(self) -> float | None:
        """The logarithm of the probability of the answers that led here (see :attr:`Plan.log_probability`)."""
        return log_probability(self._journal)

    @property
    def plan(self) -> Plan:
        """The finished plan.

        Raises:
            WalkError: it is not finished.
        """
        if not self.done:
            raise WalkError("the plan is not finished: answer walk.question, or look at walk.partial")
        return self._make_plan(complete=True)

    @property
    def partial(self) -> Plan:
        """The plan as far as it is made."""
        return self._make_plan(complete=self._stopped)

    @property
    def usage(self) -> Usage:
        """What the walk took so far."""
        return self._meter.usage(kept=sum(entry.asked for entry in self._journal))

    def _start_symbol(self) -> str | None:
        pda = self._table.lookahead.pda
        return pda.cfg.start if pda is not None and pda.cfg is not None else None

    def _tree(self, moves: Sequence[Any]) -> Node:
        return build_tree(moves, self._table.automaton.label, self._start_symbol())

    def _make_plan(self, *, complete: bool) -> Plan:
        moves = tuple(self._moves)
        return Plan(
            self.task.description,
            lambda: self._tree(moves),
            order=self.wording.order,
            usage=self.usage,
            complete=complete,
            log_probability=self.log_probability,
        )

    def _ask(self, entry: Entry) -> Question:
        return self._asker.ask(entry, self._moves, self._journal, self.left)

    # -- answering ----------------------------------------------------------------------------------------------

    def answer(self, given: Any) -> None:
        """Take an answer to :attr:`question`: a number, several numbers, an :class:`Answer`, or text.

        Raises:
            InvalidAnswer: it is no answer to the question; nothing has changed.
            WalkError: there is no question.
            BudgetExceeded, NoValidPlan: as :attr:`question` does.
        """
        question = self.question
        if question is None:
            raise WalkError("there is no question: the plan is finished")
        entry = self._here
        assert entry is not None
        if type(given) is not Answer:
            given = question.check(given)
        numbers = given.numbers
        offered = entry.offered
        if entry.fork.several:
            question.check(given)
            members = frozenset(offered[number - 1].reads[0] for number in numbers)
            subset = entry.find(members, self._table, self.left)
            assert subset is not None  # the question's objection has seen to that
            chosen = subset
        else:
            if len(numbers) != 1 or not 1 <= numbers[0] <= len(offered):
                question.check(given)
            if given.probabilities is not None and (found := shares(given, len(offered))) is not None:
                entry.probability = found[numbers[0] - 1]
            chosen = offered[numbers[0] - 1]
        self._meter.questions += 1
        if given.usage.requests:
            self._meter.tokens += given.usage
        entry.asked = True
        self._take(entry, chosen)
        self._settle()

    def _take(self, entry: Entry, choice: Choice) -> None:
        entry.chosen = choice
        self._journal.append(entry)
        self._here = None
        self._go(choice)

    def _go(self, choice: Choice) -> None:
        if not choice.moves:
            self._finish()
            return
        self._now = self._table.after(self._now, choice)
        self._moves += choice.moves

    def _finish(self) -> None:
        self._stopped = True
        self._meter.stop()
        if self._on_event is not None:
            self._on_event(Finished(self.plan, self.name))

    def _settle(self) -> None:
        """Go on to the next question or to the end: take what leaves no choice, go back from dead ends."""
        while not self._stopped and self._here is None:
            if self._dead:
                self._go_back()
                continue
            left = self.left
            fork = self._table.at(self._now, left)
            count = len(fork.choices)
            if left < 0 or (not self._table.look and self._table.lookahead.least_steps(self._now) > left):
                self._capped = self._dead = True
            elif count > 1:
                self._here = Entry(self._now, fork, len(self._moves))
            elif count == 1:
                self._force(fork)
            else:
                self._dead = True
                self._capped = self._capped or (left < INFINITE and bool(self._table.at(self._now, INFINITE).choices))

    def _force(self, fork: Fork) -> None:
        """Take the one choice that is left."""
        choice = fork.choices[0]
        if fork.several:
            only = self._table.subset(self._now, frozenset(choice.reads), self.left)
            if only is None:
                self._dead = True
                return
            choice = only
        if fork.total > 1:
            self._meter.forced += 1
            if self._on_event is not None:
                self._on_event(Forced(self._asker.texts(fork)[0], fork.total - 1, self.name))
        self._go(choice)

    # -- going back ---------------------------------------------------------------------------------------------

    def _go_back(self) -> None:
        """Leave a dead end: restore the last choice, remove the branch, ask again if two or more are left."""
        if not self._journal:
            if self._capped and self.budget.steps is not None:
                self._capped = self._dead = False
                needed = None
                with suppress(Undecided):
                    least = self._table.lookahead.fewest_moves(self._now)
                    needed = None if least is None else len(self._moves) + least
                raise BudgetExceeded("steps", self.budget.steps, self.partial, needed)
            raise self._no_plan()
        if self.budget.backtracks is not None and self._meter.backtracks >= self.budget.backtracks:
            raise BudgetExceeded("backtracks", self.budget.backtracks, self.partial)
        self._meter.backtracks += 1
        self._dead = False
        entry = self._journal.pop()
        self._restore(entry, entry.excluded | {entry.key})

    def _restore(self, entry: Entry, excluded: frozenset[Any]) -> None:
        """Stand again at a choice, less the branches that are ruled out there."""
        self._stopped = False
        self._meter.go_on()
        self._now = entry.configuration
        del self._moves[entry.moves :]
        fresh = Entry(entry.configuration, entry.fork, entry.moves)
        fresh.excluded = excluded
        if self._on_event is not None and entry.chosen is not None and entry.key in excluded:
            self._on_event(Backtracked(self._asker.chosen_text(entry), self.word, self.name))
        if entry.fork.several:
            if fresh.has_subset(self._table, self.left):
                self._here = fresh
            else:
                self._dead = True
            return
        left = fresh.offered
        if len(left) > 1:
            self._here = fresh
        elif left:
            self._take(fresh, left[0])
        else:
            self._dead = True

    def back(self) -> None:
        """Take the last answer back: its question is asked again, with all its options.

        Raises:
            WalkError: no question has been answered yet.
        """
        for place in range(len(self._journal) - 1, -1, -1):
            if self._journal[place].asked:
                entry = self._journal[place]
                del self._journal[place:]
                self._dead = False
                self._here = None
                self._restore(entry, entry.excluded)
                return
        raise WalkError("nothing to go back to: no question has been answered yet")

    def rule_out(self, position: int | None = None) -> None:
        """Remove a branch for a reason from outside, and go on from the choice that led into it.

        Args:
            position: the place in :attr:`word` of the terminal that cannot be had (its tool failed); the last choice
                before it is the one that is ruled out. The last choice of all where left out.

        Raises:
            WalkError: the position is not in the word.
            NoValidPlan: no branch is left. Then the walk is over.
        """
        keep = len(self._journal)
        if position is not None:
            reads = [number for number, move in enumerate(self._moves) if move.read is not None]
            if not 0 <= position < len(reads):
                raise WalkError(f"the word has {len(reads)} terminals; there is no position {position}")
            keep = sum(entry.moves <= reads[position] for entry in self._journal)
        del self._journal[keep:]
        self._here = None
        self._stopped = False
        self._dead = True
        self._settle()

    def _no_plan(self) -> NoValidPlan:
        if self._journal or self._meter.questions or self._meter.backtracks or self._dead:
            return NoValidPlan("every branch was tried or ruled out")
        why = why_empty(self._table.lookahead.source, max_states=self._table.lookahead.max_states)
        return NoValidPlan(
            why.reason, symbols=why.symbols, limits=why.limits, constraints=why.constraints, remedy=why.remedy
        )

    # -- parting ------------------------------------------------------------------------------------------------

    def fork(self, *, on_event: EventCallback | None = None) -> Walk:
        """A second walk that stands where this one does; what is done to either does not touch the other.

        It costs two short lists: configurations, journal entries and the choice table are shared.

        Args:
            on_event: called with what happens on the new walk; the callback of this one is not.
        """
        twin = object.__new__(type(self))
        twin._stand_like(self)
        twin._on_event = on_event
        return twin

    def follow(self, fork: Walk, usage: Usage | None = None) -> None:
        """Go to where a fork of this walk stands; the budget and the event callback stay this walk's.

        Args:
            fork: a walk that came from :meth:`fork`, of this walk or of its forks.
            usage: what it took to get there, where it was more than the fork knows (other forks, tried in vain).

        Raises:
            WalkError: it is a walk over other choices.
        """
        if fork._table is not self._table:
            raise WalkError("a walk can follow its own forks only")
        budget, on_event = self.budget, self._on_event
        self._stand_like(fork)
        self.budget, self._on_event = budget, on_event
        if usage is not None:
            self._meter.set(usage)
        if self._stopped and on_event is not None:
            on_event(Finished(self.plan, self.name))

    def _stand_like(self, other: Walk) -> None:
        self.__dict__.update(other.__dict__)
        self._journal = other._journal.copy()
        self._moves = other._moves.copy()
        self._here = None if other._here is None else other._here.copy()
        self._meter = other._meter.copy()

    # -- checkpoints --------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """The walk as JSON data: the journal of choices, and the automaton's fingerprint."""
        rows = [Row.of(entry) for entry in (*self._journal, *([self._here] if self._here is not None else []))]
        fingerprint = self._table.automaton.fingerprint
        task = self.task.description
        return Checkpoint(fingerprint, self._table.look, task, tuple(rows), self._dead, self.usage).to_data()

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any] | str, source: Any, **settings: Any) -> Walk:
        """The walk of a snapshot, exactly where it stood.

        Args:
            snapshot: what :meth:`snapshot` returned, or that as JSON text.
            source: what the walk was made from.
            **settings: the other arguments of the constructor. ``task`` is needed where it had a goal or limits; else
                its description is in the snapshot.

        Raises:
            SnapshotError: it is damaged, or was taken from a walk over another automaton or with other lookahead.
        """
        checkpoint = Checkpoint.from_data(snapshot)
        if not isinstance(source, ChoiceTable):
            settings.setdefault("lookahead", "on" if checkpoint.look else "off")
        walk = cls(source, **{"task": checkpoint.task, **settings})
        checkpoint.check(walk._table.automaton.fingerprint, walk._table.look)
        walk._replay(checkpoint)
        return walk

    def _replay(self, checkpoint: Checkpoint) -> None:
        on_event, self._on_event = self._on_event, None  # what is replayed has happened before
        for row in checkpoint.rows:
            entry = self._here
            if entry is None:
                raise SnapshotError("the snapshot does not fit: it has a choice where the automaton has none")
            entry.excluded = frozenset(row.excluded)
            if row.chosen is None:
                continue
            chosen = entry.find(row.chosen, self._table, self.left)
            if chosen is None:
                raise SnapshotError("the snapshot does not fit: it takes a choice that is not offered")
            entry.asked, entry.probability = row.asked, row.probability
            entry.question = self._ask(entry) if self.wording.conversation else None
            self._take(entry, chosen)
            self._settle()
        if checkpoint.dead:
            self._here, self._dead = None, True
        self._meter.set(checkpoint.usage)
        self._on_event = on_event
