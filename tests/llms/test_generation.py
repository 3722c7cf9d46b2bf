"""Chats and stops."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Answer, Question
from formal_llm.errors import InvalidAnswer, WritesNoText
from formal_llm.llms.generation import Generated, Messages, Writing, chat
from formal_llm.llms.question import Message
from formal_llm.llms.stops import Cutter, cut, first_stop
from formal_llm.llms.texts import Texts
from formal_llm.llms.usage import TokenUsage


def test_a_text_is_what_the_user_says() -> None:
    assert chat("a") == (Message("user", "a"),)
    assert chat([Message("system", "b")]) == (Message("system", "b"),)


@given(st.text("ab;"), st.lists(st.text("ab;", max_size=2)))
def test_cut(text: str, stop: list[str]) -> None:
    short = cut(text, stop)
    assert text.startswith(short)
    assert all(one not in short for one in stop if one)
    assert short == text or any(text[len(short) :].startswith(one) for one in stop if one)


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


@given(st.text("ab;"), st.lists(st.text("ab;", max_size=3), max_size=3), st.integers(1, 4))
def test_a_text_in_pieces_ends_where_the_whole_does(text: str, stop: list[str], size: int) -> None:
    cutter = Cutter(stop)
    pieces = [cutter.feed(text[at : at + size]) for at in range(0, len(text), size)]
    pieces.append(cutter.close())
    whole, ended = cutter.whole, cutter.ended
    found = first_stop(text, stop)
    assert (ended is None) == (found is None)
    assert not ended or text[len(whole) :].startswith(ended)


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
    assert list(asked.told_by(Continues())) == ["u and on", Generated("u and on", TokenUsage(1), "")]
    with pytest.raises(WritesNoText):
        list(asked.told_by(Echo()))


def test_texts_are_answers_to_requests() -> None:
    asked: list[Question] = []

    def choose(question: Question) -> Answer:
        asked.append(question)
        return Answer((), text="a", ended="x")

    texts = Texts(choose)
    assert texts.generate("u", stop=["x"]) == texts.continue_text("u", stop=["x"]) == Generated("a", ended="x")
    assert asked == [Writing("u", stop=["x"]), Writing("u", stop=["x"], continues=True)]
