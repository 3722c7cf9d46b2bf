"""Names that are imported when they are first used.

``import formal_llm`` and a first plan load only the modules that they need. A room that exports many names lists where
each is defined.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def export_lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """The ``__getattr__`` of a package whose names are defined in its modules (PEP 562).

    Args:
        package: the package's ``__name__``.
        homes: for each module, relative to the package, the names that it defines, with blanks between them. No name
            may be that of a submodule: importing the submodule would set the same attribute.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def get_export(name: str) -> object:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{home_of[name]}"), name)
        setattr(sys.modules[package], name, value)  # from now on it is found without this function
        return value

    return get_export
