"""PASS (Crouse et al. 2023, arXiv 2310.08535): the actions of a round at once, and one summary of what they gave.

Several summaries are written, and the one with the highest score is taken: its log-probability over its length to the
power of alpha (the length penalty of Wu et al. 2016). Alpha 0 favours the short ones, 1 is the mean of a token.

A model that gives no log-probabilities (most hosted ones) chooses among them by number. That is another score, and
reported
so here: taking the first or the shortest would be one that was not asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from formal_llm.agents.decoding.steps import Asks, Do
from formal_llm.agents.running import Run
from formal_llm.agents.tool_calls import ERROR
from formal_llm.llms.generation import ScoringLLM
from formal_llm.llms.question import Question

REQUEST = """Summarise what some actions gave, for somebody who answers a question with it. Keep names and numbers. \
Where an action failed, say so.

Question: {question}
Thought: {thought}

{results}

Write the summary alone, in one to three sentences."""


def normalised(log_probability: float, tokens: int, alpha: float) -> float:
    """The score of a text: its log-probability over its length to the power of alpha."""
    return log_probability / float(max(1, tokens) ** alpha)


@dataclass(frozen=True, slots=True)
class Summarise:
    """Carries out the actions of a round and summarises their results.

    Attributes:
        candidates: how many summaries are written. With 1 there is nothing to choose.
        alpha: how much length is discounted.
        temperature: at which the summaries behind the first are written.
    """

    candidates: int = 3
    alpha: float = 0.7
    temperature: float = 0.7

    def __post_init__(self) -> None:
        if self.candidates < 1:
            raise ValueError(f"there is one summary at least, not {self.candidates}")

    def __call__(self, run: Run) -> Asks[str]:
        """The summary."""
        made = yield from run.carry_out(run.list_actions())
        calls = [run.record_call(call) for call in made]
        if not calls:
            return f"{ERROR}no action was taken, so there is nothing to summarise."
        thought = next((one.text for one in reversed(run.segments) if one.state not in _list_tool_states(run)), "")
        results = "\n\n".join(f"{call.tool}[{call.input}]\n{call.output}" for call in calls)
        asked = REQUEST.format(question=run.question, thought=thought, results=results)
        written: dict[str, None] = {}
        for number in range(self.candidates):
            text = yield from run.write(asked, temperature=self.temperature if number else 0.0)
            written |= {text: None} if text else {}
        return (yield from self._choose_best(run, asked, list(written)))

    def _choose_best(self, run: Run, asked: str, texts: list[str]) -> Asks[str]:
        if len(texts) < 2:
            return texts[0] if texts else "The summary is empty."
        scored: Sequence[tuple[float, int]] | None = None
        if isinstance(run.llm, ScoringLLM):
            scored = yield Do(partial(run.llm.log_probabilities, asked, texts))
        if scored is not None:
            scores = [normalised(*one, self.alpha) for one in scored]
            return texts[scores.index(max(scores))]
        prompt = f"{asked}\n\nWhich of these summaries is the best?"
        number = yield from run.choose(Question(prompt, texts, task=run.question))
        return texts[number - 1]


def _list_tool_states(run: Run) -> tuple[str | None, ...]:
    return run.settings.roles.action, run.settings.roles.input
