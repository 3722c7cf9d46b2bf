"""Templates: what stands in them is filled in, and a name that there is not is told."""

import pytest

from formal_llm.planning.walks.templates import fill_template


def test_names_in_braces_are_filled_in() -> None:
    assert fill_template("{a} and {b}, {a}", {"a": 1, "b": "{a}"}) == "1 and {a}, 1"


def test_an_unknown_name_is_told_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"unknown placeholder \{c\}; there are: \{a\}, \{b\}"):
        fill_template("{c}", {"a": 1, "b": 2})
