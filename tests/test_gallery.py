"""The gallery: its rules are checked without a warning, their examples are kept, and their pictures show them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs.draw_pictures import FOLDER, GALLERY, gallery
from formal_llm.authoring.examples import examples_beside
from tests.cli.inside import runner
from tests.pictures.forms import needs_dot

PAGE = (FOLDER.parent / "gallery.md").read_text(encoding="utf-8")


def drawn(svg: str) -> tuple[list[str], int, int]:
    """What a picture says, whatever the version of Graphviz and its fonts: its texts, how many boxes and arrows."""
    root = ElementTree.fromstring(svg)
    texts = sorted("".join(one.itertext()) for one in root.iter("{http://www.w3.org/2000/svg}text"))
    kinds = [one.get("class") for one in root.iter("{http://www.w3.org/2000/svg}g")]
    return texts, kinds.count("node"), kinds.count("edge")


def test_there_are_nine_in_four_notations() -> None:
    assert len(GALLERY) >= 9
    assert {path.suffix for path in GALLERY.values()} >= {".cfg", ".mmd", ".agent", ".pda"}


@pytest.mark.parametrize("path", GALLERY.values(), ids=list(GALLERY))
def test_its_check_is_clean_and_its_examples_are_kept(path: Path) -> None:
    assert examples_beside(path) is not None
    code, printed, said = runner("check")(str(path), "--strict", "--json")
    assert code == 0, said or printed
    found = json.loads(printed)
    assert found["warnings"] == []
    assert "in no plan" not in found
    to_allow, to_refuse = map(
        int, re.fullmatch(r"(\d+) to allow, (\d+) to refuse, all kept", found["examples"]).groups()
    )
    assert to_allow >= 1
    assert to_refuse >= 2


def test_the_traces_of_the_rules_for_tool_calls_are_kept() -> None:
    path = GALLERY["errands"].parent / "guard" / "expenses.guard"
    code, printed, said = runner("check")(str(path), "--json")
    assert code == 0, said or printed
    found = json.loads(printed)
    assert found["examples"] == "2 to allow, 8 to refuse, all kept"
    assert not {"conflicts", "dead ends", "never"} & found.keys()
    assert "guard/expenses.guard" in PAGE


@needs_dot
@pytest.mark.parametrize("name", GALLERY)
def test_its_picture_shows_it(name: str) -> None:
    kept = (FOLDER / "gallery" / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn(kept) == drawn(gallery(GALLERY[name]).to_svg()), "draw it again: python docs/draw_pictures.py"
    assert len(kept) < 40_000


@pytest.mark.parametrize("name", GALLERY)
def test_the_page_has_it(name: str) -> None:
    assert f"pictures/gallery/{name}.svg" in PAGE
    assert f"$ formal-llm plan {name} " in PAGE


def test_no_picture_is_left_over() -> None:
    assert {path.stem for path in (FOLDER / "gallery").iterdir()} == set(GALLERY)
