"""What a docstring states about parameters, in the styles of Google, NumPy and Sphinx."""

from __future__ import annotations

import re

_FIELD = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_GOOGLE = re.compile(r"\*{0,2}(\w+)\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?\s*:\s*(.*)")
_NUMPY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_SECTIONS = ("args", "arguments", "parameters", "params", "other parameters", "keyword args", "keyword arguments")


def read_parameters(docstring: str) -> dict[str, str]:
    """Return the description of each parameter that a docstring describes, in one line.

    Args:
        docstring: the docstring, as ``inspect.getdoc`` returns it.
    """
    lines = docstring.split("\n")
    found: dict[str, list[str]] = {}
    place = 0
    while place < len(lines):
        title = lines[place].strip().rstrip(":").lower()
        below = lines[place + 1].strip() if place + 1 < len(lines) else ""
        if title in _SECTIONS and len(below) >= 3 and set(below) == {"-"}:
            place = _read_numpy(lines, place + 2, found)
        elif title in _SECTIONS and lines[place].rstrip().endswith(":"):
            place = _read_google(lines, place + 1, found)
        elif (field := _FIELD.match(lines[place].strip())) is not None:
            place = _read_block(lines, place + 1, _indent(lines[place]), found.setdefault(field[1], [field[2]]))
        else:
            place += 1
    described = {name: " ".join(" ".join(parts).split()) for name, parts in found.items()}
    return {name: text for name, text in described.items() if text}


def _read_google(lines: list[str], place: int, found: dict[str, list[str]]) -> int:
    """Read ``name (type): text`` entries, which are indented; return the place after them."""
    depth: int | None = None
    while place < len(lines):
        if not lines[place].strip():
            place += 1
            continue
        indent = _indent(lines[place])
        if indent == 0 or (depth is not None and indent < depth):
            break
        depth = indent if depth is None else depth
        entry = _GOOGLE.fullmatch(lines[place].strip())
        parts = found.setdefault(entry[1], [entry[2]]) if entry is not None else []
        place = _read_block(lines, place + 1, indent, parts)
    return place


def _read_numpy(lines: list[str], place: int, found: dict[str, list[str]]) -> int:
    """Read ``name : type`` entries with indented texts; return the place after them."""
    while place < len(lines):
        if not lines[place].strip():
            place += 1
            continue
        below = lines[place + 1].strip() if place + 1 < len(lines) else ""
        entry = _NUMPY.fullmatch(lines[place].strip())
        if entry is None or (below and set(below) <= {"-", "="}):  # the next section
            break
        parts: list[str] = []
        for name in entry[1].split(","):
            found[name.strip().lstrip("*")] = parts
        place = _read_block(lines, place + 1, 0, parts)
    return place


def _read_block(lines: list[str], place: int, indent: int, parts: list[str]) -> int:
    """Collect the lines that are indented further; return the place after them."""
    while place < len(lines) and lines[place].strip() and _indent(lines[place]) > indent:
        parts.append(lines[place].strip())
        place += 1
    return place


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
