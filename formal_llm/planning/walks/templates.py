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
    pieces = _pieces(template)
    for name in pieces[1::2]:
        if name not in values:
            raise ValueError(f"unknown placeholder {{{name}}}; there are: {', '.join(f'{{{n}}}' for n in values)}")
    return "".join([str(values[piece]) if place % 2 else piece for place, piece in enumerate(pieces)])


@lru_cache(maxsize=256)
def _pieces(template: str) -> tuple[str, ...]:
    """The texts of a template, and between them the names of its placeholders."""
    return tuple(_PLACEHOLDER.split(template))
