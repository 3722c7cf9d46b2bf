"""How boxes and arrows look."""

import re
from itertools import combinations
from typing import get_args

import pytest

from formal_llm.automata.notation.mermaid import parse
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import NotationError
from formal_llm.pictures.looks import Tone, line_of, look_of, plate_of
from formal_llm.pictures.picture import Arrow, Box, BoxKind, Picture

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
        drawing = parse(SourceText.from_text(text, None, NotationError))
        assert [vertex.text for vertex in drawing.vertices.values()] == ["" if kind == "point" else "say it", "B"]
        assert [(link.source, link.text, link.target) for link in drawing.links] == [("n0", "go on", "n1")]
