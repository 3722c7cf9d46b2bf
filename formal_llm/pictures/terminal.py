"""The consoles for all output: the only place where texts are written to a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from formal_llm.pictures.visible import visible


class Terminal(Console):
    """A console that displays texts literally: no markup, emoji, guessed colours or escape sequences from texts.

    Args:
        stderr: whether to write to standard error. The stream is looked up at each use, so redirections apply.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, highlight=False, soft_wrap=True, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable, with the text of each made visible."""
        for piece in super().render(renderable, options):
            # The console's own control codes, which move progress bars, are not texts.
            yield piece if piece.control else Segment(visible(piece.text), piece.style)
