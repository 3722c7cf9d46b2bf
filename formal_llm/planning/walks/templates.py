"""Templates: texts with places that are filled in, ``{name}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

_PLACEHOLDER = re.compile(r"\{(\w*)\}")


def fill(template: str, values: Mapping[str, object]) -> str:
    """``template`` with each ``{name}`` replaced.

    Raises:
        ValueError: a name that is not in ``values``; the message lists those that are.
    """
    form, names = _compiled(template)
    try:
        return form % tuple([values[name] for name in names])
    except KeyError as name:
        known = ", ".join(f"{{{one}}}" for one in values)
        raise ValueError(f"unknown placeholder {{{name.args[0]}}}; there are: {known}") from None


@lru_cache(maxsize=256)
def _compiled(template: str) -> tuple[str, tuple[str, ...]]:
    """A template as Python's ``%`` takes it, and the names of its placeholders in order."""
    pieces = _PLACEHOLDER.split(template)
    return "%s".join(text.replace("%", "%%") for text in pieces[::2]), tuple(pieces[1::2])
