"""The benchmark of agents on questions: how often each is right, and how much it used.

Every run is a line in a results file in the folder of the benchmark, so that an interrupted benchmark can be resumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from formal_llm import authored
from formal_llm.agents.agent import Agent, Tools
from formal_llm.agents.many import AgentOutcome
from formal_llm.agents.transcript import Transcript
from formal_llm.agents.voting import SelfConsistency
from formal_llm.authored.tables import Items, Keys, NamedEntries, read_toml
from formal_llm.llms.llm import LLM
from formal_llm.packs.questions.loading import QuizQuestion
from formal_llm.packs.questions.scoring import mean_score, score_answer
from formal_llm.planning.plans.usage import Usage

_SHAPE = Keys(
    {
        "tables": Items(
            Keys(
                {
                    "source": str,
                    "model": str,
                    "measures": NamedEntries(str),
                    "notes": Items(str),
                    "rows": NamedEntries(NamedEntries(float)),
                },
                needed=("source", "model", "measures", "rows"),
            )
        )
    },
    needed=("tables",),
)


@dataclass(frozen=True)
class PublishedTable:
    """A table of a paper.

    Attributes:
        source: the paper and the number of the table.
        measures: for each data set, the measure of its figures, in percent.
        rows: for each method, its figure on each data set.
        notes: the differences from our own figures.
    """

    source: str
    model: str
    measures: Mapping[str, str]
    rows: Mapping[str, Mapping[str, float]]
    notes: tuple[str, ...] = ()


def published_tables() -> list[PublishedTable]:
    """Return the tables shipped with the library."""
    data = read_toml(authored.find("tasks", "questions") / "published.toml", _SHAPE)
    return [
        PublishedTable(one["source"], one["model"], one["measures"], one["rows"], tuple(one.get("notes", ())))
        for one in data["tables"]
    ]


#: The methods that consist of several runs: the agent to vote, and the agent to use if no answer occurs twice.
VOTES: dict[str, tuple[str, str | None]] = {
    "cot-sc": ("chain-of-thought", None),
    "cot-sc-react": ("chain-of-thought", "react"),
}
#: The temperature of votes, as published.
TEMPERATURE = 0.7
#: The rows of published tables for the same methods.
PUBLISHED = {
    "direct": "Standard", "chain-of-thought": "CoT", "cot-sc": "CoT-SC", "react": "ReAct",
    "cot-sc-react": "CoT-SC → ReAct", "rewoo": "ReWOO", "pass": "PASS", "pass-no-summarizer": "PASS, no summarizer",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class AgentRow:
    """The results of an agent on questions.

    Attributes:
        llm: the name of the LLM.
        failed: the number of runs that failed.
        exact: the share of right answers, in percent of all questions.
        f1: the F1 measure of words in common with the right answers, in percent.
        requests, tokens, corrections: the mean numbers per question.
        published: the figure of the paper for this method, in percent; None if there is none.
    """

    llm: str
    agent: str
    questions: int
    failed: int
    exact: float
    f1: float
    requests: float
    tokens: float
    corrections: float
    published: float | None = None


@dataclass(frozen=True, slots=True)
class _Answered:
    answer: str
    failed: bool
    runs: tuple[Transcript, ...]


def run_agent(
    name: str,
    llm: LLM,
    tools: Tools,
    questions: Sequence[QuizQuestion],
    folder: Path,
    *,
    called: str = "",
    k: int = 5,
    temperature: float = TEMPERATURE,
    concurrency: int | None = None,
    on_outcome: Callable[[AgentOutcome], None] | None = None,
) -> AgentRow:
    """Run an agent on all questions, and score its answers.

    Args:
        name: an agent, by name or path, or one of :data:`VOTES`.
        llm: the model that writes.
        tools: the tools.
        questions: the questions, with answers.
        folder: the folder of the results files.
        called: the name of the LLM.
        k: the number of votes of :data:`VOTES`.
        temperature: the temperature of votes.
        concurrency: the maximum number of concurrent runs.
        on_outcome: called with each outcome as it completes; not for votes.

    Raises:
        RecordError: a file in the folder belongs to another benchmark.
        ValueError: a question has no answer.
    """
    called = called or str(getattr(llm, "name", type(llm).__name__))
    place = folder / re.sub(r"[^A-Za-z0-9._=-]+", "_", f"{Path(name).stem}-{called}")
    texts = [question.text for question in questions]
    if name in VOTES:
        first, then = VOTES[name]
        after = Agent(then, llm, tools) if then is not None else None
        votes = SelfConsistency(Agent(first, llm, tools, temperature=temperature), k, then=after)
        found = [
            _Answered(
                find_answer(one.answer), one.error is not None, (*one.transcripts, *([one.after] if one.after else []))
            )
            for one in votes.run_all(texts, concurrency=concurrency, results=place)
        ]
    else:
        file = place.with_name(f"{place.name}.jsonl")
        outcomes = Agent(name, llm, tools).run_all(texts, concurrency=concurrency, results=file, on_outcome=on_outcome)
        found = [
            _Answered(
                "" if one.error is not None else find_answer(one.transcript.answer),
                one.error is not None,
                (one.transcript,),
            )
            for one in outcomes
        ]
    scores = [score_answer(question, one.answer) for question, one in zip(questions, found, strict=True)]
    exact, f1 = mean_score(scores)
    usage = sum((run.usage for one in found for run in one.runs), Usage())
    corrections = sum(len(run.corrections) for one in found for run in one.runs)
    count = max(1, len(questions))
    return AgentRow(
        called, name, len(questions), sum(one.failed for one in found), exact, f1, usage.requests / count,
        (usage.input_tokens + usage.output_tokens) / count, corrections / count,
    )  # fmt: skip


def find_answer(text: str) -> str:
    """Return what comes after ``[Answer]`` in a text; all of it where no such marker is there.

    An agent such as ``react-ablated`` writes the answer into its final thought.
    """
    return text.rpartition("[Answer]")[2].strip()


def published_figure(agent: str, form: str, tables: Sequence[PublishedTable]) -> float | None:
    """Return the published figure for a method on the questions of a form; None if there is none."""
    for table in tables:
        figure = table.rows.get(PUBLISHED.get(agent, ""), {}).get(form)
        if figure is not None:
            return figure
    return None


_COLUMNS = ("LLM", "agent", "questions", "failed", "exact %", "F1 %", "requests", "tokens", "corrections", "published")


def format_cells(row: AgentRow) -> tuple[str, ...]:
    """Format a row as texts."""
    published = "" if row.published is None else f"{row.published:.1f}"
    return (
        row.llm, row.agent, str(row.questions), str(row.failed), f"{row.exact:.1f}", f"{row.f1:.1f}",
        f"{row.requests:.1f}", f"{row.tokens:.0f}", f"{row.corrections:.2f}", published,
    )  # fmt: skip


def render_markdown(rows: Sequence[AgentRow]) -> str:
    """Write the table in Markdown."""
    escaped = [tuple(cell.replace("|", "\\|") for cell in format_cells(row)) for row in rows]
    lines = [_COLUMNS, ("---",) * len(_COLUMNS), *escaped]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
