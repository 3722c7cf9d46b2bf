"""Values: decoded once, lent as copies, equal by content."""

from __future__ import annotations

import copy
import pickle

import pytest

from formal_llm import InputError
from formal_llm.tools import IMAGE, TEXT, Value
from tests.tools.picture_tools import picture


def test_values_decode_once_and_lend_copies() -> None:
    value = Value(IMAGE, picture())
    lent = value.copy()
    lent.paste(0, (0, 0, 16, 16))
    assert value.get().tobytes() == picture().tobytes()
    stored = Value(IMAGE, payload=value.dump(), key=value.key)
    assert stored.size < value.size
    assert stored.get() is stored.get()
    assert stored.get().tobytes() == picture().tobytes()


def test_values_are_equal_by_content() -> None:
    assert Value(IMAGE, picture()) == Value(IMAGE, picture()) != Value(IMAGE, picture(1))
    assert Value(TEXT, "a") != "a"
    assert len({Value(TEXT, "a"), Value(TEXT, "a"), Value(TEXT, "b")}) == 2


def test_values_travel_as_their_bytes() -> None:
    for value in (Value(TEXT, "grüße"), Value(IMAGE, picture())):
        for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
            assert again == value
            assert again.dump() == value.dump()
            assert again.kind.key(again.get()) == value.key


def test_bytes_that_are_no_value() -> None:
    value = Value(TEXT, key="k", payload=b"\xff")
    with pytest.raises(InputError, match="no readable text"):
        value.get()
    assert value.dump() == b"\xff"
    assert repr(value) == "<Value text k>"
