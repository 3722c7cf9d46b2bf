"""Asking, wrappers and provider strings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from formal_llm import (
    CFG,
    Answer,
    AsyncFunctionLLM,
    AsyncLLM,
    BatchLLM,
    FunctionLLM,
    Planner,
    Question,
    RandomLLM,
    RecordedLLM,
    ScriptedLLM,
)  # fmt: skip
from formal_llm.errors import InvalidAnswer, LLMError, ProviderError, UnknownProvider, UnreadableResponse, WritesNoText
from formal_llm.llms import PROVIDERS, TokenUsage, ask, resolve
from formal_llm.llms.builtin import BuiltinLLM
from formal_llm.llms.doubles import Person
from formal_llm.llms.providers import MAKERS, check_providers
from formal_llm.llms.question import Answer
from formal_llm.llms.text_request import Messages, TextRequest
from formal_llm.llms.wrappers import SureLLM, WrapperLLM

QUESTION = Question("Which?", ["a", "b", "c"])
EITHER = Question("Which?", ["a", "b"])


def test_functions_and_objects() -> None:
    class Mine:
        def answer(self, question: Question) -> Answer:
            return Answer((2,))

    assert resolve(Mine()).ask(QUESTION).number == 2
    assert isinstance(resolve(lambda question: 1), FunctionLLM)
    with pytest.raises(TypeError):
        resolve(3)  # type: ignore[arg-type]


def test_ask_adds_up_what_all_tries_cost() -> None:
    asked: list[Question] = []

    class Costly:
        def answer(self, question: Question) -> Answer:
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


class Passing(WrapperLLM):
    """Hands everything on."""

    closed = False

    def answer(self, question: Question) -> Answer:
        return self.llm.ask(question)

    async def _achoose(self, question: Question) -> Answer:
        return await self._awaited.aask(question)

    def _choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        return self._batched.choose_many(questions)

    def close(self) -> None:
        self.closed = True


class Many:
    name = "many"
    identity = {"llm": "many"}  # noqa: RUF012  # as the protocol has it

    def answer(self, question: Question) -> Answer:
        return Answer((1,))

    def choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
        return [Answer((2,)) for _ in questions]


async def second(question: Question) -> int:
    return 2


def test_it_is_asked_in_the_ways_of_the_one_behind() -> None:
    alone, awaited, many = Passing(lambda question: 1), Passing(second), Passing(Many())
    assert [isinstance(llm, AsyncLLM) for llm in (alone, awaited, many)] == [False, True, False]
    assert [isinstance(llm, BatchLLM) for llm in (alone, awaited, many)] == [False, False, True]
    assert alone.ask(EITHER).number == 1
    assert asyncio.run(awaited.aask(EITHER)).number == 2
    assert [answer.number for answer in many.choose_many([EITHER] * 3)] == [2, 2, 2]


def test_names_and_identities() -> None:
    assert Passing("test:first").name == "test:first"
    assert Passing(Many()).name == "many" and Passing(Many()).identity == {"llm": "many"}
    assert Passing(FunctionLLM(lambda question: 1)).name == "FunctionLLM"
    assert Passing("test:first").identity is None
    assert repr(Passing("test:first")) == "<Passing test:first>"


def test_it_is_closed_behind_a_with() -> None:
    with Passing("test:first") as llm:
        assert not llm.closed
    assert llm.closed


def test_what_is_not_legal_in_a_batch_becomes_its_error() -> None:
    failed = ProviderError("no connection")
    assert checked(EITHER, failed) is failed
    assert checked(EITHER, Answer((2,))) == Answer((2,))
    wrong = checked(EITHER, Answer((3,)))
    assert isinstance(wrong, InvalidAnswer) and "3 is not one of the numbers" in wrong.problem
    with pytest.raises(TypeError):
        Passing(3)  # type: ignore[arg-type]


class Moody:
    """Answers with what stands in a list: an answer, or an error to raise."""

    def __init__(self, *turns: Answer | LLMError) -> None:
        self.turns = list(turns)
        self.asked: list[Question] = []

    def answer(self, question: Question) -> Answer:
        self.asked.append(question)
        turn = self.turns.pop(0)
        if isinstance(turn, LLMError):
            raise turn
        return turn


PAGE = UnreadableResponse("a page of HTML")
BAD = InvalidAnswer("it was none", [("q", "?")], TokenUsage(1, 10, 1))
GOOD = Answer((2,), usage=TokenUsage(1, 5, 1))


def test_a_response_that_cannot_be_read_is_asked_for_again_with_the_same_question() -> None:
    question = Question("q", ["a", "b"])
    llm = Moody(PAGE, PAGE, GOOD)
    assert ask(llm, question).number == 2
    assert llm.asked == [question] * 3
    with pytest.raises(UnreadableResponse):
        ask(Moody(PAGE, PAGE, PAGE, GOOD), question)
    with pytest.raises(ProviderError):
        ask(Moody(ProviderError("down"), GOOD), question)
    # What was wrong before is still told.
    llm = Moody(BAD, PAGE, GOOD)
    answer = ask(llm, question)
    assert [bool(one.complaint) for one in llm.asked] == [False, True, True]
    assert answer.usage == TokenUsage(2, 15, 2)
    plan = Planner(CFG.from_string("S -> a | b"), Moody(PAGE, BAD, GOOD)).plan("t")
    assert (plan.word, plan.usage.requests) == (("b",), 2)


@pytest.mark.parametrize("error", [PAGE, ProviderError("down")])
def test_an_error_after_bad_answers_knows_what_they_cost(error: LLMError) -> None:
    with pytest.raises(type(error)) as caught:
        ask(Moody(BAD, BAD, error), Question("q", ["a", "b"]))
    assert caught.value.usage == TokenUsage(2, 20, 2)


def test_a_text_is_asked_of_those_who_write_and_refused_by_those_who_choose(tmp_path: Path) -> None:
    class Writes(FunctionLLM):
        def generate(
            self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
        ) -> Generated:
            return Answer((), text="text", usage=TokenUsage(1, 2, 3))

    class Many(Writes):
        def choose_many(self, questions: Sequence[Question]) -> list[Answer | LLMError]:
            return [self.ask(question) for question in questions]

    one, asked = Writes(lambda _: 1), TextRequest("write")
    question = Question("q", ["a", "b"])
    assert answered(one, asked).text == "text" and answered(one, question).numbers == (1,)
    with pytest.raises(WritesNoText, match="FunctionLLM writes no free text") as caught:
        answered(FunctionLLM(lambda _: 1), asked)
    assert caught.value.llm == "FunctionLLM"
    assert [a.numbers for a in all_answered(Many(lambda _: 2), [asked, question, asked]) if isinstance(a, Answer)] == [
        (), (2,), (),
    ]  # fmt: skip
    with RecordedLLM(one, tmp_path / "r.jsonl", again=True) as recorded:
        assert isinstance(recorded, TextLLM) and recorded.ask(TextRequest("write")).text == "text"
    assert RecordedLLM(None, tmp_path / "r.jsonl").ask(TextRequest("write")) == Answer(
        (), text="text", usage=TokenUsage(1, 2, 3)
    )
    with RecordedLLM(FunctionLLM(lambda _: 1), tmp_path / "s.jsonl", again=True) as recorded:
        assert not isinstance(recorded, TextLLM)


def test_a_text_is_awaited_without_holding_others_up() -> None:
    class Writes(AsyncFunctionLLM):
        def generate(
            self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
        ) -> Generated:
            return Answer((), text="text")

    async def first(_: Question) -> int:
        return 1

    assert asyncio.run(aanswered(Writes(first), TextRequest("write"))).text == "text"
    assert asyncio.run(aanswered(Writes(first), Question("q", ["a", "b"]))).numbers == (1,)


def test_providers_are_known_before_an_llm_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MAKERS, "heavy", lambda _: pytest.fail("it was made"))
    check_providers()
    check_providers("heavy:model", "builtin", "heavy")
    with pytest.raises(UnknownProvider, match="'heavi:model' names no LLM"):
        check_providers("heavy:model", "heavi:model")


def test_a_function_that_runs_out_of_answers_is_an_error() -> None:
    """Its ``StopIteration`` is not the end of the asking."""
    left: list[int] = []
    with pytest.raises(RuntimeError, match="StopIteration"):
        ask(resolve(lambda _: next(iter(left))), Question("Which?", ["a", "b"]))


def test_provider_strings() -> None:
    assert isinstance(resolve("builtin"), BuiltinLLM)
    assert isinstance(resolve("person"), Person)
    assert isinstance(resolve("test:random"), RandomLLM)
    assert isinstance(resolve("test:script=1,2+3"), ScriptedLLM)
    assert resolve("test:first").ask(QUESTION).number == 1
    assert isinstance(resolve("sure:1:test:first"), SureLLM) and isinstance(resolve("sure:0:builtin"), SureLLM)
    draws = [[resolve(f"test:random={seed}").ask(QUESTION).number for _ in range(3)] for seed in (1, 1)]
    assert draws[0] == draws[1]


@pytest.mark.parametrize(
    "name",
    ["", "bultin", "openai", "openai:", "anthropic:", "test:", "test:randm", "test:random=x", "test:script=", "x:y",
     "test:first=2", "test:script=a,b", "BUILTIN",
     "sure:1.5:builtin", "sure:-0.1:builtin", "sure:0.5", "sure:0.5:", "sure:x:builtin"],
)  # fmt: skip
def test_other_strings_are_told_with_the_forms_there_are(name: str) -> None:
    with pytest.raises(UnknownProvider) as caught:
        resolve(name)
    assert caught.value.known == tuple(PROVIDERS)
    assert "openai:MODEL" in str(caught.value)


def test_the_nearest_provider_is_suggested() -> None:
    with pytest.raises(UnknownProvider, match="Did you mean 'builtin'"):
        resolve("bultin")
    with pytest.raises(UnknownProvider, match="Did you mean 'anthropic:x'"):
        resolve("antropic:x")


def test_every_form_has_its_maker_and_every_maker_its_form() -> None:
    assert {form.split(":")[0] for form in PROVIDERS} == set(MAKERS)


@pytest.mark.parametrize("name", ["builtin:", "builtin:x", "person:", "minilm:", "replay:", "transformers:"])
def test_nothing_is_overlooked_behind_a_colon(name: str) -> None:
    with pytest.raises(UnknownProvider):
        resolve(name)


def test_a_class_is_found_by_its_provider(tmp_path: Path) -> None:
    RecordedLLM("test:first", tmp_path / "answers", again=True).ask(QUESTION)
    assert isinstance(resolve(f"replay:{tmp_path / 'answers'}"), RecordedLLM)
    vllm = resolve("vllm:a/b:c")  # a name may have colons of its own
    assert vllm.name == "vllm:a/b:c" and vllm.model.model_name == "a/b:c"
