"""Guards moved to :mod:`formal_llm.guard`; the old paths work for one version, with a warning.

What was ``formal_llm.agents.guard.NAME`` is imported from where it is now, so that there is one class of each name.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_MOVED = {
    **{name: f"formal_llm.control.{name}" for name in ("component", "machines", "search", "supervisor")},
    **{
        name: f"formal_llm.guard.rules.{name}"
        for name in ("compiled", "data", "expressions", "functions", "labels", "reading")
    },
    "plant": "formal_llm.control.plant",
    "rules": "formal_llm.guard.rules.rule_set",
}


class _Moved(MetaPathFinder, Loader):
    """Finds a module by its old path."""

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The new module under its old name; None for other modules."""
        if not fullname.startswith(f"{__name__}."):
            return None
        first, *rest = fullname.removeprefix(f"{__name__}.").split(".")
        new = ".".join([_MOVED.get(first, f"formal_llm.guard.{first}"), *rest])
        return ModuleSpec(fullname, self, origin=new)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Import the module from where it is now."""
        assert spec.origin is not None
        module = importlib.import_module(spec.origin)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is left to do but to restore what the import system has replaced."""
        old = module.__spec__
        if old is not None and old.loader is self:
            module.__spec__ = old.loader_state


warnings.warn("formal_llm.agents.guard is now formal_llm.guard", DeprecationWarning, stacklevel=2)
if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
    sys.meta_path.insert(0, _Moved())


def __getattr__(name: str) -> object:
    return getattr(importlib.import_module("formal_llm.guard"), name)
