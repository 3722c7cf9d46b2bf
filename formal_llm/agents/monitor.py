"""The monitor: which events may come next so that the rules can still be satisfied.

A monitor holds a position in a sequence of events: the states of an agent, tool calls, results, the lines of a trace.
It answers which events are allowed now, is advanced by the events that happen, and does no input or output. It looks
ahead: an event after which the rules can no longer be satisfied is not allowed, however harmless it looks.

A monitor is immutable: ``after`` returns a new one, so keeping a reference is a fork. All monitors derived from one
share its compiled rules and everything computed about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from formal_llm.agents.compiled import CompiledRules, JointlyAllowed
from formal_llm.agents.refusal import Refusal, explain_refusal
from formal_llm.automata import Limits, Source, Word
from formal_llm.automata.languages.prefixes import Allowed as Allowed
from formal_llm.automata.languages.prefixes import ConfigurationSet
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.errors import NotAllowed
from formal_llm.planning.checking.verify import Verification
from formal_llm.planning.json_data import JSON


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    Attributes:
        name: the name of the event: a state of an agent, a tool.
        data: further data as JSON: arguments, a result, a text.
    """

    name: str
    data: Mapping[str, JSON] = field(default=FrozenDict(), hash=False)

    def __post_init__(self) -> None:
        if type(self.data) is not FrozenDict:
            object.__setattr__(self, "data", FrozenDict(self.data))


#: What a monitor accepts as an event; a name alone is an event without data.
EventLike = Event | str


