"""Arguments and options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, ParamSpec, TypeVar

import typer

from formal_llm import authored
from formal_llm.authored.places import PACKS
from formal_llm.llms.providers import provider_forms

#: Where rules are that are shipped by name, besides those of task packs.
SHIPPED = ("grammars", "agents", "gallery")


def _complete_sources(begun: str) -> list[str]:
    """The shipped and installed sources whose name begins so; files are completed by the shell."""
    names = [name for kind in ("tasks", *SHIPPED) for name in authored.names(kind)]
    return [name for name in dict.fromkeys([*names, *PACKS.names()]) if name.startswith(begun)]


def _complete_llms(begun: str) -> list[str]:
    """The provider strings that begin so, as far as they are known before there is a model."""
    forms = [
        form if form.startswith("test:") else form.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ.") for form in provider_forms()
    ]
    return [form for form in forms if form.startswith(begun)]


SourceArgument = Annotated[
    str,
    typer.Argument(
        help="A task pack, or rules: name or path. Rules are a grammar (.cfg), a flowchart in Mermaid (.mmd), "
        "an automaton (.pda), sentences (.rules) or a behaviour (.agent).",
        autocompletion=_complete_sources,
    ),
]
LLMOption = Annotated[
    str, typer.Option("--llm", help="Who answers; see: formal-llm list llms.", autocompletion=_complete_llms)
]
TaskArgument = Annotated[str, typer.Argument(help="The task: a sentence, or the number of a task of the pack.")]
InputOption = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="NAME", help="An input that is given (else read from the task). Repeatable."),
]
GoalOption = Annotated[str | None, typer.Option(help="What is wanted (else read from the task).")]
LimitOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=N", help="Use NAME at most N times; of a quantity, at most N in sum. Repeatable."),
]
RequireOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=N", help="Use NAME at least N times; of a quantity, at least N in sum. Repeatable."),
]
MaxStatesOption = Annotated[int, typer.Option(min=1, help="How many states one query of the lookahead may visit.")]
SearchTimeOption = Annotated[
    float, typer.Option(min=0.0, help="Seconds of search for a question; what is not decided by then is offered.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE|@FILE",
        help="What stands for a {NAME} in texts; or a TOML file with several of them. Repeatable.",
    ),
]
RuleOption = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="RULE",
        help='A rule that every plan keeps: "backup before migrate", or a formula. Repeatable.',
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]


P = ParamSpec("P")
R = TypeVar("R")

_PANEL = "Requests to hosted models"


def _option(kind: type, name: str, help_: str, **bounds: float) -> inspect.Parameter:
    annotation = Annotated[kind | None, typer.Option(f"--{name}", help=help_, rich_help_panel=_PANEL, **bounds)]  # type: ignore[valid-type]
    only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name.replace("-", "_"), only, default=None, annotation=annotation)


_OPTIONS = (
    _option(int, "max-retries", "How often a request is repeated after a failure that may pass (6).", min=0),
    _option(float, "deadline", "Seconds for a question, all tries and waits together (600).", min=0.001),
)  # fmt: skip


def with_request_options(function: Callable[P, R]) -> Callable[P, R]:
    """Give a command these options; they hold for all models that it makes."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        given: dict[str, Any] = {one.name: kwargs.pop(one.name, None) for one in _OPTIONS}
        if all(value is None for value in given.values()):
            return function(*args, **kwargs)
        from formal_llm.llms.hosted.connecting import set_request_defaults

        with set_request_defaults(**given):
            return function(*args, **kwargs)

    signature = inspect.signature(function, eval_str=True)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *_OPTIONS])  # type: ignore[attr-defined]
    run.__annotations__ = {**function.__annotations__, **{one.name: one.annotation for one in _OPTIONS}}
    return run
