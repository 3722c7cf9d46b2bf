"""TextRequest with a model that calls tools by its provider's own means: a turn of the model is several states at once.

At each turn the model is offered the tools that may be called now, and must call one where the rules owe a call. It
answers with a text, calls, or both. This becomes the shortest sequence of states that the rules allow: each call an
action and its input, the text before a call a thought, the text of a turn without calls the answer. So k rounds of
tools take k + 1 requests, whatever the behaviour.

A turn that fits no sequence of states is on record as a correction, and is asked for again with the reason. Of several
calls, as many are taken as the rules allow before the environment writes. The others follow as soon as they may,
without another request.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from formal_llm.agents.decoding.contents import OneOf, find_problem
from formal_llm.agents.decoding.steps import Going, Step, Steps
from formal_llm.agents.decoding.writer import (
    Bounds,
    Due,
    MarkedWriter,
    SegmentBegan,
    Spent,
    Text,
    WriterEvent,
    WriterRun,
)
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.transcript import Correction, Segment, Transcript
from formal_llm.authored.tables import Items, Keys, problems
from formal_llm.automata import Behaviour
from formal_llm.errors import WritingError
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, CallRequest, Message
from formal_llm.llms.text_request import CUT_OFF, FILTERED, REFUSED, TextRequest, ToolOffer
from formal_llm.planning.json_data import JSON

#: The maximum number of positions that are visited in the search for the states of a turn.
_MOST_POSITIONS = 2_000
#: The result of a call whose result is part of that of a later one.
_WITH_LAST = "See the result of the last of these calls."


@dataclass(frozen=True, slots=True)
class ToolStates:
    """The states by which a behaviour calls tools.

    Attributes:
        action: the state that names a tool.
        input: the state with its arguments.
        label: the state with the label of a call; None if there is none.
    """

    action: str
    input: str
    label: str | None = None

    @property
    def names(self) -> tuple[str | None, ...]:
        """All of them."""
        return self.action, self.input, self.label


@dataclass(frozen=True, slots=True)
class _Position:
    """A position on the way through the states of a turn.

    Attributes:
        monitor: the monitor after the states.
        states: the states of this turn; the texts of those that are the model's own are not known yet.
        called: the number of calls among them.
        open: whether the last state names a tool whose arguments are missing.
    """

    monitor: Monitor
    transcript: Transcript
    states: tuple[Segment, ...] = ()
    called: int = 0
    open: bool = False


class NativeWriter(MarkedWriter):
    """Has a model write the states of an agent by turns with calls of tools.

    Args:
        behaviour: the behaviour, whose markers distinguish what the environment writes.
        instructions: the text that the model reads before the run; it may be empty, since the tools are offered.
        states: the states by which it calls tools.
        bounds: how much may be taken.
        temperature: 0 for the most probable texts.
        streaming: whether texts are streamed while they are written, if the model can do that.
        output: the tool whose arguments are the answer; None if the answer is a text.

    Attributes:
        waiting: the calls that the model has requested and that have not become states yet.
        notes: what the model has to be told at its next turn.
        earlier: earlier runs of the same conversation, which the model reads as part of the chat.

    Raises:
        WritesNoText: the model calls no tools.
    """

    needs = "call"
    ability = "call tools"

    def __init__(
        self,
        llm: LLM,
        behaviour: Behaviour,
        instructions: str = "",
        *,
        states: ToolStates,
        tools: Sequence[ToolOffer],
        bounds: Bounds | None = None,
        temperature: float = 0.0,
        streaming: bool = False,
        output: ToolOffer | None = None,
    ) -> None:
        super().__init__(llm, behaviour, instructions, bounds=bounds, temperature=temperature, streaming=streaming)
        self.states = states
        self.tools = {tool.name: tool for tool in tools}
        self.output = output
        self.waiting: tuple[CallRequest, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.earlier: tuple[Transcript, ...] = ()

    def save(self) -> dict[str, JSON]:
        """Return what the model has requested and has to be told, as JSON data."""
        return {"waiting": [list(call) for call in self.waiting], "notes": list(self.notes)}

    def restore(self, data: Mapping[str, JSON]) -> None:
        """Take up what :meth:`save` returned.

        Raises:
            ValueError: it is damaged.
        """
        shape = Keys({"waiting": Items(Items(str)), "notes": Items(str)}, needed=("waiting", "notes"))
        if problem := next((found.problem for found in problems(data, shape)), ""):
            raise ValueError(problem)
        read: Any = data  # by the shape
        self.waiting, self.notes = tuple(CallRequest(*call) for call in read["waiting"]), tuple(read["notes"])

    def _get_run_type(self) -> type[WriterRun]:
        return _NativeRun


class _NativeRun(WriterRun):
    """A run by turns.

    Attributes:
        refused: what follows the chat of the transcript: turns that could not be used, and why.
        growth: by what the room of a request is multiplied.
        streamed: the states whose text was reported while it was written.
    """

    writer: NativeWriter
    refused: tuple[Message, ...] = ()
    growth = 1
    streamed: tuple[Segment, ...] = ()

    def _generate_steps(self) -> Steps[WriterEvent]:
        world = self._find_world_states(self.monitor)
        if world and len(world) == len(self.monitor.allowed()) and not self.monitor.may_stop():
            yield Due(world)
            return
        while self.monitor.allowed() or not self.monitor.may_stop():
            path = self._find_path("", self.writer.waiting) if self.writer.waiting else None
            if path is None and self.writer.waiting:
                yield from self._drop_call()
                continue
            if path is not None:
                yield from self._report_path(path, "", self.writer.waiting)
            else:
                yield from self._take_turn()
            if due := self._find_world_states(self.monitor):
                yield Due(due)
                return
            if self.monitor.may_stop():
                return

    def _find_world_states(self, monitor: Monitor) -> tuple[str, ...]:
        return tuple(name for name in monitor.allowed() if name in self.until)

    # -- from a turn to states ----------------------------------------------------------------------------------

    def _iter_positions(self, calls: Sequence[CallRequest]) -> Iterator[_Position]:
        """The positions that a turn with these calls may lead to, the nearest first."""
        waiting = deque([_Position(self.monitor, self.transcript)])
        seen: set[object] = set()
        while waiting and len(seen) < _MOST_POSITIONS:
            position = waiting.popleft()
            key = position.monitor.place, position.called, position.open, bool(position.states)
            if key in seen:
                continue
            seen.add(key)
            yield position
            allowed = {name: way for name, way in position.monitor.allowed().items() if name not in self.until}
            for name in {name: way for name, way in allowed.items() if way.certain} or allowed:
                waiting.extend(self._follow_state(position, name, calls))

    def _follow_state(self, position: _Position, state: str, calls: Sequence[CallRequest]) -> Iterator[_Position]:
        """The position after one more state; none if a turn with these calls does not have it there."""
        called, text = position.called, ""
        if position.open != (state == self.writer.states.input):
            return
        content = self._get_content(state, position.transcript)
        if state == self.writer.states.action:
            if called == len(calls) or (isinstance(content, OneOf) and calls[called].name not in content.texts):
                return
            text, called = calls[called].name, called + 1
        elif state == self.writer.states.input:
            text = calls[called - 1].arguments
        elif isinstance(content, OneOf):
            text = content.texts[0]
        forced = isinstance(content, OneOf) and len(content.texts) == 1 and state != self.writer.states.action
        segment = Segment(state, text, "forced" if forced else "model")
        monitor = position.monitor.after(segment.event)
        transcript = position.transcript.plus(segment)
        is_open = state == self.writer.states.action
        yield _Position(monitor, transcript, (*position.states, segment), called, is_open)

    def _find_path(self, text: str | None, calls: Sequence[CallRequest]) -> _Position | None:
        """The states of a turn; None if no sequence of states has this text (None for any) and these calls.

        With calls it is the shortest one with as many of them as may come before the environment writes. Without, it
        is the shortest one that the run may end with, or else that the environment may continue.
        """
        best: _Position | None = None
        for position in self._iter_positions(calls):
            due = bool(self._find_world_states(position.monitor))
            if position.open or not (due or position.monitor.may_stop()):
                continue
            if calls:
                if position.called > (best.called if best else 0):
                    best = position
            elif text is None or not self._find_text_problem(position, text):
                if position.monitor.may_stop() and (position.states or not text):
                    return position
                # A turn with states is better than one whose text has no place.
                best = position if best is None or not best.states else best
        return best

    def _find_text_problem(self, position: _Position, text: str) -> str:
        """What is wrong with the text of a turn without calls as that of its last state."""
        if not position.states:
            return ""
        place = len(position.transcript) - 1
        before = replace(position.transcript, segments=position.transcript.segments[:place])
        return find_problem(self._get_content(position.states[-1].state, before), text)

    def _fill_texts(self, path: _Position, text: str) -> tuple[tuple[Segment, ...], bool]:
        """The states of a turn with its text, and whether one of them has it."""
        own = [place for place, one in enumerate(path.states) if one.state not in self.writer.states.names]
        free = [place for place in own if path.states[place].source != "forced"]
        place = (free[0] if path.called else free[-1]) if free else None
        states = tuple(replace(one, text=text) if number == place else one for number, one in enumerate(path.states))
        return states, place is not None

    def _report_path(self, path: _Position, text: str, calls: Sequence[CallRequest]) -> Steps[WriterEvent]:
        states, placed = self._fill_texts(path, text)
        if not placed and text:
            yield Correction(len(self.transcript), text, (), "", "no state may have a text here")
        self.writer.waiting, self.refused = tuple(calls[path.called :]), ()
        known = path.states == self.streamed and not calls
        self.streamed = ()
        for segment in states:
            if not known:
                yield SegmentBegan(segment.state, segment.source == "forced")
                if segment.text:
                    yield Text(segment.text)
            self.monitor = self.monitor.after(segment.event)
            yield segment

    def _drop_call(self) -> Steps[WriterEvent]:
        """Leave out a call that may not be made any more, since what came in between does not allow it."""
        first, *rest = self.writer.waiting
        self.writer.waiting = tuple(rest)
        offered = self._list_offered()
        reason = self._explain_call(first, offered)
        self.writer.notes += (f"{first.name}({first.arguments}) was not carried out: {reason}",)
        yield Correction(len(self.transcript), first.name, tuple(offered), "", reason)

    # -- turns --------------------------------------------------------------------------------------------------

    def _list_offered(self) -> list[str]:
        """The tools that may be called in this turn."""
        found: dict[str, None] = {}
        for position in self._iter_positions(()):
            if self.writer.states.action in position.monitor.allowed() and not position.open:
                content = self._get_content(self.writer.states.action, position.transcript)
                found |= dict.fromkeys(content.texts if isinstance(content, OneOf) else self.writer.tools)
        return [name for name in self.writer.tools if name in found]

    def _take_turn(self) -> Steps[WriterEvent]:
        """Ask for a turn until one fits."""
        offered, may_write = self._list_offered(), self._find_path(None, ()) is not None
        if not offered and not may_write:
            refused = self.monitor.why()
            raise WritingError(f"nothing can come next: {refused.reason if refused is not None else 'no way is known'}")
        problem = ""
        for _ in range(1 + self.bounds.corrections):
            made = yield from self._request_turn(offered, must_call=not may_write)
            if made is None:
                continue
            text, calls = yield from self._read_output(made)
            path = self._find_path(text, calls)
            if path is not None:
                self.writer.notes = ()  # it has read them
                yield from self._report_path(path, text, calls)
                return
            problem = self._explain_turn(text, calls, offered, may_write)
            written = calls[0].name if calls else text
            yield Correction(len(self.transcript), written, tuple(offered), "", problem)
            self.refused = (*self.refused, *self._build_refusal(text, calls, problem))
        raise WritingError(f"{1 + self.bounds.corrections} turns could not be used: {problem}")

    def _read_output(self, made: Answer) -> Going[WriterEvent | Step, tuple[str, tuple[CallRequest, ...]]]:
        """The text and the calls of a turn; the arguments of the tool for the answer are its text."""
        output = self.writer.output
        given = [call for call in made.calls if output is not None and call.name == output.name]
        calls = tuple(call for call in made.calls if call not in given)
        if given and not calls:
            return given[0].arguments, ()
        if given:
            reason = "an answer is not given together with calls of tools"
            yield Correction(len(self.transcript), given[0].name, tuple(call.name for call in calls), "", reason)
        return made.text.strip(), calls

    def _request_turn(self, offered: Sequence[str], *, must_call: bool) -> Going[WriterEvent | Step, Answer | None]:
        """What the model writes; None if it was cut off or broke off, and is to be asked for again."""
        self._count_request("")
        room = (self.bounds.turn_tokens + self.bounds.thinking_tokens) * self.growth
        tools = [self.writer.tools[name] for name in offered]
        output = self.writer.output if not must_call else None
        turn = TextRequest(
            self._build_chat(),
            tools=tools if output is None else [*tools, output],
            must_call=must_call or output is not None,
            max_tokens=room,
            temperature=self.writer.temperature,
        )
        coming = self._open_text(turn)
        path, self.streamed = self._find_streamed_path(must_call), ()
        while coming.made is None:
            piece = yield from self._read_piece(coming, "")
            if piece is None:
                return None
            if piece and path is not None:
                if not self.streamed:
                    yield from (SegmentBegan(one.state, one.source == "forced") for one in path.states)
                    self.streamed = path.states
                yield Text(piece)
        made = coming.made
        yield Spent.from_tokens("", made.usage)
        if made.stopped in (REFUSED, FILTERED):
            raise WritingError(f"the model gave no text: {made.stopped}", "", made.text)
        if made.stopped != CUT_OFF:
            return made
        self.growth *= 2
        if self.growth > self.bounds.growth:
            raise WritingError(
                f"the model's turn {made.stopped.removeprefix('it ')}, {room} tokens; give it more: "
                "bounds=Bounds(turn_tokens=..., thinking_tokens=...)",
                "",
                made.text,
            )
        yield Correction(len(self.transcript), made.text.strip(), (), "", made.stopped)
        return None

    def _find_streamed_path(self, must_call: bool) -> _Position | None:
        """The states of an answer, before any call is known: its text is reported while it is written."""
        if must_call or self.writer.output or not self.writer.streaming:
            return None
        path = self._find_path(None, ())
        return path if path is not None and path.states and not any(one.text for one in path.states) else None

    # -- what the model reads -----------------------------------------------------------------------------------

    def _build_chat(self) -> list[Message]:
        """The run as a chat: the texts and calls of the model, the results of its calls, what else came."""
        chat = [Message("system", self.writer.instructions)] if self.writer.instructions else []
        texts: list[str] = []
        calls: list[CallRequest] = []
        count = 0
        for segment in (one for run in (*self.writer.earlier, self.transcript) for one in run.segments):
            outside = segment.state in self.until
            if segment.source == "user" and not outside:
                chat += _close_turn(texts, calls)
                texts, calls = [], []
                chat.append(Message("user", segment.text))
            elif outside:
                chat += _close_turn(texts, calls)
                chat += self._build_results(segment, calls)
                texts, calls = [], []
            elif segment.state == self.writer.states.action:
                count += 1
                calls.append(CallRequest(f"call_{count}", segment.text, "{}"))
            elif segment.state == self.writer.states.input and calls:
                calls[-1] = calls[-1]._replace(arguments=segment.text)
            elif segment.state != self.writer.states.label:
                texts += [segment.text] if segment.text else []
        chat += _close_turn(texts, calls)
        chat += [Message("user", "\n".join(self.writer.notes))] if self.writer.notes else []
        return [*chat, *self.refused]

    def _build_results(self, segment: Segment, calls: Sequence[CallRequest]) -> list[Message]:
        if not calls:
            return [Message("user", f"{self.markers.marker(segment.state)} {segment.text}")]
        texts = [*[_WITH_LAST] * (len(calls) - 1), segment.text]
        return [Message("tool", text, answers=call.id) for call, text in zip(calls, texts, strict=True)]

    def _build_refusal(self, text: str, calls: Sequence[CallRequest], problem: str) -> list[Message]:
        """The messages that show a turn that could not be used, and why."""
        number = sum(bool(message.calls) for message in self.refused)
        renamed = tuple(
            call._replace(id=f"refused_{number}_{place}", arguments=call.arguments or "{}")
            for place, call in enumerate(calls)
        )
        earlier = [Message("assistant", text, renamed)] if text or renamed else []
        if renamed:
            return [
                *earlier,
                *(Message("tool", f"Not carried out: {problem}", answers=call.id) for call in renamed),
            ]
        return [*earlier, Message("user", f"This could not be used: {problem}")]

    # -- reasons ------------------------------------------------------------------------------------------------

    def _explain_turn(self, text: str, calls: Sequence[CallRequest], offered: Sequence[str], may_write: bool) -> str:
        if calls:
            return self._explain_call(calls[0], offered)
        if not may_write:
            return f"a tool has to be called first: {' or '.join(offered)}"
        if not text:
            return "an answer is not empty"
        problems = (self._find_text_problem(position, text) for position in self._iter_positions(()) if position.states)
        return next((problem for problem in problems if problem), "it cannot come now")

    def _explain_call(self, call: CallRequest, offered: Sequence[str]) -> str:
        may = f"; what may be called now: {', '.join(offered)}" if offered else "; no tool may be called now"
        if call.name not in self.writer.tools:
            return f"there is no tool {call.name[:100]!r}{may}"
        return f"{call.name} may not be called now{may}"


def _close_turn(texts: Sequence[str], calls: Sequence[CallRequest]) -> list[Message]:
    return [Message("assistant", "\n".join(texts), tuple(calls))] if texts or calls else []
