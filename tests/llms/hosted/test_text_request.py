"""Requests for text, and what is left of them when a server refuses a part."""

from __future__ import annotations

import pytest

from formal_llm.llms.hosted.text_request import TextRequest, without_what_was_refused
from formal_llm.llms.question import Message

REQUEST = TextRequest((Message("user", "x"),), 9, ("a",), 0.5)


class Refused(Exception):
    def __init__(self, said: str, status: int = 400) -> None:
        super().__init__(said)
        self.status_code = status


def test_less_of_what_was_refused() -> None:
    less = without_what_was_refused(Refused("temperature is not supported"), REQUEST)
    assert less is not None and less.temperature is None and less.stop == ("a",)
    less = without_what_was_refused(Refused("unknown: stop", 422), REQUEST)
    assert less is not None and less.stop == () and less.temperature == 0.5
    for error in (Refused("temperature", 500), Refused("too long"), ValueError("stop")):
        assert without_what_was_refused(error, REQUEST) is None


def test_nothing_is_no_request() -> None:
    with pytest.raises(ValueError, match="nothing to go on from"):
        TextRequest((), 9)
    with pytest.raises(ValueError, match="no token to write"):
        TextRequest(REQUEST.messages, 0)
