"""State machines of XState (versions 4 and 5) in JSON, read into automata whose words are events.

A state is named by its path (``pay.card``). Guards are displayed by their names. An invoked service answers with the
events ``NAME.done`` and ``NAME.error``, which are steps of a plan; timers (``after``) are left out with a warning. In a
state with the tag ``world`` the world makes every choice.
Actions and data are ignored, except that events from actions of the kind ``raise`` are followed. See
:mod:`formal_llm.automata.notation.statecharts` for everything else, with one difference: of the transitions of
one state, those for an event by its name precede those for ``name.*`` and ``*``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence

from formal_llm.authored.files import parse_json
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.notation.coverage import HISTORY, Coverage, by_name
from formal_llm.automata.notation.source import SourceText
from formal_llm.automata.notation.statecharts import DONE, NOTHING, Arc, Content, Kind, Raised, State, build_automaton
from formal_llm.errors import NotationError

#: The maximum nesting of states.
_DEEPEST = 100
_MEANT = """
@id state@initial state@type state@states state@on state@always state@onDone state@invoke state@entry state@exit
state@parallel state@target state@tags invoke@src invoke@onDone invoke@onError transition@target transition@guard
transition@cond transition@in transition@reenter transition@internal transition@actions transition@event
"""
#: The treatment of each key of a state, a transition and an invoked service.
COVERAGE = Coverage(
    "XState",
    meant=frozenset(_MEANT.split()),
    harmless=by_name({
        "a remark": "@description @meta state@version state@$schema invoke@systemId",
        "data decides no plan: conditions about it are choices": """
            state@context state@schema state@schemas state@types state@tsTypes state@data state@output state@input
            invoke@data invoke@input""",
        "what is done on the way is no step of a plan": """
            state@options state@activities state@onEntry state@onExit state@predictableActionArguments
            state@preserveActionOrder""",
        "written by XState itself, and the same as what is read": """
            state@key state@order state@transitions state@parent transition@eventType transition@source @toJSON""",
        "states are named by paths with dots here": "state@delimiter",
        "events that no state takes are no steps of a plan": "state@strict",
        "what kind of service answers changes no plan": "invoke@type",
        "what a service hears is no part of a plan": "invoke@autoForward invoke@forward",
    }),
    warned=by_name({
        "plans have no clock of their own": "state@after transition@delay",
        "what a service reports is data": "invoke@onSnapshot",
        "who enters a state by its route may do so from anywhere": "state@route",
    }),
    refused={"state@history": HISTORY},
)  # fmt: skip


def read_xstate(text: str, file: str | None = None, *, final: Sequence[str] = ()) -> PDA:
    """Read the automaton of an XState machine from its configuration in JSON.

    Warns of omissions, of events that the machine raises itself, and of the assumption that a plan may end
    anywhere if the machine reaches no final state.

    Args:
        text: the machine.
        file: the name of the source, for messages.
        final: the paths or ids of the states in which plans end, instead of the final ones of the outermost level.

    Raises:
        NotationError: it is not JSON or not a machine, it has history, or it names an unknown state; with the path of
            the state.
        ResourceNotFound: a name in ``final`` is not a state.
    """
    source = SourceText.from_text(text, file, NotationError)
    try:
        data = parse_json(source.text)
    except ValueError as error:
        source.fail_at(f"this is no JSON: {error}", None)
    if not isinstance(data, dict) or not _as_dict(data.get("states")):
        keys = f": its keys are {', '.join(map(str, data))[:60]}" if isinstance(data, dict) and data else ""
        source.fail_at(f"this JSON is no machine of XState{keys}", None,
                    expected=('{"initial": "a", "states": {"a": {...}}}',))  # fmt: skip
    machine = _XStateReader(source)
    machine.read_machine(data)
    ends = [machine.ids.get(name.removeprefix("#"), name) for name in final]
    return build_automaton(machine.states, "", str(data.get("id") or ""), source, final=ends)


class _XStateReader:
    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.states: dict[str, State] = {}
        self.ids: dict[str, str] = {}

    def read_machine(self, machine: Mapping[str, object]) -> None:
        """Read a machine; its states are named by their paths, the machine itself by the empty path."""
        self._note_ids(machine, "", 0)
        self._read_state(machine, "", None)

    def _note_ids(self, data: Mapping[str, object], path: str, depth: int) -> None:
        if depth > _DEEPEST:
            self.source.fail_at(f"states stand in each other more than {_DEEPEST} deep: {path[:60]}...", None)
        self.ids[str(data.get("id") or path)] = path
        for name, inner in _as_dict(data.get("states")).items():
            self._note_ids(_as_dict(inner), _join_path(path, name), depth + 1)

    def _report_keys(self, kind: str, data: Mapping[str, object], path: str) -> None:
        for key, value in data.items():
            if value not in (None, [], {}, False):
                label = f"{key!r} of the {kind} {path}" if path else f"{key!r} of the machine"
                COVERAGE.report_part(f"{kind}@{key}", label, self.source, None)

    def _read_state(self, data: Mapping[str, object], path: str, parent: str | None) -> None:
        self._report_keys("state", data, path)
        kind = "parallel" if data.get("parallel") is True else str(data.get("type") or "state")
        if kind == "history":
            COVERAGE.report_part("state@history", f"the history state {path}", self.source, None)
        if kind not in ("state", "atomic", "compound", "parallel", "final"):
            self.source.fail_at(f"the state {path or 'of the machine'} has an unknown type: {kind}", None,
                             expected=("atomic", "compound", "parallel", "final"))  # fmt: skip
        named: Kind = "parallel" if kind == "parallel" else "final" if kind == "final" else "state"
        state = self.states[path] = State(path, parent, kind=named, entry=_read_raised(data.get("entry")),
                                          exit=_read_raised(data.get("exit")),
                                          world="world" in _as_list(data.get("tags")))  # fmt: skip
        inside = _as_dict(data.get("states"))
        state.children = [_join_path(path, name) for name in inside]
        first = data.get("initial")
        if named == "state" and isinstance(first, dict):
            state.start = _read_raised(first.get("actions"))
            first = (_as_list(first.get("target")) or [None])[0]
        if named == "state" and first:
            state.initial = (
                self._resolve_target(f"{'' if str(first).startswith(('#', '.')) else '.'}{first}", path, parent),
            )
        state.arcs = sorted(self._arcs_of(data, path, parent), key=_get_breadth)
        for name, inner in inside.items():
            self._read_state(_as_dict(inner), _join_path(path, name), path)

    def _arcs_of(self, data: Mapping[str, object], path: str, parent: str | None) -> Iterator[Arc]:
        events = data.get("on")
        named = (
            _as_dict(events).items()
            if not isinstance(events, list)
            else ((_as_dict(e).get("event"), e) for e in events)
        )
        for event, transitions in named:
            if str(event).startswith("xstate.after("):
                COVERAGE.report_part("state@after", f"the timer {event}", self.source, None)
            else:
                yield from self._read_arcs(self._read_event(str(event)), transitions, path, parent)
        yield from self._read_arcs("", data.get("always"), path, parent)
        yield from self._read_arcs(DONE + path, data.get("onDone"), path, parent)
        for number, invoked in enumerate(_as_list(data.get("invoke"))):
            service = _as_dict(invoked) or {"src": invoked}
            self._report_keys("invoke", service, path)
            src = service.get("src")
            name = service.get("id") or (src.get("type") if isinstance(src, dict) else src) or f"service_{number}"
            yield from self._read_arcs(f"{name}.done", service.get("onDone"), path, parent)
            yield from self._read_arcs(f"{name}.error", service.get("onError"), path, parent)

    def _read_event(self, event: str) -> str:
        """Return the name of an event here: one that reports that a state is done contains the state's path."""
        plain = event.removeprefix("xstate.")
        name = plain.removeprefix(DONE)
        return DONE + self.ids[name] if plain != name and name in self.ids else event

    def _read_arcs(self, event: str, given: object, path: str, parent: str | None) -> Iterator[Arc]:
        for one in _as_list(given):
            arc = {"target": one} if isinstance(one, str) else _as_dict(one)
            self._report_keys("transition", arc, path)
            inside = (
                f"In('{self._resolve_target(str(arc.get('in')), path, path.rpartition('.')[0].rpartition('.')[0])}')"
            )
            guards = [_read_guard(guard) for guard in (arc.get("guard", arc.get("cond")),) if guard]
            targets = tuple(self._resolve_target(str(target), path, parent) for target in _as_list(arc.get("target")))
            yield Arc((event,) if event else (), targets, " and ".join([*guards, *([inside] if arc.get("in") else [])]),
                      within=not arc.get("reenter"), content=_read_raised(arc.get("actions")))  # fmt: skip

    def _resolve_target(self, target: str, path: str, parent: str | None) -> str:
        if target.startswith("#"):
            first, _, rest = target[1:].partition(".")
            if target[1:] in self.ids:
                return self.ids[target[1:]]
            return _join_path(self.ids.get(first, first), rest) if rest else self.ids.get(first, first)
        if target.startswith("."):
            return _join_path(path, target[1:])
        return _join_path(parent or "", target)


def _get_breadth(arc: Arc) -> int:
    """Return the sort key of a transition in its state: events by name first, then ``name.*``, then ``*``."""
    return next((-len(event) for event in arc.events if event.endswith("*")), -sys.maxsize)


def _read_guard(given: object) -> str:
    """Return the name of a guard, with its parameters."""
    if not isinstance(given, dict):
        return str(given)
    name = str(given.get("type") or given.get("name") or "guard")
    params = {key: value for key, value in given.items() if key not in ("type", "name") and value}
    return f"{name} {json.dumps(params, ensure_ascii=False)}" if params else name


def _read_raised(actions: object) -> Content:
    """Return the events that actions raise."""
    found = [
        Raised(str(event.get("type") if isinstance(event, dict) else event))
        for action in map(_as_dict, _as_list(actions))
        if action.get("type") in ("xstate.raise", "raise") and (event := action.get("event"))
    ]
    return (tuple(found),) if found else NOTHING


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _as_dict(given: object) -> dict[str, object]:
    return given if isinstance(given, dict) else {}


def _as_list(given: object) -> list[object]:
    return [] if given is None else given if isinstance(given, list) else [given]
