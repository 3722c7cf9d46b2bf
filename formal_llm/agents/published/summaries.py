"""PASS (Crouse et al. 2023, arXiv 2310.08535): the actions of a round at once, and one summary of what they gave.

Several summaries are written, and the one with the highest score is taken: its log-probability over its length to the
power of alpha (the length penalty of Wu et al. 2016). Alpha 0 favours the short ones, 1 is the mean of a token.

A model that gives no log-probabilities (most hosted ones) chooses among them by number. That is another score, and told
so here: taking the first or the shortest would be one that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from formal_llm.agents.running import Run
from formal_llm.agents.tool_calls import ERROR
from formal_llm.llms.question import Message, Question

_WORKERS = 8

REQUEST = """Summarise what some actions gave, for somebody who answers a question with it. Keep names and numbers. \
Where an action failed, say so.

Question: {question}
Thought: {thought}

{results}

Write the summary alone, in one to three sentences."""


@runtime_checkable
class ScoringLLM(Protocol):
    """A model that tells how probable texts are."""

    def log_probabilities(self, messages: Sequence[Message], texts: Sequence[str]) -> Sequence[tuple[float, int]]:
        """For each text the logarithm of its probability as the answer to a chat, and its number of tokens."""
        ...


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

    def __call__(self, run: Run) -> str:
        """The summary."""
        actions = run.actions()
        alone = [one for one in actions if not one.refused and run.toolkit[one.tool].deterministic]
        with ThreadPoolExecutor(_WORKERS, thread_name_prefix="formal-llm-action") as pool:
            together = dict(zip(map(id, alone), pool.map(run.outcome, alone), strict=True))
        calls = [run.note(together.get(id(one)) or run.outcome(one)) for one in actions]
        if not calls:
            return f"{ERROR}no action was taken, so there is nothing to summarise."
        thought = next((one.text for one in reversed(run.segments) if one.state not in _of_tools(run)), "")
        results = "\n\n".join(f"{call.tool}[{call.input}]\n{call.output}" for call in calls)
        asked = REQUEST.format(question=run.question, thought=thought, results=results)
        written = [
            run.write(asked, temperature=self.temperature if number else 0.0) for number in range(self.candidates)
        ]
        return self._best(run, asked, list(dict.fromkeys(text for text in written if text)))

    def _best(self, run: Run, asked: str, texts: list[str]) -> str:
        if len(texts) < 2:
            return texts[0] if texts else "The summary is empty."
        if isinstance(run.llm, ScoringLLM):
            scored = run.llm.log_probabilities([Message("user", asked)], texts)
            scores = [normalised(*one, self.alpha) for one in scored]
            return texts[scores.index(max(scores))]
        prompt = f"{asked}\n\nWhich of these summaries is the best?"
        return texts[run.choose(Question(prompt, texts, task=run.question)) - 1]


def _of_tools(run: Run) -> tuple[str | None, ...]:
    return run.settings.roles.action, run.settings.roles.input
