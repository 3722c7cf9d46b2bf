"""The title block above a Mermaid chart: YAML between two lines of ``---``, of which only the title is used."""

from __future__ import annotations

import re

from formal_llm.authored.files import parse_json
from formal_llm.automata.models.flowgraph import normalize_text
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import did_you_mean

_BLOCK = re.compile(r"\s*---[ \t]*\n(.*?)\n?---[ \t]*(?=\n|$)", re.DOTALL)
_TITLE = re.compile(r"^title[ \t]*:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_ENTRY = re.compile(r"^([^\W\d][\w-]*)[ \t]*:", re.MULTILINE)
#: The keys that Mermaid defines there.
_KEYS = ("title", "config", "displayMode")


def read_title(source: SourceText) -> tuple[str, int]:
    """Return the title of a chart, empty if it has none, and the offset where the block ends.

    Raises:
        NotationError: the block has an unknown key.
    """
    block = _BLOCK.match(source.text)
    if block is None:
        return "", 0
    for entry in _ENTRY.finditer(block[1]):
        if entry[1] not in _KEYS:
            near = did_you_mean(entry[1], _KEYS)
            hint = "limits are written as comments: %% %limit 2 NAME" if entry[1] in ("limit", "limits") else None
            source.fail_at(
                f"unknown key in the title block: {entry[1]}",
                source.place_of(block.start(1) + entry.start()),
                expected=_KEYS,
                suggestion=f"did you mean {near}?" if near else hint,
            )
    title = _TITLE.search(block[1])
    return normalize_text(_read_yaml_scalar(title[1])) if title else "", block.end()


def _read_yaml_scalar(value: str) -> str:
    if value.startswith('"'):
        try:
            return str(parse_json(value))
        except ValueError:
            return value.strip('"')
    return value[1:-1].replace("''", "'") if len(value) > 1 and value[0] == value[-1] == "'" else value
