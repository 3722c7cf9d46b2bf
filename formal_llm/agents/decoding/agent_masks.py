"""A whole run of an agent under masks: the monitor decides on markers, xgrammar on the form of texts.

``[Thought] ... [Action] ... [Answer] ...``: at the beginning, and behind the text of each state, the markers of the
states that the monitor allows may follow, and no others. Inside a text no marker can come up. Where a state is written
by the world (what a tool answers), the model's text ends with its marker; the world's text is put in, and the model
continues from a matcher that begins at the position of the monitor.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from formal_llm.agents.decoding.contents import Content, FreeText, OneOf, SegmentPattern
from formal_llm.agents.decoding.masks import Mask
from formal_llm.agents.decoding.xgrammar_masks import XGrammarMasks, XGrammarMatcher
from formal_llm.agents.markers import Markers
from formal_llm.agents.monitor import Monitor
from formal_llm.errors import AutomatonError

_NOTHING = OneOf("")


class AgentMasks:
    """Makes masks for the runs of an agent.

    Args:
        engine: makes the masks of a state's text.
        contents: how the text of a state is written; free text for those that are not named.
        given: the states that the world writes.
    """

    def __init__(
        self,
        engine: XGrammarMasks,
        markers: Markers,
        contents: Mapping[str, Content] | None = None,
        given: Collection[str] = (),
    ) -> None:
        self.engine = engine
        self.markers = markers
        self.contents = dict(contents or {})
        self.given = frozenset(given)

    def compile(self, what: Monitor) -> AgentMatcher:
        """A matcher where a marker comes next, and the monitor is at ``what``.

        Raises:
            AutomatonError: nothing is known to be allowed; an allowed state has no marker, or shares it with another
                one.
        """
        return AgentMatcher(self, (self.build_part(what, None),))

    def build_part(self, monitor: Monitor, state: str | None) -> _RunPart:
        """What is written from a marker to the next one; ``state``: whose text; None where no text comes before it."""
        if state in self.given:
            return _RunPart(monitor, state, {}, None)
        legal: dict[str, str] = {}
        for name, allowed in monitor.allowed().items():
            marker = self.markers.marker(name)
            if marker is None or marker in legal:
                other = f"shares its marker with {legal[marker]}" if marker in legal else "has no marker"
                raise AutomatonError(f"the state {name} {other}, so it cannot be known when it is written")
            if allowed.certain:
                legal[marker] = name
        if not legal and not monitor.may_stop():
            raise AutomatonError("no state is known to be allowed here; why_empty or Monitor.why says why")
        never = tuple(marker for marker in self.markers.states if marker not in legal)
        content = _NOTHING if state is None else self.contents.get(state, FreeText())
        written = SegmentPattern(content, tuple(legal), monitor.may_stop(), never)
        return _RunPart(monitor, state, legal, self.engine.compile(written))


@dataclass(slots=True)
class _RunPart:
    """A part of a run: where the monitor stands, whose text it is, the states by their markers, and its matcher."""

    monitor: Monitor
    state: str | None
    legal: Mapping[str, str]
    matcher: XGrammarMatcher | None
    ended: bool = False

    def fork(self) -> _RunPart:
        matcher = None if self.matcher is None else self.matcher.fork()
        return _RunPart(self.monitor, self.state, self.legal, matcher, self.ended)

    def find_next_state(self) -> str | None:
        """The state whose marker the text has come to."""
        if self.matcher is None or not self.matcher.may_stop():
            return None
        found = [marker for marker in self.legal if self.matcher.ends_with(marker.encode())]
        return self.legal[max(found, key=len)] if found else None


class AgentMatcher:
    """Follows one run; see :class:`~formal_llm.agents.decoding.masks.TokenMatcher`.

    :meth:`may_stop`: the run may end here, or the world has its turn (:attr:`waits_for`).
    """

    def __init__(self, masks: AgentMasks, parts: tuple[_RunPart, ...]) -> None:
        self._masks = masks
        self._parts = list(parts)

    @property
    def monitor(self) -> Monitor:
        """The monitor after all states whose markers are written."""
        return self._parts[-1].monitor

    @property
    def waits_for(self) -> str | None:
        """The state that the world writes now; None where the model has its turn."""
        state = self._parts[-1].state
        return state if state in self._masks.given else None

    def mask(self) -> Mask:
        """The tokens that may come next."""
        matcher = self._parts[-1].matcher
        return self._masks.engine.stops if matcher is None else matcher.mask()

    def accept(self, token: int) -> bool:
        """Take a token; False for one that is not allowed."""
        part = self._parts[-1]
        if part.matcher is None:
            if part.ended or token not in self._masks.engine.vocabulary.stops:
                return False
            part.ended = True
            return True
        if not part.matcher.accept(token):
            return False
        if part.matcher.stopped:
            return True
        state = part.find_next_state()
        if state is not None:
            self._parts.append(self._masks.build_part(part.monitor.after(state), state))
        return True

    def rollback(self, count: int) -> None:
        """Take back the last tokens."""
        if not 0 <= count <= sum(_count_tokens(part) for part in self._parts):
            raise ValueError(f"{count} tokens cannot be taken back")
        while count:
            part = self._parts[-1]
            here = min(count, _count_tokens(part))
            if not here:  # it began with a marker that is taken back now
                self._parts.pop()
                continue
            part.ended = False
            if part.matcher is not None:
                part.matcher.rollback(here)
            count -= here

    def fork(self) -> AgentMatcher:
        """A second one at the same place."""
        return AgentMatcher(self._masks, tuple(part.fork() for part in self._parts))

    def reset(self) -> None:
        """Back to the beginning."""
        self.rollback(sum(_count_tokens(part) for part in self._parts))

    def may_stop(self) -> bool:
        """Whether the run may end here, or the world has its turn."""
        part = self._parts[-1]
        return part.matcher is None or part.matcher.may_stop()

    @property
    def stopped(self) -> bool:
        """Whether a token was taken that ends the text."""
        part = self._parts[-1]
        return part.ended if part.matcher is None else part.matcher.stopped


def _count_tokens(part: _RunPart) -> int:
    return int(part.ended) if part.matcher is None else part.matcher.length
