"""What writes the states of the environment: what tools gave, what a person says, a judgement by the model.

Those of the published agents beyond these are in :mod:`formal_llm.agents.published`.

In PASS (Crouse et al. 2023, arXiv 2310.08535) the actions of a round come at once, and one summary of what they gave.
The model writes a summary, and the text with the highest score is taken: the summary or the results as they are. The
score is the log-probability of the text behind the run so far, over a length penalty (Wu et al. 2016)::

    log p(y | x) / ((5 + |y|)^alpha / (5 + 1)^alpha)        |y| tokens

Alpha 0 favours short texts. The paper states no alpha; 0.3 is that of the code released with it.

A model that gives no log-probabilities (most hosted ones) chooses among the texts by number. That is another score:
what a model likes, not what it would have written.

Without the summariser (the ablation of the paper, ``pass-no-summarizer``) the results come as a numbered list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from formal_llm.agents.decoding.steps import Asks, Do, Step
from formal_llm.agents.decoding.writer import build_chat
from formal_llm.agents.published.rewoo import solve
from formal_llm.agents.roles import World
from formal_llm.agents.run_events import ToolCall
from formal_llm.agents.running import Run
from formal_llm.agents.tool_calls import ERROR
from formal_llm.automata import Limits
from formal_llm.errors import AgentError, NotAllowed
from formal_llm.llms.question import Question

REQUEST = """Summarise what some actions gave, for somebody who answers a question with it. Keep names and numbers. \
Where an action failed, say so.

Question: {question}
Thought: {thought}

{results}

Write the summary alone, in one to three sentences."""
#: How many rounds in a row may take no action. After the last of them the thoughts end.
EMPTY_ROUNDS = 2


def normalise_score(log_probability: float, tokens: int, alpha: float) -> float:
    """The score of a text: its log-probability over the length penalty of Wu et al. 2016."""
    return log_probability / float((5 + tokens) ** alpha / 6**alpha)


def list_results(run: Run) -> Asks[str]:
    """Carry out the actions of a round, and list their results: PASS without its summariser."""
    calls = yield from _carry_out(run)
    return _list_outputs(calls) if calls else _end_empty_round(run)


@dataclass(frozen=True, slots=True)
class Summarise:
    """Carries out the actions of a round and summarises their results, or takes them as they are.

    Attributes:
        candidates: how many summaries are written; the paper writes one.
        alpha: how much length is discounted.
        temperature: at which the summaries behind the first are written.
    """

    candidates: int = 1
    alpha: float = 0.3
    temperature: float = 0.7

    def __post_init__(self) -> None:
        if self.candidates < 1:
            raise ValueError(
                f"there is one summary at least, not {self.candidates}; without summaries take "
                "the agent pass-no-summarizer, or worlds={'[Summary]': list_results}"
            )

    def __call__(self, run: Run) -> Asks[str]:
        """The summary."""
        calls = yield from _carry_out(run)
        if not calls:
            return _end_empty_round(run)
        tool_states = run.settings.roles.action, run.settings.roles.input
        thought = next((one.text for one in reversed(run.segments) if one.state not in tool_states), "")
        results = "\n\n".join(f"{call.tool}[{call.input}]\n{call.output}" for call in calls)
        asked = REQUEST.format(question=run.question, thought=thought, results=results)
        texts: dict[str, None] = {}
        for number in range(self.candidates):
            text = yield from run.write(asked, temperature=self.temperature if number else 0.0)
            texts |= {text: None} if text else {}
        return (yield from self._choose_best(run, [*(texts | {_list_outputs(calls): None})]))

    def _choose_best(self, run: Run, texts: list[str]) -> Asks[str]:
        if len(texts) < 2:
            return texts[0]
        behaviour = run.settings.rules.behaviour
        so_far = f"{run.transcript.to_text(behaviour)}{behaviour.states[run.writing].text}"
        scored: Sequence[tuple[float, int]] | None = None
        if "score" in run.llm.can:
            scored = yield Do(partial(run.llm.log_probabilities, build_chat(run.prompt, so_far), texts))
        if scored is not None:
            scores = [normalise_score(*one, self.alpha) for one in scored]
            return texts[scores.index(max(scores))]
        prompt = f"{so_far}\n\nWhich of these texts is the best there?"
        number = yield from run.choose(Question(prompt, texts, task=run.question))
        return texts[number - 1]


def _carry_out(run: Run) -> Asks[list[ToolCall]]:
    calls = yield from run.carry_out(run.list_actions())
    return [run.record_call(call) for call in calls]


def _list_outputs(calls: Sequence[ToolCall]) -> str:
    return "\n".join(f"{number}. {call.output}" for number, call in enumerate(calls, 1))


def _end_empty_round(run: Run) -> str:
    """Report a round without any action. After too many in a row, what begins such a round may not come again."""
    states = run.transcript.word
    empty, place = 1, len(states) - 2
    while place > 0 and (states[place - 1], states[place]) == (states[-1], run.writing):
        empty, place = empty + 1, place - 2
    none = f"{ERROR}no action was taken, so there is nothing to summarise."
    if empty < EMPTY_ROUNDS or not states:
        return none
    begins = states[-1]
    try:
        run.narrow(Limits({begins: states.count(begins)}))
    except NotAllowed:
        return none  # the rules want more rounds
    return f"{none} That is so of {empty} rounds in a row, the most that may be: no further one begins."


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
