"""``formal-llm plan``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from formal_llm.cli.console import EXIT_CODES_HELP, command, err, out, print_text
from formal_llm.cli.options import LimitOption, RequireOption, SourceArgument, TaskArgument
from formal_llm.cli.sources import load, read_limits
from formal_llm.errors import BudgetExceeded
from formal_llm.planning import Budget, Plan, Planner, Wording
from formal_llm.planning.events import Answered, Asked, Backtracked, Event, Finished, Forced


class Show(StrEnum):
    """The forms in which a plan can be printed."""

    steps = "steps"
    tree = "tree"
    call = "call"
    word = "word"
    json = "json"
    mermaid = "mermaid"


class LookaheadMode(StrEnum):
    """Whether only options are offered from which a plan can be finished."""

    on = "on"
    off = "off"


class Search(StrEnum):
    """How answers lead to a plan."""

    greedy = "greedy"
    best_first = "best-first"
    sample = "sample"


HELP = f"""Plan a task: the plan is a word of the grammar, whatever the LLM answers.

Examples:

  formal-llm plan openagi "Given noisy grayscale image, how to return the caption in German step by step?"

  formal-llm plan openagi 117 --llm openai:gpt-6-luna --show steps --show call

  formal-llm plan my.cfg "Cook dinner" --llm person --limit wok=1

  formal-llm plan openagi 3 --llm test:random --trace --show json

{EXIT_CODES_HELP}
"""


@command
def plan(
    source: SourceArgument,
    task: TaskArgument = "",
    llm: Annotated[str, typer.Option(help="Who answers; see: formal-llm llms.")] = "builtin",
    limit: LimitOption = None,
    require: RequireOption = None,
    input_: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME", help="An input that is given (else told from the task). Repeatable."),
    ] = None,
    goal: Annotated[str | None, typer.Option(help="What is wanted (else told from the task).")] = None,
    lookahead: Annotated[
        LookaheadMode, typer.Option(help="on: no dead ends are offered; off: dead ends are left by backtracking.")
    ] = LookaheadMode.on,
    search: Annotated[
        Search, typer.Option(help="Follow each answer, find the most probable plan, or draw from the answers.")
    ] = Search.greedy,
    seed: Annotated[int, typer.Option(help="For --search sample.")] = 0,
    show: Annotated[list[Show] | None, typer.Option(help="How to print the plan. Repeatable.")] = None,
    trace: Annotated[bool, typer.Option("--trace", help="Show on stderr what is asked and answered.")] = False,
    wording: Annotated[Path | None, typer.Option(help="A TOML file with prompt templates.")] = None,
    conversation: Annotated[
        bool, typer.Option("--conversation", help="Ask in one conversation, not each question alone.")
    ] = False,
    max_questions: Annotated[int | None, typer.Option(min=1, help="Stop after so many questions.")] = None,
    max_steps: Annotated[int, typer.Option(min=1, help="The most moves of the automaton in a plan.")] = 10_000,
    max_backtracks: Annotated[int | None, typer.Option(min=1, help="Stop after so many dead ends.")] = None,
    tries: Annotated[int, typer.Option(min=1, help="How often one question is asked until its answer is legal.")] = 3,
) -> None:
    """Plan a task."""
    loaded = load(source)
    words = Wording.from_file(wording) if wording is not None else loaded.wording
    if conversation:
        words = Wording(**{**vars(words), "conversation": True})
    planner = Planner(
        loaded.cfg,
        llm,
        limits=read_limits(limit or (), require or ()),
        lookahead=lookahead.value,
        search=search.value,
        seed=seed,
        wording=words,
        budget=Budget(questions=max_questions, steps=max_steps, backtracks=max_backtracks),
        tries=tries,
        on_event=Trace(err()) if trace else None,
    )
    forms = show or [Show.steps]
    try:
        made = planner.plan(loaded.task(task, inputs=input_ or (), goal=goal))
    except BudgetExceeded as error:
        print_plan(error.plan, forms)
        raise
    print_plan(made, forms)


def print_plan(made: Plan, forms: list[Show]) -> None:
    """A plan on standard output, in each of the forms."""
    for number, form in enumerate(forms):
        if number:
            print_text("")
        if form is Show.steps:
            print_text(str(made))
        elif form is Show.call:
            print_text(str(made.call) if made.call is not None else " ".join(made.word))
        elif form is Show.word:
            print_text(" ".join(made.word))
        elif form is Show.json:
            print_text(made.to_json(indent=2))
        elif form is Show.mermaid:
            print_text(made.to_mermaid())
        else:
            out().print(made, soft_wrap=False)  # a panel wraps its own lines


class Trace:
    """Prints what happens while a plan is made."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._asked = 0

    def __call__(self, event: Event) -> None:
        """Print one event."""
        console = self._console
        match event:
            case Asked(question):
                self._asked += 1
                console.rule(f"question {self._asked}", align="left")
                console.print(question.prompt, markup=False)
            case Answered(question, answer):
                chosen = "; ".join(f"{n}: {question.options[n - 1].text}" for n in answer.numbers)
                console.print(f"-> {chosen}", style="green", markup=False)
            case Forced(text, left_out):
                console.print(f"taken without a question: {text} ({left_out} ruled out)", style="dim", markup=False)
            case Backtracked(text, word):
                place = " ".join(word) or "the beginning"
                console.print(f"dead end; back to {place}, without: {text}", style="yellow", markup=False)
            case Finished(plan):
                usage = plan.usage
                console.rule("finished", align="left")
                console.print(
                    f"questions: {usage.questions}; choices taken without one: {usage.forced}; "
                    f"dead ends: {usage.backtracks}; {usage.seconds:.3f} s"
                )
