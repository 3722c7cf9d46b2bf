"""Hierarchical state machines, as SCXML, XState and Mermaid describe them: their meaning as an automaton.

The words are the events, in order. A configuration of the machine is the set of its active states, with the events
that it has raised itself and not yet taken. The next step follows the algorithm of the recommendation (W3C SCXML 1.0,
appendix D): transitions without an event come first, then events of the machine, then those of the plan. Each
innermost active state takes an event by its own first transition for it, or by the first of a state around it; of two
transitions that leave the same states, the inner one is followed. A parallel state is done when all regions are.

Whatever a plan does not determine is a choice. A guard may hold or not, except that one that tests for an active
state, ``In('paid')``, is decided. Events that the machine raises itself are not steps of a plan.

In a state that is marked so, or in one around it, the world makes every choice, and no model.

A plan ends in a final state of the outermost level. If the machine reaches none, a plan may end wherever the machine
waits for an event, and a warning states this assumption; ``final`` names the states in which plans end instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal, NamedTuple

from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.symbols import Symbol, find_reachable
from formal_llm.automata.models.transition import Transition
from formal_llm.automata.notation.source import Place, SourceText
from formal_llm.errors import ResourceNotFound, unknown

#: The maximum numbers of configurations and moves of a machine, of raised events that wait, and of ways in which one
#: step can proceed.
MOST_CONFIGURATIONS, MOST_MOVES, MOST_RAISED, MOST_WAYS = 10_000, 50_000, 32, 64
#: The prefix of the events that report that a state is done; the state's name follows.
DONE = "done.state."
_IN = re.compile(r"""(!|not\b)?\s*In\(\s*(["'])(?P<state>[^"']+)\2\s*\)""")


class Raised(NamedTuple):
    """An event that the machine raises: taken before any other, after those, or spontaneously at any later time."""

    event: str
    when: Literal["now", "next", "later"] = "now"


#: The actions of a transition or state, as the events that they may raise: one sequence for each way to proceed.
Content = tuple[tuple[Raised, ...], ...]
NOTHING: Content = ((),)


@dataclass(eq=False)
class Arc:
    """A transition of a state machine.

    Attributes:
        events: the events that it takes: ``*`` for any, ``name.*`` for a name and all that extend it after a dot;
            empty for a transition that needs no event.
        targets: the states that it enters, in several regions if there are several; empty if it stays.
        guard: its condition; empty if it has none.
        text: its text in a question if it has no guard.
        optional: whether it may be skipped although it has no guard.
        within: whether the source stays active if all targets are inside it or the source itself.
        content: the actions performed when it is followed.
        place: the place where it is written.
        source: the state that it leaves.
    """

    events: tuple[str, ...]
    targets: tuple[str, ...]
    guard: str = ""
    text: str = ""
    optional: bool = False
    within: bool = False
    content: Content = NOTHING
    place: Place | None = None
    source: str = ""

    def takes_event(self, event: str | None) -> bool:
        """Return whether it takes an event; None means no event."""
        return not self.events if event is None else any(matches(one, event) for one in self.events)


Kind = Literal["state", "parallel", "final"]


@dataclass
class State:
    """A state; one of its direct children is active, or, in a parallel state, each of them."""

    name: str
    parent: str | None
    place: Place | None = None
    kind: Kind = "state"
    initial: tuple[str, ...] = ()
    children: list[str] = field(default_factory=list)
    arcs: list[Arc] = field(default_factory=list)
    entry: Content = NOTHING
    exit: Content = NOTHING
    start: Content = NOTHING  # of the transition to its first state
    label: str = ""
    world: bool = False  # whether the world makes the choices in it


class MachineConfiguration(NamedTuple):
    """The active states, including the states around them, and the raised events that wait."""

    active: frozenset[str]
    queue: tuple[Raised, ...] = ()


def matches(descriptor: str, event: str) -> bool:
    """Return whether a descriptor (``*``, ``name`` or ``name.*``) matches an event."""
    return descriptor in ("*", event) or (descriptor.endswith(".*") and f"{event}.".startswith(descriptor[:-1]))


def join_contents(contents: Iterable[Content], source: SourceText, place: Place | None) -> Content:
    """Return the sequence of several actions.

    Raises:
        NotationError: it can proceed in too many ways.
    """
    ways = NOTHING
    for content in contents:
        ways = tuple(dict.fromkeys((*way, *more) for way in ways for more in content))
        if len(ways) > MOST_WAYS:
            source.fail_at(f"what is done here can go in more than {MOST_WAYS} ways", place)
    return ways


def build_automaton(
    states: dict[str, State],
    root: str,
    title: str,
    source: SourceText,
    *,
    final: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
) -> PDA:
    """Build the automaton of a state machine.

    Warns of events that the machine raises itself, and if plans are assumed to end anywhere.

    Args:
        states: the states by name, in the order of the text.
        root: the name of the outermost state.
        title: the name of the machine, for messages.
        source: the text of the machine.
        final: the states in which plans end; by default the final states of the outermost level.
        labels: the texts of events.

    Raises:
        NotationError: a target or first state does not exist, or there are too many configurations.
        ResourceNotFound: a name in ``final`` is not a state.
    """
    for name in final:
        if name not in states:
            raise ResourceNotFound("state", name, [one for one in states if one != root and ":" not in one])
    return _Machine(states, root, source).build_automaton(title, final, labels or {})


class _Machine:
    def __init__(self, states: dict[str, State], root: str, source: SourceText) -> None:
        self.states = states
        self.root = root
        self.source = source
        self.order = {name: number for number, name in enumerate(states)}
        self.around: dict[str, tuple[str, ...]] = {}  # the states around each, innermost first
        for name, state in states.items():
            self.around[name] = () if state.parent is None else (state.parent, *self.around[state.parent])
        for state in states.values():
            self._check_state(state)
        self.begin = Arc((), states[root].initial, within=True, source=root)
        self.descriptors = dict.fromkeys(one for state in states.values() for arc in state.arcs for one in arc.events)
        own = self._own_events()
        named = dict.fromkeys(one.removesuffix(".*") for one in self.descriptors if one != "*")
        self.events = [event for event in named if event not in own and not f"{event}.".startswith(DONE)]
        self.events = self.events or (["any"] if "*" in self.descriptors else [])
        if heard := sorted(filter(self._is_heard, own)):
            source.warn_at(
                f"the machine itself raises {', '.join(heard)}: plans have no such steps", None, stacklevel=4
            )
        self.heard = {
            name: dict.fromkeys(event for arc in state.arcs for event in self.events if arc.takes_event(event))
            for name, state in states.items()
        }
        self.taking: dict[tuple[str, str | None], list[Arc]] = {}
        self.settled: dict[MachineConfiguration, MachineConfiguration] = {}
        self.names: dict[MachineConfiguration, str] = {}
        self.taken: set[str] = set()
        self.labels: Mapping[str, str] = {}

    def _check_state(self, state: State) -> None:
        for arc in state.arcs:
            arc.source = state.name
            for target in arc.targets:
                if target not in self.states:
                    self.source.fail_at(
                        unknown("target of a transition", target, self.states), arc.place or state.place
                    )
        for first in state.initial:
            if first not in self.states:
                self.source.fail_at(unknown("first state", first, self.states), state.place)
            if state.name not in self.around[first]:
                self.source.fail_at(f"{state.name} begins with {first}, which is not inside it", state.place)
        state.initial = state.initial or tuple(state.children[:1])

    def _own_events(self) -> set[str]:
        """Return the events that only the machine itself raises."""
        contents = [
            content
            for state in self.states.values()
            for content in (state.entry, state.exit, state.start, *(arc.content for arc in state.arcs))
        ]
        raised = {one for content in contents for way in content for one in way}
        return {one.event for one in raised if one.when != "later"} - {r.event for r in raised if r.when == "later"}

    def _is_heard(self, event: str) -> bool:
        return any(matches(descriptor, event) for descriptor in self.descriptors)

    # -- the automaton ------------------------------------------------------------------------------------------------

    def build_automaton(self, title: str, final: Sequence[str], labels: Mapping[str, str]) -> PDA:
        """Build the automaton whose states are the configurations."""
        found: list[Transition] = []
        self.labels = labels

        def follow_moves(where: MachineConfiguration) -> list[MachineConfiguration]:
            moves = [(event, text, self._settle_configuration(then)) for event, text, then in self._list_moves(where)]
            found.extend(
                Transition(self.name_configuration(where), e, None, self.name_configuration(then), (), text)
                for e, text, then in moves
            )
            if len(self.names) > MOST_CONFIGURATIONS or len(found) > MOST_MOVES:
                self.source.fail_at(
                    f"the machine has more than {MOST_CONFIGURATIONS:,} configurations or {MOST_MOVES:,} moves",
                    self.states[self.root].place, suggestion="leave out parallel regions that no plan needs",
                )  # fmt: skip
            return [then for _, _, then in moves]

        start = self._settle_configuration(MachineConfiguration(frozenset()))
        reached = find_reachable([start], follow_moves)
        used = {move.read for move in found}
        world = [where for where in reached if self._is_world_decision(where)]
        for name, state in self.states.items():
            if state.world and not any(name in where.active for where in world):
                self.source.fail_at(f"the world decides in {name}, and a plan never waits there", state.place)
        return PDA(
            found,
            start=self.name_configuration(start),
            accepting=map(self.name_configuration, self._find_accepting(list(reached), final)),
            name=title,
            order="forward",
            symbols={name: Symbol(labels.get(name, name)) for name in self.events if name in used},
            world=map(self.name_configuration, world),
        )

    def _is_world_decision(self, where: MachineConfiguration) -> bool:
        """Return whether the world makes the choices in a configuration, since a state is marked so."""
        lines = {atom: (atom, *self.around[atom]) for atom in self._list_atoms(where.active)}
        marked = {atom: name for atom, line in lines.items() for name in line if self.states[name].world}
        if not marked or self._is_done(self.root, where.active):
            return False
        inner, name = next(iter(marked.items()))
        for atom, line in lines.items():
            beside = [one for one in line if one not in lines[inner] and self.states[one].arcs]
            if atom not in marked and beside:
                self.source.fail_at(
                    f"the world decides in {name}, and the plan in {beside[0]} beside it", self.states[name].place,
                    suggestion="mark both, or neither",
                )  # fmt: skip
        return True

    def _find_accepting(self, reached: list[MachineConfiguration], final: Sequence[str]) -> list[MachineConfiguration]:
        place = self.states[self.root].place
        done = [where for where in reached if self._is_done(self.root, where.active)]
        ended = set(done)
        waiting = [where for where in reached if where in ended or self._follow_silently(where)[1]]
        named = [where for where in waiting if not where.active.isdisjoint(final)]
        if final and not named:
            self.source.fail_at(f"{' and '.join(final)} is not reached: a plan would never be finished", place)
        if not waiting:
            self.source.fail_at("no final state is reached, and the machine never waits for an event", place)
        if not final and not done:
            self.source.warn_at(
                "no final state of the outermost level is reached: a plan may end wherever the machine waits; "
                "--final STATE names the states in which plans end (in Python: final=)", place, stacklevel=5,
            )  # fmt: skip
        return named or done or waiting

    def name_configuration(self, where: MachineConfiguration) -> str:
        """Return the automaton's name for a configuration: its innermost states, and the events that wait."""
        if where not in self.names:
            name = "+".join([*self._list_atoms(where.active), *(f"!{one.event}" for one in where.queue)]) or "(start)"
            self.names[where] = name if name not in self.taken else f"{name}+{len(self.names)}"
            self.taken.add(self.names[where])
        return self.names[where]

    # -- moves --------------------------------------------------------------------------------------------------------

    def _list_moves(self, where: MachineConfiguration) -> Iterator[tuple[str | None, str, MachineConfiguration]]:
        """Yield each move: the plan's event (None if it needs none), the text of the option, and the successor."""
        silent, waits = self._follow_silently(where)
        yield from ((None, text, then) for then, text in silent.items())
        atoms = self._list_atoms(where.active) if waits else []
        inner_first = (self.states[name] for atom in atoms for name in (atom, *self.around[atom]))
        for event in dict.fromkeys(event for state in inner_first for event in self.heard[state.name]):
            for arcs in self._select_transitions(where.active, event):
                guards = _join_guards(arcs)
                for then in self._follow_transitions(where, arcs) if arcs else ():
                    yield event, f"{self.labels.get(event, event)} ({guards})" if guards else "", then

    def _follow_silently(self, where: MachineConfiguration) -> tuple[dict[MachineConfiguration, str], bool]:
        """Return the successors without an event of the plan, with texts, and whether the machine may wait for one."""
        if self._is_done(self.root, where.active):
            return {}, False
        found: dict[MachineConfiguration, str] = {}
        waits = False
        for arcs in self._select_transitions(where.active, None) if where.active else [[self.begin]]:
            changing = [arc for arc in arcs if arc.targets or arc.content != NOTHING]
            waits = waits or not changing
            found |= (
                dict.fromkeys(self._follow_transitions(where, changing), self._describe_arcs(changing))
                if changing
                else {}
            )
        if not waits or not where.queue:
            return found, waits
        taken = next((one for one in where.queue if one.when == "now"), where.queue[0])
        index = where.queue.index(taken)
        rest = where._replace(queue=where.queue[:index] + where.queue[index + 1 :])
        for arcs in self._select_transitions(where.active, taken.event):
            found |= dict.fromkeys(self._follow_transitions(rest, arcs), self._describe_arcs(arcs))
        return found, False

    def _describe_arcs(self, arcs: list[Arc]) -> str:
        targets = " and ".join(self.states[name].label or name for arc in arcs for name in arc.targets)
        return _join_guards(arcs) or f"go on to {targets}".removesuffix(" to ")

    def _settle_configuration(self, where: MachineConfiguration) -> MachineConfiguration:
        """Return the configuration that the machine reaches while it has no choice."""
        first, passed = where, {where}
        while first not in self.settled:
            silent, waits = self._follow_silently(where)
            (then, *_) = silent or [where]
            if waits or len(silent) != 1 or then in passed:
                self.settled[first] = where
            passed.add(where := then)
        return self.settled[first]

    def _select_transitions(self, active: frozenset[str], event: str | None) -> list[list[Arc]]:
        """Return the transitions that an event enables together, one list for each way in which the guards may hold."""
        found: dict[tuple[int, ...], list[Arc]] = {}
        for number, chosen in enumerate(self._choose_transitions(self._list_atoms(active), event, active, {})):
            arcs = self._without_conflicts(list(dict.fromkeys(chosen)), active)
            found.setdefault(tuple(map(id, arcs)), arcs)
            if number > MOST_MOVES // 10:
                self.source.fail_at("too many guards are asked at once", self.states[self.root].place)
        return list(found.values())

    def _choose_transitions(
        self, atoms: Sequence[str], event: str | None, active: frozenset[str], known: Mapping[object, bool]
    ) -> Iterator[list[Arc]]:
        """Yield the first transition of each innermost state whose guard holds, for each way guards may hold."""
        if not atoms:
            yield []
            return
        for arc in self._find_transitions(atoms[0], event):
            asked = arc.guard or arc
            holds = known[asked] if asked in known else self._decide_guard(arc, active)
            if holds is not False:
                more = known if holds else {**known, asked: True}
                yield from ([arc, *rest] for rest in self._choose_transitions(atoms[1:], event, active, more))
            if holds:
                return
            known = {**known, asked: False}
        yield from self._choose_transitions(atoms[1:], event, active, known)

    def _find_transitions(self, atom: str, event: str | None) -> list[Arc]:
        """Return the transitions of a state and of those around it that take an event."""
        if (atom, event) not in self.taking:
            around = (self.states[name] for name in (atom, *self.around[atom]))
            self.taking[atom, event] = [arc for state in around for arc in state.arcs if arc.takes_event(event)]
        return self.taking[atom, event]

    def _decide_guard(self, arc: Arc, active: frozenset[str]) -> bool | None:
        """Determine whether a guard holds; None if that is open."""
        if arc.guard in ("", "true", "false"):
            return None if arc.optional else arc.guard != "false"
        asked = _IN.fullmatch(arc.guard.strip())
        if asked is None or asked["state"] not in self.states:
            return None
        return (asked["state"] in active) != bool(asked[1])

    def _without_conflicts(self, arcs: list[Arc], active: frozenset[str]) -> list[Arc]:
        kept: list[Arc] = []
        for arc in arcs:
            others = [other for other in kept if self._find_exited(arc, active) & self._find_exited(other, active)]
            if all(other.source in self.around[arc.source] for other in others):
                kept = [*(other for other in kept if other not in others), arc]
        return kept

    # -- one step -----------------------------------------------------------------------------------------------------

    def _follow_transitions(self, where: MachineConfiguration, arcs: list[Arc]) -> Iterator[MachineConfiguration]:
        """Yield the configurations after transitions that are followed together."""
        place = arcs[0].place if arcs else None
        left = {name for arc in arcs for name in self._find_exited(arc, where.active)}
        contents = [self.states[name].exit for name in sorted(left, key=self.order.__getitem__, reverse=True)]
        contents += [arc.content for arc in arcs]
        now = set(where.active - left)
        entered, begun = self._find_entered(arcs)
        for name in sorted(entered - now, key=self.order.__getitem__):
            now.add(name)
            contents += [self.states[name].entry, *([self.states[name].start] if name in begun else [])]
            contents += [((Raised(DONE + done),),) for done in self._find_finished(name, now)]
        for name in {self.around[one][0] for one in entered if one != self.root}:
            inside = [child for child in self.states[name].children if child in now]
            if len(inside) > 1 and self.states[name].kind != "parallel":
                self.source.fail_at(f"{' and '.join(inside)} cannot be active together", place)
        for way in join_contents(contents, self.source, place):
            raised = [one for one in way if one.when != "later" and self._is_heard(one.event)]
            if len(where.queue) + len(raised) > MOST_RAISED:
                self.source.fail_at("the machine raises events without end", place)
            yield MachineConfiguration(frozenset(now), () if self._is_done(self.root, now) else (*where.queue, *raised))

    def _find_finished(self, name: str, active: set[str]) -> Iterator[str]:
        """Yield the states that are done when a final one is entered: its parent, and parallel states around that."""
        if self.states[name].kind == "final":
            parent, *outer = self.around[name]
            yield parent
            yield from takewhile(lambda one: self.states[one].kind == "parallel" and self._is_done(one, active), outer)

    def _is_done(self, name: str, active: AbstractSet[str]) -> bool:
        state = self.states[name]
        if state.kind == "parallel":
            return bool(state.children) and all(self._is_done(child, active) for child in state.children)
        return any(child in active and self.states[child].kind == "final" for child in state.children)

    def _find_domain(self, arc: Arc) -> str:
        """Return the innermost state that stays active: it contains source and all targets, and is not parallel."""
        source, around = arc.source, self.around
        if arc.within and all(source in (target, *around[target]) for target in arc.targets):
            return source
        for name in around[source]:
            if self.states[name].kind != "parallel" and all(name in around[target] for target in arc.targets):
                return name
        return self.root

    def _find_exited(self, arc: Arc, active: frozenset[str]) -> set[str]:
        domain = self._find_domain(arc)
        return {name for name in active if domain in self.around[name]} if arc.targets else set()

    def _find_entered(self, arcs: list[Arc]) -> tuple[set[str], set[str]]:
        """Return the states that transitions enter, and those of them that begin with their first states."""
        begun: set[str] = set()
        entered = {
            name: None
            for arc in arcs
            for one in arc.targets
            for name in self._list_between(one, self._find_domain(arc))
        }
        todo = list(entered)
        for name in todo:
            state = self.states[name]
            more = [child for child in state.children if child not in entered] if state.kind == "parallel" else []
            if state.kind != "parallel" and entered.keys().isdisjoint(state.children):
                begun.add(name)
                more = [inner for first in state.initial for inner in self._list_between(first, name)]
            todo += [one for one in dict.fromkeys(more) if one not in entered]
            entered |= dict.fromkeys(more)
        return set(entered), begun

    def _list_between(self, name: str, outer: str) -> list[str]:
        """Return a state and those around it up to an outer one."""
        around = (name, *self.around[name])
        return list(around[: around.index(outer) + 1])

    def _list_atoms(self, active: frozenset[str]) -> list[str]:
        """Return the innermost active states, in the order of the text."""
        return sorted((name for name in active if not self.states[name].children), key=self.order.__getitem__)


def _join_guards(arcs: list[Arc]) -> str:
    return " and ".join(dict.fromkeys(arc.guard or arc.text for arc in arcs if arc.guard or arc.text))
