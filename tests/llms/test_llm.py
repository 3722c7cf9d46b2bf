"""What stands for an LLM, and asking with a bounded number of tries."""

from __future__ import annotations

import pytest

from formal_llm import Answer, FunctionLLM, InvalidAnswer, Question
from formal_llm.llms import TokenUsage, ask, resolve

QUESTION = Question("Which?", ["a", "b", "c"])


def test_functions_and_objects() -> None:
    class Mine:
        def choose(self, question: Question) -> Answer:
            return Answer((2,))

    assert resolve(Mine()).choose(QUESTION).number == 2
    assert isinstance(resolve(lambda question: 1), FunctionLLM)
    with pytest.raises(TypeError):
        resolve(3)  # type: ignore[arg-type]


def test_ask_adds_up_what_all_tries_cost() -> None:
    asked: list[Question] = []

    class Costly:
        def choose(self, question: Question) -> Answer:
            asked.append(question)
            usage = TokenUsage(1, 100, 3)
            if len(asked) < 3:
                raise InvalidAnswer("it was cut off", [(question.prompt, "...")], usage)
            return Answer((1,), usage=usage)

    answer = ask(Costly(), QUESTION, tries=3)
    assert answer.usage == TokenUsage(3, 300, 9)
    assert [bool(question.complaint) for question in asked] == [False, True, True]


def test_ask_gives_up_with_the_transcript() -> None:
    calls = 0

    def bad(question: Question) -> str:
        nonlocal calls
        calls += 1
        return f"thing {calls}"

    with pytest.raises(InvalidAnswer, match="after 4 tries") as caught:
        ask(FunctionLLM(bad), QUESTION, tries=4)
    assert [text for _, text in caught.value.transcript] == ["thing 1", "thing 2", "thing 3", "thing 4"]


def test_other_errors_are_not_swallowed() -> None:
    def broken(question: Question) -> int:
        raise RuntimeError("the stove is on fire")

    with pytest.raises(RuntimeError, match="stove"):
        ask(FunctionLLM(broken), QUESTION)
