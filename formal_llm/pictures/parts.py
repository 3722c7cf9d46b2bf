"""Parts of a picture: what lies around some boxes, and some boxes brought out before the rest."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import replace

from formal_llm.pictures.picture import Picture, Tone


def cut_around(picture: Picture, centres: Iterable[str], most: int) -> Picture:
    """The part of a picture nearest to some boxes, of at most ``most`` boxes; the title names what is left out.

    Args:
        picture: the picture; given back as it is where it has no more boxes than that.
        centres: the ids of the boxes in the middle; the first box of all where there are none of these.
        most: how many boxes are kept; boxes nearer by arrows, followed either way, come first.
    """
    if len(picture.nodes) <= most:
        return picture
    beside: dict[str, list[str]] = {box.id: [] for box in picture.nodes}
    for arrow in picture.edges:
        beside[arrow.source].append(arrow.target)
        beside[arrow.target].append(arrow.source)
    kept = dict.fromkeys([name for name in centres if name in beside] or [picture.nodes[0].id])
    todo = deque(kept)
    while todo and len(kept) < most:
        for name in beside[todo.popleft()]:
            if name not in kept and len(kept) < most:
                kept[name] = None
                todo.append(name)
    nodes = tuple(box for box in picture.nodes if box.id in kept)
    edges = tuple(arrow for arrow in picture.edges if arrow.source in kept and arrow.target in kept)
    note = f"{len(nodes):,} of {len(picture.nodes):,} boxes"
    return replace(picture, nodes=nodes, edges=edges, title=f"{picture.title}; {note}" if picture.title else note)


def mark_boxes(picture: Picture, marked: Collection[str], plain: Collection[str] = ()) -> Picture:
    """A picture with some boxes marked, some left as they are, and all else faded.

    Args:
        picture: the picture.
        marked: the ids of the boxes to mark.
        plain: the ids of those that stay as they are.
    """

    def get_tone(name: str) -> Tone:
        return "marked" if name in marked else "plain" if name in plain else "faded"

    nodes = tuple(replace(box, tone=get_tone(box.id)) for box in picture.nodes)
    return replace(picture, nodes=nodes, edges=tuple(replace(arrow, tone="faded") for arrow in picture.edges))
