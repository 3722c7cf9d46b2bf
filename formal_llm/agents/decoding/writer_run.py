"""One run of a writer: what those that go on with a text and those that choose have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

from formal_llm.agents.decoding.contents import Content
from formal_llm.agents.decoding.manner import WritingConfig, build_question
from formal_llm.agents.decoding.next_states import NextStates, find_next_states
from formal_llm.agents.decoding.steps import Going, IncomingText, Step, Steps, relay_steps
from formal_llm.agents.decoding.writer import ContentOf, Spent, Told, added, content_of
from formal_llm.agents.monitor import Monitor
from formal_llm.agents.transcript import Transcript
from formal_llm.llms.generation import Writing
from formal_llm.llms.llm import asking
from formal_llm.planning.plans.usage import Usage

#: That a marker was put there, since no other one was legal.
FORCED = Spent("", Usage(forced=1))


class WriterRun(ABC):
    """A run that goes on where a transcript ends.

    Attributes:
        transcript: what stands there so far.
        monitor: where the rules stand behind it.
        until: the states that the world writes.
    """

    def __init__(
        self,
        how: WritingConfig,
        transcript: Transcript,
        monitor: Monitor,
        until: frozenset[str],
        contents: Mapping[str, ContentOf],
    ) -> None:
        self.how, self.markers, self.bounds = how, how.markers, how.bounds
        self.transcript, self.monitor, self.until, self._contents = transcript, monitor, until, contents
        self._requests = 0

    def relay_to_end(self) -> Steps[Told]:
        """Go on to the end, or to where the world goes on; what is told stands in the transcript."""
        return relay_steps(self._generate_steps(), self._record_step)

    def _record_step(self, told: Told | Step) -> bool:
        if not isinstance(told, Step):
            self.transcript = added(self.transcript, told)
        return True

    @abstractmethod
    def _generate_steps(self) -> Steps[Told]:
        """What is told and asked for."""

    def _find_next_states(self) -> NextStates:
        return find_next_states(self.monitor, self.markers, self.until)

    def _get_content(self, state: str) -> Content:
        return content_of(self._contents, state, self.transcript)

    def _count_request(self, state: str) -> None:
        """Count one more request.

        Raises:
            WritingError: there were too many.
        """
        self._requests = max(self._requests, self.transcript.usage.requests) + 1  # not all models count theirs
        if self._requests > self.bounds.requests:
            raise self.bounds.make_request_error(state)

    def _open_text(self, asked: Writing) -> IncomingText:
        return IncomingText(asked, streaming=self.how.streaming)

    def _ask_choice(self, state: str, so_far: str, asked: str, options: Iterable[str]) -> Going[Told | Step, int]:
        """The place of the option that the model chooses, from 0.

        Raises:
            InvalidAnswer: it answers something else, again and again.
        """
        answer = yield from asking(build_question(so_far, asked, options, self.how))
        yield Spent.from_tokens(state, answer.usage, questions=1)
        return answer.number - 1
