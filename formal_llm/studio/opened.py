"""The file that the studio was opened with: read, and written back where it was not changed by others meanwhile."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from formal_llm import authored
from formal_llm.authored.files import read_bytes, read_text
from formal_llm.automata.notation.files import ENDINGS, endings
from formal_llm.errors import FormalLLMError, ResourceNotFound
from formal_llm.studio.rules import GUARD, PROCEDURE

_EXAMPLE = """\
# How to make tea. Change it and see what follows.
%limit 1 steep pour
tea "cup of tea" -> pour tea | steep tea | boil_water

boil_water "Boil water"
steep      "Steep the leaves"
pour       "Pour into a cup"
"""


def list_endings() -> tuple[str, ...]:
    """Return the endings of the files that the studio opens."""
    return (*endings(), PROCEDURE, GUARD)


class Changed(FormalLLMError):
    """The file was changed by somebody else since it was read."""


@dataclass
class Opened:
    """A file in the studio.

    Attributes:
        path: where it is; None where the page was opened without one, or with rules that are shipped.
        name: what it is called.
        ending: of which notation it is.
        text: what it held when it was read.
        version: identifies its contents; empty for a file that is not there yet.
        followed: the file of a run that is under way: a journal, log or trace.
    """

    path: Path | None
    name: str
    ending: str
    text: str
    version: str = ""
    followed: Path | None = None

    @classmethod
    def of(cls, name: str | None) -> Opened:
        """The file of a name or path; rules that are shipped are opened as a copy; None opens a small example.

        Raises:
            ResourceNotFound: there is no such thing.
            NotationError: the file cannot be read.
            FormalLLMError: its ending names no notation.
        """
        if name is None:
            return cls(None, "tea.cfg", ".cfg", _EXAMPLE)
        path = Path(name)
        if not path.suffix and not path.is_file():
            for kind in ("grammars", "agents"):
                if name in authored.names(kind):
                    shipped = authored.find(kind, name, ENDINGS)
                    return cls(None, shipped.name, shipped.suffix, read_text(shipped))
            known = [*authored.names("grammars"), *authored.names("agents")]
            raise ResourceNotFound("file or shipped rules", name, known)
        if path.suffix not in list_endings():
            raise FormalLLMError(f"{path}: the ending tells the notation; there are: {', '.join(list_endings())}")
        if not path.exists():
            if not path.parent.is_dir():
                raise FormalLLMError(f"{path}: there is no folder {path.parent}")
            return cls(path, path.name, path.suffix, "")
        return cls(path, path.name, path.suffix, read_text(path), _hash_file(path))

    def read_followed(self) -> str:
        """Read the file of the run that is under way; empty as long as it is not there.

        Raises:
            FormalLLMError: no run is followed, or its file cannot be read.
        """
        if self.followed is None:
            raise FormalLLMError("no run is followed: open the studio with --follow FILE")
        return read_text(self.followed) if self.followed.exists() else ""

    def save(self, text: str, version: str) -> str:
        """Write the text to the file, as a whole or not at all; gives its new version.

        Raises:
            Changed: it is not the ``version`` any more that the page knows.
            FormalLLMError: there is no file, or it cannot be written.
        """
        if self.path is None:
            raise FormalLLMError("the studio was not opened with a file: download the text instead")
        try:
            if (_hash_file(self.path) if self.path.exists() else "") != version:
                raise Changed(f"{self.path} was changed by somebody else since it was read; nothing was written")
            _replace_file(self.path, text)
            return _hash_file(self.path)
        except OSError as error:
            raise FormalLLMError(f"{self.path}: {error.strerror or error}") from None


def _hash_file(path: Path) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()


def _replace_file(path: Path, text: str) -> None:
    """Replace a file in one step, with its rights and its line ends."""
    path = path.resolve()
    data = text.encode()
    if path.exists():
        old = read_bytes(path)
        if b"\r\n" in old and old.count(b"\r\n") == old.count(b"\n"):
            data = data.replace(b"\n", b"\r\n")
        mode = path.stat().st_mode & 0o7777
    else:
        mode = 0o666 & ~_read_umask()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _read_umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
