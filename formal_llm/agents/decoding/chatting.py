"""TextRequest with a model that only chats: it writes on until the environment is due, and is corrected by messages.

The method is that of :mod:`formal_llm.agents.decoding.continuing`: generate, validate, correct. What differs is how the
model is asked. It reads the run as a chat, in which its own texts are messages of the assistant, and those of the user
and the environment are messages of the user. So one request writes all states up to the next observation::

    user         [Question] How tall is the tower of the town hall?
    assistant    [Thought] I look it up. [Action] search [Action Input] town hall
    user         [Observation] The town hall has a tower of 41 m.

What is wrong is cut, put on record, and asked for again with the reason. If that is in vain, the model is asked a
numbered question.
"""

from __future__ import annotations

from formal_llm.agents.decoding.contents import FreeText, OneOf, Validated
from formal_llm.agents.decoding.continuing import ContinuingRun
from formal_llm.agents.decoding.steps import Steps
from formal_llm.agents.decoding.writer import (
    MarkedWriter,
    NextStates,
    SegmentBegan,
    Text,
    WriterEvent,
    WriterRun,
)
from formal_llm.errors import WritesNoText, WritingError
from formal_llm.llms.question import Answer, Message
from formal_llm.llms.text_request import CUT_OFF, TextRequest

#: The maximum number of stops that all hosted models accept.
_MOST_STOPS = 4


class ChattingWriter(MarkedWriter):
    """Has a model that chats write the states of an agent; see ``MarkedWriter`` for its arguments.

    A model that only chooses is asked a numbered question for each state, and for each text that is one of several.

    Raises:
        WritesNoText: the model does not choose; or it writes no text, when one is needed.
    """

    needs = "choose"

    def _get_run_type(self) -> type[WriterRun]:
        return _ChattingRun if "write" in self.llm.can else _ChoosingRun


