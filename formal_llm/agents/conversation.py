"""Conversations with an agent.

Most agents answer and end: each message is a run of its own, which is shown the runs before. A behaviour that never
ends by itself, ``(always (next Chat-Bot User))``, is one run over all messages: the person writes the state ``[User]``,
and only the person ends it.

What an agent is shown of earlier messages is bounded by a memory, of which its rules know nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import cast

from formal_llm.agents.agent import Agent
from formal_llm.agents.decoding.steps import driven
from formal_llm.agents.running import Run
from formal_llm.agents.transcript import Transcript
from formal_llm.agents.worlds import PersonDue
from formal_llm.errors import AgentError
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


class Conversation:
    """A conversation with an agent, such as the shipped ``chat-bot`` and ``chat-bot-endless``.

    Args:
        most: how many of the latest turns to show to the agent: short for ``memory=TurnWindow(most)``.
        memory: what is shown of earlier turns, where each is a run of its own.

    Attributes:
        turns: the runs so far: one for each message, or one alone where the behaviour never ends by itself.
        run: the run of the latest message; None before the first one.

    Raises:
        ValueError: ``most`` is negative.
    """

    def __init__(self, agent: Agent, *, most: int = 20, memory: TurnWindow | None = None) -> None:
        self.memory = memory if memory is not None else TurnWindow(most)
        self.agent = agent
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
        """The usage of all turns."""
        return sum((turn.usage for turn in self.turns), Usage())

    def _recall_turns(self) -> list[Transcript | str]:
        """What is shown of earlier turns."""
        return [*self.turns[max(0, len(self.turns) - self.memory.turns) :]]

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
