"""Pictures for the page: of the rules, and how any picture is sent."""

from __future__ import annotations

from collections.abc import Iterable

from formal_llm.automata import CFG, Flowchart
from formal_llm.errors import FormalLLMError
from formal_llm.pictures.drawable import picture_of
from formal_llm.pictures.parts import cut_around
from formal_llm.pictures.picture import Picture
from formal_llm.planning.plans.overlay import MOST
from formal_llm.studio.parts import Part
from formal_llm.studio.rules import ReadRules

#: The seconds that Graphviz may take.
_SECONDS = 10


def rules_picture(written: ReadRules, near: str = "") -> Picture:
    """The picture of rules; of large ones, what lies around the symbol that is named, or the start."""
    rules = written.rules
    picture = picture_of(rules)
    return cut_around(picture, _find_node(picture, near) or [_get_start(written)], MOST)


def drawn(picture: Picture) -> Part:
    """A picture as the page shows it: as SVG where Graphviz is there, as Mermaid, and in words."""
    found: Part = {"part": "picture", "mermaid": picture.to_mermaid(), "text": _describe_picture(picture), "svg": None}
    try:
        found["svg"] = picture.to_svg(timeout=_SECONDS)
    except FormalLLMError as error:
        found["problem"] = str(error)
    return found


def _describe_picture(picture: Picture) -> str:
    """What a picture shows, in a sentence: all of a small one, else how much, and what is marked."""
    names = {box.id: " ".join(box.label.split()) or "start" for box in picture.nodes}
    marked = [names[box.id] for box in picture.nodes if box.tone == "marked"]
    size = f"{len(picture.nodes)} boxes, {len(picture.edges)} arrows"
    return f"{size}. {f'Marked: {_join_names(marked)}.' if marked else f'Boxes: {_join_names(names.values())}.'}"


def _join_names(names: Iterable[str], most: int = 12) -> str:
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _get_start(written: ReadRules) -> str:
    return written.rules.start if isinstance(written.rules, (CFG, Flowchart)) else "start"


def _find_node(picture: Picture, name: str) -> list[str]:
    return [box.id for box in picture.nodes if name and name in (box.id, box.label)][:1]
