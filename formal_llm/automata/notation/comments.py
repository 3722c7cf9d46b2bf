"""Comments of a text, kept by the statements that they stand with, and written with them again.

A comment above a statement or behind it belongs to it. A block at the top of the file, with an empty line after it,
belongs to the file. What is printed for a statement that has changed since is another statement, and has no comment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from formal_llm.automata.models.frozen import FrozenDict
from formal_llm.automata.models.written import Comment, Written

W = TypeVar("W", bound=Written)

#: What the comments at the top and at the end of a file belong to.
TOP, END = "", "end of the file"


def attach_comments(value: W, comments: Mapping[str, Comment]) -> W:
    """A value that was just read, with its comments."""
    object.__setattr__(value, "comments", FrozenDict(comments))
    return value


def collect_comments(
    text: str, code: Callable[[str], str], anchors: Iterable[tuple[int, str]], signs: Sequence[str] = ("#",)
) -> dict[str, Comment]:
    """The comments of a text, by the keys of the statements that they stand with.

    Args:
        text: the text.
        code: a line without its comment.
        anchors: the statements: the line where one begins (from 1), and its key. One of several lines may have an
            anchor on each.
        signs: what a comment begins with.
    """
    keys: dict[int, list[str]] = {}
    for number, key in anchors:
        keys.setdefault(number, []).append(key)
    found: dict[str, Comment] = {}
    waiting: list[str] = []
    seen = False
    for number, line in enumerate(text.split("\n"), 1):
        said = line[len(code(line)) :].strip() if any(sign in line for sign in signs) else ""
        if not said.startswith(tuple(signs)):
            said = ""
        here = keys.get(number)
        if here is not None:
            _add_comment(found, here[0], above=waiting)
            _add_comment(found, here[-1], beside=said)
            waiting, seen = [], True
        elif said:
            waiting.append(said)
        elif not line.strip() and waiting and not seen:
            _add_comment(found, TOP, above=waiting)
            waiting = []
    _add_comment(found, END, above=waiting)
    return found


def _add_comment(found: dict[str, Comment], key: str, *, above: Iterable[str] = (), beside: str = "") -> None:
    above = tuple(above)
    if above or beside:
        old = found.get(key, Comment())
        if old.beside and beside:  # one statement, written twice
            above, beside = (*above, beside), ""
        found[key] = Comment((*old.above, *above), old.beside or beside)


def nearest(words: Sequence[str], limits: Sequence[str], terminals: Mapping[str, str]) -> str:
    """The printed line of the limit or the terminal that these words are about; empty where there is none."""
    first, *rest = words
    same = [line for line in limits if line.split()[0] == first]
    near = [line for line in same if set(rest) & set(line.split()[1:])]
    exact = [line for line in same if line.split()[1:] == rest]
    return next(iter([*exact, *near, *same]), terminals.get(first, ""))


def add_comments(line: str, comment: Comment | None, indent: str = "") -> str:
    """A line with its comments, those above it as far to the right as ``indent``."""
    if comment is None:
        return line
    above = [indent + one for one in comment.above]
    return "\n".join([*above, f"{line}  {comment.beside}" if comment.beside else line])


def add_outer_comments(lines: Iterable[str], comments: Mapping[str, Comment]) -> list[str]:
    """Lines, between the comments at the top and at the end of the file."""
    top, end = (comments[key].above if key in comments else () for key in (TOP, END))
    return [*top, *([""] if top else []), *lines, *end]
