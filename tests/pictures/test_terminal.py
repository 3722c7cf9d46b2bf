"""The consoles: no text brings its own escape sequences, however it is put together."""

from __future__ import annotations

import io

import pytest
from rich.panel import Panel
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from formal_llm.pictures.terminal import Terminal

BAD = "\x1b]0;owned\x07\u202eelif"


def table() -> Table:
    made = Table(title=BAD)
    made.add_column(BAD)
    made.add_row(Text(BAD))
    return made


@pytest.mark.parametrize(
    "thing", [BAD, Text(BAD), Panel(BAD, title=BAD), table(), Tree(BAD)], ids=["text", "Text", "panel", "table", "tree"]
)
@pytest.mark.parametrize("colours", [False, True])
def test_whatever_is_printed(thing: object, colours: bool) -> None:
    console = Terminal()
    console.file, console._force_terminal = io.StringIO(), colours
    console.print(thing, markup=False, style="red")
    said = console.file.getvalue()
    assert "\x1b]" not in said
    assert "\x07" not in said
    assert "\u202e" not in said
    assert r"\u202eelif" in said


def test_bars_of_progress() -> None:
    console = Terminal(stderr=True)
    console.file, console._force_terminal = io.StringIO(), True
    with Progress(TextColumn("{task.fields[said]}", markup=False), console=console) as progress:
        progress.add_task("", said=BAD)
    said = console.file.getvalue()
    assert "\x1b]" not in said
    assert "\u202e" not in said
    assert "\x1b[" in said, "the codes of the bar itself are kept"


def test_the_stream_is_looked_up_at_each_use(capsys: pytest.CaptureFixture[str]) -> None:
    Terminal().print("out", markup=False)
    Terminal(stderr=True).print("err", markup=False)
    assert capsys.readouterr() == ("out\n", "err\n")
