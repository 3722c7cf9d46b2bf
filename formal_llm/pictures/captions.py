"""Texts for pictures: shortened, wrapped, cut after a few lines, with the numbers of a plan's steps before them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from formal_llm.pictures.picture import printable

#: How wide a line of a picture may be, in characters; a line of alternatives may be wider.
WIDTH, ALTERNATIVES_WIDTH = 52, 80


def shorten(text: str, width: int = WIDTH) -> str:
    """``text`` as one line, cut to ``width`` characters."""
    text = printable(text)
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def wrap_text(text: str, width: int) -> str:
    """``text`` on lines of ``width`` characters; words are not broken, and the lines that it has are kept."""
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
    """``text`` with the numbers of its steps before it, a few of many."""
    shown = [*map(str, dict.fromkeys(numbers))]
    if len(shown) > 5:
        shown = [*shown[:3], "…", shown[-1]]
    return f"{', '.join(shown)}: {text}" if shown and text else ", ".join(shown) or text