class Monitor:
    """The position of a sequence of events within rules.

    Args:
        rules: a grammar (with its limits), a flowchart, a behaviour, an automaton, a product of these; or several of
            them, which must all hold. Events come in the order in which words are written. Rules that look at
            different events are not multiplied out, so there may be many.
        limits: additional limits: numbers of calls, budgets.
        max_states: how many states of the search one question about the future may visit before it counts as unknown.
        max_configurations: how many configurations of nondeterministic rules are followed one by one. Beyond that,
            answers stay the same but take longer.

    Raises:
        TypeError: ``rules`` are not rules.
        AutomatonError: a limit names an unknown terminal or quantity, or two rules that look at the same events both
            need a stack.
        Undecided: rules that look at the same events have too many states together.

    A terminal that one of several rules does not know is forbidden by it, as in ``one & other``.
    """

    __slots__ = ("_fronts", "_past", "_rules")

    def __init__(
        self,
        rules: Source | Sequence[Source],
        *,
        limits: Limits | None = None,
        max_states: int = 20_000,
        max_configurations: int = 1_000,
    ) -> None:
        self._rules = CompiledRules(rules, limits, max_states, max_configurations)
        self._fronts: tuple[ConfigurationSet, ...] = self._rules.start
        self._past: tuple[Event, ...] = ()

    def _make_successor(self, fronts: tuple[ConfigurationSet, ...], past: tuple[Event, ...]) -> Monitor:
        made = object.__new__(type(self))
        made._rules, made._fronts, made._past = self._rules, fronts, past
        return made

    # -- what happened ------------------------------------------------------------------------------------------

    @property
    def history(self) -> tuple[Event, ...]:
        """The events so far."""
        return self._past

    @property
    def word(self) -> Word:
        """The word that the rules have read: the names of the events."""
        return tuple([event.name for event in self._past])

    def __len__(self) -> int:
        """The number of events so far."""
        return len(self._past)

    def __bool__(self) -> bool:
        return True

    @property
    def place(self) -> tuple[ConfigurationSet, ...]:
        """The position in the rules, regardless of what led there; equal places allow the same continuations."""
        return self._fronts

    @property
    def beginning(self) -> Monitor:
        """The monitor over the same rules before any event."""
        return self._make_successor(self._rules.start, ())

    @property
    def names(self) -> tuple[str, ...]:
        """All terminals of the rules, in the order of the alphabet."""
        return tuple(self._rules.owners)

    @property
    def fingerprint(self) -> str:
        """A short name that equal rules share."""
        return self._rules.fingerprint

    # -- what may come ------------------------------------------------------------------------------------------

    def allowed(self) -> Mapping[str, Allowed]:
        """Return what may come next, in the order of the alphabet, each with the shortest way to an end after it.

        Certain dead ends are left out. An event for which the budget of states ran out is included, marked uncertain.
        """
        if len(self._fronts) == 1:
            return self._fronts[0].allowed_terminals
        return JointlyAllowed(self._rules, self._fronts) if self._rules.may_be_satisfiable else FrozenDict()

    def may_stop(self) -> bool:
        """Return whether the run may end here."""
        return all(front.may_stop for front in self._fronts)

    def allows(self, event: EventLike) -> bool:
        """Return whether an event may come next."""
        return (event if isinstance(event, str) else event.name) in self.allowed()

    def after(self, event: EventLike) -> Monitor:
        """Return the monitor after an event.

        Raises:
            NotAllowed: after it the rules can no longer be satisfied.
        """
        if isinstance(event, str):
            event = Event(event)
        fronts = self._rules.apply_event(self._fronts, event.name)
        if fronts is None:
            raise NotAllowed(self._explain_refusal(event.name))
        return self._make_successor(fronts, (*self._past, event))

    def after_all(self, events: Iterable[EventLike]) -> Monitor:
        """Return the monitor after several events.

        Raises:
            NotAllowed: after one of them the rules can no longer be satisfied.
        """
        monitor = self
        for event in events:
            monitor = monitor.after(event)
        return monitor

    def shortest_way(self) -> Word | None:
        """Return the events of a shortest way to an end; None if there is none or it could not be decided."""
        way: list[str] = []
        fronts = list(self._fronts)
        for place, front in enumerate(fronts):
            while not front.may_stop:
                left = front.shortest_length
                name = next(
                    (name for name, found in front.allowed_terminals.items() if found.shortest == (left or 0) - 1), None
                )
                if left is None or name is None:
                    return None
                way.append(name)
                front = fronts[place] = front.after_terminal(name)
        return tuple(way)

    # -- why not, and whole traces ------------------------------------------------------------------------------

    def why(self, event: EventLike | None = None) -> Refusal | None:
        """Explain why an event may not come next or, without one, why the run may not end here; None if it may."""
        if event is None:
            return None if self.may_stop() else self._explain_refusal(None)
        name = event if isinstance(event, str) else event.name
        return None if name in self.allowed() else self._explain_refusal(name)

    def _explain_refusal(self, name: str | None) -> Refusal:
        return explain_refusal(self._rules, self.word, name, self.allowed(), self.may_stop())

    def verify(self, events: Iterable[EventLike], *, repair: bool = True) -> Verification:
        """Verify a whole trace from beginning to end and, if it breaks the rules, determine where.

        Args:
            events: the trace. The position of this monitor is irrelevant.
            repair: whether to look for a nearest valid trace, which is most of the work.

        Returns:
            The verification of the trace's word, as for a plan. The nearest trace is not searched for if rules that
            look at different events have too many states together or are not pushdown automata.
        """
        word = tuple([event if isinstance(event, str) else event.name for event in events])
        whole = self._rules.trace_verifier
        return self._first_violation(word) if whole is None else whole.verify(word, repair=repair)

    def _first_violation(self, word: Word) -> Verification:
        """Verify a word by following it, without searching for a nearest valid one."""
        monitor = self.beginning
        position, wrong = len(word), None
        for place, name in enumerate(word):
            fronts = self._rules.apply_event(monitor._fronts, name)
            if fronts is None:
                position, wrong = place, name
                break
            monitor = self._make_successor(fronts, ())
        if wrong is None and monitor.may_stop():
            return Verification(word, True, "it follows all the rules", may_stop=True, nearest=word, distance=0)
        why = explain_refusal(self._rules, word[:position], wrong, monitor.allowed(), monitor.may_stop())
        certain = all(one.certain for one in why.allowed.values()) and all(front.is_viable for front in monitor._fronts)
        return Verification(
            word, False, why.reason, position, tuple(why.allowed), why.may_stop, why.limits, why.constraints, certain,
            nearest_decided=False,
        )  # fmt: skip

    # -- values -------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Monitor):
            return NotImplemented
        if self._rules is not other._rules and self.fingerprint != other.fingerprint:
            return False
        return self._past == other._past

    def __hash__(self) -> int:
        return hash(self._past)

    def __repr__(self) -> str:
        last = "" if self._past is None else f", the last {self._past[-1].name}"
        return f"<Monitor after {len(self)} events{last}; may stop: {self.may_stop()}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_monitor, (type(self), self._rules, self._past)


def _restore_monitor(kind: type[Monitor], rules: CompiledRules, past: Iterable[Event]) -> Monitor:
    monitor = object.__new__(kind)
    monitor._rules, monitor._fronts, monitor._past = rules, rules.start, ()
    return monitor.after_all(past)
