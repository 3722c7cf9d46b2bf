"""Objects with a picture, and what they are shown as."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from formal_llm.errors import FormalLLMError

if TYPE_CHECKING:
    import networkx

    from formal_llm.pictures.picture import Picture

#: The media types that notebooks draw.
SVG, MERMAID = "image/svg+xml", "text/vnd.mermaid"
#: The maximum numbers of boxes and arrows, and of Mermaid characters, of a picture in a notebook: larger ones are
#: unreadable. From about this number of arrows, Graphviz takes nearly a second of processor time, and soon much
#: more.
_MOST_BOXES, _MOST_ARROWS, _MOST_CHARACTERS = 150, 160, 60_000
#: The timeout of Graphviz for a picture in a notebook, in seconds.
_SECONDS = 5
#: The maximum length of the text beside the picture.
_MOST_TEXT = 2_000


class Drawable:
    """Base of classes with a picture; a class imports what draws it inside :attr:`picture`."""

    __slots__ = ()

    @property
    def picture(self) -> Picture:
        """The picture as plain data.

        Raises:
            TypeError: there is none.
        """
        raise TypeError(f"no picture is known of a {type(self).__name__}")

    def to_networkx(self) -> networkx.MultiDiGraph | networkx.DiGraph:
        """Return the object as a graph, for tools that compute with graphs: the boxes and arrows of the picture."""
        import networkx

        picture = self.picture
        graph = networkx.MultiDiGraph()
        graph.add_nodes_from((box.id, {"label": box.label, "kind": box.kind}) for box in picture.nodes)
        graph.add_edges_from((arrow.source, arrow.target, {"label": arrow.label}) for arrow in picture.edges)
        return graph

    def to_mermaid(self) -> str:
        """Return the picture as a Mermaid flowchart, which GitHub and many editors draw."""
        return self.picture.to_mermaid()

    def to_dot(self) -> str:
        """Return the picture in Graphviz' language."""
        return self.picture.to_dot()

    def to_svg(self) -> str:
        """Return the picture as SVG; needs Graphviz.

        Raises:
            MissingDependency: the program ``dot`` is not installed.
        """
        return self.picture.to_svg()

    def to_png(self) -> bytes:
        """Return the picture as PNG; needs Graphviz.

        Raises:
            MissingDependency: the program ``dot`` is not installed.
        """
        return self.picture.to_png()

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        """Return the text for notebooks, with the picture as Mermaid and, if Graphviz is installed, as SVG.

        An object that has no picture, or one that is too large to read, is shown as text alone.

        Args:
            include: the media types to return; all by default.
            exclude: the media types to leave out.
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
        """Return the picture for a notebook; None if there is none or it is too large."""
        try:
            picture = self.picture
        except (TypeError, FormalLLMError):
            return None
        too_large = len(picture.nodes) > _MOST_BOXES or len(picture.edges) > _MOST_ARROWS
        return None if too_large or len(picture.to_mermaid()) > _MOST_CHARACTERS else picture


def _cut_text(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"
