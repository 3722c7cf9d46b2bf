"""What a person writes in a run: it comes from outside while the run goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from formal_llm.agents.decoding.steps import Asks, Step
from formal_llm.agents.running import Run
from formal_llm.errors import AgentError


@dataclass(slots=True)
class PersonDue:
    """A run waits for what a person writes; whoever drives it puts the text here.

    Attributes:
        text: the text; None while it has not come.
    """

    text: str | None = None


def hear(run: Run) -> Asks[str]:
    """Write what a person says.

    Raises:
        AgentError: nobody is there to say it: no conversation drives the run.
    """
    due = PersonDue()
    yield cast("Step", due)  # no request: it passes through the driver to the conversation
    if due.text is None:
        raise AgentError(
            f"{run.transcript.agent} waits for what a person says; run it by Conversation(agent).say(...), or give "
            "the agent a function that writes the state: worlds={'[User]': ...}"
        )
    return due.text
