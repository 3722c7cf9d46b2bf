"""What the environment writes: observations, summaries, evaluations, solutions.

Each is a function of the run so far. Which one writes a state is told by its marker.
"""

from __future__ import annotations

from collections.abc import Mapping

from formal_llm.agents.decoding.steps import Asks
from formal_llm.agents.published.rewoo import solve
from formal_llm.agents.published.summaries import Summarise
from formal_llm.agents.roles import World
from formal_llm.agents.running import Run
from formal_llm.agents.tool_calls import ERROR


def observe(run: Run) -> Asks[str]:
    """An observation: what the tool of the last action returns for the last input."""
    asked = run.list_actions()
    if not asked:
        return f"{ERROR}no action with an input stands before this observation"
    (call,) = yield from run.carry_out(asked[-1:])
    return run.record_call(call).output


EVALUATION = """A proposed answer to a question is to be judged, by what was observed alone.

Question: {question}

{trace}

Is the proposed answer right, and does it follow from what was observed? Write one or two sentences; begin with Right, \
Wrong or Unsure."""


def evaluate(run: Run) -> Asks[str]:
    """An evaluation by the model itself, of what it wrote and observed. It is shown no right answer."""
    behaviour = run.settings.rules.behaviour
    trace = "\n".join(f"{behaviour.states[one.state].text} {one.text}" for one in run.segments if one.source != "user")
    return (yield from run.write(EVALUATION.format(question=run.question, trace=trace))) or "Unsure."


#: What writes the states of the environment, by their markers.
WORLDS: Mapping[str, World] = {
    "[Observation]": observe,
    "[Summary]": Summarise(),
    "[Evaluation]": evaluate,
    "[Answer]": solve,
}
