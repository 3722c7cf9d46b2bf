"""Conversations with an agent.

Most agents answer and end: each message is a run of its own, which is shown the runs before. A behaviour that never
ends by itself, ``(always (next Chat-Bot User))``, is one run over all messages: the person writes the state ``[User]``,
and only the person ends it.

What an agent is shown of earlier messages is bounded by a memory, of which its rules know nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import asdict, dataclass
from typing import cast

from formal_llm.agents.agent import Agent
from formal_llm.agents.decoding.steps import driven
from formal_llm.agents.running import Run
from formal_llm.agents.transcript import Transcript
from formal_llm.agents.worlds import PersonDue
from formal_llm.errors import AgentError, WritingError
from formal_llm.llms.generation import Writing
from formal_llm.llms.llm import answered
from formal_llm.planning.plans.usage import Usage


@dataclass(frozen=True, slots=True)
class TurnWindow:
    """A memory of the latest turns, as they were.

    Attributes:
        turns: how many of them.

    Raises:
        ValueError: the number of turns is negative.
    """

    turns: int = 20

    def __post_init__(self) -> None:
        if self.turns < 0:
            raise ValueError(f"the number of turns that are shown is 0 or more, not {self.turns}")


@dataclass(frozen=True, slots=True)
class TurnSummary:
    """A memory of everything: where the turns become too long, the model summarises the older ones.

    The latest turns that fit in half of the room are shown as they were, the summary has the other half. A token is
    counted as four characters.

    Attributes:
        tokens: the maximum number of tokens that are shown.

    Raises:
        ValueError: there is no room for a summary.
    """

    tokens: int = 2_000

    def __post_init__(self) -> None:
        if self.tokens < 2:
            raise ValueError(f"a summary needs room, at least 2 tokens, not {self.tokens}")


SUMMARY = """The earlier part of a conversation is to be summarised for those who continue it. Keep names, numbers, \
decisions, what is still open, and what the person wants. Write at most {words} words, and nothing but the summary.

{earlier}"""
#: The number of characters that count as a token, and of tokens that count as a word.
_CHARACTERS, _TOKENS = 4, 1.5


class Conversation:
    """A conversation with an agent, such as the shipped ``chat-bot`` and ``chat-bot-endless``.

    Args:
        most: how many of the latest turns to show to the agent: short for ``memory=TurnWindow(most)``.
        memory: what is shown of earlier turns, where each is a run of its own: a :class:`TurnWindow` or a
            :class:`TurnSummary`.

    Attributes:
        turns: the runs so far: one for each message, or one alone where the behaviour never ends by itself.
        run: the run of the latest message; None before the first one.
        summary: the summary of the turns that are not shown; empty if there is none.

    Raises:
        ValueError: the behaviour never ends by itself, and the memory is a summary; ``most`` is negative.
    """

    def __init__(self, agent: Agent, *, most: int = 20, memory: TurnWindow | TurnSummary | None = None) -> None:
        self.memory = memory if memory is not None else TurnWindow(most)
        if agent.behaviour.endless and isinstance(memory, TurnSummary):
            raise ValueError(f"{agent.behaviour.name} is one run over all messages, of which no summary is made")
        self.agent = agent
        self.summary = ""
        self._summarised = 0  # the number of turns that the summary is of
        self._spent = Usage()
        self.turns: tuple[Transcript, ...] = ()
        self.run: Run | None = None
        self._steps: Generator[object] | None = None
        self._due: PersonDue | None = None

    def say(self, text: str) -> Transcript:
        """Send a message and return the run that answers it, whose last text is the answer.

        A run that fails is not recorded as a turn. Where all messages are one run, its failure is the end of the
        conversation.

        Raises:
            AgentError: the conversation has ended; as for :meth:`Agent.run`.
            LLMError: as for :meth:`Agent.run`.
        """
        if not self.agent.behaviour.endless:
            self.run = self.agent.start(text, before=self._recall_turns())
            self.turns = (*self.turns, self.run.run_to_end())
            return self.turns[-1]
        if self._steps is None:
            self.start()
        if self._due is None:
            raise AgentError("the conversation has ended; begin another one: Conversation(agent)")
        self._due.text = text
        return self._continue_run()

    @property
    def usage(self) -> Usage:
        """The usage of all turns and summaries."""
        return sum((turn.usage for turn in self.turns), self._spent)

    def _recall_turns(self) -> list[Transcript | str]:
        """What is shown of earlier turns; a summary is made where they have become too long."""
        if isinstance(self.memory, TurnWindow):
            return [*self.turns[max(0, len(self.turns) - self.memory.turns) :]]
        room = self.memory.tokens * _CHARACTERS
        texts = [turn.to_text(self.agent.behaviour) for turn in self.turns]
        if len(self.summary) + sum(map(len, texts[self._summarised :])) > room:
            first = len(texts)
            while first > self._summarised and sum(map(len, texts[first - 1 :])) <= room // 2:
                first -= 1
            self.summary = self._summarise_turns(
                [self.summary, *texts[self._summarised : first]], self.memory.tokens // 2
            )
            self._summarised = first
        return [*([f"{self.summary}\n"] if self.summary else []), *self.turns[self._summarised :]]

    def _summarise_turns(self, texts: list[str], tokens: int) -> str:
        """Have the model write a summary.

        Raises:
            WritingError: it writes none.
        """
        prompt = SUMMARY.format(words=max(1, int(tokens / _TOKENS)), earlier="\n".join(filter(None, texts)))
        answer = answered(self.agent.llm, Writing(prompt, max_tokens=tokens))
        self._spent += Usage(**asdict(answer.usage)) if answer.usage is not None else Usage(requests=1)
        text = answer.text.strip()
        if not text:
            raise WritingError(
                f"the model wrote no summary of the conversation{f': {answer.stopped}' * bool(answer.stopped)}"
            )
        return text[: tokens * _CHARACTERS]

    def start(self) -> Transcript:
        """Have the agent write what comes before the first message, where all messages are one run.

        Raises:
            AgentError: the conversation has begun; each message is a run of its own; as for :meth:`Agent.run`.
            LLMError: as for :meth:`Agent.run`.
        """
        if self._steps is not None or not self.agent.behaviour.endless:
            raise AgentError("there is nothing to start: the conversation has begun, or each message is a run")
        self.run = self.agent.start("")
        self._steps = driven(self.run.steps(), self.agent.llm)
        return self._continue_run()

    def close(self) -> None:
        """End the conversation. What was said is the beginning of a word of the behaviour, or a word."""
        self._due = None
        if self._steps is not None:
            self._steps.close()

    def _continue_run(self) -> Transcript:
        """Take the steps of the run up to the next message."""
        assert self._steps is not None and self.run is not None
        self._due = None
        self._due = cast("PersonDue | None", next(self._steps, None))
        self.turns = (self.run.transcript,)
        return self.run.transcript
