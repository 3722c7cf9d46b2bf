"""Names that look alike: ``roll_back``, ``rollback`` and ``Rollbacks`` may be one step under several names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_ENDING = re.compile(r"(?<=\w{3})(?:ing|ed|e)$|(?<=\w\w)es$|(?<=\w[^suiy])s$")


def looks_of(name: str) -> str:
    """Return what is left of a name without its spacing, case, and the regular endings of its words."""
    words = re.split(r"(?<=[a-z])(?=[A-Z])|[\s_-]+", name.strip())
    return "".join(re.sub(r"([^aeiouls])\1$", r"\1", _ENDING.sub("", word.lower())) for word in words)


def spelling_warnings(names: Iterable[str], label: Callable[[str], str]) -> list[str]:
    """Return warnings about terminals that may be one step; two with one label are one step at two places of a chart.

    Names of fewer than three letters are not compared: they are letters of a formal language.
    """
    first: dict[str, str] = {}
    labels = dict.fromkeys(label(name) for name in names)
    pairs = [(first.setdefault(looks_of(name), name), name) for name in labels]
    return [
        f"{one} and {other} differ only in how they are spelled; if they are one step, call both by one name"
        for one, other in pairs if one != other and sum(map(str.isalpha, other)) >= 3
    ]  # fmt: skip
