"""Texts for pictures: shortened, wrapped, truncated after a few lines, prefixed with the numbers of a plan's steps."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from formal_llm.pictures.picture import printable

#: The maximum width of a line in a picture, in characters.
WIDTH = 52


def shorten(text: str, width: int = WIDTH) -> str:
    """Return ``text`` on one line, truncated to ``width`` characters."""
    text = printable(text)
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def wrap_text(text: str, width: int) -> str:
    """Wrap ``text`` at ``width`` characters, without breaking words and with its line breaks kept."""
    lines = [printable(line) for line in text.splitlines()]
    return "\n".join(
        row
        for line in lines
        for row in textwrap.wrap(line, width, break_on_hyphens=False, break_long_words=False) or [""]
    )


def cut_lines(lines: Sequence[str], most: int) -> tuple[str, ...]:
    """At most ``most`` lines, and one with the number of those left out (a single one is not worth that)."""
    if len(lines) <= most + 1:
        return tuple(lines)
    return (*lines[:most], f"… and {len(lines) - most} more")


def number_text(numbers: Iterable[int], text: str) -> str:
    """Prefix ``text`` with the numbers of its steps, abbreviated if there are many."""
    labels = [*map(str, dict.fromkeys(numbers))]
    if len(labels) > 5:
        labels = [*labels[:3], "…", labels[-1]]
    return f"{', '.join(labels)}: {text}" if labels and text else ", ".join(labels) or text
