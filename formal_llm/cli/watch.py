"""``formal-llm watch``: check rules again whenever they are saved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from formal_llm.automata.notation.imports import imported_files
from formal_llm.cli import options
from formal_llm.cli.check import show
from formal_llm.cli.console import command, err, errors_told

HELP = """Check rules again whenever their file is saved, until Ctrl-C.

The files that a grammar imports, and the examples beside a file (NAME.examples), count as well.

Examples:

  formal-llm watch my.cfg

  formal-llm watch my.agent --strict
"""

#: Seconds between two looks at the files.
_PAUSE = 0.2
#: How many looks in a row may find other files each time; then they are checked as they are.
_RESTLESS = 25

#: What identifies a version of a file: which file it is, when it was written, its size; None: missing.
_Stamp = tuple[int, int, int] | None


def changes(files: Callable[[], Iterable[Path]], pause: Callable[[], None]) -> Iterator[None]:
    """Yield whenever some of the files have changed, and have then been left alone for one pause.

    An editor that writes a new file and gives it the name of the old one is understood: names are looked up each time,
    and a file that is missing for a moment is waited for. A file that is written to all the time is reported now and
    then.

    Args:
        files: what is looked at, asked anew each time.
        pause: waits between two looks.
    """
    return _await_changes(files, pause, _read_stamps(files()))  # looked at before anybody waits


def _await_changes(
    files: Callable[[], Iterable[Path]], pause: Callable[[], None], stamps: dict[Path, _Stamp]
) -> Iterator[None]:
    while True:
        pause()
        now = _read_stamps(files())
        if now == stamps:
            continue
        for _ in range(_RESTLESS):
            pause()
            before, now = now, _read_stamps(files())
            if now == before and None not in now.values():
                break
        if now != stamps:
            stamps = now
            yield


def _read_stamps(files: Iterable[Path]) -> dict[Path, _Stamp]:
    return {path: _read_stamp(path) for path in files}


def _read_stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def watched(source: Path) -> list[Path]:
    """The files that a check of a file looks at."""
    examples = source.with_suffix(".examples")
    return [source, *imported_files(source), *([examples] if examples.exists() else [])]


@command
def watch(
    file: Annotated[Path, typer.Argument(help="A file of rules, as check reads it.", exists=True, dir_okay=False)],
    strict: Annotated[bool, typer.Option("--strict", help="Count warnings as errors.")] = False,
    constraint: options.ConstraintOption = None,
    max_states: options.MaxStatesOption = 20_000,
    checks: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="End after N checks, with the exit code of the last one.")
    ] = None,
) -> None:
    """Check rules whenever they are saved."""
    code, done = 0, 0
    try:
        saved = changes(lambda: watched(file), lambda: time.sleep(_PAUSE))
        while True:
            code = _check_file(file, strict, constraint, max_states)
            done += 1
            if done == checks:
                break
            err().print(f"watching {file}; Ctrl-C ends", style="dim")
            next(saved)
            err().rule(str(file))
    except KeyboardInterrupt:
        err().print("no longer watching")
        return
    raise typer.Exit(code)


def _check_file(file: Path, strict: bool, constraint: list[str] | None, max_states: int) -> int:
    """Check once; the exit code."""
    try:
        with errors_told():
            show(str(file), strict, constraint=constraint, max_states=max_states)
    except typer.Exit as ended:
        if ended.exit_code == 130:
            raise KeyboardInterrupt from None
        return ended.exit_code
    return 0
