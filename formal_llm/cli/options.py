"""Arguments and options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

SourceArgument = Annotated[
    str,
    typer.Argument(help="A task pack, or rules (.cfg grammar, .mmd flowchart, .pda automaton, .agent): name or path."),
]
TaskArgument = Annotated[str, typer.Argument(help="The task: a sentence, or the number of a task of the pack.")]
InputOption = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="NAME", help="An input that is given (else told from the task). Repeatable."),
]
GoalOption = Annotated[str | None, typer.Option(help="What is wanted (else told from the task).")]
LimitOption = Annotated[list[str] | None, typer.Option(metavar="NAME=N", help="Use NAME at most N times. Repeatable.")]
RequireOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME=N", help="Use NAME at least N times. Repeatable.")
]
MaxStatesOption = Annotated[int, typer.Option(min=1, help="How many states one query of the lookahead may visit.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE|@FILE",
        help="What stands for a {NAME} in texts; or a TOML file that tells it of several. Repeatable.",
    ),
]
ConstraintOption = Annotated[
    list[str] | None,
    typer.Option("--constraint", metavar="FORMULA", help="A formula that every plan must satisfy. Repeatable."),
]
StrictOption = Annotated[bool, typer.Option("--strict", help="Read only what `plan` prints, to the letter.")]
JsonOption = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]
