"""What ``--trace`` shows while a plan is made."""

from __future__ import annotations

from rich.console import Console

from formal_llm.llms.text_request import TextRequest
from formal_llm.planning.walks.events import (
    Answered,
    Asked,
    Backtracked,
    Drafted,
    Event,
    Failed,
    Finished,
    Forced,
    Started,
)


class TracePrinter:
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
                writes = isinstance(question, TextRequest)
                self._asked += not writes
                console.rule(f"{walk}draft" if writes else f"{walk}question {self._asked}", align="left")
                console.print(question.prompt)
            case Answered(TextRequest(), answer):
                console.print(answer.text, style="green")
            case Drafted(_, taken, problem):
                suffix = f"; {problem}" if problem else ""
                console.print(f"choices taken from the draft: {taken}{suffix}", style="dim")
            case Answered(question, answer):
                chosen = "; ".join(f"{n}: {question.options[n - 1].text}" for n in answer.numbers)
                console.print(f"-> {chosen}", style="green")
            case Forced(text, left_out):
                console.print(f"taken without a question: {text} ({left_out} ruled out)", style="dim")
            case Backtracked(text, word):
                place = " ".join(word) or "the beginning"
                console.print(f"dead end; back to {place}, without: {text}", style="yellow")
            case Finished(plan):
                usage = plan.usage
                console.rule("finished", align="left")
                console.print(
                    f"questions: {usage.questions}; choices taken without one: {usage.forced}; "
                    + (f"drafts: {usage.drafts}, choices from them: {usage.drafted}; " if usage.drafts else "")
                    + f"dead ends: {usage.backtracks}; {usage.seconds:.3f} s"
                )
