"""Random state machines, written in SCXML and as XState writes them, and run by brute force."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from hypothesis import strategies as st

EVENTS = "abc"


@dataclass
class Machine:
    """A state: its name, the states in it (the first is entered), and (event, guard, target) for each transition."""

    name: str
    inside: list[Machine] = field(default_factory=list)
    arcs: list[tuple[str, str, str]] = field(default_factory=list)
    done: str = ""
    final: bool = False

    def all(self) -> list[Machine]:
        return [self, *(one for inner in self.inside for one in inner.all())]


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """Machines of two levels; each state is called by one letter and a number."""
    root = Machine("")
    for n in range(draw(st.integers(1, 3))):
        state = Machine(f"s{n}")
        state.inside = [Machine(f"s{n}i{m}") for m in range(draw(st.integers(0, 2)))]
        if state.inside and draw(st.booleans()):
            state.inside.append(Machine(f"s{n}f", final=True))
        root.inside.append(state)
    root.inside.append(Machine("end", final=True))
    names = [state.name for state in root.all() if state.name]
    for state in root.all():
        if state.final:
            continue
        arc = st.tuples(
            st.sampled_from(EVENTS), st.sampled_from(["", "", "g1"]), st.sampled_from([*names, "end", "end"])
        )
        state.arcs = draw(st.lists(arc, max_size=3))
        if state.name and any(inner.final for inner in state.inside):
            state.done = draw(st.sampled_from(["", *names]))
    root.inside[0].arcs.append(("c", "", "end"))
    return root


def scxml(state: Machine) -> str:
    """A machine in SCXML."""
    inner = "".join(map(scxml, state.inside))
    for event, guard, target in state.arcs:
        inner += f'<transition event="{event}"{f" cond={guard!r}" if guard else ""} target="{target}"/>'
    if not state.name:
        return f'<scxml xmlns="http://www.w3.org/2005/07/scxml">{inner}</scxml>'
    if state.done:
        inner += f'<transition event="done.state.{state.name}" target="{state.done}"/>'
    return f'<{"final" if state.final else "state"} id="{state.name}">{inner}</{"final" if state.final else "state"}>'


def xstate(state: Machine) -> str:
    """A machine as XState writes it; states are named by ids."""
    return json.dumps(_xstate(state))


def _xstate(state: Machine) -> dict[str, object]:
    found: dict[str, object] = {"id": state.name or "machine"}
    if state.final:
        found["type"] = "final"
    if state.inside:
        found |= {"initial": state.inside[0].name, "states": {inner.name: _xstate(inner) for inner in state.inside}}
    on: dict[str, list[object]] = {}
    for event, guard, target in state.arcs:
        on.setdefault(event, []).append({"target": f"#{target}", **({"guard": guard} if guard else {})})
    found["on"] = on
    if state.done:
        found["onDone"] = f"#{state.done}"
    return found


def accepts(root: Machine, word: str) -> bool:
    """Whether the events of a word can end a machine; every guard may hold or not."""
    by_name = {state.name: state for state in root.all()}
    parent = {inner.name: state.name for state in root.all() for inner in state.inside}

    def enter(name: str) -> str:
        return enter(by_name[name].inside[0].name) if by_name[name].inside else name

    def settled(name: str) -> set[str]:
        """Where a machine rests after it has entered a state: it goes on from a state that is done."""
        seen = set()
        while by_name[name].final and name != "end" and by_name[parent[name]].done:
            if name in seen:
                return set()
            seen.add(name)
            name = enter(by_name[parent[name]].done)
        return {name}

    def after(name: str, event: str) -> set[str]:
        found: set[str] = set()
        at: str | None = name
        while at is not None:
            for read, guard, target in by_name[at].arcs:
                if read == event:
                    found |= settled(enter(target))
                    if not guard:
                        return found
            at = parent.get(at)
        return found

    now = settled(enter(""))
    for event in word:
        now = {two for one in now if one != "end" for two in after(one, event)}
    return "end" in now
