r"""Texts for a terminal: what it would obey instead of show is made visible.

A label, a task or what a server answers may hold escape sequences that colour, move, rename or overwrite, and signs
that turn the direction of writing, so that a text reads otherwise than it is. They are shown as ``\u001b``, as JSON
writes them, so JSON that is printed still means the same.
"""

from __future__ import annotations

import re

# Control characters but for the tab and the end of a line; marks that embed, override or isolate a direction of
# writing; halves of surrogate pairs, which cannot be written at all.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""``text`` with whatever a terminal would obey as ``\uXXXX``; tabs and ends of lines stay."""
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text.replace("\r\n", "\n"))
