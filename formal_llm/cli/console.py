"""What all commands share: where they print, how errors end, exit codes."""

from __future__ import annotations

import functools
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType, TracebackType
from typing import ParamSpec, TextIO, TypeVar

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.segment import Segment

from formal_llm.errors import (
    AgentStopped,
    BudgetExceeded,
    FormalLLMError,
    InfiniteLanguage,
    InputError,
    LLMError,
    MissingDependency,
    NoValidPlan,
    Undecided,
    UnknownProvider,
    visible,
)

EXIT_CODES = {
    0: "done",
    1: "no valid plan exists; a plan, trip or trace to verify is not valid; check found an example that is not kept, "
    "or with --strict a warning; author wrote rules that do not keep an answer; run had to do "
    "without a tool that the plan needs",
    2: "wrong arguments, or a file or server that cannot be used",
    3: "the LLM could not be asked, or gave no legal answer",
    4: "the budget is used up; what was planned so far is shown",
    5: "the run of an agent waits for a person or for a result; what it waits for is shown",
    130: "interrupted",
}

#: As a file: standard input or output.
STANDARD = Path("-")

P = ParamSpec("P")
R = TypeVar("R")


class _Settings:
    """What the options before the command set."""

    debug = False


settings = _Settings()


class Terminal(Console):
    """A console that displays texts literally: no markup, emoji, guessed colours or escape sequences from texts.

    Args:
        stderr: whether to write to standard error. The stream is looked up at each use, so redirections apply.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, highlight=False, soft_wrap=True, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable, with the text of each made visible."""
        for piece in super().render(renderable, options):
            # The console's own control codes, which move progress bars, are not texts.
            yield piece if piece.control else Segment(visible(piece.text), piece.style)


def out() -> Console:
    """The console for results. Made anew each time, so that it follows a redirected standard output."""
    return Terminal()


def err() -> Console:
    """The console for everything that is not the result."""
    return Terminal(stderr=True)


def exit_code(error: FormalLLMError) -> int:
    """The exit code for an error."""
    if isinstance(error, NoValidPlan):
        return 1
    if isinstance(error, BudgetExceeded | AgentStopped):
        return 4
    return 3 if isinstance(error, LLMError) and not isinstance(error, UnknownProvider) else 2


def said_of(error: Exception) -> str:
    """The message of an error at the command line, which has options where Python has arguments."""
    message = str(error)
    if isinstance(error, OSError) and error.strerror and not isinstance(error, FormalLLMError):
        # Without the number that Python puts before it, and with the place where it belongs.
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, AgentStopped):
        return f"{message.partition(' (error.transcript)')[0]}; raise it with --max-{error.kind}"
    if isinstance(error, BudgetExceeded):
        what, _, _ = message.partition("; raise it (")
        hard = f". {error.hard}" if error.hard else ""
        way = (
            f"max_{error.kind} in the file of --config"
            if error.kind in ("steps", "backtracks")
            else f"--max-{error.kind}"
        )
        return f"{what.replace(' (error.plan)', '')}; raise it with {way}{hard}"
    if isinstance(error, (InfiniteLanguage, Undecided)):
        for argument in ("max_length", "max_states"):
            message = message.replace(argument, f"--{argument.replace('_', '-')}")
    return message


@contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Report libraries that the block imports and that are not installed, with the extra that brings them.

    Raises:
        MissingDependency: they are not installed.
    """
    try:
        yield
    except MissingDependency:
        raise
    except ImportError as error:
        how = f"pip install 'formal-llm[{extra}]'"
        raise MissingDependency(f"{what} needs libraries: {how} ({error})") from error


@contextmanager
def errors_told() -> Iterator[None]:
    """Report an expected error in one readable block on standard error and end with its exit code."""
    try:
        yield
    except BrokenPipeError:
        # The reader of our output has seen enough (head, a pager that was left). What is still buffered goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except (FormalLLMError, ValueError, TypeError, OSError) as error:
        if settings.debug:
            raise
        console = err()
        console.print(f"error: {said_of(error)}", style="red")
        if not isinstance(error, FormalLLMError) and not str(error):
            console.print(repr(error))
        raise typer.Exit(exit_code(error) if isinstance(error, FormalLLMError) else 2) from None
    except KeyboardInterrupt:
        if settings.debug:
            raise
        err().print("interrupted", style="red")
        raise typer.Exit(130) from None


@contextmanager
def answering_first_signal(act: Callable[[], object], announced: str) -> Iterator[list[int]]:
    """Have the first Ctrl-C or SIGTERM call a function; the second one ends the command at once.

    Args:
        act: what is called.
        announced: what follows, in words, for the person.

    Yields:
        The list of signals that came.
    """
    came: list[int] = []
    if current_thread() is not main_thread():
        yield came
        return
    before = {kind: signal.getsignal(kind) for kind in (signal.SIGINT, signal.SIGTERM)}

    def end_gently(kind: int, frame: FrameType | None) -> None:
        del frame
        if came:
            raise KeyboardInterrupt
        came.append(kind)
        act()
        err().print(f"{signal.Signals(kind).name}: {announced}; once more ends at once")

    try:
        for kind in before:
            signal.signal(kind, end_gently)
        yield came
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def command(function: Callable[P, R]) -> Callable[P, R]:
    """A command whose errors are reported to a person."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        with errors_told():
            return function(*args, **kwargs)

    return guarded


def print_text(text: str) -> None:
    """A result as it is: no markup, no colours, no wrapping; but what a terminal would obey is made visible."""
    write_visibly(sys.stdout, text if text.endswith("\n") else text + "\n")


def write_visibly(stream: TextIO, text: str) -> None:
    """Write a text at once, what a terminal would obey made visible."""
    stream.write(visible(text))
    stream.flush()


def check_writable(*files: Path | None) -> None:
    """Report before anything is asked that a file cannot be written where it is wanted.

    Raises:
        InputError: its folder is not there, or may not be written, or a folder stands there.
    """
    for file in files:
        if file is None or file == STANDARD:
            continue
        if not file.parent.is_dir():
            raise InputError(f"{file}: there is no folder {file.parent}; make it, or name another file")
        if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
            raise InputError(f"{file}: it cannot be written; name another file")


def check_folder(folder: Path) -> None:
    """Report before anything is asked that a folder cannot be made where it is wanted, or not be written.

    Raises:
        InputError: something else stands there or on the way there, or it may not be written.
    """
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise InputError(f"{folder}: {'it' if there == folder else there} is no folder; name another place")
    if not os.access(there, os.W_OK):
        raise InputError(f"{folder}: {'it' if there == folder else there} may not be written; name another place")


def write_to(file: Path, text: str) -> None:
    """Write a result into a file, or print it where the file is ``-``."""
    if file == STANDARD:
        print_text(text)
    else:
        file.write_text(text, encoding="utf-8")


def guard_errors() -> None:
    """Make visible, too, what Python itself writes of warnings and of unexpected errors."""

    def show_warning(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        write_visibly(file or sys.stderr, warnings.formatwarning(message, category, filename, lineno, line))

    def show_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        write_visibly(sys.stderr, "".join(traceback.format_exception(kind, error, trace)))

    warnings.showwarning = show_warning
    sys.excepthook = show_error


def counted(number: int, what: str) -> str:
    """How many of something there are, in words: ``1 task``, ``2 tasks``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def progress_bars() -> Progress:
    """Bars on standard error for what takes long, each under the text of its field ``said``; none off a terminal."""
    console = err()
    return Progress(
        TextColumn("{task.fields[said]}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TimeRemainingColumn(), console=console, disable=not console.is_terminal,
    )  # fmt: skip


def without_loading_bars() -> None:
    """Keep transformers from drawing a bar for each part of a model that it loads."""
    try:
        from transformers.utils import logging
    except ImportError:
        return
    logging.disable_progress_bar()
