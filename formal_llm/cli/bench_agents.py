"""``formal-llm bench agents``: agents of several LLMs over questions, scored as published."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import asdict, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formal_llm.cli.agent import CorpusOption, ToolsOption, tools_of
from formal_llm.cli.bench import answers_file
from formal_llm.cli.console import command, err, print_text, progress_bars
from formal_llm.cli.run import make_folder

if TYPE_CHECKING:
    from formal_llm.agents.agent import Tools

HELP = """Ask agents questions, and tell how often they are right and what it took.

Without --data, the 40 questions that are shipped are asked, over the shipped corpus. Files: HotpotQA, GSM8K, TriviaQA
and FEVER as they are published. Where the questions come with paragraphs (HotpotQA) and no --corpus is given, the
paragraphs of the whole file are what is searched. Besides the agents there are cot-sc (chain of thought five times, the
answer that comes most often) and cot-sc-react (the same, and react where no answer comes twice).

Each run is on record in the folder of --out. A benchmark that was stopped goes on with the same command.

Examples:

  formal-llm bench agents --llm test:random --agents direct,react --out bench

  formal-llm bench agents --data hotpot_dev_fullwiki_v1.json --form hotpotqa --corpus wikipedia.sqlite \\
      --agents react,rewoo,cot-sc-react --llm openai:gpt-6-luna --most 500 --out bench
"""


class FormName(StrEnum):
    """Whose file the questions are."""

    own = "own"
    hotpotqa = "hotpotqa"
    gsm8k = "gsm8k"
    triviaqa = "triviaqa"
    fever = "fever"


@command
def bench_agents(
    to: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the benchmark's records.")],
    llm: Annotated[list[str], typer.Option(help="Who answers; see: formal-llm list llms. Repeatable.")],
    agents: Annotated[
        str, typer.Option(metavar="NAMES", help="Agents, parted by commas: shipped ones, paths, cot-sc, cot-sc-react.")
    ] = "direct,chain-of-thought,react",
    data: Annotated[Path | None, typer.Option(metavar="FILE", help="Questions; the shipped ones if left out.")] = None,
    form: Annotated[FormName, typer.Option(help="Whose file --data is.")] = FormName.own,
    most: Annotated[int | None, typer.Option(min=1, help="At most this many questions, the first ones.")] = None,
    corpus: CorpusOption = None,
    tools: ToolsOption = None,
    samples: Annotated[int, typer.Option(min=1, help="How often cot-sc asks.")] = 5,
    temperature: Annotated[float, typer.Option(min=0, help="At which temperature cot-sc asks.")] = 0.7,
    concurrency: Annotated[int | None, typer.Option(min=1, help="How many runs are under way at once.")] = None,
) -> None:
    """Run a benchmark of agents and print its table."""
    from formal_llm.agents.agent import Agent, ensure_text_llm
    from formal_llm.agents.tools.toolkit import agent_toolkit
    from formal_llm.llms import RecordedLLM, resolve
    from formal_llm.llms.doubles import TEXTS, RandomLLM
    from formal_llm.llms.providers import check_providers
    from formal_llm.packs.questions import (
        ContextArticles,
        benchmark,
        published_tables,
        read_questions,
        shipped_questions,
    )

    # Paragraphs are searched in all of the file, so that more questions may be added to a benchmark.
    whole = form is FormName.hotpotqa and tools is None and corpus is None
    every = shipped_questions() if data is None else read_questions(data, form.value, None if whole else most)
    questions = every[:most]
    names = list(dict.fromkeys(name.strip() for name in agents.split(",") if name.strip()))
    tables = published_tables()
    check_providers(*llm)
    make_folder(to)
    if whole and any(question.context for question in every):
        known: Tools = partial(agent_toolkit, ContextArticles(every).corpus(to))
    else:
        known = tools_of(tools, corpus)
    for name in names:
        if name not in benchmark.VOTES:
            Agent(
                name, RandomLLM(can=TEXTS), known
            )  # never asked: what is wrong with it is reported before a model is loaded
    who = {name: ensure_text_llm(resolve(name)) for name in dict.fromkeys(llm)}
    rows = []
    with ExitStack() as opened, progress_bars() as bars:
        for called, one in who.items():
            recorded = opened.enter_context(RecordedLLM(one, answers_file(to, called), again=True))
            for name in names:
                bar = bars.add_task("", said=f"{called} {name}", total=len(questions))
                row = benchmark.run_agent(
                    name, recorded, known, questions, to, called=called, k=samples, temperature=temperature,
                    concurrency=concurrency,
                    on_outcome=lambda _, bar=bar: bars.advance(bar),  # type: ignore[misc]
                )  # fmt: skip
                bars.update(bar, completed=len(questions))
                rows.append(replace(row, published=benchmark.published_figure(name, form.value, tables)))
    text = benchmark.render_markdown(rows)
    (to / "table.md").write_text(text, encoding="utf-8")
    (to / "table.json").write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    print_text(text)
    for table in tables:
        if form.value in table.measures:
            print_text(f"published: {table.source}, {table.model}, {table.measures[form.value]}")
            for note in table.notes:
                print_text(f"other there: {note}")
    err().print(f"on record in {to}: one .jsonl for each agent, answers, table.md, table.json")
