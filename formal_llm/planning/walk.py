"""A walk: one plan being made, one question at a time.

A walk does no input or output. It has a :attr:`Walk.question`, it takes an answer, and it ends with a
:attr:`Walk.plan`; who answers is its driver's business. It remembers the configuration of every choice, which costs
nothing since configurations share their parts, so it can go back to any of them:

- on a dead end (where lookahead is off, or had to say "unknown") it restores the state and the stack of the last
  choice, removes the branch that died, and asks again if two or more are left (Formal-LLM, section 3);
- :meth:`Walk.back` takes the last answer back;
- :meth:`Walk.rule_out` removes a branch for a reason from outside, such as a tool that failed.

The journal of choices is the walk's checkpoint: replaying it restores the walk exactly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

from formal_llm.automata import Limits
from formal_llm.automata.explain import why_empty
from formal_llm.automata.flow import INFINITE
from formal_llm.automata.limited import split
from formal_llm.automata.lookahead import Lookahead
from formal_llm.automata.pda import PDA
from formal_llm.errors import BudgetExceeded, InvalidAnswer, NoValidPlan, SnapshotError, WalkError
from formal_llm.llms.question import Answer, Option, Outlook, Prospect, Question, Term, TokenUsage
from formal_llm.planning.choices import Choice, ChoiceTable, Fork
from formal_llm.planning.events import Backtracked, EventCallback, Finished, Forced
from formal_llm.planning.plan import Plan, Usage
from formal_llm.planning.task import Task
from formal_llm.planning.tree import Node, build_tree
from formal_llm.planning.wording import Wording


@dataclass(frozen=True, slots=True)
class Budget:
    """What one walk may use; None for no bound.

    Attributes:
        questions: questions asked.
        steps: moves of the automaton in the plan. With lookahead only such plans are offered as keep it.
        backtracks: dead ends left.
    """

    questions: int | None = None
    steps: int | None = 10_000
    backtracks: int | None = None


class _Entry:
    """A choice in the journal."""

    __slots__ = ("asked", "chosen", "configuration", "excluded", "fork", "moves", "members", "question")

    def __init__(self, configuration: Any, fork: Fork, moves: int) -> None:
        self.configuration = configuration
        self.fork = fork
        self.moves = moves  # how many moves were made before
        self.excluded: set[Any] = set()
        self.chosen: Choice | None = None
        self.members: frozenset[str] = frozenset()  # of a selection, what was chosen
        self.asked = False
        self.question: Question | None = None

    def key(self) -> Any:
        """What ruling out this entry's choice rules out."""
        assert self.chosen is not None
        return self.members if self.fork.several else self.chosen.index


