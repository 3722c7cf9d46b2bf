"""Provider strings, and asking with a bounded number of tries."""

from __future__ import annotations

import pytest

from formal_llm import Answer, FunctionLLM, InvalidAnswer, Question, RandomLLM, ScriptedLLM, UnknownProvider
from formal_llm.llms import PROVIDERS, TokenUsage, ask, resolve
from formal_llm.llms.builtin import BuiltinLLM
from formal_llm.llms.person import Person

QUESTION = Question("Which?", ["a", "b", "c"])


def test_provider_strings() -> None:
    assert isinstance(resolve("builtin"), BuiltinLLM)
    assert isinstance(resolve("person"), Person)
    assert isinstance(resolve("test:random"), RandomLLM)
    assert isinstance(resolve("test:script=1,2+3"), ScriptedLLM)
    assert resolve("test:first").choose(QUESTION).number == 1
    draws = [[resolve(f"test:random={seed}").choose(QUESTION).number for _ in range(3)] for seed in (1, 1)]
    assert draws[0] == draws[1]


@pytest.mark.parametrize(
    "name",
    ["", "bultin", "openai", "openai:", "anthropic:", "test:", "test:randm", "test:random=x", "test:script=", "x:y",
     "test:first=2", "test:script=a,b", "BUILTIN"],
)  # fmt: skip
def test_other_strings_are_told_with_the_forms_there_are(name: str) -> None:
    with pytest.raises(UnknownProvider) as caught:
        resolve(name)
    assert caught.value.known == tuple(PROVIDERS)
    assert "openai:MODEL" in str(caught.value)


def test_the_nearest_provider_is_suggested() -> None:
    with pytest.raises(UnknownProvider, match="Did you mean 'builtin'"):
        resolve("bultin")
    with pytest.raises(UnknownProvider, match="Did you mean 'anthropic'"):
        resolve("antropic:x")


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
