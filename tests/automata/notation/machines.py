"""Random state machines, written in SCXML and as XState writes them, and run by the recommendation's own algorithm."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import strategies as st

EVENTS = "abc"
GUARDS = ("g1", "g2")
#: How many raised events may wait; a machine that raises more is not run.
MOST_WAITING = 6


class Going(NamedTuple):
    """A transition: its event (empty: none), guard, targets, the event it raises, and whether it stays inside."""

    event: str
    guard: str
    targets: tuple[str, ...]
    raised: str = ""
    internal: bool = False


@dataclass
class Machine:
    """A state: name, kind and transitions, the states in it (the first is entered), what it raises, and who decides."""

    name: str
    kind: str = "state"
    inside: list[Machine] = field(default_factory=list)
    arcs: list[Going] = field(default_factory=list)
    entry: str = ""
    is_world: bool = False

    def all(self) -> list[Machine]:
        return [self, *(one for inner in self.inside for one in inner.all())]


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Machines of up to three levels, with parallel states, in which the last state is a final one."""

    def make(name: str, depth: int) -> Machine:
        kind = draw(st.sampled_from(["state", "state", "parallel"] if depth < 2 else ["state"]))
        state = Machine(name, kind)
        count = draw(st.integers(2, 2) if kind == "parallel" else st.integers(0, 2 if depth < 2 else 0))
        state.inside = [make(f"{name}{n}", depth + 1) for n in range(count)]
        if kind == "state" and state.inside and draw(st.booleans()):
            state.inside.append(Machine(f"{name}f", "final"))
        return state

    root = Machine("", "state", [make(f"s{n}", 0) for n in range(draw(st.integers(1, 2)))])
    root.inside.append(Machine("end", "final"))
    states = [state for state in root.all() if state.name and state.kind != "final"]
    names = [state.name for state in root.all() if state.name]
    arcs = st.builds(
        Going, st.sampled_from([*EVENTS, *EVENTS, "", "x"]), st.sampled_from(["", "", *GUARDS]),
        st.sampled_from([*((name,) for name in names), ("end",), ()]), st.sampled_from(["", "", "", "x"]),
        st.just(False),
    )  # fmt: skip
    for state in states:
        around = [going for going in draw(st.lists(arcs, max_size=3)) if going.event or going.targets]
        state.arcs = [
            going._replace(internal=bool(state.inside) and state.kind == "state" and going.targets != (state.name,))
            if draw(st.booleans()) else going
            for going in around
        ]  # fmt: skip
        if state.inside and draw(st.booleans()):
            target = draw(st.sampled_from(names))
            state.arcs.append(Going(f"done.state.{state.name}", "", (target,)))
        if state.arcs and draw(st.integers(0, 5)) == 0:
            state.arcs.append(Going("*", "", ("end",)))
        state.entry = draw(st.sampled_from(["", "", "", "", "x"]))
    root.inside[0].arcs.append(Going("c", "", ("end",)))
    return root


def scxml(state: Machine) -> str:
    """A machine in SCXML."""
    inner = f'<onentry><raise event="{state.entry}"/></onentry>' if state.entry else ""
    for going in state.arcs:
        given = {"event": going.event, "cond": going.guard, "target": " ".join(going.targets)}
        attributes = "".join(f' {name}="{value}"' for name, value in given.items() if value)
        attributes += ' type="internal"' if going.internal else ""
        inner += f"<transition{attributes}>{f'<raise event={going.raised!r}/>' if going.raised else ''}</transition>"
    inner += "".join(map(scxml, state.inside))
    if not state.name:
        return f'<scxml xmlns="http://www.w3.org/2005/07/scxml">{inner}</scxml>'
    mark = ' my:world="true"' if state.is_world else ""
    return f'<{state.kind} id="{state.name}"{mark}>{inner}</{state.kind}>'


def xstate(state: Machine) -> str:
    """A machine as XState writes it; states are named by ids."""
    return json.dumps(_xstate(state))


