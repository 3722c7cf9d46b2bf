"""Pages, terminals, and what is visible."""

from __future__ import annotations

import io
import json
import unicodedata
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.panel import Panel
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from formal_llm.cli.console import Terminal
from formal_llm.errors import visible
from formal_llm.tools.page import escape_text, html_page


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(st.text(max_size=40))
def test_no_text_becomes_a_tag(text: str) -> None:
    plain = Tags(html_page("t", "p { margin: 0; }", "<p>x</p>"))
    hostile = Tags(html_page(text, "p { margin: 0; }", f"<p>{escape_text(text)}</p>"))
    assert hostile.tags == plain.tags


def test_what_steers_is_made_visible() -> None:
    assert "\x1b" not in escape_text("\x1b[31m") and "\u202e" not in escape_text("\u202eevil")
    assert escape_text('<b a="1">') == "&lt;b a=&quot;1&quot;&gt;"


@pytest.mark.parametrize("images", [False, True])
def test_nothing_is_loaded_but_images_that_are_in_the_page(images: bool) -> None:
    page = html_page("t", "", "", images=images)
    assert "default-src 'none'" in page and "script-src" not in page
    assert ("img-src data:" in page) is images


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", r"\u001b[31mred\u001b[0m"),
        ("\x1b]0;title\x07", r"\u001b]0;title\u0007"),
        ("\x9b2J", r"\u009b2J"),
        ("safe\rrm -rf", r"safe\u000drm -rf"),
        ("a\u202eb\u2066c", r"a\u202eb\u2066c"),
        ("half \ud83d", r"half \ud83d"),
        ("ein\tTab\nund 日本語, שלום, 👩\u200d🍳", "ein\tTab\nund 日本語, שלום, 👩\u200d🍳"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_signs(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_nothing_that_is_obeyed_is_left_and_twice_is_once(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert not [sign for sign in shown if unicodedata.category(sign) in ("Cc", "Cs") and sign not in "\n\t"]
    assert not [sign for sign in shown if unicodedata.bidirectional(sign) in ("LRO", "RLO", "LRE", "RLE", "PDF")]
    shown.encode()


@given(
    st.recursive(
        st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text("ab\x1b"), inner),
    )
)
def test_json_means_the_same(data: object) -> None:
    assert json.loads(visible(json.dumps(data, ensure_ascii=False, indent=2))) == data
