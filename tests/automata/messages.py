"""The messages of readers: where their carets point, and the warnings that random texts call for."""

import warnings
from contextlib import contextmanager

from formal_llm.errors import GrammarWarning


@contextmanager
def quiet():
    """Random grammars look like mistakes more often than not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrammarWarning)
        yield


def from_caret(error):
    """What the caret points to in the text of an error, checked against the attributes."""
    shown, pointer = str(error).split("\n")[1:3]
    margin = shown.index(" | ") + 3
    assert shown[:margin] == f"  {error.line} | "
    assert pointer[:margin] == " " * (margin - 2) + "| "
    assert shown[margin:] == error.source_line.replace("\t", " ")
    assert pointer.index("^") - margin == error.column - 1
    return shown[pointer.index("^") :]


def check_place(error):
    """Check that an error has its place on the line, if any, and that its caret is under it."""
    if error.line is None:
        return
    assert 1 <= error.column <= len(error.source_line) + 1
    if len(error.source_line) < 100:
        assert from_caret(error) == error.source_line[error.column - 1 :].replace("\t", " ")
