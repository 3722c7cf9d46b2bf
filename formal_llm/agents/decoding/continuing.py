"""TextRequest with a model that continues a text: what it writes is cut where it leaves the rules, and it continues.

The method of Crouse et al. (arXiv 2310.08535, version of 2024, section 2.2): generate to a stop marker, or a chunk;
split at the markers; step the monitor; cut at the first marker that is not legal; append the longest common prefix of
the legal ones; go on. An agent that thinks, and may not answer before it has acted::

    written     [Thought] I know it. [Answer] 42
    legal       [Action]
    goes on     [Thought] I know it.
                [Action]

Where the model continues that prefix with no legal marker either, it is asked a numbered question if it answers such
questions. Otherwise the prefix is lengthened by what still fits, and where nothing does, the run takes the shortest way
to its end. A marker that alone is legal is put there without a request. All but the last is on record as a correction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil
from typing import ClassVar

from formal_llm.agents.decoding.contents import Content, FreeText, OneOf, filter_matching_texts, find_problem
from formal_llm.agents.decoding.steps import Going, Step, Steps
from formal_llm.agents.decoding.writer import (
    FORCED,
    GOES_ON,
    Due,
    MarkedWriter,
    NextStates,
    SegmentBegan,
    Spent,
    Text,
    WriterEvent,
    WriterRun,
    find_common_prefix,
)
from formal_llm.agents.markers import Piece, Splitter
from formal_llm.agents.transcript import Correction, Segment
from formal_llm.errors import InvalidAnswer, WritingError
from formal_llm.llms.question import Answer
from formal_llm.llms.text_request import FILTERED, REFUSED, TextRequest
from formal_llm.llms.usage import TokenUsage

#: The least temperature at which a text is written again, since the most probable one is known to be wrong.
_AGAIN = 0.7
#: Characters a token, where a model does not count.
_TOKEN = 4


class ContinuingRun(WriterRun):
    """A run: in the text of a state, or between two states (``state`` is None).

    Attributes:
        raw: what was written there, but for what the splitter holds back.
        prefix: between two states, what was put there to begin a marker; None where nothing was asked there yet.
        kept: how the text of a state begins where it was put there, since it is one of some texts.
        tokens, corrected: the tokens and the corrections there.
        cut: whether what was generated beyond this place does not count.
        before: the monitor before the state whose text is being written.
    """

    #: Whether the model continues in the middle of a word that was put there.
    continues_words: ClassVar[bool] = True

    content: Content = FreeText()
    done = False
    due: Due | None = None

    def _generate_steps(self) -> Steps[WriterEvent]:
        self.before = self.monitor
        self._start_between_states(None)
        while not self.done:
            settled = yield from self._take_forced_state() if self.state is None else self._end_settled_text()
            if not settled:
                yield from self._request_text()
        if self.due is not None:
            yield self.due

    # -- where the run stands -----------------------------------------------------------------------------------

    def _start_between_states(self, prefix: str | None) -> None:
        """Behind a segment, or before the first one, with what was put there."""
        self.state: str | None = None
        self.prefix = prefix
        self._restart_text(prefix or "")

    def _restart_text(self, text: str = "") -> None:
        """Continue behind a text that was put here; what was generated beyond it does not count."""
        self.raw, self.kept, self.tokens, self.corrected, self.cut = "", "", 0, 0, True
        self.splitter = Splitter(self.markers)
        for piece in self.splitter.feed(text):
            self.raw += piece.text

    def _begin_state(self, state: str, *, forced: bool = False) -> Steps[WriterEvent]:
        """A state begins; in what was generated goes on its text."""
        if state in self.until:
            self._end_run((state,))
            return
        self.state, self.raw, self.kept, self.tokens, self.corrected = state, "", "", 0, 0
        self.before, self.monitor = self.monitor, self.monitor.after(state)
        self.content = self._get_content(state, self.transcript)
        find_problem(self.content, "")  # a content that no text can have is reported before the model is asked
        yield SegmentBegan(state, forced)

    def _end_run(self, due: tuple[str, ...] = ()) -> None:
        self.done = self.cut = True
        self.due = Due(due) if due else None

    # -- what needs no request ----------------------------------------------------------------------------------

    def _take_forced_state(self) -> Going[WriterEvent | Step, bool]:
        """Take what comes next where the rules leave no choice; whether they did."""
        following, prefix = self._find_next_states(), self.prefix
        if not following.states:
            self._end_run()
        elif following.world:
            self._end_run(following.world)
        elif following.only_state is not None:
            self._start_between_states(None)
            yield FORCED
            yield from self._begin_state(following.only_state, forced=True)
        elif prefix is None:
            self._start_between_states("" if following.may_end else self._get_put_prefix(following))
            return False
        elif prefix in following.states and sum(one.startswith(prefix) for one in following.states) == 1:
            self._start_between_states(None)
            yield from self._begin_state(following.states[prefix])
        elif self.tokens >= self.bounds.get_state_tokens(None):  # blanks, again and again
            yield from self._correct_marker(self.raw, "no marker came")
        else:
            return False
        return True

    def _end_settled_text(self) -> Going[WriterEvent | Step, bool]:
        """End the text of a state where nothing more of it can come; whether it did."""
        if isinstance(self.content, OneOf) and not self.splitter.held:
            left = filter_matching_texts(self.content, self.raw)
            begun = find_common_prefix(left)
            if len(begun) > len(self.raw.lstrip()) and (self.continues_words or len(left) == 1):
                yield Text(begun[len(self.raw.lstrip()) :])
                tokens = self.tokens
                self._restart_text()
                self.raw, self.kept, self.tokens = begun, begun, tokens
            if len(left) == 1:
                yield from self._close_text()
                self._start_between_states(None)
                return True
        if self.tokens < self._get_token_limit():
            return False
        if isinstance(self.content, OneOf):
            yield from self._correct_text(self.raw.strip(), f"the text has {self._get_token_limit()} tokens")
            return True
        reason = f"the text of {self.state} has {self._get_token_limit()} tokens"
        if isinstance(self.content, FreeText) and self.content.whole:
            raise WritingError(
                f"{reason} and is not finished, and a run does not end with half an answer; give it more room: "
                "bounds=Bounds(state_tokens=...)",
                self.state or "",
                self.raw,
            )
        self.raw += self.splitter.held
        yield from self._close_text()
        if self.state is None:
            yield from self._insert_marker_prefix(GOES_ON, reason)
        return True

    def _get_token_limit(self) -> int:
        """The most tokens of a state."""
        own = self.content.max_tokens if isinstance(self.content, FreeText) else None
        return own or self.bounds.get_state_tokens(self.state)

    def _get_put_prefix(self, following: NextStates) -> str:
        """How all legal markers begin, as far as the model can continue it."""
        return following.prefix

    def _may_put_prefix(self, following: NextStates) -> bool:
        """Whether what is put there now helps the model more than what is there already."""
        return self.prefix is None or len(following.prefix) > len(self.prefix)

    def _is_unfinished(self, made: Answer) -> bool:
        """Whether the model was stopped in the middle, so that it has to be asked to continue."""
        return made.ended is None and bool(made.text)

    def _note_break(self) -> None:
        """Note that the text of the model broke off."""

    def _note_problem(self, problem: str, rejected: str | None = None) -> None:
        """Note what was wrong, and the text that was rejected, for models that read it."""

    def _find_due_at_end(self, following: NextStates) -> tuple[str, ...] | None:
        """What is due where the model ended by itself; None where that alone does not determine it."""
        del following
        return None

    def _is_own_marker(self, marker: str) -> bool:
        """Whether a marker only repeats the one that is there already."""
        del marker
        return False

    def _request_text(self) -> Steps[WriterEvent]:
        """Have the model continue, and read what it writes up to where it leaves the rules."""
        state = self.state
        self._count_request(state or "")
        coming = self._open_text(self._build_request())
        self.cut = False
        while not self.cut and coming.made is None:
            came = yield from self._read_piece(coming, state or "")
            if came is None:
                self._note_break()
                return  # it is asked to continue what has come
            if coming.stopped in (REFUSED, FILTERED):
                yield Spent.from_tokens(state or "", (yield from coming.close()).usage)
                raise WritingError(f"the model gave no text: {coming.stopped}", state or "", coming.text)
            try:
                yield from self._read_pieces(self.splitter.feed(came))
            except WritingError:
                yield Spent.from_tokens(state or "", (yield from coming.close()).usage)
                raise
        made, text = (yield from coming.close()), coming.text
        yield Spent.from_tokens(state or "", made.usage)
        if self.cut:
            return
        tokens = made.usage.output_tokens or ceil(len(text) / _TOKEN)
        here = len(self.raw) + len(self.splitter.held)
        self.tokens += tokens if here >= len(text) else ceil(tokens * here / len(text))
        if self._is_unfinished(made):
            return
        yield from self._read_pieces((*self.splitter.feed(made.ended or ""), *self.splitter.close()))
        if not self.cut:
            yield from self._handle_model_end()

    def _build_request(self) -> TextRequest:
        so_far = self.writer.instructions + self.transcript.to_text(self.markers)
        most, stop = (
            self.bounds.get_state_tokens(None) - self.tokens,
            [self.markers.marker(name) for name in self.until],
        )
        if self.state is not None:
            so_far += self.markers.marker(self.state) or ""
            most = self._get_token_limit() - self.tokens
            if not self._find_next_states().states:  # whatever comes next ends it
                stop = [*self.markers.states]
        return TextRequest(
            so_far + self.raw + self.splitter.held,
            max_tokens=min(self.bounds.chunk_tokens, most),
            stop=sorted(one for one in stop if one),
            temperature=max(self.writer.temperature, _AGAIN) if self.corrected else self.writer.temperature,
            continues=True,
        )

    # -- reading ------------------------------------------------------------------------------------------------

    def _read_pieces(self, pieces: Iterable[Piece]) -> Steps[WriterEvent]:
        left = iter(pieces)
        for piece in left:
            if piece.marker is not None and not self.cut:
                yield from self._read_marker(piece.marker)
            if self.done and self.due is not None:
                yield from self._correct_forged_text(piece, left)
            elif piece.text and not self.cut:
                yield from self._read_text(piece.text)

    def _correct_forged_text(self, first: Piece, rest: Iterable[Piece]) -> Steps[WriterEvent]:
        """What the model wrote behind a marker of the environment is cut."""
        written = first.text + "".join(f"{piece.marker or ''}{piece.text}" for piece in rest)
        if first.marker is not None and written.strip():
            reason = f"{first.marker} is written by the environment"
            yield Correction(len(self.transcript), (first.marker + written).rstrip(), (), "", reason)

    def _read_text(self, text: str) -> Steps[WriterEvent]:
        self.raw += text
        if self.state is None:
            if self.raw.strip():
                yield from self._correct_marker(self.raw, "a marker comes first")
            return
        yield Text(text)
        if isinstance(self.content, OneOf) and not filter_matching_texts(self.content, self.raw):
            yield from self._correct_text(self.raw.strip(), find_problem(self.content, self.raw.strip()))

    def _read_marker(self, marker: str) -> Steps[WriterEvent]:
        if self._is_own_marker(marker):
            return
        if self.state is not None:
            yield from self._close_text()
            if self.cut:
                return
        legal = self._find_next_states().states
        if marker in legal:
            yield from self._begin_state(legal[marker])
            return
        refused = self.monitor.why(self.markers.states[marker][0])
        yield from self._correct_marker(marker, refused.reason if refused is not None else "it cannot come now")

    def _close_text(self) -> Steps[WriterEvent]:
        assert self.state is not None
        text = self.markers.restore(self.raw.strip())
        wrong = find_problem(self.content, text)
        if wrong:
            yield from self._correct_text(text, wrong)
            return
        only = isinstance(self.content, OneOf) and len(self.content.texts) == 1
        segment = Segment(self.state, text, "forced" if only else "model")
        self.monitor = self.before.after(segment.event)
        yield segment
        self.state, self.prefix, self.raw, self.tokens, self.corrected = None, None, "", 0, 0

    def _handle_model_end(self) -> Steps[WriterEvent]:
        asked = None if self.state is not None else self.prefix
        if self.state is not None:
            yield from self._close_text()
            if self.cut:
                return
        following = self._find_next_states()
        if (due := self._find_due_at_end(following)) is not None:
            self._end_run(due)
        elif following.may_end and not asked:
            self._end_run()
        elif self.prefix is not None:
            yield from self._correct_marker("", "a marker comes first")
        elif following.world:  # there its text has to end
            self._end_run(following.world)
        else:
            refused = self.monitor.why()
            yield from self._insert_marker_prefix("", refused.reason if refused is not None else "it cannot end here")

    # -- corrections --------------------------------------------------------------------------------------------

    def _insert_marker_prefix(self, written: str, reason: str) -> Steps[WriterEvent]:
        """Put there how all legal markers begin."""
        following = self._find_next_states()
        prefix = self._get_put_prefix(following)
        done = "" if following.world and len(following.world) > 1 else prefix
        yield Correction(len(self.transcript), written, following.markers, done, reason)
        if following.states:
            self._start_between_states(prefix)
            self._note_problem(reason)
        else:
            self._end_run()

    def _correct_marker(self, written: str, reason: str) -> Steps[WriterEvent]:
        """Between two states came what is no legal marker."""
        following, put = self._find_next_states(), self.prefix or ""
        if not following.states or self._may_put_prefix(following):
            yield from self._insert_marker_prefix(written, reason)
            return
        marker = None
        if "choose" in self.writer.llm.can:
            so_far = self.transcript.to_text(self.markers)
            ends = (self.writer.phrases.end,) if following.may_end else ()
            place = yield from self._choose_option(so_far, self.writer.phrases.next, (*following.markers, *ends))
            if place is not None:
                marker = (*following.markers, "")[place]
        if marker is None:
            begun = max((find_common_prefix((written.lstrip(), one)) for one in following.states), key=len)
            longer = find_common_prefix(one for one in following.states if one.startswith(begun))
            marker = longer if self.continues_words and len(longer) > len(put) else following.shortest
        rejected = "" if written == put else written
        yield Correction(len(self.transcript), rejected, following.markers, marker, reason)
        if marker in following.states:
            self._start_between_states(None)
            yield from self._begin_state(following.states[marker])
        elif marker:
            self._start_between_states(marker)
        else:
            self._end_run()

    def _correct_text(self, text: str, reason: str) -> Steps[WriterEvent]:
        """The text of a state is not what it may be: it is written anew."""
        assert self.state is not None
        legal: tuple[str, ...] = ()
        put, corrected, place = "", self.corrected + 1, None
        if isinstance(self.content, OneOf):
            legal, marker = self.content.texts, self.markers.marker(self.state) or ""
            if "choose" in self.writer.llm.can:
                so_far, asked = self.transcript.to_text(self.markers) + marker, self.writer.phrases.among
                place = yield from self._choose_option(so_far, asked.replace("{marker}", marker), legal)
            begun = max((find_common_prefix((text, one)) for one in legal), key=len)
            put = find_common_prefix(one for one in legal if one.startswith(begun)) if place is None else legal[place]
            if place is None and len(put) <= len(self.kept):
                raise WritingError(f"the text of {self.state} is wrong: {reason}", self.state, text, legal)
        elif corrected > self.bounds.corrections:
            what = f"the text of {self.state} was wrong {corrected} times: {reason}"
            raise WritingError(what, self.state, text)
        yield Correction(len(self.transcript), text, legal, put, reason)
        yield SegmentBegan(self.state)
        self._restart_text()
        self.raw = self.kept = put
        self.corrected = corrected
        self._note_problem(reason, text)
        if put:
            yield Text(put)
        if place is not None:
            yield from self._close_text()
            self._start_between_states(None)

    def _choose_option(self, so_far: str, asked: str, options: Sequence[str]) -> Going[WriterEvent | Step, int | None]:
        """What the model chooses; None where it does not answer the question."""
        if len(options) == 1:
            return 0
        try:
            return (yield from self._ask_choice(self.state or "", so_far, asked, options))
        except InvalidAnswer as error:
            yield Spent.from_tokens(self.state or "", error.usage or TokenUsage(1), questions=1)
            return None


class ContinuingWriter(MarkedWriter):
    """Has a model that continues a text write the states of an agent; see ``MarkedWriter`` for how it is made.

    A model that also answers questions is asked one where it does not find a legal way by itself. What is streamed is
    closed as soon as it is cut.

    Raises:
        WritesNoText: the model does not continue a text.
    """

    needs = "continue"

    def _get_run_type(self) -> type[WriterRun]:
        return ContinuingRun
