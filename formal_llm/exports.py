"""Names that are imported when they are first used.

``import formal_llm`` and a first plan load only the modules that they need. A room that exports many names lists where
each is defined (:func:`export_lazily`). A function of a floor above is imported when it is called
(:class:`LazyFunction`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import resolve_name
from typing import Any


def export_lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The ``__getattr__`` of a package whose names are defined in its modules (PEP 562).

    Args:
        package: the package's ``__name__``.
        homes: for each exported name the module that defines it, relative to the package. No name may be that of a
            submodule: importing the submodule would set the same attribute.
    """

    def get_export(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)  # from now on it is found without this function
        return value

    return get_export


class LazyFunction:
    """A function that is imported when it is called, given as ``"module:function"``."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, *args: object, **options: object) -> Any:
        """Import the function if it is not imported yet, and call it."""
        return resolve_name(self.path)(*args, **options)
