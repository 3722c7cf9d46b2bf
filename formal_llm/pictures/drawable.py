"""What has a picture. What it looks like is told in the modules that draw it, in a table by class.

A grammar knows nothing of its picture: the module that draws grammars stands above it, and says so with
``picture_of.register(CFG, cfg_picture)``. :mod:`formal_llm.automata` and :mod:`formal_llm.planning` fill the table.
"""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING

from formal_llm.errors import FormalLLMError
from formal_llm.pictures.picture import Picture

if TYPE_CHECKING:
    import networkx


@singledispatch
def picture_of(thing: object) -> Picture:
    """The picture of a thing.

    Raises:
        TypeError: nobody has said what things of its class look like.
    """
    raise TypeError(f"no picture is known of a {type(thing).__name__}")


@singledispatch
def graph_of(thing: object) -> networkx.MultiDiGraph | networkx.DiGraph:
    """A thing as a graph; where nobody has said more of things of its class, the boxes and arrows of its picture."""
    import networkx

    picture = picture_of(thing)
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from((box.id, {"label": box.label, "kind": box.kind}) for box in picture.nodes)
    graph.add_edges_from((arrow.source, arrow.target, {"label": arrow.label}) for arrow in picture.edges)
    return graph


class Drawable:
    """What has a picture: gives a class the forms of the picture that :func:`picture_of` makes of it."""

    __slots__ = ()

    #: A notebook is shown no picture of more boxes than this: it would take long and show nothing.
    _most_boxes = 400

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

    def _repr_svg_(self) -> str | None:
        """For notebooks; None, so that they show the text instead, where there is no Graphviz or too much to draw."""
        picture = self.picture
        if len(picture.nodes) > self._most_boxes:
            return None
        try:
            return picture.to_svg(timeout=10)
        except FormalLLMError:
            return None
