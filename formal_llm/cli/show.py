"""How the command line shows a plan, and what happens while it is made."""

from __future__ import annotations

from enum import StrEnum

from rich.console import Console

from formal_llm.cli.console import out, print_text
from formal_llm.planning import Plan
from formal_llm.planning.walks.events import Answered, Asked, Backtracked, Event, Failed, Finished, Forced, Started


class Show(StrEnum):
    """The forms in which a plan can be printed."""

    steps = "steps"
    tree = "tree"
    call = "call"
    word = "word"
    json = "json"
    mermaid = "mermaid"


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
        walk = f"task {event.walk}, " if event.walk else ""
        match event:
            case Started():
                pass
            case Failed(error):
                console.rule(f"{walk}failed: {type(error).__name__}", align="left")
            case Asked(question):
                self._asked += 1
                console.rule(f"{walk}question {self._asked}", align="left")
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
