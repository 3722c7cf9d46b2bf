"""Writing with a model that only chats: the next state is a numbered choice, its text is generated on its own.

So nothing illegal can be chosen, and what is left to correct are texts: one that goes on with a marker is cut before
it. Nothing is asked where one state is legal.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping
from typing import Protocol

from formal_llm.agents.decoding.contents import Content, FreeText, OneOf, problem
from formal_llm.agents.decoding.next_states import (
    FORCED,
    Manner,
    Next,
    Phrases,
    choose,
    markers_of,
    next_states,
    rest_of,
    talk,
)
from formal_llm.agents.decoding.writer import (
    GOES_ON,
    Began,
    Bounds,
    ContentOf,
    Due,
    Spent,
    Text,
    Told,
    added,
    content_of,
)
from formal_llm.agents.markers import Markers, Splitter
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.transcript import Correction, Segment, Transcript
from formal_llm.automata import Behaviour
from formal_llm.errors import WritesNoText, WritingError
from formal_llm.llms.generation import Generated, TextLLM, Writing
from formal_llm.llms.llm import LLM


class ChattingLLM(LLM, TextLLM, Protocol):
    """A model that chooses and writes."""


class ChoosingWriter:
    """Has a model that chats write the states of an agent (a :class:`~formal_llm.agents.decoding.writer.Writer`).

    Args:
        llm: the model.
        markers: the markers of all states, or the behaviour that has them.
        instructions: what the model is told before the run: its task, its tools, examples.
        bounds: how much may be taken.
        phrases: what it is asked in words.
        temperature: 0 for the most probable texts.
        streaming: whether texts are told while they are written, where the model can do that.

    Raises:
        WritesNoText: the model writes no text.
    """

    def __init__(
        self,
        llm: ChattingLLM,
        markers: Markers | Behaviour,
        *,
        instructions: str = "",
        bounds: Bounds | None = None,
        phrases: Phrases | None = None,
        temperature: float = 0.0,
        streaming: bool = False,
    ) -> None:
        if not isinstance(llm, TextLLM):
            raise WritesNoText(llm, "write as an agent")
        self.llm = llm
        self.manner = Manner(
            markers_of(markers), instructions, bounds or Bounds(), phrases or Phrases(), temperature, streaming
        )

    def write(
        self,
        transcript: Transcript,
        monitor: Monitor,
        *,
        until: Collection[str] = (),
        contents: Mapping[str, ContentOf] | None = None,
    ) -> Iterator[Told]:
        """Go on where a transcript ends, see :meth:`~formal_llm.agents.decoding.writer.Writer.write`.

        Raises:
            WritingError: a bound was reached before the run could end; nothing can come next.
            InvalidAnswer: the model answers a question with what is no option, again and again.
            LLMError: the model cannot be asked.
        """
        run = _Run(self.llm, self.manner, transcript, monitor, frozenset(until), contents or {})
        for told in run.steps():
            run.transcript = added(run.transcript, told)
            yield told


class _Run:
    def __init__(
        self,
        llm: ChattingLLM,
        how: Manner,
        transcript: Transcript,
        monitor: Monitor,
        until: frozenset[str],
        contents: Mapping[str, ContentOf],
    ) -> None:
        self.llm, self.how, self.markers, self.bounds = llm, how, how.markers, how.bounds
        self.transcript, self.monitor, self.until, self.contents = transcript, monitor, until, contents
        self.requests = 0

    def steps(self) -> Iterator[Told]:
        while True:
            following = next_states(self.monitor, self.markers, self.until)
            if not following.states:
                return
            if following.world:
                yield Due(following.world)
                return
            state = following.only
            forced = state is not None
            if forced:
                yield FORCED
            else:
                state = yield from self._chosen(following)
            if state is None:
                return
            if state in self.until:
                yield Due((state,))
                return
            yield Began(state, forced)
            yield from self._written(state)
            self.monitor = self.monitor.after(state)

    def _chosen(self, following: Next) -> Generator[Told, None, str | None]:
        """The state that the model chooses; None for the end."""
        options = [*following.markers, *((self.how.phrases.end,) if following.may_end else ())]
        place = yield from self._ask("", self.transcript.to_text(self.markers), self.how.phrases.next, options)
        return list(following.states.values())[place] if place < len(following.states) else None

    def _ask(self, state: str, so_far: str, asked: str, options: list[str]) -> Generator[Told, None, int]:
        self._afford(state)
        place, usage = choose(
            self.llm, so_far, asked, options, instructions=self.how.instructions, phrases=self.how.phrases
        )
        yield Spent.of(state, usage, questions=1)
        return place

    def _afford(self, state: str) -> None:
        self.requests = max(self.requests, self.transcript.usage.requests) + 1  # not all models count theirs
        if self.requests > self.bounds.requests:
            raise self.bounds.too_many(state)

    # -- texts --------------------------------------------------------------------------------------------------

    def _written(self, state: str) -> Iterator[Told]:
        marker = self.markers.marker(state)
        assert marker is not None
        content = content_of(self.contents, state, self.transcript)
        so_far = f"{self.transcript.to_text(self.markers)}{marker}"
        if isinstance(content, OneOf):
            place = 0
            if len(content.texts) > 1:
                asked = self.how.phrases.among.replace("{marker}", marker)
                place = yield from self._ask(state, so_far, asked, list(content.texts))
            yield Text(content.texts[place])
            yield Segment(state, content.texts[place], "forced" if len(content.texts) == 1 else "model")
            return
        said = [f"{so_far}\n\n{self.how.phrases.text.replace('{marker}', marker)}"]
        position = len(self.transcript)
        for tried in range(1 + self.bounds.corrections):
            text, after = yield from self._generated(state, marker, content, said)
            wrong = problem(content, text)
            if not wrong:
                yield Segment(state, text)
                yield from after
                return
            if tried < self.bounds.corrections:
                yield Correction(position, text, (), "", wrong)
                yield Began(state)
                said = [said[0], text or GOES_ON, self.how.phrases.again.replace("{problem}", wrong)]
        raise WritingError(f"the text of {state} was wrong {1 + self.bounds.corrections} times: {wrong}", state, text)

    def _generated(
        self, state: str, marker: str, content: Content, said: list[str]
    ) -> Generator[Told, None, tuple[str, list[Correction]]]:
        """A text up to its first marker, and what was cut off."""
        self._afford(state)
        most = content.max_tokens if isinstance(content, FreeText) and content.max_tokens else self.bounds.state_tokens
        stop = [one for one in self.markers.states if one != marker]  # its own may stand before the text
        asked = Writing(
            talk(self.how.instructions, *said), max_tokens=most, stop=stop, temperature=self.how.temperature
        )
        splitter, raw, cut, made = Splitter(self.markers), "", None, None
        coming = asked.told_by(self.llm, streaming=self.how.streaming)
        for came in coming:
            if isinstance(came, Generated):
                made = came
            for piece in splitter.close() if isinstance(came, Generated) else splitter.feed(came):
                if piece.marker == marker and not raw.strip():
                    raw = ""  # it stands there already
                elif piece.marker is not None:
                    cut = piece.marker
                    break
                raw += piece.text
                yield Text(piece.text)
            if cut is not None:
                break
        if made is None:  # enough came before the end
            made = rest_of(coming, raw, streaming=self.how.streaming)
        yield Spent.of(state, made.usage)
        after: list[Correction] = []
        position = len(self.transcript) + 1
        if cut is not None:
            after = [Correction(position, cut, (), "", f"the text of {state} ends where a marker begins")]
        elif made.ended is None and made.usage.output_tokens >= most:
            after = [Correction(position, GOES_ON, (), "", f"the text of {state} has {most} tokens")]
        return self.markers.restore(raw.strip()), after
