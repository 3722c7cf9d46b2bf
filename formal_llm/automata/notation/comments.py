"""Comments of a text, attached to the statements beside them, and written with them again.

A comment above or after a statement belongs to it. A block at the top of the file, followed by an empty line,
belongs to the file. A statement that has changed since is printed differently, and has no comment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.automata.models.written import Comment, Written

W = TypeVar("W", bound=Written)

#: The keys of the comments at the top and at the end of a file.
TOP, END = "", "end of the file"


def attach_comments(value: W, comments: Mapping[str, Comment]) -> W:
    """Attach comments to a value that was just read, and return it."""
    object.__setattr__(value, "comments", FrozenDict(comments))
    return value


def collect_comments(
    text: str, code: Callable[[str], str], anchors: Iterable[tuple[int, str]], signs: Sequence[str] = ("#",)
) -> dict[str, Comment]:
    """Collect the comments of a text, by the keys of the statements that they belong to.

    Args:
        text: the text.
        code: a function that returns a line without its comment.
        anchors: the first line of each statement (from 1), and its key. A statement of several lines may have an
            anchor on each.
        signs: the signs that begin a comment.
    """
    keys: dict[int, list[str]] = {}
    for number, key in anchors:
        keys.setdefault(number, []).append(key)
    found: dict[str, Comment] = {}
    waiting: list[str] = []
    seen = False
    for number, line in enumerate(text.split("\n"), 1):
        comment = line[len(code(line)) :].strip() if any(sign in line for sign in signs) else ""
        if not comment.startswith(tuple(signs)):
            comment = ""
        keys_here = keys.get(number)
        if keys_here is not None:
            _add_comment(found, keys_here[0], above=waiting)
            _add_comment(found, keys_here[-1], beside=comment)
            waiting, seen = [], True
        elif comment:
            waiting.append(comment)
        elif not line.strip() and waiting and not seen:
            _add_comment(found, TOP, above=waiting)
            waiting = []
    _add_comment(found, END, above=waiting)
    return found


def _add_comment(found: dict[str, Comment], key: str, *, above: Iterable[str] = (), beside: str = "") -> None:
    above = tuple(above)
    if above or beside:
        old = found.get(key, Comment())
        if old.beside and beside:  # one statement that occurs twice
            above, beside = (*above, beside), ""
        found[key] = Comment((*old.above, *above), old.beside or beside)


def nearest(words: Sequence[str], limits: Sequence[str], terminals: Mapping[str, str]) -> str:
    """Return the printed line of the limit or terminal that these words concern; empty if there is none."""
    first, *rest = words
    same = [line for line in limits if line.split()[0] == first]
    near = [line for line in same if set(rest) & set(line.split()[1:])]
    exact = [line for line in same if line.split()[1:] == rest]
    return next(iter([*exact, *near, *same]), terminals.get(first, ""))


def add_comments(line: str, comment: Comment | None, indent: str = "") -> str:
    """Add the comments of a line; those above it are indented by ``indent``."""
    if comment is None:
        return line
    above = [indent + one for one in comment.above]
    return "\n".join([*above, f"{line}  {comment.beside}" if comment.beside else line])


def add_outer_comments(lines: Iterable[str], comments: Mapping[str, Comment]) -> list[str]:
    """Add the comments at the top and at the end of the file to its lines."""
    top, end = (comments[key].above if key in comments else () for key in (TOP, END))
    return [*top, *([""] if top else []), *lines, *end]
