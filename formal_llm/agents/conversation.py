"""A conversation: several runs of one agent, each shown what was said before."""

from __future__ import annotations

from formal_llm.agents.agent import Agent
from formal_llm.agents.transcript import Transcript


class Conversation:
    """A conversation with an agent, such as the shipped ``chat-bot``.

    Args:
        agent: the agent. Each turn is a run of its own: a word of its behaviour.
        most: how many turns it is shown, the latest.

    Attributes:
        turns: the runs so far.

    Raises:
        ValueError: a negative number of turns.
    """

    def __init__(self, agent: Agent, *, most: int = 20) -> None:
        if most < 0:
            raise ValueError(f"the number of turns that are shown is 0 or more, not {most}")
        self.agent = agent
        self.most = most
        self.turns: tuple[Transcript, ...] = ()

    def say(self, text: str) -> Transcript:
        """Say something; the run that answers it. A run that breaks off is no turn.

        Raises:
            AgentError, LLMError: as of :meth:`Agent.run`.
        """
        made = self.agent.start(text, before=self.turns[max(0, len(self.turns) - self.most) :]).run_to_end()
        self.turns = (*self.turns, made)
        return made
