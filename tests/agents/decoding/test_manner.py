"""How a model is asked."""

from __future__ import annotations

import pytest

from formal_llm.agents import Markers
from formal_llm.agents.decoding.continuing import ContinuingWriter
from formal_llm.agents.decoding.manner import Phrases, WritingConfig, build_chat, build_question
from formal_llm.agents.decoding.writer import Bounds
from formal_llm.errors import WritesNoText
from formal_llm.llms import RandomLLM

HOW = WritingConfig(Markers({"a": "[A]"}), "You act.", Bounds(), Phrases(), 0.0, False)


def test_a_question() -> None:
    system, asked = build_question("[Question] How?\n", Phrases().next, ["[A]", "[B]"], HOW).messages
    assert system.content == "You act."
    assert asked.content == (
        "[Question] How?\n\nWhat comes next?\n1: [A]\n2: [B]\n\n"
        "Answer with the number of your choice, an integer from 1 to 2, and nothing else."
    )


def test_a_talk_takes_turns() -> None:
    assert [message.role for message in build_chat("", "a", "b", "c")] == ["user", "assistant", "user"]


def test_a_model_that_does_not_write_is_refused() -> None:
    with pytest.raises(WritesNoText):
        ContinuingWriter(RandomLLM(), Markers({"a": "[A]"}))
