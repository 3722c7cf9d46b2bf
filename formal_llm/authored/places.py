"""Where the authored files are: grammars, behaviours, task packs and training recipes.

They live in top-level folders of the repository and travel in the wheel as data. A name is looked up the same way in a
checkout and in an installed package. It means what is shipped, also where a file or folder beside the user is called
so; a path is written with a slash, as in ``./openagi``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from formal_llm.authored.plugins import Plugins
from formal_llm.errors import ResourceNotFound


class PackFolder(Protocol):
    """Where a task pack is. Packages offer theirs in the group ``formal_llm.packs``, by the name of its folder."""

    def __call__(self) -> Path:
        """The folder with the ``pack.toml``; it is called as the pack is."""
        ...


#: The task packs of other packages.
PACKS: Plugins[Path] = Plugins(
    "formal_llm.packs", "task pack", "the path of a folder of that name with a pack.toml",
    lambda name, made: isinstance(made, Path) and made.name == name and (made / "pack.toml").is_file(),
    lambda: names("tasks"),
)  # fmt: skip

_PACKAGE = Path(__file__).parent.parent
#: Of each kind what messages call it, its folder, and what in it has a name.
_KINDS = {
    "grammars": ("grammar", "grammars", "[!._]*.*"),
    "agents": ("behaviour", "grammars/agents", "[!._]*.*"),
    "gallery": ("rules", "grammars/gallery", "[!._]*.*"),
    "tasks": ("task pack", "tasks", "[!._]*/pack.toml"),
    "training": ("recipe", "training", "[!._]*.toml"),
}


def _root(kind: str) -> Path:
    """The folder of ``kind``: beside the package in a checkout, inside it when installed."""
    installed = _PACKAGE / "_authored"
    return (installed if installed.is_dir() else _PACKAGE.parent) / _KINDS[kind][1]


def names(kind: str) -> list[str]:
    """The names there are: files by their stem, task packs by their folder.

    Args:
        kind: ``"grammars"``, ``"agents"``, ``"gallery"``, ``"tasks"`` or ``"training"``.
    """
    found = (path.parent.name if kind == "tasks" else path.stem for path in _root(kind).glob(_KINDS[kind][2]))
    return sorted(set(found))


def is_path(name: str) -> bool:
    """Whether this is written as a path: with a slash, as in ``./openagi``, or a dot for the folder itself."""
    return "/" in name or os.sep in name or name in ("", ".", "..")


def find(kind: str, name: str, suffixes: tuple[str, ...] = ()) -> Path:
    """The file or folder that ``name`` means: the shipped one of that name, else the path.

    With a slash it is a path first. A task pack may also be one that another package offers.

    Args:
        kind: ``"grammars"``, ``"agents"``, ``"gallery"``, ``"tasks"`` or ``"training"``.
        name: a path, or a name without suffix.
        suffixes: the suffixes of files to look for; none to look for a folder.

    Raises:
        ResourceNotFound: neither a path nor a known name.
        PluginError: the task pack of another package cannot be used.
    """
    shipped = _root(kind) / name
    candidates = [shipped, *(shipped.with_name(shipped.name + suffix) for suffix in suffixes)]
    candidates.insert(0 if is_path(name) else len(candidates), Path(name))
    for candidate in candidates:
        if candidate.is_file() if suffixes else candidate.is_dir():
            return candidate
    known = names(kind)
    if kind == "tasks":
        if (folder := PACKS.make(name)) is not None:
            return folder
        known += PACKS.names()
    raise ResourceNotFound(_KINDS[kind][0], name, known)


def user_cache() -> Path:
    """The folder for what was computed once: ``$XDG_CACHE_HOME/formal-llm``, else ``~/.cache/formal-llm``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "formal-llm"
