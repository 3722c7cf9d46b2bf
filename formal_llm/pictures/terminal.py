"""The consoles on which everything is shown: the one place where texts go out to a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from formal_llm.pictures.visible import visible


class Terminal(Console):
    """A console that shows texts as they are: no markup, no emoji, no guessed colours, no escape sequences of theirs.

    Args:
        stderr: whether it is standard error. The stream is looked up at each use, so it follows a redirection.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, highlight=False, soft_wrap=True, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The pieces of a renderable; whatever it is made of, its texts come by here."""
        for piece in super().render(renderable, options):
            # The console's own codes, which move the bars of progress, are no texts.
            yield piece if piece.control else Segment(visible(piece.text), piece.style)