class Walk:
    """One plan being made.

    Args:
        source: a grammar or automaton; or the :class:`ChoiceTable` of one, which many walks can share.
        task: what the plan is for.
        limits: more limits, where ``source`` is no table.
        lookahead: ``"on"``, or ``"off"`` to offer whatever the automaton allows next and backtrack from dead ends.
        wording: how questions are put.
        budget: what the walk may use. It may be replaced on the way.
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
        on_event: EventCallback | None = None,
    ) -> None:
        self.task = Task.of(task)
        if not isinstance(source, ChoiceTable):
            if lookahead not in ("on", "off"):
                raise ValueError(f"lookahead is 'on' or 'off', not {lookahead!r}")
            both = self.task.limits & limits if limits else self.task.limits
            if self.task.goal is not None and hasattr(source, "with_start"):
                source = source.with_start(self.task.goal)
            source = ChoiceTable(Lookahead(source, both), look=lookahead == "on")
        self._table: ChoiceTable = source
        self.wording = wording or Wording()
        self.budget = budget or Budget()
        self._on_event = on_event
        self._journal: list[_Entry] = []
        self._moves: list[Any] = []
        self._now = self._table.automaton.start()
        self._here: _Entry | None = None  # the choice that is asked now
        self._dead = False
        self._stopped = False
        self._capped = False
        self._questions = self._forced = self._backtracks = 0
        self._tokens = TokenUsage()
        self._begun = perf_counter()
        self._seconds: float | None = None
        if self._table.lookahead.steps(self._now) == INFINITE:
            raise self._no_plan()
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
        entry: _Entry = self._here
        if entry.question is None:
            if self.budget.questions is not None and self._questions >= self.budget.questions:
                raise BudgetExceeded("questions", self.budget.questions, self.partial)
            entry.question = self._ask(entry)
        return entry.question

    @property
    def plan(self) -> Plan:
        """The finished plan.

        Raises:
            WalkError: it is not finished.
        """
        if not self._stopped:
            raise WalkError("the plan is not finished: answer walk.question, or look at walk.partial")
        return self._make_plan(complete=True)

    @property
    def partial(self) -> Plan:
        """The plan as far as it is made."""
        return self._make_plan(complete=self._stopped)

    @property
    def usage(self) -> Usage:
        """What the walk took so far."""
        kept = sum(entry.asked for entry in self._journal)
        seconds = self._seconds if self._seconds is not None else perf_counter() - self._begun
        tokens = self._tokens
        return Usage(
            self._questions, self._forced, self._backtracks, self._questions - kept,
            tokens.requests, tokens.input_tokens, tokens.output_tokens, seconds,
        )  # fmt: skip

    def _start_symbol(self) -> str | None:
        inner, _ = split(self._table.automaton)
        return inner.cfg.start if isinstance(inner, PDA) and inner.cfg is not None else None

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
        )

    # -- questions ----------------------------------------------------------------------------------------------

    def _offered(self, entry: _Entry) -> tuple[Choice, ...]:
        if entry.excluded and not entry.fork.several:
            return tuple(choice for choice in entry.fork.choices if choice.index not in entry.excluded)
        return entry.fork.choices

    def _options(self, entry: _Entry) -> tuple[Option, ...]:
        fork = entry.fork
        shown: tuple[Wording, tuple[Option, ...]] | None = fork.shown
        if shown is None or shown[0] is not self.wording:
            texts = self._texts(fork.choices, fork.several)
            shown = fork.shown = (self.wording, tuple(Option(n, text) for n, text in enumerate(texts, 1)))
        if not entry.excluded or fork.several:
            return shown[1]
        by_choice = dict(zip((choice.index for choice in fork.choices), shown[1], strict=True))
        kept = (by_choice[choice.index].text for choice in self._offered(entry))
        return tuple(Option(number, text) for number, text in enumerate(kept, 1))

    def _texts(self, choices: Sequence[Choice], several: bool) -> tuple[str, ...]:
        if several:
            return tuple(self._table.automaton.label(choice.reads[0]) for choice in choices)
        return self.wording.options(choices, self._table.automaton)

    def _ask(self, entry: _Entry) -> Question:
        options = self._options(entry)
        wording, place = self.wording, entry.moves
        earlier = [e for e in self._journal if e.asked and e.question is not None] if wording.conversation else []
        moves = tuple(self._moves[:place])

        def prompt() -> str:
            texts = [option.text for option in options]
            since = None
            if earlier:
                since = len(_shown(self._tree(moves[: earlier[-1].moves]), wording))
            return wording.ask(self.task.description, self._tree(moves), texts, several=entry.fork.several, since=since)

        def before() -> tuple[Any, ...]:
            return wording.before((e.question.prompt, _said(e)) for e in earlier if e.question is not None)

        return Question(
            prompt,
            options,
            several=entry.fork.several,
            task=self.task.description,
            messages=before,
            outlook=lambda: self._outlook(entry, moves),
        )

    def _outlook(self, entry: _Entry, moves: Sequence[Any]) -> Outlook:
        prospects = tuple(self._prospect(entry, choice) for choice in self._offered(entry))
        so_far = tuple(self._term(move.read) for move in moves if move.read is not None)
        return Outlook(so_far, prospects, self.wording.order == "backward")

    def _prospect(self, entry: _Entry, choice: Choice) -> Prospect:
        table = self._table
        after = table.after(entry.configuration, choice)
        detours = table.lookahead.detours(after)
        return Prospect(
            uses=tuple(map(self._term, choice.reads)),
            allows=tuple((self._term(n), detours[n]) for n in table.automaton.terminals if n in detours),
            length=int(table.lookahead.least_length(after)),
        )

    def _term(self, name: str) -> Term:
        symbols: Mapping[str, Any] = getattr(self._table.automaton, "symbols", {})
        description = symbols[name].description if name in symbols else ""
        return Term(name, self._table.automaton.label(name), description)

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
        offered = self._offered(entry)
        if entry.fork.several:
            question.check(given)
            names = frozenset(offered[number - 1].reads[0] for number in numbers)
            subset = None if names in entry.excluded else self._table.subset(entry.configuration, names)
            if subset is None:
                raise InvalidAnswer(
                    "these cannot be chosen together under the rules", [(question.prompt, given.text or str(numbers))]
                )
            entry.members = names
            chosen = subset
        else:
            if len(numbers) != 1 or not 1 <= numbers[0] <= len(offered):
                question.check(given)
            chosen = offered[numbers[0] - 1]
        self._questions += 1
        if given.usage.requests:
            self._tokens += given.usage
        entry.asked = True
        self._take(entry, chosen)
        self._settle()

    def _take(self, entry: _Entry, choice: Choice) -> None:
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
        self._seconds = perf_counter() - self._begun
        if self._on_event is not None:
            self._on_event(Finished(self.plan))

    def _settle(self) -> None:
        """Go on to the next question or to the end: take what leaves no choice, go back from dead ends."""
        limit = self.budget.steps
        while not self._stopped and self._here is None:
            if self._dead:
                self._go_back()
                continue
            left = INFINITE if limit is None else limit - len(self._moves)
            fork = self._table.at(self._now, left)
            count = len(fork.choices)
            if left < 0 or (not self._table.look and self._table.lookahead.least_steps(self._now) > left):
                self._capped = self._dead = True
            elif count > 1:
                self._here = _Entry(self._now, fork, len(self._moves))
            elif count == 1:
                self._force(fork)
            else:
                self._dead = True
                self._capped = self._capped or (self._table.look and self._table.lookahead.steps(self._now) < INFINITE)

    def _force(self, fork: Fork) -> None:
        """Take the one choice that is left."""
        choice = fork.choices[0]
        if fork.several:
            only = self._table.subset(self._now, frozenset(choice.reads))
            if only is None:
                self._dead = True
                return
            choice = only
        if fork.total > 1:
            self._forced += 1
            if self._on_event is not None:
                self._on_event(Forced(self._texts(fork.choices, fork.several)[0], fork.total - 1))
        self._go(choice)

    # -- going back ---------------------------------------------------------------------------------------------

    def _go_back(self) -> None:
        """Leave a dead end: restore the last choice, remove the branch, ask again if two or more are left."""
        if not self._journal:
            if self._capped and self.budget.steps is not None:
                self._capped = self._dead = False
                raise BudgetExceeded("steps", self.budget.steps, self.partial)
            raise self._no_plan()
        if self.budget.backtracks is not None and self._backtracks >= self.budget.backtracks:
            raise BudgetExceeded("backtracks", self.budget.backtracks, self.partial)
        self._backtracks += 1
        self._dead = False
        entry = self._journal.pop()
        entry.excluded.add(entry.key())
        self._restore(entry)

    def _restore(self, entry: _Entry) -> None:
        """Stand again at a choice, less the branches that are ruled out there."""
        self._stopped = False
        self._seconds = None
        ruled_out = self._ruled_out_text(entry)
        self._now = entry.configuration
        del self._moves[entry.moves :]
        fresh = _Entry(entry.configuration, entry.fork, entry.moves)
        fresh.excluded = entry.excluded
        if self._on_event is not None and ruled_out:
            self._on_event(Backtracked(ruled_out, self.word))
        if entry.fork.several:
            if self._subsets_left(fresh):
                self._here = fresh
            else:
                self._dead = True
            return
        left = self._offered(fresh)
        if len(left) > 1:
            self._here = fresh
        elif left:
            self._take(fresh, left[0])
        else:
            self._dead = True

    def _subsets_left(self, entry: _Entry) -> bool:
        names = [choice.reads[0] for choice in entry.fork.choices]
        for number in range(1, 1 << len(names)):
            subset = frozenset(name for place, name in enumerate(names) if number >> place & 1)
            if subset not in entry.excluded and self._table.subset(entry.configuration, subset) is not None:
                return True
        return False

    def _ruled_out_text(self, entry: _Entry) -> str:
        if entry.chosen is None or entry.key() not in entry.excluded:
            return ""
        if entry.fork.several:
            return ", ".join(map(self._table.automaton.label, sorted(entry.members)))
        return self.wording.option(entry.chosen, self._table.automaton)

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
                self._restore(entry)
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
        if self._journal or self._questions or self._backtracks or self._dead:
            return NoValidPlan("every branch was tried or ruled out")
        reason, symbols, limits = why_empty(self._table.automaton)
        return NoValidPlan(reason, symbols=symbols, limits=limits)

    # -- checkpoints --------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        """The walk as JSON data: the journal of choices, and the automaton's fingerprint."""
        entries = [*self._journal, *([self._here] if self._here is not None else [])]
        return {
            "format": "formal_llm.walk/1",
            "fingerprint": self._table.automaton.fingerprint,
            "lookahead": "on" if self._table.look else "off",
            "task": self.task.description,
            "journal": [
                {
                    "chosen": None if entry.chosen is None else _plain(entry.key()),
                    "excluded": sorted((_plain(key) for key in entry.excluded), key=repr),
                    "asked": entry.asked,
                }
                for entry in entries
            ],
            "dead": self._dead,
            "usage": asdict(self.usage),
        }

    @classmethod
    def restore(cls, snapshot: Mapping[str, Any] | str, source: Any, **settings: Any) -> Walk:
        """The walk of a snapshot, exactly where it stood.

        Args:
            snapshot: what :meth:`snapshot` returned, or that as JSON text.
            source, settings: what the walk was made from, as for the constructor.

        Raises:
            SnapshotError: it is damaged, or was taken from a walk over another automaton or without lookahead.
        """
        try:
            data = json.loads(snapshot) if isinstance(snapshot, str) else snapshot
            if data["format"] != "formal_llm.walk/1":
                raise SnapshotError(f"unknown format {data['format']!r}")
            if not isinstance(source, ChoiceTable):
                settings.setdefault("lookahead", data["lookahead"])
            walk = cls(source, **{"task": data["task"], **settings})
            walk._replay(data)
        except (KeyError, TypeError, IndexError, AttributeError, json.JSONDecodeError) as error:
            raise SnapshotError(f"the snapshot is damaged: {error!r}") from error
        return walk

    def _replay(self, data: Mapping[str, Any]) -> None:
        automaton = self._table.automaton.fingerprint
        if data["fingerprint"] != automaton:
            raise SnapshotError(
                f"the snapshot was taken on another automaton (fingerprint {data['fingerprint']}, this one has "
                f"{automaton}): its rules or limits have changed since"
            )
        if data["lookahead"] != ("on" if self._table.look else "off"):
            raise SnapshotError(f"the snapshot was taken with lookahead {data['lookahead']}")
        for row in data["journal"]:
            entry = self._here
            if entry is None:
                raise SnapshotError("the snapshot does not fit: it has a choice where the automaton has none")
            entry.excluded = {frozenset(key) if isinstance(key, list) else key for key in row["excluded"]}
            if row["chosen"] is None:
                continue
            chosen = self._find(entry, row["chosen"])
            entry.asked = row["asked"]
            entry.question = self._ask(entry) if self.wording.conversation else None
            self._take(entry, chosen)
            self._settle()
        if data["dead"]:
            self._here, self._dead = None, True
        usage = Usage(**data["usage"])
        self._questions, self._forced, self._backtracks = usage.questions, usage.forced, usage.backtracks
        self._tokens = TokenUsage(usage.requests, usage.input_tokens, usage.output_tokens)
        self._begun = perf_counter() - usage.seconds
        if self._stopped:
            self._seconds = usage.seconds

    def _find(self, entry: _Entry, key: Any) -> Choice:
        if entry.fork.several:
            entry.members = frozenset(key)
            chosen = self._table.subset(entry.configuration, entry.members)
        else:
            chosen = next((choice for choice in entry.fork.choices if choice.index == key), None)
        if chosen is None:
            raise SnapshotError("the snapshot does not fit: it takes a choice that is not offered")
        return chosen


def _plain(key: Any) -> Any:
    return sorted(key) if isinstance(key, frozenset) else key


def _shown(tree: Node, wording: Wording) -> list[str]:
    return wording.progress(tree).split("\n")[:-1]


def _said(entry: _Entry) -> str:
    """The answer that was given to an entry's question, as its numbers."""
    assert entry.chosen is not None
    if entry.fork.several:
        numbers = [n for n, choice in enumerate(entry.fork.choices, 1) if choice.reads[0] in entry.members]
        return ", ".join(map(str, numbers))
    offered = [choice.index for choice in entry.fork.choices if choice.index not in entry.excluded]
    return str(offered.index(entry.chosen.index) + 1)
