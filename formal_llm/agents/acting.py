"""The rules of an agent and its tools together: one automaton over states and calls of tools.

Where a rule or a limit speaks of tools, an event more comes behind each state that names one: the tool that is called.
What is allowed is what can still be finished under all rules: an agent that has to ``pay`` is not offered the answer
before, and one that has no call left is not offered an action.

What a model names and is no tool, or no tool that may be called now, is the event :data:`NO_TOOL`. It is never looked
ahead to: where it happened, the rules continue from there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property

from formal_llm.agents.monitor import Event, EventLike, Monitor
from formal_llm.agents.refusal import Refusal
from formal_llm.agents.transcript import Segment
from formal_llm.automata import PDA, Behaviour, Limits, Source
from formal_llm.automata.languages.fronts import Allowed, ConfigurationSet
from formal_llm.automata.models.dfa import DFA, finite_pda
from formal_llm.automata.models.formula import Formula
from formal_llm.automata.models.rules import automaton_of
from formal_llm.automata.models.transition import Transition
from formal_llm.automata.notation.formula import constraint, read_formula
from formal_llm.errors import AutomatonError, NotAllowed

#: The event of an action that names no tool, or none that may be called.
NO_TOOL = "no tool"

#: A rule besides the behaviour: a formula, a behaviour, a grammar or an automaton, over tools or over tools and states.
Rule = str | Formula | Source


class AgentRules:
    """The rules of an agent with its tools.

    Args:
        behaviour: the order of states.
        action: the state that names a tool; None where there is none.
        tools: the names of the tools.
        rules: more rules. One that names tools only is about the calls alone: states in between do not count for it.
        limits: bounds on states and tools.

    Raises:
        NotationError: a formula cannot be read, or names neither a state nor a tool.
        AutomatonError: a tool has the name of a state; a limit names neither.
        NotAllowed: nothing keeps the rules.

    Attributes:
        action: the state behind which the call of a tool is an event of the rules; None where no rule speaks of tools.
    """

    def __init__(
        self,
        behaviour: Behaviour,
        action: str | None = None,
        tools: Sequence[str] = (),
        rules: Iterable[Rule] = (),
        limits: Limits | None = None,
    ) -> None:
        self.behaviour = behaviour
        self.tools = tuple(tools)
        limits = limits or Limits()
        rules = tuple(rules)
        counted = {*limits.at_most, *limits.at_least, *(["sums"] if limits.sums or limits.times else [])}
        self.action = action if tools and (rules or counted - set(behaviour.states)) else None
        self._limits = limits
        for name in (*self.tools, NO_TOOL):
            if name in behaviour.states:
                raise AutomatonError(f"the tool {name} has the name of a state of {behaviour.name}; rename one of them")
        self._more = tuple(self._compile_rule(rule) for rule in rules)
        self._monitors: dict[int, Monitor] = {}
        if not self.get_monitor().allowed():
            refused = self.get_monitor().why()
            assert refused is not None
            raise NotAllowed(refused)

    def get_monitor(self, slips: int = 0) -> Monitor:
        """The monitor before any event, if this many actions may name no tool."""
        if slips not in self._monitors:
            limits = self._limits
            if self.action is not None:
                unbound = {tool: None for tool in self.tools if tool not in limits.at_most}
                limits = replace(limits, at_most={**unbound, **limits.at_most, NO_TOOL: slips})
            rules: list[Source] = [self.automaton, *self._more]
            self._monitors[slips] = Monitor(rules if self._more else rules[0], limits=limits)
        return self._monitors[slips]

    @cached_property
    def automaton(self) -> PDA:
        """The behaviour, in which the call of a tool comes behind each action."""
        behaviour = self.behaviour
        if self.action is None:
            return behaviour.pda
        table = [dict(row) for row in behaviour.dfa.table]
        between: dict[int, int] = {}
        for row in [*table]:
            if self.action in row:
                target = row[self.action]
                if target not in between:
                    between[target] = len(table)
                    table.append(dict.fromkeys((*self.tools, NO_TOOL), target))
                row[self.action] = between[target]
        made = DFA(tuple(table), behaviour.dfa.accepting)
        return finite_pda(made, name=behaviour.name, symbols=behaviour.symbols).with_limits(behaviour.limits)

    @cached_property
    def answer_states(self) -> frozenset[str]:
        """The states of the model that a run may end with."""
        dfa, states = self.behaviour.dfa, self.behaviour.states
        ends = {name for row in dfa.table for name, target in row.items() if target in dfa.accepting}
        return frozenset(name for name in ends if not states[name].from_environment)

    def name_tool(self, monitor: Monitor, named: str) -> Monitor:
        """The monitor after a tool was named behind an action: one that may be called, or :data:`NO_TOOL`."""
        if named in self.tools and named in monitor.allowed():
            return monitor.after(named)
        # Lookahead does not foresee it: the rules continue as those that permit one more of them.
        slips = monitor.word.count(NO_TOOL)
        return self.get_monitor(slips + 1).after_all(monitor.history).after(NO_TOOL)

    def narrow(self, limits: Limits, monitor: Monitor) -> tuple[AgentRules, Monitor]:
        """The same rules with more limits, and their monitor after the events of another one.

        Raises:
            NotAllowed: after these events the limits cannot be kept.
        """
        narrower = copy(self)
        narrower._limits, narrower._monitors = self._limits & limits, {}
        return narrower, narrower.get_monitor(monitor.word.count(NO_TOOL)).after_all(monitor.history)

    def list_events(self, segments: Iterable[Segment]) -> list[Event]:
        """The events of a run: its states, and behind each action the tool that it names, where a rule speaks of it."""
        found: list[Event] = []
        for segment in segments:
            found.append(segment.event)
            if self.action is not None and segment.state == self.action:
                tool = segment.text.strip()
                found.append(Event(tool if tool in self.tools else NO_TOOL))
        return found

    def _compile_rule(self, rule: Rule) -> PDA:
        names = (*self.behaviour.states, *self.tools, NO_TOOL)
        if isinstance(rule, str | Formula):
            formula = read_formula(str(rule), names)
            of_tools = bool(formula.names) and set(formula.names) <= set(self.tools)
            made = constraint(formula, self.tools if of_tools else names, name=str(rule))
            # It knows what it names, though it may never allow it.
            about = {*(self.tools if of_tools else formula.names), *(move.read for move in made.transitions)}
        else:
            source = automaton_of(rule) if not isinstance(rule, PDA) else rule  # type: ignore[arg-type]
            made = source if isinstance(source, PDA) else PDA.from_cfg(source)
            about = {*made.terminals}
        return _ignore_unknown_names(made, [name for name in names if name not in about])


def _ignore_unknown_names(rule: PDA, unknown: Iterable[str]) -> PDA:
    """A rule to which names that it does not know make no difference."""
    loops = [Transition(state, name, None, state) for name in unknown for state in rule.states]
    return PDA(
        (*rule.transitions, *loops), start=rule.start_state, accepting=rule.accepting_states, stack=rule.start_stack,
        symbols=rule.symbols, classes=rule.classes, name=rule.name, limits=rule.limits, check=False,
    )  # fmt: skip


class StatesMonitor(Monitor):
    """A monitor as a writer sees it, who knows of states and not of tools.

    Behind a state that names a tool, what is allowed is what is allowed after one of the tools that may be called.
    After an event with the text of the state (:attr:`Segment.event`), it is what is allowed after the tool it names. A
    behaviour that never ends by itself is not ended by a writer while something may come.

    Args:
        rules: the rules.
        now: where the rules stand.
    """

    __slots__ = ("_acting", "_now")

    def __init__(self, rules: AgentRules, now: Iterable[Monitor]) -> None:
        self._acting = rules
        # Where two calls leave the rules at the same place, one stands for both.
        self._now = tuple({one.place: one for one in now}.values())

    @property
    def place(self) -> tuple[ConfigurationSet, ...]:
        """The position in the rules; equal places allow the same continuations."""
        return tuple(part for one in self._now for part in one.place)

    def allowed(self) -> Mapping[str, Allowed]:
        """What may come next, as of :class:`Monitor`; tools on the way to the end are counted as events."""
        found: dict[str, Allowed] = {}
        for one in self._now:
            for name, way in one.allowed().items():
                old = found.get(name)
                if old is None or (way.shortest or math.inf) < (old.shortest or math.inf):
                    found[name] = way
        return {name: found[name] for name in self._acting.behaviour.states if name in found}

    def may_stop(self) -> bool:
        """Whether the run may end here."""
        return any(one.may_stop() for one in self._now) and not (self._acting.behaviour.endless and self.allowed())

    def allows(self, event: EventLike) -> bool:
        """Whether an event may come next."""
        return any(one.allows(event) for one in self._now)

    def after(self, event: EventLike) -> StatesMonitor:
        """The monitor after a state.

        Raises:
            NotAllowed: after it the rules cannot be kept any more.
        """
        following = [one.after(event) for one in self._now if one.allows(event)] or [self._now[0].after(event)]
        event = Event(event) if isinstance(event, str) else event
        if event.name == self._acting.action and "text" in event.data:
            named = str(event.data["text"]).strip()
            following = [self._acting.name_tool(one, named) for one in following]
        elif event.name == self._acting.action:
            following = [one.after(tool) for one in following for tool in one.allowed()]
        return StatesMonitor(self._acting, following)

    def why(self, event: EventLike | None = None) -> Refusal | None:
        """Why an event may not come next, or why the run may not end here; None where it may."""
        may = self.may_stop() if event is None else self.allows(event)
        return None if may else self._now[0].why(event)

    def __len__(self) -> int:
        return len(self._now[0])

    def __repr__(self) -> str:
        return f"<StatesMonitor over {self._now[0]!r}>"
