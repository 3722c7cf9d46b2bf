"""Several runs for one question: self-consistency, and an agent where no answer repeats.

Self-consistency (Wang et al. 2022, arXiv 2203.11171) asks k times and takes the answer that comes most often. "Chain of
thought, then an agent" (Yao et al. 2023, arXiv 2210.03629) asks an agent with tools where no answer comes twice.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from formal_llm.agents.agent import Agent
from formal_llm.agents.many import AgentOutcome
from formal_llm.agents.transcript import Transcript
from formal_llm.planning.plans.usage import Usage

#: How an answer is compared with others.
Normal = Callable[[str], str]
#: How often a question is asked.
K = 5


def normalise_answer(answer: str) -> str:
    """An answer as it is compared: its words and numbers in small letters, without articles."""
    words = re.findall(r"\w+(?:[.,]\d+)*", answer.casefold())
    return " ".join(word for word in words if word not in ("a", "an", "the"))


@dataclass(frozen=True, slots=True)
class Vote:
    """What several runs answered.

    Attributes:
        answer: the answer that came most often, as it was written first; empty where no run gave one.
        count: how often it came.
        tied: other answers that came as often, as they were written first: then the one that came first was taken.
        transcripts: the runs that came to an end.
        after: the run of the agent that was asked since no answer came twice; None where it was not.
        error: where there is no answer, why.
    """

    answer: str
    count: int
    tied: tuple[str, ...]
    transcripts: tuple[Transcript, ...]
    after: Transcript | None = None
    error: Exception | None = None

    @property
    def usage(self) -> Usage:
        """What all runs took."""
        runs = (*self.transcripts, *([self.after] if self.after is not None else []))
        return sum((one.usage for one in runs), Usage())

    @property
    def agreed(self) -> bool:
        """Whether an answer came twice or more."""
        return self.count > 1


def vote(transcripts: Iterable[Transcript], normal: Normal = normalise_answer) -> Vote:
    """The answer that comes most often; of several, the one that came first, and the others are reported."""
    runs = tuple(transcripts)
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for run in runs:
        if key := normal(run.answer):
            first.setdefault(key, run.answer)
            counts[key] += 1
    if not counts:
        return Vote("", 0, (), runs)
    most = max(counts.values())
    best, *tied = [key for key in first if counts[key] == most]
    return Vote(first[best], most, tuple(first[key] for key in tied), runs)


class SelfConsistency:
    """An agent that is asked several times.

    Args:
        agent: the agent; it has to write with some chance (a temperature above 0), or all its answers are one.
        k: how often it is asked.
        then: who is asked where no answer comes twice.
        normal: how answers are compared.

    Warns:
        UserWarning: the agent writes at temperature 0, and is asked several times.

    Raises:
        ValueError: ``k`` is below 1.
    """

    def __init__(
        self, agent: Agent, k: int = K, *, then: Agent | None = None, normal: Normal = normalise_answer
    ) -> None:
        if k < 1:
            raise ValueError(f"a question is asked once at least, not {k} times")
        if k > 1 and not agent.temperature:
            warnings.warn(
                f"at temperature 0 the {k} answers to a question are the same, so the vote shows nothing; give "
                "the agent a temperature: Agent(..., temperature=0.7), or --temperature 0.7",
                stacklevel=2,
            )
        self.agent, self.k, self.then, self.normal = agent, k, then, normal

    def run(self, question: str) -> Vote:
        """The vote on a question.

        Raises:
            AgentError, LLMError: as of :meth:`Agent.run`, where no run came to an end.
        """
        found = self.run_all([question])[0]
        if found.error is not None:
            raise found.error
        return found

    def run_all(
        self, questions: Sequence[str], *, concurrency: int | None = None, results: Path | None = None
    ) -> list[Vote]:
        """The votes on many questions; one without any answer has an ``error``.

        Args:
            questions: the questions.
            concurrency: as of :meth:`Agent.run_all`.
            results: where the results files of the runs are, less their ends ``.votes.jsonl`` and ``.then.jsonl``.
        """
        asked = [question for question in questions for _ in range(self.k)]
        outcomes = self.agent.run_all(asked, concurrency=concurrency, results=_name_results_file(results, "votes"))
        votes = [self._count_votes(outcomes[at : at + self.k]) for at in range(0, len(asked), self.k)]
        open_ = [place for place, found in enumerate(votes) if not found.agreed]
        if self.then is not None and open_:
            left = [questions[place] for place in open_]
            after = self.then.run_all(left, concurrency=concurrency, results=_name_results_file(results, "then"))
            for place, outcome in zip(open_, after, strict=True):
                run, old = outcome.transcript, votes[place]
                answer = run.answer if outcome.error is None else ""
                votes[place] = Vote(answer, old.count, (), old.transcripts, run, outcome.error)
        return votes

    def _count_votes(self, outcomes: Sequence[AgentOutcome]) -> Vote:
        whole = [outcome.transcript for outcome in outcomes if outcome.error is None]
        return vote(whole, self.normal) if whole else Vote("", 0, (), (), error=outcomes[0].error)


def _name_results_file(results: Path | None, what: str) -> Path | None:
    return None if results is None else results.with_name(f"{results.name}.{what}.jsonl")
