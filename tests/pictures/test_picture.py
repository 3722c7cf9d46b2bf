"""Pictures and their forms."""

import os
import re
import sys
from itertools import combinations
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.automata.notation.mermaid import parse
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import FormalLLMError, NotationError
from formal_llm.pictures.picture import Arrow, Box, BoxKind, Picture, Tone, line_of, look_of, plate_of, printable
from tests.pictures.forms import check_dot, check_mermaid, mermaid_labels, needs_dot, squeeze, svg_text
from tests.strategies import examples

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
@examples(15)
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


KINDS, TONES = get_args(BoxKind), get_args(Tone)


def luminance(colour):
    """The relative luminance of a colour, as WCAG 2.1 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


class TestLooks:
    @pytest.mark.parametrize("tone", TONES)
    @pytest.mark.parametrize("kind", KINDS)
    def test_every_text_can_be_read_on_its_fill(self, kind, tone):
        look = look_of(kind, tone)
        if kind != "point":  # it has no text
            # What is faded is read with more effort, and that is meant: WCAG's limit for large texts.
            assert contrast(look.fill, look.font) >= (3 if tone == "faded" else 7)

    @pytest.mark.parametrize("tone", TONES)
    def test_every_text_can_be_read_on_its_plate(self, tone):
        assert contrast(*plate_of(tone)) >= (3 if tone == "faded" else 7)

    @pytest.mark.parametrize("kind", KINDS)
    def test_tones_differ_in_more_than_hue(self, kind):
        plain, marked, faded = (look_of(kind, tone) for tone in ("plain", "marked", "faded"))
        assert marked.pen > plain.pen >= faded.pen
        assert len({plain.border, marked.border, faded.border}) == 3
        assert {(look.shape, look.style, look.opening) for look in (marked, faded)} == {
            (plain.shape, plain.style, plain.opening)
        }

    def test_arrows(self):
        assert len({line_of(tone) for tone in TONES}) == len(TONES)
        assert line_of("marked")[1] > line_of("plain")[1]
        assert all(re.fullmatch("#[0-9A-F]{6}", line_of(tone)[0]) for tone in TONES)

    def test_kinds_that_mean_different_things_look_different(self):
        looks = {kind: look_of(kind, "plain") for kind in KINDS}
        same = {tuple(sorted(pair)) for pair in combinations(KINDS, 2) if looks[pair[0]] == looks[pair[1]]}
        assert same == set()


class TestMermaid:
    @pytest.mark.parametrize("tone", TONES)
    @pytest.mark.parametrize("kind", KINDS)
    def test_the_brackets_are_those_of_a_node(self, kind, tone):
        boxes = (Box("a", "say it", kind, tone=tone), Box("b", "B", "tool"))
        text = Picture(boxes, (Arrow("a", "b", "go on", tone=tone),)).to_mermaid()
        text = text.replace("(((", "((").replace(")))", "))")  # a double circle, which no chart has
        drawing = parse(SourceText.from_text(text, None, NotationError))
        assert [node.text for node in drawing.nodes.values()] == ["" if kind == "point" else "say it", "B"]
        assert [(edge.source, edge.text, edge.target) for edge in drawing.edges] == [("n0", "go on", "n1")]
