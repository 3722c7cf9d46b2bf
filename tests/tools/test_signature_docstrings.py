"""Docstrings of three styles."""

from __future__ import annotations

from inspect import cleandoc

import pytest

from formal_llm.tools.signature import read_parameters

GOOGLE = cleandoc("""Do something.

    Args:
        a: the first,
            on two lines.
        b (int, optional): the second

        c (Callable[[int], str]): the third: with a colon
        *d: all others
        e:

    Returns:
        f: not a parameter
    """)
NUMPY = cleandoc("""Do something.

    Parameters
    ----------
    a : int
        the first,
        on two lines.
    b, c : str, optional
        both

    *d
        all others

    Returns
    -------
    f : int
        not a parameter
    """)
SPHINX = cleandoc("""Do something.

    :param a: the first,
        on two lines.
    :param int b: the second
    :type b: int
    :keyword c: the third
    :returns: nothing
    """)


@pytest.mark.parametrize(
    ("docstring", "expected"),
    [
        (
            GOOGLE,
            {"a": "the first, on two lines.", "b": "the second", "c": "the third: with a colon", "d": "all others"},
        ),
        (NUMPY, {"a": "the first, on two lines.", "b": "both", "c": "both", "d": "all others"}),
        (SPHINX, {"a": "the first, on two lines.", "b": "the second", "c": "the third"}),
        ("Arguments are a: one", {}),
        ("Do.\n\nArgs:\nnot indented: no", {}),
        ("Do.\n\nArgs:", {}),
        ("", {}),
    ],
)
def test_parameters_are_described(docstring: str, expected: dict[str, str]) -> None:
    assert read_parameters(docstring) == expected
