r"""Texts for a terminal: characters that a terminal would execute instead of display are made visible.

A label, a task or a server's answer may contain escape sequences that colour, move, rename or overwrite, and signs
that change the direction of writing, so that a text appears different from what it is. They are displayed as
``\u001b``, the notation of JSON, so printed JSON keeps its meaning.
"""

from __future__ import annotations

import re

# Control characters except tab and line feed; marks that embed, override or isolate a direction of writing;
# surrogates, which cannot be encoded.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Return ``text`` with each character that a terminal would execute as ``\uXXXX``; tabs and line ends stay."""
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text.replace("\r\n", "\n"))
