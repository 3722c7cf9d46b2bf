"""Lists that make no sense where they stand. What each pattern means is tried in test_patterns.py."""

from __future__ import annotations

import pytest

from formal_llm.authoring.number_patterns import NUMBER
from formal_llm.authoring.patterns import Misread


def test_a_list_of_one_is_misread() -> None:
    pattern = next(one for one in NUMBER if one.name == "exactly one of")
    found = pattern.read("exactly one of a")
    assert found is not None
    with pytest.raises(Misread, match="two steps or more"):
        pattern.asked(found)


def test_who_begins_is_one_of_the_two() -> None:
    pattern = next(one for one in NUMBER if one.name == "alternate")
    found = pattern.read("lock and unlock alternate, starting with knock")
    assert found is not None
    with pytest.raises(Misread, match="neither of the two"):
        pattern.asked(found)
