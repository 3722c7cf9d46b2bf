"""State machines of XState in JSON: read into automata whose words are events.

Guards are shown by their names. Actions, entry, exit and context mean nothing here; ``after`` (timers) is left out
with a warning. A service that is invoked answers with the events ``NAME.done`` and ``NAME.error``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from formal_llm.authored.files import parse_json
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.notation.source import SourceText
from formal_llm.automata.notation.statecharts import Arc, State, automaton
from formal_llm.errors import NotationError

#: How deep states may stand in each other.
_DEEPEST = 100


def read_xstate(text: str, file: str | None = None) -> PDA:
    """The automaton of a machine of XState, as its configuration in JSON.

    Raises:
        NotationError: it is no JSON or no machine, it has parallel states or history, or it never ends; with the
            path of the state.
    """
    source = SourceText.of(text, file, NotationError)
    try:
        data = parse_json(source.text)
    except ValueError as error:
        source.fail(f"this is no JSON: {error}", None)
    if not isinstance(data, dict) or not isinstance(data.get("states"), dict):
        source.fail("this is no machine of XState", None, expected=('{"initial": "a", "states": {"a": {...}}}',))
    machine = _Reader(source)
    machine.read(data, "", None)
    return automaton(machine.states, "", str(data.get("id") or ""), source)


class _Reader:
    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.states: dict[str, State] = {}
        self.ids: dict[str, str] = {}

    def read(self, data: Mapping[str, object], path: str, parent: str | None, depth: int = 0) -> None:
        """Read a state and those in it; a state is named by its path, as ``pay.card``."""
        self._note_ids(data, path, depth)
        self._state(data, path, parent)

    def _note_ids(self, data: Mapping[str, object], path: str, depth: int) -> None:
        if depth > _DEEPEST:
            self.source.fail(f"states stand in each other more than {_DEEPEST} deep: {path[:60]}...", None)
        self.ids[str(data.get("id") or path)] = path
        for name, inner in _dict(data.get("states")).items():
            self._note_ids(_dict(inner), _join(path, name), depth + 1)

    def _state(self, data: Mapping[str, object], path: str, parent: str | None) -> None:
        kind = data.get("type")
        if kind in ("parallel", "history"):
            self.source.fail(f"the state {path or 'of the machine'} is {kind}, which is not covered", None,
                             suggestion="write the states out, one for each combination")  # fmt: skip
        state = self.states[path] = State(path, parent, final=kind == "final")
        inside = _dict(data.get("states"))
        state.children = [_join(path, name) for name in inside]
        state.initial = _join(path, str(data["initial"])) if data.get("initial") else None
        for event, given in _dict(data.get("on")).items():
            state.arcs += self._arcs(event, given, path, parent)
        state.arcs += self._arcs(None, data.get("always"), path, parent)
        state.done = list(self._arcs(None, data.get("onDone"), path, parent))
        for number, invoked in enumerate(_list(data.get("invoke"))):
            service = _dict(invoked)
            name = str(service.get("id") or service.get("src") or f"service_{number}")
            state.arcs += self._arcs(f"{name}.done", service.get("onDone"), path, parent)
            state.arcs += self._arcs(f"{name}.error", service.get("onError"), path, parent)
        if data.get("after"):
            told = f"the timers (after) of {path or 'the machine'} are left out: plans have no clock of their own"
            self.source.warn(told, None)
        for name, inner in inside.items():
            self._state(_dict(inner), _join(path, name), path)

    def _arcs(self, event: str | None, given: object, path: str, parent: str | None) -> Iterator[Arc]:
        for one in _list(given):
            arc = {"target": one} if isinstance(one, str) else _dict(one)
            guard = arc.get("guard", arc.get("cond"))
            guard = _dict(guard).get("type", guard) if isinstance(guard, dict) else guard
            targets = [str(target) for target in _list(arc.get("target"))]
            if len(targets) > 1:
                self.source.fail(f"a transition of {path} has several targets: parallel states are not covered", None)
            target = self._target(targets[0], path, parent) if targets else None
            yield Arc(event, target, str(guard) if guard else "")

    def _target(self, target: str, path: str, parent: str | None) -> str:
        if target.startswith("#"):
            first, _, rest = target[1:].partition(".")
            if target[1:] in self.ids:
                return self.ids[target[1:]]
            return _join(self.ids.get(first, first), rest) if rest else self.ids.get(first, first)
        if target.startswith("."):
            return _join(path, target[1:])
        return _join(parent or "", target)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _dict(given: object) -> dict[str, object]:
    return given if isinstance(given, dict) else {}


def _list(given: object) -> list[object]:
    return [] if given is None else given if isinstance(given, list) else [given]
