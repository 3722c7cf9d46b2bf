"""The options of commands that ask hosted models: how fast they are asked, and for how long."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, ParamSpec, TypeVar

import typer

P = ParamSpec("P")
R = TypeVar("R")

_PANEL = "Requests to hosted models"


def _option(kind: type, name: str, help_: str, **bounds: float) -> inspect.Parameter:
    annotation = Annotated[kind | None, typer.Option(f"--{name}", help=help_, rich_help_panel=_PANEL, **bounds)]  # type: ignore[valid-type]
    only = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name.replace("-", "_"), only, default=None, annotation=annotation)


_OPTIONS = (
    _option(float, "rps", "Requests a second, at most; a server that refuses some is asked more slowly.", min=0.001),
    _option(float, "tpm", "Tokens a minute that are sent, at most, estimated as a quarter of the characters.", min=1),
    _option(int, "max-retries", "How often a request is repeated after a failure that may pass (twice).", min=0),
    _option(float, "timeout", "Seconds for which a server may be silent (600).", min=0.001),
    _option(float, "deadline", "Seconds for a question, all tries and waits together (600).", min=0.001),
)  # fmt: skip


def with_request_options(function: Callable[P, R]) -> Callable[P, R]:
    """Give a command these options; they hold for all models that it makes."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        given = {one.name: kwargs.pop(one.name, None) for one in _OPTIONS}
        if all(value is None for value in given.values()):
            return function(*args, **kwargs)
        from formal_llm.llms.hosted.bounds import RequestDefaults, default_requests
        from formal_llm.llms.hosted.pace import limit_pace

        rps, tpm = given.pop("rps"), given.pop("tpm")
        with limit_pace(rps, tpm), default_requests(RequestDefaults(**given)):  # type: ignore[arg-type]
            return function(*args, **kwargs)

    signature = inspect.signature(function, eval_str=True)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *_OPTIONS])  # type: ignore[attr-defined]
    run.__annotations__ = {**function.__annotations__, **{one.name: one.annotation for one in _OPTIONS}}
    return run
