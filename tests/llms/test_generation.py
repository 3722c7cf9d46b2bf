"""Chats, and requests for text."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pytest

from formal_llm import Answer, Question
from formal_llm.errors import InvalidAnswer, WritesNoText
from formal_llm.llms.generation import Generated, Messages, Writing, chat
from formal_llm.llms.question import Message
from formal_llm.llms.usage import TokenUsage


def test_a_text_is_what_the_user_says() -> None:
    assert chat("a") == (Message("user", "a"),)
    assert chat([Message("system", "b")]) == (Message("system", "b"),)


class Echo:
    """Writes what it is told to."""

    name = "echo"

    def choose(self, question: Question) -> Answer:
        return Answer((1,))

    def generate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        return Generated(f"{chat(messages)[-1].content} {max_tokens} {stop} {temperature}", TokenUsage(1, 2, 3))


def test_a_request_for_text_is_a_question_without_options() -> None:
    asked = Writing([Message("system", "s"), Message("user", "u")], max_tokens=9, stop=["x"], walk="7")
    assert asked.options == () and asked.prompt == "u" and asked.walk == "7"
    assert [message.content for message in asked.messages] == ["s", "u"]
    answer = asked.written_by(Echo())
    assert answer.text == "u 9 ('x',) 0.0" and answer.usage == TokenUsage(1, 2, 3) and answer.numbers == ()
    assert asked.check(answer) is answer and asked.check("any text").text == "any text"
    with pytest.raises(InvalidAnswer, match="int is no text"):
        asked.check(3)
    with pytest.raises(ValueError, match="nothing to go on from"):
        Writing([])


def test_requests_for_text_are_values() -> None:
    asked = Writing("u", max_tokens=9)
    assert pickle.loads(pickle.dumps(asked)) == asked == Writing("u", max_tokens=9) != Writing("u")
    assert asked.content["writes"] == {"max_tokens": 9, "stop": [], "temperature": 0.0}
    assert asked.again("x") is asked


class Continues(Echo):
    def continue_text(
        self, prompt: str, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        return Generated(f"{prompt} and on", TokenUsage(1), "")


def test_a_text_to_go_on_with_is_another_request() -> None:
    asked = Writing("u", continues=True)
    assert asked != Writing("u")
    assert asked.content["writes"]["continues"] is True  # type: ignore[index]
    assert pickle.loads(pickle.dumps(asked)) == asked
    assert asked.written_by(Continues()) == Answer((), text="u and on", usage=TokenUsage(1), ended="")
    assert asked.written_by(Echo()) is None
    assert Writing("u").written_by(object()) is None
    assert list(asked.streamed_by(Continues())) == ["u and on", Generated("u and on", TokenUsage(1), "")]
    with pytest.raises(WritesNoText):
        list(asked.streamed_by(Echo()))
