"""The root of the tree, and how messages suggest what was meant."""

from __future__ import annotations

import copyreg
from collections.abc import Iterable


class FormalLLMError(Exception):
    """Base of all exceptions of this library."""

    def __reduce__(self) -> tuple[object, ...]:
        # Pickled and copied without their constructors, which take facts and not the text.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """The known name nearest to ``name``, or None when nothing is near (letter case does not count)."""
    import difflib  # takes longer to load than all of this package; needed only when something is wrong

    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.casefold(), candidate)
    near = difflib.get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    return folded[near[0]] if near else None


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """The sentence for a name that is not known, with the nearest one that is."""
    near = did_you_mean(name, known)
    return f"unknown {what}: {name}" + (f" (did you mean {near}?)" if near else "")


class ResourceNotFound(FormalLLMError, LookupError):
    """No grammar, task pack or file of that name.

    Attributes:
        name: what was asked for.
        known: the names there are.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str] = ()) -> None:
        self.kind = kind
        self.name = name
        self.known = tuple(known)
        near = did_you_mean(name, self.known)
        hint = f" Did you mean {near!r}?" if near else ""
        there = f" There are: {', '.join(self.known)}." if self.known else ""
        super().__init__(f"no {kind} {name!r}.{hint}{there}")


class PluginError(FormalLLMError):
    """What an installed package offers to this library cannot be used.

    Attributes:
        kind: what it is: ``"provider"``, ``"task pack"``, ``"toolkit"``, ``"notation"`` or ``"estimator"``.
        packages: the packages that offer it, with their versions.
    """

    def __init__(self, kind: str, name: str, packages: tuple[str, ...], problem: str) -> None:
        self.kind = kind
        self.name = name
        self.packages = packages
        super().__init__(problem)