def _xstate(state: Machine) -> dict[str, object]:
    found: dict[str, object] = {"id": state.name or "machine"}
    found |= {"type": state.kind} if state.kind != "state" else {}
    found |= {"tags": ["world"]} if state.is_world else {}
    if state.inside:
        found |= {"states": {inner.name: _xstate(inner) for inner in state.inside}}
        found |= {"initial": state.inside[0].name} if state.kind == "state" else {}
    on: dict[str, list[object]] = {}
    for going in state.arcs:
        arc: dict[str, object] = {"target": [f"#{target}" for target in going.targets]} if going.targets else {}
        arc |= {"guard": going.guard} if going.guard else {}
        arc |= {"reenter": True} if not going.internal else {}
        arc |= {"actions": [{"type": "xstate.raise", "event": {"type": going.raised}}]} if going.raised else {}
        on.setdefault(going.event, []).append(arc)
    found |= {"always": on.pop("")} if "" in on else {}
    found["on"] = on
    found |= {"entry": {"type": "xstate.raise", "event": {"type": state.entry}}} if state.entry else {}
    return found


class Snapshot(NamedTuple):
    """A machine that is run: the active states, its internal queue, and whether it runs on."""

    active: frozenset[str]
    queue: tuple[str, ...]
    running: bool


class EndlessError(Exception):
    """The machine raises events without end."""


