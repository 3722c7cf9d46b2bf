"""Writing with a model that only chats: the next state is a numbered choice, its text is generated on its own.

So nothing illegal can be chosen, and what is left to correct are texts: one that continues with a marker is cut before
it. Nothing is asked where one state is legal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable

from formal_llm.agents.decoding.contents import Content, FreeText, OneOf, find_problem
from formal_llm.agents.decoding.manner import FORCED, MarkedWriter, NextStates, WriterRun, build_chat
from formal_llm.agents.decoding.steps import Going, Step, Steps
from formal_llm.agents.decoding.writer import GOES_ON, ContentOf, Due, SegmentBegan, Spent, Text, Told
from formal_llm.agents.markers import Splitter
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.transcript import Correction, Segment, Transcript
from formal_llm.errors import WritingError
from formal_llm.llms.generation import TextLLM, Writing
from formal_llm.llms.llm import LLM


@runtime_checkable
class ChattingLLM(LLM, TextLLM, Protocol):
    """A model that chooses and writes."""


class ChoosingWriter(MarkedWriter):
    """Has a model that chats write the states of an agent; see ``MarkedWriter`` for how it is made.

    Raises:
        WritesNoText: the model writes no text, or does not choose.
    """

    needs = ChattingLLM

    def steps(
        self,
        transcript: Transcript,
        monitor: Monitor,
        *,
        until: Collection[str] = (),
        contents: Mapping[str, ContentOf] | None = None,
    ) -> Steps[Told]:
        """Continue where a transcript ends, see :meth:`~formal_llm.agents.decoding.writer.Writer.steps`."""
        return _ChoosingRun(self.manner, transcript, monitor, frozenset(until), contents or {}).relay_to_end()


class _ChoosingRun(WriterRun):
    def _generate_steps(self) -> Steps[Told]:
        while True:
            following = self._find_next_states()
            if not following.states:
                return
            if following.world:
                yield Due(following.world)
                return
            state = following.only_state
            forced = state is not None
            if forced:
                yield FORCED
            else:
                state = yield from self._choose_state(following)
            if state is None:
                return
            if state in self.until:
                yield Due((state,))
                return
            yield SegmentBegan(state, forced)
            yield from self._write_text(state)
            self.monitor = self.monitor.after(state)

    def _choose_state(self, following: NextStates) -> Going[Told | Step, str | None]:
        """The state that the model chooses; None for the end."""
        options = [*following.markers, *((self.how.phrases.end,) if following.may_end else ())]
        self._count_request("")
        place = yield from self._ask_choice("", self.transcript.to_text(self.markers), self.how.phrases.next, options)
        return list(following.states.values())[place] if place < len(following.states) else None

    # -- texts --------------------------------------------------------------------------------------------------

    def _write_text(self, state: str) -> Steps[Told]:
        marker = self.markers.marker(state)
        assert marker is not None
        content = self._get_content(state)
        so_far = f"{self.transcript.to_text(self.markers)}{marker}"
        if isinstance(content, OneOf):
            place = 0
            if len(content.texts) > 1:
                asked = self.how.phrases.among.replace("{marker}", marker)
                self._count_request(state)
                place = yield from self._ask_choice(state, so_far, asked, content.texts)
            yield Text(content.texts[place])
            yield Segment(state, content.texts[place], "forced" if len(content.texts) == 1 else "model")
            return
        texts = [f"{so_far}\n\n{self.how.phrases.text.replace('{marker}', marker)}"]
        position = len(self.transcript)
        for tried in range(1 + self.bounds.corrections):
            text, after = yield from self._generate_text(state, marker, content, texts)
            wrong = find_problem(content, text)
            if not wrong:
                yield Segment(state, text)
                yield from after
                return
            if tried < self.bounds.corrections:
                yield Correction(position, text, (), "", wrong)
                yield SegmentBegan(state)
                texts = [texts[0], text or GOES_ON, self.how.phrases.again.replace("{problem}", wrong)]
        raise WritingError(f"the text of {state} was wrong {1 + self.bounds.corrections} times: {wrong}", state, text)

    def _generate_text(
        self, state: str, marker: str, content: Content, said: list[str]
    ) -> Going[Told | Step, tuple[str, list[Correction]]]:
        """A text up to its first marker, and what was cut off."""
        self._count_request(state)
        most = content.max_tokens if isinstance(content, FreeText) and content.max_tokens else self.bounds.state_tokens
        stop = [one for one in self.markers.states if one != marker]  # its own may stand before the text
        asked = Writing(
            build_chat(self.how.instructions, *said), max_tokens=most, stop=stop, temperature=self.how.temperature
        )
        coming, splitter, raw, cut = self._open_text(asked), Splitter(self.markers), "", None
        while cut is None and coming.made is None:
            came = yield from coming.read_next()
            pieces = splitter.feed(came)
            for piece in (*pieces, *splitter.close()) if coming.made is not None else pieces:
                if piece.marker == marker and not raw.strip():
                    raw = ""  # it stands there already
                elif piece.marker is not None:
                    cut = piece.marker
                    break
                raw += piece.text
                yield Text(piece.text)
        made = yield from coming.close()  # enough may have come before the end
        yield Spent.from_tokens(state, made.usage)
        after: list[Correction] = []
        position = len(self.transcript) + 1
        if cut is not None:
            after = [Correction(position, cut, (), "", f"the text of {state} ends where a marker begins")]
        elif made.ended is None and made.usage.output_tokens >= most:
            after = [Correction(position, GOES_ON, (), "", f"the text of {state} has {most} tokens")]
        return self.markers.restore(raw.strip()), after
