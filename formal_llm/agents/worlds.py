"""What writes the states of the environment: what tools gave, what a person says, a judgement by the model.

Those of the published agents beyond these are in :mod:`formal_llm.agents.published`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from formal_llm.agents.decoding.steps import Asks, Step
from formal_llm.agents.published.rewoo import solve
from formal_llm.agents.published.summaries import Summarise, list_results
from formal_llm.agents.roles import World
from formal_llm.agents.running import Run
from formal_llm.agents.tool_calls import ERROR
from formal_llm.errors import AgentError


@dataclass(slots=True)
class PersonDue:
    """A run waits for what a person writes; whoever drives it puts the text here.

    Attributes:
        text: the text; None while it has not come.
    """

    text: str | None = None


def await_person(run: Run) -> Asks[str]:
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


def observe(run: Run) -> Asks[str]:
    """Write an observation: the output of the tool that was called; of several, each after its call."""
    actions = run.list_actions()
    if not actions:
        return f"{ERROR}no action with an input stands before this observation"
    calls = [run.record_call(call) for call in (yield from run.carry_out(actions))]
    if len(calls) == 1:
        return calls[0].output
    return "\n\n".join(f"{call.tool}({call.input}):\n{call.output}" for call in calls)


EVALUATION = """A proposed answer to a question is to be judged, by what was observed alone.

Question: {question}

{trace}

Is the proposed answer right, and does it follow from what was observed? Write one or two sentences; begin with Right, \
Wrong or Unsure."""


def evaluate(run: Run) -> Asks[str]:
    """Write an evaluation: the model judges what it wrote and observed, without seeing the correct answer."""
    behaviour = run.settings.rules.behaviour
    trace = "\n".join(f"{behaviour.states[one.state].text} {one.text}" for one in run.segments if one.source != "user")
    return (yield from run.write(EVALUATION.format(question=run.question, trace=trace))) or "Unsure."


#: The functions that write the environment's states, by marker or by the name of the state.
WORLDS: Mapping[str, World] = {
    "[Observation]": observe,
    "[Summary]": Summarise(),
    "List-Results": list_results,
    "[User]": await_person,
    "[Evaluation]": evaluate,
    "[Answer]": solve,
}
