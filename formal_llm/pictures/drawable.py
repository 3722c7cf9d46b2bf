"""What has a picture. A table by class names the functions that draw.

A grammar does not know its picture: the module that draws grammars is above it. :mod:`formal_llm.automata`,
:mod:`formal_llm.planning` and :mod:`formal_llm.agents` fill the table (:func:`register_picture`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from formal_llm.errors import FormalLLMError
from formal_llm.exports import ByClass
from formal_llm.pictures.picture import Picture

if TYPE_CHECKING:
    import networkx

#: The kinds of media that notebooks draw; the second is what Mermaid is called there.
SVG, MERMAID = "image/svg+xml", "text/vnd.mermaid"
#: A notebook is shown no picture of more boxes or arrows, which would be too many to read, or of a longer text. With as
#: many arrows between any boxes, Graphviz takes nearly a second of the processor, and soon much more
#: (``python benchmarks/notebooks.py``).
_MOST_BOXES, _MOST_ARROWS, _MOST_CHARACTERS = 150, 160, 60_000
#: And it waits no longer for Graphviz.
_SECONDS = 5
#: The same of the text beside it.
_MOST_TEXT = 2_000


#: How values of a class are drawn, as a picture and as a graph.
_PICTURES = ByClass[Callable[..., Picture]]()
_GRAPHS = ByClass["Callable[..., networkx.MultiDiGraph | networkx.DiGraph]"]()


def register_picture(kind: type | str, draw: Callable[..., Picture]) -> None:
    """Set how values of a class, given itself or as ``"module:name"``, are drawn."""
    _PICTURES.register(kind, draw)


def register_graph(kind: type | str, build: Callable[..., networkx.MultiDiGraph | networkx.DiGraph]) -> None:
    """Set which graph :func:`graph_of` builds of values of a class, given itself or as ``"module:name"``."""
    _GRAPHS.register(kind, build)


def picture_of(thing: object) -> Picture:
    """The picture of a thing.

    Raises:
        TypeError: no picture is registered for its class.
    """
    draw = _PICTURES.find(type(thing))
    if draw is None:
        raise TypeError(f"no picture is known of a {type(thing).__name__}")
    return draw(thing)


def graph_of(thing: object) -> networkx.MultiDiGraph | networkx.DiGraph:
    """A thing as a graph; where none is registered for its class, the boxes and arrows of its picture."""
    build = _GRAPHS.find(type(thing))
    if build is not None:
        return build(thing)
    import networkx

    picture = picture_of(thing)
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from((box.id, {"label": box.label, "kind": box.kind}) for box in picture.nodes)
    graph.add_edges_from((arrow.source, arrow.target, {"label": arrow.label}) for arrow in picture.edges)
    return graph


class Drawable:
    """What has a picture: gives a class the forms of the picture that :func:`picture_of` makes of it."""

    __slots__ = ()

    @property
    def picture(self) -> Picture:
        """The picture as plain data."""
        return picture_of(self)

    def to_networkx(self) -> networkx.MultiDiGraph | networkx.DiGraph:
        """What it is made of as a graph, for tools that calculate with graphs; see :func:`graph_of`."""
        return graph_of(self)

    def to_mermaid(self) -> str:
        """A Mermaid flowchart, which GitHub and many editors draw."""
        return self.picture.to_mermaid()

    def to_dot(self) -> str:
        """A graph in Graphviz' language."""
        return self.picture.to_dot()

    def to_svg(self) -> str:
        """A picture as SVG; needs Graphviz.

        Raises:
            MissingDependency: the program ``dot`` is not installed.
        """
        return self.picture.to_svg()

    def to_png(self) -> bytes:
        """A picture as PNG; needs Graphviz.

        Raises:
            MissingDependency: the program ``dot`` is not installed.
        """
        return self.picture.to_png()

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        """For notebooks: the text, and beside it the picture as Mermaid and, where Graphviz is there, as SVG.

        Of what is too large to be read, and of what has no picture, there is the text alone.

        Args:
            include: the kinds of media that are wanted; all where left out.
            exclude: those that are not.
        """

        def is_wanted(kind: str) -> bool:
            return (not include or kind in include) and kind not in (exclude or ())

        bundle = {"text/plain": _cut_text(repr(self))} if is_wanted("text/plain") else {}
        picture = self._get_readable_picture() if is_wanted(MERMAID) or is_wanted(SVG) else None
        if picture is not None and is_wanted(MERMAID):
            bundle[MERMAID] = picture.to_mermaid()
        if picture is not None and is_wanted(SVG):
            with suppress(FormalLLMError):
                bundle[SVG] = picture.to_svg(timeout=_SECONDS)
        return bundle

    def _get_readable_picture(self) -> Picture | None:
        """The picture for a notebook; None where there is none, or where it would be too large."""
        try:
            picture = self.picture
        except (TypeError, FormalLLMError):
            return None
        many = len(picture.nodes) > _MOST_BOXES or len(picture.edges) > _MOST_ARROWS
        return None if many or len(picture.to_mermaid()) > _MOST_CHARACTERS else picture


def _cut_text(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"
