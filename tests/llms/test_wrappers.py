"""Models around other models: where a provider fails, where the first one is not sure, and wrappers in wrappers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from formal_llm import CFG, Answer, Planner, Question, RecordedLLM, WeightedLLM
from formal_llm.errors import InvalidAnswer, LLMError, ProviderError, UnknownProvider, WritesNoText
from formal_llm.llms import (
    LLM,
    FallbackLLM,
    FunctionLLM,
    ScriptedLLM,
    SureLLM,
    TextRequest,
    TokenUsage,
    Wrapper,
    resolve,
)
from formal_llm.llms.builtin import BuiltinLLM
from formal_llm.llms.doubles import TURNS, Person
from formal_llm.llms.llm import KINDS
from formal_llm.llms.schemas import closed
from formal_llm.llms.wrappers import LEFT_ALONE, Steps

QUESTION = Question("Which?", ["a", "b", "c"])
UNSURE = Answer((2,), {1: 0.3, 2: 0.5, 3: 0.2}, usage=TokenUsage(1, 7))


class Fixed(LLM):
    """Answers with its number, or fails."""

    can = KINDS

    def __init__(self, number: int, error: Exception | None = None, name: str = "") -> None:
        self.number, self.error, self.name = number, error, name
        self.asked: list[Question] = []

    def answer(self, request: Question) -> Answer:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        return Answer((self.number,), text='{"a": 1}')


class Together(Fixed):
    at_once = 64

    def answer_all(self, requests: Sequence[Question]) -> Sequence[Answer | Exception]:
        self.rounds = [*getattr(self, "rounds", []), len(requests)]
        return super().answer_all(requests)


class Awaited(Fixed):
    async def answer(self, request: Question) -> Answer:  # type: ignore[override]
        await asyncio.sleep(0.001)
        return Fixed.answer(self, request)


#: The ways of asking for one answer.
WAYS: dict[str, Callable[[LLM, Question], Answer]] = {
    "ask": lambda llm, request: llm.ask(request),
    "aask": lambda llm, request: asyncio.run(llm.aask(request)),
    "submit": lambda llm, request: [one.result() for one in llm.submit([request] * 3)][-1],
}


@pytest.mark.parametrize("kind", [Fixed, Together, Awaited])
@pytest.mark.parametrize("way", WAYS)
def test_the_next_one_answers_where_a_provider_fails_and_is_preferred_for_a_while(kind: Any, way: str) -> None:
    now, ask = 0.0, WAYS[way]
    first, second = kind(1, ProviderError("down")), kind(2)
    llm = FallbackLLM([first, second], clock=lambda: now)
    assert ask(llm, QUESTION).numbers == (2,)
    failed = len(first.asked)
    first.error = None
    assert ask(llm, QUESTION).numbers == (2,) and len(first.asked) == failed
    now = LEFT_ALONE
    assert ask(llm, QUESTION).numbers == (1,)
    if kind is Together and way == "submit":
        assert first.rounds == [3, 3] and second.rounds == [3, 3]


@pytest.mark.parametrize("way", WAYS)
def test_where_all_fail_the_last_error_is_raised_and_an_illegal_answer_is_an_answer(way: str) -> None:
    llm = FallbackLLM([Fixed(1, ProviderError("first")), Awaited(2, ProviderError("second"))])
    with pytest.raises(ProviderError, match="second"):
        WAYS[way](llm, QUESTION)
    with pytest.raises(InvalidAnswer):
        WAYS[way](FallbackLLM([Fixed(1, InvalidAnswer("no number")), second := Fixed(2)]), QUESTION)
    assert not second.asked


def test_names_identities_and_what_a_fallback_can() -> None:
    llm = resolve("test:first,test:random=3")
    assert isinstance(llm, FallbackLLM)
    assert llm.identity is None and llm.can == {"choose"}
    assert not isinstance(resolve("test:script=1,2"), FallbackLLM)
    with pytest.raises(LLMError, match="two LLMs at least"):
        FallbackLLM(["test:first"])
    assert FallbackLLM([Fixed(1), ScriptedLLM(texts=[], can=TURNS)]).can == {*TURNS, "object"}
    assert FallbackLLM([Fixed(1, name="x"), Fixed(2, name="y")]).name == "x,y"


def test_a_model_that_only_writes_is_shown_the_schema_that_the_first_one_was_held_to() -> None:
    schema = closed({"a": {"type": "integer"}})
    second = FunctionLLM(lambda request: seen.append(request) or '{"a": 2}', can={"write"})  # type: ignore[func-returns-value]
    seen: list[TextRequest] = []
    first = Fixed(1, ProviderError("down"))
    llm = FallbackLLM([first, second])
    assert "object" in llm.can and llm.ask(TextRequest("u", schema=schema)).text == '{"a": 2}'
    assert first.asked[0].prompt == "u" and '"integer"' in seen[0].prompt and seen[0].schema is None


@pytest.mark.parametrize("way", WAYS)
def test_unsure_answers_go_on_however_they_are_asked(way: str) -> None:
    async def later(_: Question) -> Answer:
        return UNSURE

    for first in (FunctionLLM(later), FunctionLLM(lambda _: UNSURE)):
        answer = WAYS[way](SureLLM(first, 0.6, "test:first"), QUESTION)
        assert answer.number == 1 and answer.usage == UNSURE.usage


def test_a_person_is_asked_where_it_is_not_sure() -> None:
    writes = StringIO()
    found = SureLLM(ScriptedLLM([UNSURE, UNSURE]), 0.6, Person(StringIO("3\n"), writes))
    answer = found.ask(QUESTION)
    assert answer.number == 3 and answer.usage == UNSURE.usage and (found.asked, found.unsure) == (1, 1)
    assert "ScriptedLLM would choose 2 (probability 0.50)." in writes.getvalue()
    found.least = 0.5
    assert found.ask(QUESTION) == UNSURE and (found.asked, found.unsure) == (2, 1)


def test_an_answer_without_probabilities_is_not_sure() -> None:
    assert SureLLM("test:script=3", 0.0, "test:first").ask(QUESTION).number == 1
    several = Question("Which?", ["a", "b", "c"], several=True)
    assert SureLLM("test:script=1+2", 0.0, "test:script=3").ask(several).number == 3


def test_of_many_the_unsure_ones_go_on_together() -> None:
    class Batch(LLM):
        at_once = 64

        def answer_all(self, requests: Sequence[Question]) -> list[Answer | Exception]:
            return [UNSURE, Answer((1,), {1: 1.0}), LLMError("no"), UNSURE]

    other = Together(3)
    outcomes = SureLLM(Batch(), 0.6, other).submit([QUESTION] * 4)
    assert [one.result().number for one in (outcomes[0], outcomes[1], outcomes[3])] == [3, 1, 3]
    assert isinstance(outcomes[2].exception(), LLMError) and other.rounds == [2]


def test_what_was_wrong_before_stays_told_and_texts_pass() -> None:
    other = Fixed(1)
    SureLLM(ScriptedLLM([UNSURE]), 0.6, other).ask(QUESTION.again("it was blank"))
    assert "it was blank" in other.asked[0].prompt and "would choose 2" in other.asked[0].prompt
    found = SureLLM(ScriptedLLM(texts=["a text"]), 0.9, "test:first")
    assert found.ask(TextRequest("Write.")).text == "a text" and found.asked == 0
    with pytest.raises(WritesNoText):
        SureLLM("test:first", 0.9).ask(TextRequest("Write."))


def test_sure_identities_and_provider_strings() -> None:
    known = Fixed(1)
    known.identity = {"llm": "known"}
    assert SureLLM(known, 0.6, known).identity == {"llm": "known", "least": 0.6, "other": {"llm": "known"}}
    assert SureLLM(known, 0.6).identity is None
    found = resolve("sure:0.6:builtin")
    assert isinstance(found, SureLLM) and isinstance(found.other, Person)
    assert found.least == 0.6 and isinstance(found.llm, BuiltinLLM)
    for name in ("sure", "sure:", "sure:0.6", "sure:0.6:", "sure:2:builtin", "sure:nan:builtin", "sure:x:builtin"):
        with pytest.raises(UnknownProvider):
            resolve(name)
    with pytest.raises(ValueError, match="from 0 to 1"):
        SureLLM("builtin", 2.0)


def test_plans_go_on_with_the_other_one() -> None:
    found = SureLLM(WeightedLLM(3), 0.6, "test:first")
    plan = Planner(CFG.from_string("%limit 1\nA -> t A | end\nt -> x | y | z"), found).plan("anything")
    assert found.asked == plan.usage.questions and found.unsure > 0


# -- wrappers in general ----------------------------------------------------------------------------------------------


class Passing(Wrapper):
    """Hands everything on."""

    closed = False

    def around(self, request: Question) -> Steps:
        return (yield request)  # type: ignore[no-any-return]

    def close(self) -> None:
        self.closed = True


def test_a_wrapper_is_what_the_wrapped_one_is() -> None:
    known = Together(1, name="many")
    known.identity, known.reads = {"llm": "many"}, frozenset({"chat"})
    wrapped = Passing(known)
    assert (wrapped.name, wrapped.identity, wrapped.reads) == ("many", {"llm": "many"}, {"chat"})
    assert (wrapped.at_once, wrapped.blocks, wrapped.can) == (64, True, KINDS - {"score"})
    assert (Passing(Awaited(1)).at_once, Passing(Awaited(1)).blocks) == (32, False)
    assert Passing("test:first").name == "test:first" and Passing(lambda _: 1).name == "FunctionLLM"
    assert repr(Passing("test:first")) == "<Passing test:first>"
    with pytest.raises(TypeError):
        Passing(3)  # type: ignore[arg-type]
    with Passing("test:first") as llm:
        assert not llm.closed
    assert llm.closed


def test_composed_wrappers_ask_together_in_parallel_and_once(tmp_path: Path) -> None:
    """A local model, a hosted one that fails at times, and a person, in a store of answers."""
    hosted_now = hosted_most = 0

    async def hosted(question: Question) -> Answer:
        nonlocal hosted_now, hosted_most
        hosted_now += 1
        hosted_most = max(hosted_most, hosted_now)
        await asyncio.sleep(0.02)
        hosted_now -= 1
        if question.prompt.startswith("3"):
            raise ProviderError("down")
        return Answer((2,), {2: 0.5})

    class Local(Together):
        def answer(self, request: Question) -> Answer:
            return Answer((1,), {1: 0.9 if int(request.prompt[0]) % 2 == 0 else 0.4})

    local, person = Local(1), Fixed(3)
    answerer = FallbackLLM([FunctionLLM(hosted), person])
    questions = [Question(f"{number}?", ["a", "b", "c"]) for number in range(8)]
    expected = [1, 2, 1, 3, 1, 2, 1, 2]
    with RecordedLLM(answerer, tmp_path / "answers.db", name="both") as recorded:
        llm = SureLLM(local, 0.6, recorded)
        assert [one.result().number for one in llm.submit(questions)] == expected
        assert local.rounds == [8] and hosted_most == 4 and len(person.asked) == 1
        for _ in range(2):  # two event loops

            async def ask_all() -> list[int]:
                return [one.number for one in await asyncio.gather(*map(llm.aask, questions))]

            assert asyncio.run(ask_all()) == expected
        assert len(person.asked) == 1 and recorded.stats.misses == 4 and recorded.stats.hits == 8


def test_a_model_that_blocks_is_not_asked_on_the_loop_of_those_that_wait() -> None:
    let_go = threading.Event()

    class Slow(Fixed):
        def answer(self, request: Question) -> Answer:
            assert let_go.wait(10)
            return super().answer(request)

    llm = FallbackLLM([Awaited(1, ProviderError("down")), Slow(2)])
    (waiting,) = llm.submit([QUESTION])
    assert Awaited(3).ask(QUESTION).number == 3  # while the second one is waited for
    let_go.set()
    assert waiting.result(10).number == 2


def test_whoever_stops_waiting_ends_what_is_under_way() -> None:
    seen: list[str] = []

    async def hang(_: Question) -> int:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return 1

    llm = Passing(Passing(FunctionLLM(hang)))

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(llm.aask(QUESTION), 0.05)

    asyncio.run(give_up())
    (future,) = llm.submit([QUESTION])
    time.sleep(0.05)
    assert future.cancel()
    for _ in range(200):
        if len(seen) == 2:
            break
        time.sleep(0.01)
    assert seen == ["cancelled"] * 2


def test_errors_in_a_wrapper_and_answers_that_are_waited_for_are_its_outcome() -> None:
    class Broken(Passing):
        def around(self, request: Question) -> Steps:
            yield request
            raise RuntimeError("the stove is on fire")

    outcomes = Broken(Together(1)).submit([QUESTION] * 2)
    assert [str(one.exception()) for one in outcomes] == ["the stove is on fire"] * 2
    promised: Future[Answer] = Future()

    class Waits(Passing):
        def around(self, request: Question) -> Steps:
            return (yield promised)  # type: ignore[no-any-return]

    (outcome,) = Waits("test:first").submit([QUESTION])
    assert not outcome.done()
    promised.set_result(Answer((3,)))
    assert outcome.result(1).number == 3
