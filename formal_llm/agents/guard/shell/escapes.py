r"""What stands in ``$'...'`` of bash: escapes as in C, and ``\cX`` for control signs."""

from __future__ import annotations

import re

_NAMED = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\",
    "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(.)|(.))", re.DOTALL
)


def ansi_c(text: str) -> str:
    """The text that the escapes stand for; as in bash, a zero byte ends it."""
    # Bytes above 127 may make up one sign of UTF-8: they are put together at the end.
    made = _ESCAPE.sub(_sign, text)
    made = made.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    return made.split("\0", 1)[0]


def _sign(found: re.Match[str]) -> str:
    octal, byte, short, long, control, other = found.groups()
    if octal or byte:
        number = int(octal, 8) & 255 if octal else int(byte, 16)
        return chr(number) if number < 128 else bytes([number]).decode("utf-8", "surrogateescape")
    if short or long:
        number = int(short or long, 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else found[0]
    if control:
        return chr(ord(control) & 31) if control != "?" else "\x7f"
    return _NAMED.get(other, found[0])