class _ChattingRun(ContinuingRun):
    continues_words = False
    #: What was wrong last; the text of the state, if it was that.
    problem = ""
    rejected: str | None = None
    #: The place at which a marker was asked for again.
    retried: int | None = None
    #: Whether the last message had a text; whether it broke off in the text of a state.
    written = broken = False
    #: By what the room of a request is multiplied.
    growth = 1

    def _get_put_prefix(self, following: NextStates) -> str:  # noqa: ARG002  # it is the same for all
        return ""  # a chat cannot continue a begun marker

    def _may_put_prefix(self, following: NextStates) -> bool:  # noqa: ARG002  # all of them are named
        place = len(self.transcript)
        first, self.retried = self.retried != place, place
        return first

    def _is_unfinished(self, made: Answer) -> bool:
        self.written = bool(made.text.strip())
        if made.stopped == CUT_OFF and not made.text.strip():
            self.growth *= 2
            if self.growth > self.bounds.growth:
                raise WritingError(
                    f"the model wrote nothing within {self._get_room() // 2} tokens; give it more for its thinking: "
                    "bounds=Bounds(thinking_tokens=...)",
                    self.state or "",
                )
            return True
        if made.stopped == CUT_OFF:
            self._note_break()
        return made.stopped == CUT_OFF

    def _note_break(self) -> None:
        self.broken = self.state is not None

    def _read_text(self, text: str) -> Steps[WriterEvent]:
        self.broken = self.broken and not text.strip()
        yield from super()._read_text(text)

    def _read_marker(self, marker: str) -> Steps[WriterEvent]:
        """Read a marker; one right behind an answer that broke off does not end that."""
        broken, self.broken = self.broken, False
        if self.state is not None and broken and marker == self.markers.marker(self.state):  # it writes its text anew
            yield SegmentBegan(self.state)
            self.raw = ""
        elif self.state is not None and broken and isinstance(self.content, FreeText) and self.content.whole:
            yield from self._correct_text(self.raw.strip(), CUT_OFF)
        else:
            yield from super()._read_marker(marker)

    def _find_due_at_end(self, following: NextStates) -> tuple[str, ...] | None:
        # A model that ends its message leaves the turn to the environment, if that may write.
        world = tuple(name for name in following.states.values() if name in self.until)
        return world if world and not following.may_end and self.written else None

    def _note_problem(self, problem: str, rejected: str | None = None) -> None:
        self.problem, self.rejected = problem, rejected

    def _is_own_marker(self, marker: str) -> bool:
        return self.state is not None and marker == self.markers.marker(self.state) and not self.raw.strip()

    def _get_room(self) -> int:
        return (self.bounds.turn_tokens + self.bounds.thinking_tokens) * self.growth

    def _build_request(self) -> TextRequest:
        world = sorted(marker for name in self.until if (marker := self.markers.marker(name)))
        schema = None
        if self.rejected is not None and isinstance(self.content, Validated):
            schema = self.content.schema
        request = TextRequest(
            self._build_chat(),
            max_tokens=self._get_room(),
            stop=() if schema is not None else world[:_MOST_STOPS],
            temperature=self.writer.temperature,
            schema=schema,
        )
        self.problem, self.rejected = "", None
        return request

    def _build_chat(self) -> list[Message]:
        """The run as a chat that ends with a message of the user."""
        chat = [Message("system", self.writer.instructions)] if self.writer.instructions else []
        for segment in self.transcript.segments:
            role = "assistant" if segment.source in ("model", "forced") else "user"
            text = f"{self.markers.marker(segment.state)} {self.markers.escape(segment.text)}".rstrip()
            _append_text(chat, role, text)
        phrases, following = self.writer.phrases, self._find_next_states()
        marker = self.markers.marker(self.state) if self.state is not None else None
        begun = (self.raw + self.splitter.held).strip()
        if self.rejected is not None:
            _append_text(chat, "assistant", f"{marker} {self.rejected}".rstrip())
            _append_text(
                chat, "user", phrases.again.replace("{problem}", self.problem).replace("{marker}", str(marker))
            )
            return chat
        if begun or (marker and self.problem):
            _append_text(chat, "assistant", f"{marker or ''} {begun}".strip())
        if chat and chat[-1].role == "user" and not self.problem:
            return chat
        legal = [marker] if marker and not begun else [*following.markers]
        ends = [phrases.end] if following.may_end and not (marker and not begun) else []
        parts = [phrases.refused.replace("{problem}", self.problem)] if self.problem else []
        parts.append(phrases.go_on.replace("{legal}", ", ".join([*legal, *ends])))
        _append_text(chat, "user", " ".join(parts))
        return chat


class _ChoosingRun(_ChattingRun):
    """A run by a model that writes no text."""

    def _request_text(self) -> Steps[WriterEvent]:
        so_far, phrases = self.transcript.to_text(self.markers), self.writer.phrases
        self._count_request(self.state or "")
        if self.state is None:
            following = self._find_next_states()
            ends = [phrases.end] if following.may_end else []
            place = yield from self._ask_choice("", so_far, phrases.next, [*following.markers, *ends])
            if place == len(following.states):
                self._end_run()
            else:
                yield from self._begin_state([*following.states.values()][place])
            return
        if not isinstance(self.content, OneOf):
            raise WritesNoText(self.writer.llm, f"write the text of {self.state}")
        marker = self.markers.marker(self.state) or ""
        asked = phrases.among.replace("{marker}", marker)
        place = yield from self._ask_choice(self.state, so_far + marker, asked, self.content.texts)
        self.raw = self.content.texts[place]
        yield Text(self.raw)
        yield from self._close_text()
        self._start_between_states(None)


def _append_text(chat: list[Message], role: str, text: str) -> None:
    """Add a text to a chat, on a new line of the last message if that has the same role."""
    if chat and chat[-1].role == role:
        chat[-1] = Message(role, f"{chat[-1].content}\n{text}")
    else:
        chat.append(Message(role, text))
