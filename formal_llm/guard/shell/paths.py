"""Paths of files in shell lines and tool calls: where they lead, and whether they are inside a folder."""

from __future__ import annotations

import posixpath
import re

from formal_llm.guard.shell.reader import ShellWord

#: The folder of all paths that are only known at run time; it is in no other folder but the root.
UNKNOWN_FOLDER = "/?/"
#: A word that is unknown only because of stars in its last part, which stand for no dots at the beginning.
_STARS = re.compile(r"(?:[\w./@%+:,-]*/)?(?![.])[\w.@%+:,*?-]*")


def locate_path(folder: str | None, word: ShellWord, *, links: bool, entry: bool = False) -> str:
    """Return where a path leads, without ``.`` and ``..``.

    Args:
        folder: the folder that a relative path begins in; None if it is unknown.
        word: the path.
        links: whether to ask the file system, so that links and the home folder are resolved.
        entry: the path means the entry itself, as for ``rm``: a link at its end is not followed.

    Returns:
        The path; one that is only known at run time is in :data:`UNKNOWN_FOLDER`.
    """
    text = word.text
    if not word.known and links and re.match(r"~(?=/|$)", text):
        text = posixpath.expanduser("~") + text[1:]
        word = ShellWord(text, re.fullmatch(r"[\w./@%+:,-]*", text) is not None)
    if not (word.known or _STARS.fullmatch(text)) or (folder is None and not text.startswith("/")) or "\0" in text:
        return UNKNOWN_FOLDER + text.replace("/", "|")
    whole = posixpath.join(folder or "/", text)
    if not links:
        return posixpath.normpath(f"/{whole.lstrip('/')}" if whole.startswith("/") else whole)
    head, tail = posixpath.split(whole)
    if entry and tail not in ("", ".", ".."):
        return posixpath.join(posixpath.realpath(head), tail)
    return posixpath.realpath(whole)


def find_project(cwd: str) -> str:
    """Return the folder of the project that a folder belongs to: the nearest one with ``.git``, or else itself."""
    if not cwd:
        return ""
    folder = here = posixpath.realpath(cwd)
    while not posixpath.exists(posixpath.join(folder, ".git")):
        if folder == "/":
            return here
        folder = posixpath.dirname(folder)
    return folder


def shorten_path(path: str, project: str) -> str:
    """Return a path relative to the folder of a project if it is inside, otherwise unchanged."""
    return posixpath.relpath(path, project) if project and is_inside_folder(path, project) else path


def is_inside_folder(path: str, folder: str) -> bool:
    """Return whether a path is in a folder, with ``..`` resolved; a relative path has the same base as the folder."""
    inner, outer = posixpath.normpath(path), posixpath.normpath(folder)
    if outer == ".":
        return not inner.startswith(("/", "../")) and inner != ".."
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")
