"""Pictures and their forms."""

import os
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formal_llm.errors import FormalLLMError
from formal_llm.pictures.picture import Arrow, Box, Picture, printable
from tests.pictures.forms import check_dot, check_mermaid, mermaid_labels, needs_dot, squeeze, svg_text

NASTY = [
    'say "hi"', "a [b] (c) {d}", "x|y||z", "two\nlines", "<b>bold</b> & <br/>", "&lt;", "ε → ü 漢字 🙂", "\\slash\\n",
    "#35; #quot; 100%", "%%{init}%%", "`code` *x* _y_ $$z$$", "end", "1. list", "- item", "style:a#;", "\x00\x07\x1b[3",
    "\ud800", "\ufffe", "", "   ", "tab\there", "-->", "]]>", "<!-- c -->", ' id="x"', "ﬂ°°35¶ß", "\\N \\G \\\\l",
]  # fmt: skip


def nasty_picture(text: str) -> Picture:
    boxes = (
        Box("", "", "point"),
        Box(text + "!", text, "tool", tone="marked"),
        Box("end", "end", "open", (text, "x", text)),
        Box("decision", text, "decision", (text, "x"), "faded", (0,)),
        Box("last", text, "long_accepting"),
    )
    arrows = (
        Arrow("", "end"),
        Arrow(text + "!", "end", text, tone="marked", weight=3),
        Arrow("end", "end", text, "dashed", "faded"),
    )
    return Picture(boxes, arrows, "TB", text)


@pytest.mark.parametrize("text", NASTY)
def test_nasty_labels(text: str) -> None:
    picture = nasty_picture(text)
    check_mermaid(picture.to_mermaid())
    shown = squeeze("".join(mermaid_labels(picture.to_mermaid())))
    assert squeeze(printable(text)) in shown
    assert squeeze(printable(text)) in squeeze("".join(check_dot(picture.to_dot())))


@given(st.text())
def test_any_label(text: str) -> None:
    picture = nasty_picture(text)
    check_mermaid(picture.to_mermaid())
    assert squeeze(printable(text)) in squeeze("".join(mermaid_labels(picture.to_mermaid())))
    assert squeeze(printable(text)) in squeeze("".join(check_dot(picture.to_dot())))


@needs_dot
@pytest.mark.parametrize("text", NASTY)
def test_nasty_labels_in_svg(text: str) -> None:
    assert squeeze(printable(text)) in svg_text(nasty_picture(text).to_svg())


@needs_dot
@settings(max_examples=15, deadline=None)
@given(st.text(max_size=30))
def test_any_label_in_svg(text: str) -> None:
    assert squeeze(printable(text)) in svg_text(nasty_picture(text).to_svg())


@needs_dot
def test_svg_tells_nothing_of_the_machine() -> None:
    svg = Picture((Box("secret-id", "a", "tool"), Box("b", "b", "input")), (Arrow("secret-id", "b"),)).to_svg()
    assert svg.startswith("<svg")
    for word in ("graphviz", "<!--", "<title>", " id=", "<?xml", "secret-id", os.getcwd()):  # noqa: PTH109
        assert word not in svg


def test_a_picture_is_checked() -> None:
    with pytest.raises(ValueError, match="no such box"):
        Picture((Box("a", "a", "tool"),), (Arrow("a", "b"),))
    with pytest.raises(ValueError, match="same id"):
        Picture((Box("a", "a", "tool"), Box("a", "b", "tool")))


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for dot is a shell script")
@pytest.mark.parametrize(
    ("script", "message"),
    [("while :; do :; done", "within 0.2 seconds"), ("echo broken >&2; exit 1", "failed: broken")],
)
def test_graphviz_fails(tmp_path, monkeypatch: pytest.MonkeyPatch, script: str, message: str) -> None:
    stand_in = tmp_path / "dot"
    stand_in.write_text(f"#!/bin/sh\n{script}\n")
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(FormalLLMError, match=message):
        Picture((Box("a", "a", "tool"),)).to_svg(timeout=0.2 if "while" in script else 20)
