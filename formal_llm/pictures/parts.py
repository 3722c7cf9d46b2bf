"""Parts of a picture: the surroundings of some boxes, and boxes emphasized over the rest."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import replace

from formal_llm.pictures.picture import Picture, Tone


def cut_around(picture: Picture, centres: Iterable[str], most: int) -> Picture:
    """The part of a picture nearest to some boxes, of at most ``most`` boxes; the title names what is left out.

    Args:
        picture: the picture; returned unchanged if it has at most ``most`` boxes.
        centres: the ids of the central boxes; if the picture has none of them, its first box is the centre.
        most: the maximum number of boxes; those nearest by arrows, followed in both directions, are kept.
    """
    if len(picture.nodes) <= most:
        return picture
    neighbours: dict[str, list[str]] = {box.id: [] for box in picture.nodes}
    for arrow in picture.edges:
        neighbours[arrow.source].append(arrow.target)
        neighbours[arrow.target].append(arrow.source)
    kept = dict.fromkeys([name for name in centres if name in neighbours] or [picture.nodes[0].id])
    todo = deque(kept)
    while todo and len(kept) < most:
        for name in neighbours[todo.popleft()]:
            if name not in kept and len(kept) < most:
                kept[name] = None
                todo.append(name)
    nodes = tuple(box for box in picture.nodes if box.id in kept)
    edges = tuple(arrow for arrow in picture.edges if arrow.source in kept and arrow.target in kept)
    note = f"{len(nodes):,} of {len(picture.nodes):,} boxes"
    return replace(picture, nodes=nodes, edges=edges, title=f"{picture.title}; {note}" if picture.title else note)


def mark_boxes(picture: Picture, marked: Collection[str], plain: Collection[str] = ()) -> Picture:
    """Return a picture with some boxes marked, some unchanged, and everything else faded.

    ``marked`` and ``plain`` are the ids of the boxes to mark, and of those that stay unchanged.
    """

    def get_tone(name: str) -> Tone:
        return "marked" if name in marked else "plain" if name in plain else "faded"

    nodes = tuple(replace(box, tone=get_tone(box.id)) for box in picture.nodes)
    return replace(picture, nodes=nodes, edges=tuple(replace(arrow, tone="faded") for arrow in picture.edges))
