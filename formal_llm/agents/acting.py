"""The rules of an agent and its tools together: one automaton over states and calls of tools.

Where a rule or a limit speaks of tools, an event more comes behind each state that names one: the tool that is called.
What is allowed is what can still be finished under all rules: an agent that has to ``pay`` is not offered the answer
before, and one that has no call left is not offered an action.

What a model names and is no tool, or no tool that may be called now, is the event :data:`NO_TOOL`. It is never looked
ahead to: where it happened, the rules continue from there.

A tool may be an agent. Where it was named, what it calls are events, too, until the environment has written: the calls
of one of its runs, as its behaviour and its rules allow them. Its limits are not foreseen, nor is what several agents
call together that are named before the environment writes. What the rules of both allow while it runs is exact:
:class:`InnerRules`. A call of an agent that came to nothing is :data:`NO_TOOL`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, KeysView, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

from formal_llm.agents.monitor import Event, EventLike, Monitor
from formal_llm.agents.pausing import InnerRun
from formal_llm.agents.refusal import Refusal
from formal_llm.agents.transcript import Segment
from formal_llm.automata import PDA, Behaviour, Limits, Source
from formal_llm.automata.languages.prefixes import Allowed, ConfigurationSet
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.dfa import DFA, finite_pda, project
from formal_llm.automata.models.formula import Formula
from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.automata.models.limits import SumLimit
from formal_llm.automata.models.symbols import Symbol, find_reachable
from formal_llm.automata.models.transition import Transition
from formal_llm.automata.notation.formula import constraint, is_formula, read_formula
from formal_llm.automata.notation.sentences import read_sentence
from formal_llm.errors import AutomatonError, NotAllowed

#: The event of an action that names no tool, or none that may be called.
NO_TOOL = "no tool"

#: What the names of the outer rules begin with in those of an inner run, and the event with which that begins.
OUTER = "outer "
CALL = f"{OUTER}call"
#: The event behind the name of an agent that has not begun yet.
NAMED = f"{OUTER}named"

#: A rule besides the behaviour: a sentence, a formula, a behaviour, a grammar or an automaton, over tools or over tools
#: and states.
Rule = str | Formula | Source


class _CallPlace(NamedTuple):
    """A state of the automaton of a behaviour with its calls.

    Attributes:
        state: the state of the behaviour's automaton.
        within: the tools that agents may call that were called since the environment wrote.
        is_last: whether no tool may be called any more.
        is_naming: whether the name of a tool comes next.
    """

    state: int
    within: frozenset[str] = frozenset()
    is_last: bool = False
    is_naming: bool = False


class AgentRules:
    """The rules of an agent with its tools.

    Args:
        behaviour: the order of states.
        action: the state that names a tool; None where there is none.
        rules: more rules. One that names tools only is about the calls alone: states in between do not count for it.
        limits: bounds on states and tools.
        inner: for each tool that is an agent, its rules.
        last: the tools after which no tool is called any more: those that hand the run over.

    Raises:
        NotationError: a formula cannot be read, or names neither a state nor a tool.
        AutomatonError: a tool has the name of a state; a limit names neither.
        NotAllowed: nothing keeps the rules.

    Attributes:
        action: the state behind which the call of a tool is an event of the rules; None where no rule speaks of tools.
        naming: the state that names a tool, whether or not a rule speaks of tools.
        inner_tools: the tools that agents among the tools may call.
        before: the events before the run.
    """

    before: tuple[Event, ...] = ()

    def __init__(
        self,
        behaviour: Behaviour,
        action: str | None = None,
        tools: Sequence[str] = (),
        rules: Iterable[Rule] = (),
        limits: Limits | None = None,
        inner: Mapping[str, AgentRules] = FrozenDict(),
        last: Collection[str] = (),
    ) -> None:
        self.behaviour = behaviour
        self.tools = tuple(tools)
        self.inner = inner
        self.last = frozenset(last)
        self.inner_tools = tuple(dict.fromkeys(tool for one in inner.values() for tool in one.reach))
        self.naming = action
        limits = limits or Limits()
        rules = tuple(rules)
        counted = {
            *limits.at_most,
            *limits.at_least,
            *(["sums"] if limits.sums or limits.times or limits.rules else []),
        }
        self.action = action if tools and (rules or last or counted - set(behaviour.states)) else None
        self._limits = limits
        for name in (*self.tools, *self.inner_tools, NO_TOOL):
            if name in behaviour.states:
                raise AutomatonError(f"the tool {name} has the name of a state of {behaviour.name}; rename one of them")
        self._more = tuple(part for rule in rules for part in self._compile_rule(rule))
        self._monitors: dict[int, Monitor] = {}
        self._entered: dict[object, InnerRules] = {}
        if not self.get_monitor().allowed():
            refused = self.get_monitor().why()
            assert refused is not None
            raise NotAllowed(refused)

    def get_monitor(self, slips: int = 0) -> Monitor:
        """The monitor before any event, if this many actions may name no tool."""
        if slips not in self._monitors:
            sources = self.list_sources()
            self._monitors[slips] = Monitor(
                sources if len(sources) > 1 else sources[0], limits=self.get_own_limits(slips)
            )
        return self._monitors[slips]

    @property
    def start(self) -> Monitor:
        """The monitor before the first event of a run."""
        return self.get_monitor().after_all(self.before)

    def list_sources(self) -> list[PDA]:
        """The automata that a run keeps: that of the behaviour first, then those of the rules."""
        return [self.automaton, *self._more, *self._inner_runs]

    @cached_property
    def _inner_runs(self) -> list[PDA]:
        """For each agent among the tools a rule: what is called while it runs are the calls of one of its runs."""
        return [self._describe_inner_run(tool) for tool in self.inner if self.naming and self.get_reach(tool)]

    def _describe_inner_run(self, tool: str) -> PDA:
        calls, outside = self.inner[tool].list_calls(), list_world_states(self.behaviour)
        idle, free, first = "idle", "free", (0,)
        moves = [Transition(idle, tool, None, first), *(Transition(free, name, None, idle) for name in outside)]
        for number, row in enumerate(calls.table):
            moves += [Transition((number,), name, None, (target,)) for name, target in row.items()]
            moves += [Transition((number,), self.naming, None, free), Transition((number,), NO_TOOL, None, idle)]
            moves += [Transition((number,), name, None, idle) for name in outside if number in calls.accepting]
        others = [name for name in (*self.behaviour.states, *self.reach) if name not in outside]
        for name in (*others, *outside, NO_TOOL):
            moves += [Transition(idle, name, None, idle)] if name != tool else []
            moves += [Transition(free, name, None, free)] if name not in outside else []
            if name in others and name != self.naming and name not in self.get_reach(tool):
                moves += [Transition((number,), name, None, (number,)) for number in range(len(calls.table))]
        return PDA(moves, start=idle, accepting=[idle], name=f"the runs of {tool}", check=False)

    def list_calls(self) -> DFA:
        """The calls of whole runs, without limits: those of agents among the tools included."""
        whole = finite_pda(self.insert_calls())
        for rule in (*self._more, *self._inner_runs):
            if not rule.uses_stack:
                whole = whole & rule.without_limits
        return project(whole, self.reach)

    def get_own_limits(self, slips: int) -> Limits:
        """The limits besides those of the automata, if this many actions may name no tool."""
        limits = self._limits
        if self.action is not None:
            tools = (*self.tools, *self.inner_tools)
            unbound = {tool: None for tool in tools if tool not in limits.at_most}
            limits = replace(limits, at_most={**unbound, **limits.at_most, NO_TOOL: slips})
        return limits

    @cached_property
    def automaton(self) -> PDA:
        """The behaviour, in which the call of a tool comes behind each action."""
        behaviour = self.behaviour
        if self.action is None:
            return behaviour.pda
        made = self.insert_calls()
        return finite_pda(made, name=behaviour.name, symbols=behaviour.symbols).with_limits(
            behaviour.limits.without_rules
        )

    def insert_calls(self) -> DFA:
        """The automaton of the behaviour with the calls: of a tool behind each action, then those of inner agents."""
        outside = list_world_states(self.behaviour)
        start = _CallPlace(0)
        numbers, waiting, table = {start: 0}, deque([start]), []
        while waiting:
            row = self._list_following(waiting.popleft(), outside)
            for place in row.values():
                if place not in numbers:
                    numbers[place] = len(numbers)
                    waiting.append(place)
            table.append({name: numbers[place] for name, place in row.items()})
        accepting = self.behaviour.dfa.accepting
        return DFA(
            tuple(table), frozenset(n for one, n in numbers.items() if one.state in accepting and not one.is_naming)
        )

    def _list_following(self, place: _CallPlace, outside: KeysView[str]) -> dict[str, _CallPlace]:
        state, within, is_last, _ = place
        if place.is_naming:
            found = {
                tool: _CallPlace(state, within | self.get_reach(tool), is_last or tool in self.last)
                for tool in self.tools
            }
            return {**found, NO_TOOL: _CallPlace(state, within, is_last)}
        row = self.behaviour.dfa.table[state]
        following = {
            name: _CallPlace(target, frozenset() if name in outside else within, is_last, name == self.naming)
            for name, target in row.items()
            if not (is_last and name == self.naming)
        }
        if within and outside & row.keys():  # a run may come to nothing
            following |= {**dict.fromkeys(sorted(within), place), NO_TOOL: _CallPlace(state, frozenset(), is_last)}
        return following

    @cached_property
    def answer_states(self) -> frozenset[str]:
        """The states of the model that a run may end with."""
        dfa, states = self.behaviour.dfa, self.behaviour.states
        ends = {name for row in dfa.table for name, target in row.items() if target in dfa.accepting}
        return frozenset(name for name in ends if not states[name].from_environment)

    def name_tool(self, monitor: Monitor, named: str) -> Monitor:
        """The monitor after a tool was named behind an action: one that may be called, or :data:`NO_TOOL`."""
        if named in self.list_callable(monitor):
            return monitor.after(named)
        # Lookahead does not foresee it: the rules continue as those that permit one more of them.
        slips = monitor.word.count(NO_TOOL)
        return self.get_monitor(slips + 1).after_all(monitor.history).after(NO_TOOL)

    def list_callable(self, monitor: Monitor) -> list[str]:
        """The tools that may be called behind an action; all of them where no rule speaks of tools."""
        if self.action is None:
            return [*self.tools]
        allowed = monitor.allowed()
        return [tool for tool in self.tools if tool in allowed and self._may_enter(monitor, tool)]

    def _may_enter(self, monitor: Monitor, tool: str) -> bool:
        """Whether the rules of an agent can be kept together with these; True for a tool that is none."""
        if not self.get_reach(tool) or self._plans_calls:
            return True
        try:
            return self.enter(tool, monitor.after(tool), begins=False).start is not None
        except NotAllowed:
            return False

    @cached_property
    def _plans_calls(self) -> bool:
        """Whether several tools may be named before the environment writes."""
        table, outside, action = self.behaviour.dfa.table, list_world_states(self.behaviour), self.action or ""
        named = [row[action] for row in table if action in row]
        reached = find_reachable(named, lambda state: [to for name, to in table[state].items() if name not in outside])
        return any(action in table[state] for state in reached)

    @property
    def reach(self) -> tuple[str, ...]:
        """The tools that a run may call, those of agents among them included."""
        return tuple(dict.fromkeys((*self.tools, *self.inner_tools)))

    def get_reach(self, tool: str) -> frozenset[str]:
        """The tools that the run of an agent may call; none for a tool that is no agent."""
        return frozenset(self.inner[tool].reach) if tool in self.inner else frozenset()

    def enter(self, tool: str, monitor: Monitor, later: Iterable[str] = (), *, begins: bool = True) -> AgentRules:
        """The rules of the run of an agent that is called as a tool.

        Args:
            tool: the tool.
            monitor: where the rules are: before the environment writes what the run gives.
            later: the agents that are called after it before the environment writes.
            begins: whether the run begins; otherwise something may come before.
        """
        own = self.inner[tool]
        if self.action is None or not own.reach:
            return own
        slips = monitor.word.count(NO_TOOL)
        key = tool, slips, frozenset().union(*map(self.get_reach, later))
        if key not in self._entered:
            self._entered[key] = InnerRules(own, self, slips, key[-1])
        entered = copy(self._entered[key])
        entered.before = (*(Event(OUTER + one.name) for one in monitor.history), Event(CALL if begins else NAMED))
        return entered

    def narrow(self, limits: Limits, monitor: Monitor) -> tuple[AgentRules, Monitor]:
        """The same rules with more limits, and their monitor after the events of another one.

        Raises:
            NotAllowed: after these events the limits cannot be kept.
        """
        narrower = copy(self)
        narrower._limits, narrower._monitors, narrower._entered = self._limits & limits, {}, {}
        return narrower, narrower.get_monitor(monitor.word.count(NO_TOOL)).after_all(monitor.history)

    def list_events(self, segments: Sequence[Segment], inner: Sequence[InnerRun] = ()) -> list[Event]:
        """The events of a run: its states, and behind each action the tool that it names, where a rule speaks of it.

        ``inner`` are the runs of agents that it called as tools (:attr:`Run.inner`).
        """
        found: list[Event] = []
        for place, segment in enumerate(segments):
            found += [Event(tool) for one in inner if one.position == place for tool in one.calls]
            found.append(segment.event)
            if self.action is not None and segment.state == self.action:
                tool = segment.text.strip()
                found.append(Event(tool if tool in self.tools else NO_TOOL))
        return found

    def _compile_rule(self, rule: Rule) -> list[PDA]:
        names = tuple(dict.fromkeys((*self.behaviour.states, *self.tools, *self.inner_tools, NO_TOOL)))
        if isinstance(rule, str | Formula):
            text = str(rule)
            formula = (
                read_formula(text, names)
                if is_formula(text)
                else read_sentence(text, dict.fromkeys(names, "")).formula()
            )
            of_tools = bool(formula.names) and {*formula.names} <= {*self.tools, *self.inner_tools}
            # What an inner agent calls counts for the rules that name it.
            silent = {*self.inner_tools} - {*self.tools, *formula.names}
            known = [name for name in (self.reach if of_tools else names) if name not in silent]
            made = constraint(formula, known, name=str(rule))
            # It knows what it names, though it may never allow it.
            about = {*(known if of_tools else formula.names), *(move.read for move in made.transitions)}
            parts = [made]
        else:
            whole = as_automaton(rule)
            if not isinstance(whole, PDA):
                raise TypeError(f"a rule of an agent is a sentence, a formula, or rules; not {rule!r}")
            about = {*whole.terminals}
            # Each constraint of a product by itself, so that messages can name it.
            base, *more = whole.factors or (whole,)
            parts = [base.without_limits.with_limits(whole.limits, whole.terminals), *more]
        return [_ignore_unknown_names(one, [name for name in names if name not in about]) for one in parts]


def list_world_states(behaviour: Behaviour) -> KeysView[str]:
    """The states that the environment writes, in order."""
    return {name: None for name, state in behaviour.states.items() if state.from_environment}.keys()


def _ignore_unknown_names(rule: PDA, unknown: Iterable[str]) -> PDA:
    """A rule to which names that it does not know make no difference."""
    loops = [Transition(state, name, None, state) for name in unknown for state in rule.states]
    return PDA(
        (*rule.transitions, *loops), start=rule.start_state, accepting=rule.accepting_states, stack=rule.start_stack,
        symbols=rule.symbols, classes=rule.classes, name=rule.name, limits=rule.limits, check=False,
    )  # fmt: skip


class InnerMonitor(Monitor):
    """A monitor as an inner run sees it, who knows of its own states and tools, and not of the outer ones.

    It may stop where the outer run may continue.
    """

    __slots__ = ()

    def allowed(self) -> Mapping[str, Allowed]:
        """What may come next in the inner run."""
        return {name: way for name, way in super().allowed().items() if not name.startswith(OUTER)}

    def may_stop(self) -> bool:
        """Whether the inner run may end here."""
        return any(name.startswith(OUTER) for name in super().allowed())


class InnerRules(AgentRules):
    """The rules of an agent that is called as a tool, and those of the agent that calls it, as one automaton.

    A word of it is what the outer run did before (:data:`OUTER` before each name), the event :data:`CALL`, the inner
    run, and what the outer run does then. So lookahead sees both: a call after which the outer rules cannot be kept is
    not allowed, and what they owe may be owed by the inner run. A call in the inner run is one event, which counts for
    the limits of both.

    Args:
        own: the rules of the inner agent.
        outer: the rules of the outer one.
        slips: how many actions of the outer run named no tool.
        later: what agents may call that are called before the environment of the outer run writes.

    Raises:
        AutomatonError: one of them has a timetable, or the inner agent calls tools of which its rules do not know.
    """

    def __init__(self, own: AgentRules, outer: AgentRules, slips: int, later: frozenset[str]) -> None:
        if own.naming is None:
            raise AutomatonError(
                f"{own.behaviour.name} has no state that names a tool, so the rules of {outer.behaviour.name} cannot "
                "bound its calls"
            )
        self.behaviour, self.tools, self.naming, self.action = own.behaviour, own.tools, own.naming, own.naming
        self.inner, self.last, self.inner_tools = own.inner, own.last, own.inner_tools
        self._limits, self._more, self._monitors, self._entered = own._limits, own._more, {}, {}
        self._outer, self._slips, self._later = outer, slips, later
        self._outer_names = [OUTER + name for name in outer.get_monitor(slips).names]

    def get_monitor(self, slips: int = 0) -> Monitor:
        """The monitor before any event of the outer run, if this many actions of the inner one may name no tool."""
        if slips not in self._monitors:
            self._monitors[slips] = InnerMonitor(self.list_sources(), limits=self.get_own_limits(slips))
        return self._monitors[slips]

    def list_sources(self) -> list[PDA]:
        """The automata of both: those of the inner agent first."""
        outer = [self._rename_inner(one.without_limits) for one in self._outer.list_sources()]
        own = (*self._more, *self._inner_runs)
        more = [_ignore_unknown_names(one.without_limits, (*self._outer_names, CALL, NAMED)) for one in own]
        return [self.automaton, *more, *outer]

    @cached_property
    def automaton(self) -> PDA:
        """The inner run, within what the outer one does before and then."""
        made = self.insert_calls()
        between, after, named, naming = range(len(made.table) + 1, len(made.table) + 5)
        before: dict[str, int] = {**dict.fromkeys(self._outer_names, 0), CALL: 1, NAMED: named}
        later = {OUTER + name: between for name in sorted(self._later)}
        states = self._outer.behaviour.states
        end = later | {OUTER + name: after for name, state in states.items() if state.from_environment}
        rows = [{name: target + 1 for name, target in row.items()} for row in made.table]
        for state in made.accepting:
            rows[state] |= end
        own = {OUTER + name: named for name, state in states.items() if not state.from_environment}
        table = (
            before, *rows, end if later else {}, dict.fromkeys(self._outer_names, after),
            own | {OUTER + str(self._outer.action): naming, CALL: 1},
            {OUTER + name: named for name in (*self._outer.tools, NO_TOOL)},
        )  # fmt: skip
        counted = {
            name: Symbol(numbers={_name_count(tool): 1}) for tool in self._shared for name in (tool, OUTER + tool)
        }
        known = dict(self.behaviour.symbols)
        symbols = known | {
            name: replace(known.get(name, Symbol()), numbers=one.numbers) for name, one in counted.items()
        }
        return finite_pda(DFA(table, frozenset([after])), name=self.behaviour.name, symbols=symbols)

    def get_own_limits(self, slips: int) -> Limits:
        """The limits of both; a call that both of them bound counts for both."""
        names = (*self.behaviour.states, *self.reach, NO_TOOL)
        own = super().get_own_limits(slips) & self.behaviour.limits.without_rules
        own = _join_limits(own, self._more)
        outer = _join_limits(self._outer.get_own_limits(self._slips), self._outer.list_sources())
        if own.times or outer.times or own.rules or outer.rules:
            raise AutomatonError(
                "an agent that is called as a tool, and the agent that calls it, have no timetable, and no rules about "
                "order among their limits; give these as rules"
            )
        most = {name: outer.most(name) for name in self._outer.get_monitor(self._slips).names}
        sums = [replace(one, quantity=OUTER + one.quantity) for one in outer.sums]
        sums += [SumLimit(_name_count(tool), most[tool], outer.at_least.get(tool)) for tool in self._shared]
        alone = [name for name in most if name not in self._shared]
        return Limits(
            {name: own.most(name) for name in names} | {OUTER + name: most[name] for name in alone},
            {**own.at_least, **{OUTER + name: outer.at_least.get(name, 0) for name in alone}},
            sums=(*own.sums, *sums),
        )

    @cached_property
    def _shared(self) -> list[str]:
        """The tools of the inner run, which are events of both rules."""
        return [tool for tool in self.reach if OUTER + tool in self._outer_names]

    def _rename_inner(self, rule: PDA) -> PDA:
        """A rule of the outer agent, for which a call in the inner run is one of its own."""
        moves = [replace(move, read=move.read and OUTER + move.read) for move in rule.transitions]
        moves += [move for move in rule.transitions if move.read in self._shared]
        symbols: dict[str, Symbol] = {}
        for name, symbol in rule.symbols.items():
            numbers = {OUTER + quantity: number for quantity, number in symbol.numbers.items()}
            symbols[OUTER + name] = replace(symbol, numbers=numbers)
            if name in self._shared:
                symbols[name] = Symbol(numbers=numbers)
        renamed = PDA(
            moves, start=rule.start_state, accepting=rule.accepting_states, stack=rule.start_stack, symbols=symbols,
            classes=rule.classes, name=rule.name, alphabet=[OUTER + name for name in rule.alphabet], check=False,
        )  # fmt: skip
        own = (*self.behaviour.states, *self.reach, NO_TOOL, CALL, NAMED)
        return _ignore_unknown_names(renamed, [name for name in own if name not in self._shared])


def _name_count(tool: str) -> str:
    """The quantity that counts the calls of a tool for the outer rules."""
    return f"{OUTER}calls of {tool}"


def _join_limits(limits: Limits, rules: Iterable[PDA]) -> Limits:
    for rule in rules:
        limits = limits & rule.limits
    return limits


class StatesMonitor(Monitor):
    """A monitor as a writer sees it, who knows of states and not of tools.

    Behind a state that names a tool, what is allowed is what is allowed after one of the tools that may be called.
    After an event with the text of the state (:attr:`Segment.event`), it is what is allowed after the tool it names. A
    behaviour that never ends by itself is not ended by a writer while something may come. What agents call before the
    environment writes is not the writer's: a state of the environment may come if it may after some of these calls.

    Args:
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
        if self._acting.inner_tools:
            for one in map(self._follow_inner_calls, self._now):
                found = {name: way for name, way in one.allowed().items() if self._is_world(name)} | found
        return {name: found[name] for name in self._acting.behaviour.states if name in found}

    def _is_world(self, name: str) -> bool:
        state = self._acting.behaviour.states.get(name)
        return state is not None and state.from_environment

    def _follow_inner_calls(self, one: Monitor) -> Monitor:
        """The monitor after the fewest calls of agents behind which the environment may write."""
        tools = self._acting.inner_tools
        while tools and not any(map(self._is_world, ways := one.allowed())):
            calls = [tool for tool in tools if tool in ways and ways[tool].shortest is not None]
            if not calls:
                break
            one = one.after(min(calls, key=lambda tool: ways[tool].shortest or 0))
        return one

    def may_stop(self) -> bool:
        """Whether the run may end here."""
        return any(one.may_stop() for one in self._now) and not (self._acting.behaviour.endless and self.allowed())

    def allows(self, event: EventLike) -> bool:
        """Whether an event may come next."""
        event = Event(event) if isinstance(event, str) else event
        return any(one.allows(event) for one in self._list_places(event.name))

    def _list_places(self, name: str) -> Sequence[Monitor]:
        """Where a state is written: one of the environment behind the calls of agents."""
        is_behind = self._acting.inner_tools and self._is_world(name)
        return [*map(self._follow_inner_calls, self._now)] if is_behind else self._now

    def after(self, event: EventLike) -> StatesMonitor:
        """The monitor after a state.

        Raises:
            NotAllowed: after it the rules cannot be kept any more.
        """
        event = Event(event) if isinstance(event, str) else event
        now = self._list_places(event.name)
        following = [one.after(event) for one in now if one.allows(event)] or [now[0].after(event)]
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