class Interpreter:
    """Runs a machine as appendix D of the recommendation (W3C SCXML 1.0) writes it down; every guard may hold or not.

    The procedures have the names that they have there.
    """

    def __init__(self, root: Machine) -> None:
        self.root = root
        self.states = {state.name: state for state in root.all()}
        self.parent = {inner.name: state.name for state in root.all() for inner in state.inside}
        self.order = list(self.states)
        used = {going.event for state in root.all() for going in state.arcs}
        own = {raised for state in root.all() for raised in (state.entry, *(going.raised for going in state.arcs))}
        self.events = [event for event in (*EVENTS, "x") if event in used - own]
        self.owner = {id(going): state.name for state in root.all() for going in state.arcs}

    def words(self, length: int, *, anywhere: bool) -> set[str]:
        """The words of up to a length after which the machine has ended; or, anywhere, after which it waits."""
        found = set()
        now = {
            "": self.settle(
                self.enter_states(Snapshot(frozenset(), (), True), [Going("", "", (self.root.inside[0].name,))])
            )
        }
        for _ in range(length + 1):
            found |= {word for word, reached in now.items() if any(anywhere or not one.running for one in reached)}
            following: dict[str, set[Snapshot]] = {}
            for (word, reached), event in itertools.product(now.items(), self.events):
                after = {two for one in reached if one.running for two in self.take(one, event)}
                if after:
                    following[word + event] = after
            now = following
        return found

    def take(self, snapshot: Snapshot, event: str) -> set[Snapshot]:
        found: set[Snapshot] = set()
        for valuation in valuations():
            if enabled := self.select_transitions(snapshot, event, valuation):
                found |= self.settle(self.microstep(snapshot, enabled))
        return found

    def settle(self, snapshot: Snapshot) -> set[Snapshot]:
        """Where the machine waits or ends after a macrostep."""
        seen, todo, found = {snapshot}, [snapshot], set()
        for one in todo:
            for then in self.settle_once(one, found):
                if len(then.queue) > MOST_WAITING or len(seen) > 200:
                    raise EndlessError
                if then not in seen:
                    seen.add(then)
                    todo.append(then)
        return found

    def settle_once(self, snapshot: Snapshot, found: set[Snapshot]) -> Iterator[Snapshot]:
        if not snapshot.running:
            found.add(snapshot._replace(queue=()))
            return
        for valuation in valuations():
            enabled = self.select_transitions(snapshot, "", valuation)
            if enabled:
                yield self.microstep(snapshot, enabled)
            elif not snapshot.queue:
                found.add(snapshot)
            else:
                event, *rest = snapshot.queue
                left = snapshot._replace(queue=tuple(rest))
                for other in valuations():
                    yield self.microstep(left, self.select_transitions(left, event, other))

    # -- the procedures of the recommendation ---------------------------------------------------------------------

    def select_transitions(self, snapshot: Snapshot, event: str, valuation: dict[str, bool]) -> list[Going]:
        enabled: list[Going] = []
        atomic = [name for name in self.order if name in snapshot.active and not self.states[name].inside]
        for name in atomic:
            for going in (going for one in [name, *self.proper_ancestors(name)] for going in self.states[one].arcs):
                heard = going.event == event or (going.event == "*" and event != "")
                if heard and (not going.guard or valuation[going.guard]):
                    if not any(going is one for one in enabled):
                        enabled.append(going)
                    break
        return self.remove_conflicting_transitions(snapshot, enabled)

    def remove_conflicting_transitions(self, snapshot: Snapshot, enabled: list[Going]) -> list[Going]:
        kept: list[Going] = []
        for one in enabled:
            preempted = False
            to_remove: list[Going] = []
            for two in kept:
                if self.exit_set(snapshot, [one]) & self.exit_set(snapshot, [two]):
                    if self.is_descendant(self.owner[id(one)], self.owner[id(two)]):
                        to_remove.append(two)
                    else:
                        preempted = True
                        break
            if not preempted:
                kept = [two for two in kept if not any(two is gone for gone in to_remove)] + [one]
        return kept

    def microstep(self, snapshot: Snapshot, enabled: list[Going]) -> Snapshot:
        left = self.exit_set(snapshot, enabled)
        raised = tuple(going.raised for going in enabled if going.raised)
        return self.enter_states(
            snapshot._replace(active=snapshot.active - left, queue=snapshot.queue + raised), enabled
        )

    def exit_set(self, snapshot: Snapshot, enabled: list[Going]) -> set[str]:
        found: set[str] = set()
        for going in enabled:
            if going.targets:
                domain = self.transition_domain(going)
                found |= {name for name in snapshot.active if self.is_descendant(name, domain)}
        return found

    def transition_domain(self, going: Going) -> str:
        source = self.owner.get(id(going), "")
        if going.internal and all(self.is_descendant(target, source) for target in going.targets):
            return source
        for name in self.proper_ancestors(source):
            if self.states[name].kind == "state" and all(self.is_descendant(one, name) for one in going.targets):
                return name
        return ""

    def enter_states(self, snapshot: Snapshot, enabled: list[Going]) -> Snapshot:
        to_enter: set[str] = set()
        for going in enabled:
            for target in going.targets:
                self.add_descendants(target, to_enter)
            if going.targets:
                domain = self.transition_domain(going)
                for target in going.targets:
                    self.add_ancestors(target, domain, to_enter)
        active, queue, running = set(snapshot.active), list(snapshot.queue), snapshot.running
        for name in sorted(to_enter, key=self.order.index):
            active.add(name)
            queue += [self.states[name].entry] if self.states[name].entry else []
            if self.states[name].kind == "final":
                parent = self.parent[name]
                if parent == "":
                    running = False
                    continue
                queue.append(f"done.state.{parent}")
                outer = self.parent[parent]
                # The recommendation's text (3.4) holds for parallel states inside parallel states, too.
                while outer and self.states[outer].kind == "parallel" and self.is_in_final_state(outer, active):
                    queue.append(f"done.state.{outer}")
                    outer = self.parent[outer]
        return Snapshot(frozenset(active), tuple(queue), running)

    def add_descendants(self, name: str, to_enter: set[str]) -> None:
        to_enter.add(name)
        state = self.states[name]
        if state.kind == "parallel":
            for child in state.inside:
                if not any(self.is_descendant(one, child.name) for one in to_enter):
                    self.add_descendants(child.name, to_enter)
        elif state.inside:
            self.add_descendants(state.inside[0].name, to_enter)

    def add_ancestors(self, name: str, domain: str, to_enter: set[str]) -> None:
        for outer in self.proper_ancestors(name):
            if outer == domain:
                return
            to_enter.add(outer)
            if self.states[outer].kind == "parallel":
                for child in self.states[outer].inside:
                    if not any(self.is_descendant(one, child.name) for one in to_enter):
                        self.add_descendants(child.name, to_enter)

    def is_in_final_state(self, name: str, active: set[str]) -> bool:
        state = self.states[name]
        if state.kind == "parallel":
            return all(self.is_in_final_state(child.name, active) for child in state.inside)
        return any(child.kind == "final" and child.name in active for child in state.inside)

    def proper_ancestors(self, name: str) -> list[str]:
        return [self.parent[name], *self.proper_ancestors(self.parent[name])] if name in self.parent else []

    def is_descendant(self, name: str, outer: str) -> bool:
        return outer in self.proper_ancestors(name)


def valuations() -> list[dict[str, bool]]:
    """The ways in which guards may hold."""
    return [dict(zip(GUARDS, values, strict=True)) for values in itertools.product([True, False], repeat=len(GUARDS))]
