"""Asking, wrappers and provider strings."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from formal_llm import CFG, LLM, Answer, FunctionLLM, Planner, Question, RandomLLM, RecordedLLM, ScriptedLLM
from formal_llm.errors import InvalidAnswer, LLMError, ProviderError, UnknownProvider, UnreadableResponse, WritesNoText
from formal_llm.llms import PROVIDERS, SureLLM, TextRequest, TokenUsage, ask, resolve
from formal_llm.llms.builtin import BuiltinLLM
from formal_llm.llms.doubles import Person
from formal_llm.llms.llm import settled
from formal_llm.llms.providers import MAKERS, check_providers

QUESTION = Question("Which?", ["a", "b", "c"])


def test_functions_and_objects() -> None:
    assert isinstance(resolve(lambda question: 1), FunctionLLM)
    for wrong in (3, LLM, None):
        with pytest.raises(TypeError, match="an object with answer"):
            resolve(wrong)  # type: ignore[arg-type]


def test_ask_adds_up_what_all_tries_cost() -> None:
    asked: list[Question] = []

    class Costly(LLM):
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


class Many(LLM):
    at_once = 64

    def answer_all(self, requests: Sequence[Question]) -> list[Answer | Exception]:
        return [Answer((len(requests),)) if one.prompt else LLMError("empty") for one in requests]


def test_one_method_is_enough() -> None:
    """Each kind of model by one of its methods, asked in all ways."""

    class Answers(LLM):
        def answer(self, request: Question) -> int:
            return 1

    class Awaited(LLM):
        async def answer(self, request: Question) -> str:
            return "1"

    class Submits(LLM):
        blocks = False

        def submit(self, requests: Sequence[Question]) -> list[Future[Answer]]:
            return [settled(Answer((1,))) for _ in requests]

    class HasAnswer:
        name = "mine"

        def answer(self, question: Question) -> Answer:
            return Answer((1,))

    class HasAsyncAnswer:
        async def answer(self, question: Question) -> Answer:
            return Answer((1,))

    async def function(_: Question) -> int:
        return 1

    question = Question("Which?", ["a"])
    for given in (Answers(), Awaited(), Submits(), Many(), HasAnswer(), HasAsyncAnswer(), function, lambda _: 1):
        llm = resolve(given)  # type: ignore[arg-type]
        assert llm.ask(question).number == asyncio.run(llm.aask(question)).number == 1
        assert [future.exception() for future in llm.submit([question] * 1)] == [None]
        assert Planner(CFG.from_string("S -> a | b"), given).plan("t").word == ("a",)  # type: ignore[arg-type]
    assert resolve(HasAnswer()).name == "mine" and (Awaited.at_once, Awaited.blocks) == (32, False)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="LLM defines neither answer nor answer_all nor submit"):
        LLM().ask(question)


def test_each_request_has_its_own_outcome() -> None:
    futures = Many().submit([QUESTION, Question("", ["a"]), TextRequest("write"), QUESTION])
    assert [type(one.exception()) for one in futures] == [type(None), LLMError, WritesNoText, type(None)]
    assert futures[0].result().numbers == (3,)  # what it cannot answer was not asked

    class Broken(Many):
        def answer_all(self, requests: Sequence[Question]) -> list[Answer | Exception]:
            raise MemoryError("no room")

    assert {str(one.exception()) for one in Broken().submit([QUESTION] * 2)} == {"no room"}

    class Forgets(Many):
        def answer_all(self, requests: Sequence[Question]) -> list[Answer | Exception]:
            return []

    with pytest.raises(LLMError, match="<Forgets> gave 0 answers to 1 requests"):
        Forgets().ask(QUESTION)


def test_many_event_loops_and_threads_may_ask_a_model_that_is_awaited() -> None:
    loops: set[object] = set()

    async def look(_: Question) -> int:
        loops.add(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return 1

    llm = FunctionLLM(look)

    async def ask_all() -> int:
        return sum(one.number for one in await asyncio.gather(*(llm.aask(QUESTION) for _ in range(20))))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: asyncio.run(ask_all()), range(4))) == [20] * 4
        assert sum(one.number for one in pool.map(llm.ask, [QUESTION] * 20)) == 20
    assert asyncio.run(ask_all()) == 20 and len(loops) == 1  # what it opened, it finds again


def test_whoever_stops_awaiting_a_model_that_blocks_goes_on_at_once() -> None:
    let_go = threading.Event()

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(resolve(lambda _: let_go.wait(20) and 1).aask(QUESTION), 0.05)

    begin = time.monotonic()
    asyncio.run(give_up())
    assert time.monotonic() - begin < 5
    let_go.set()


def test_what_runs_on_the_loop_of_models_does_not_wait_for_itself() -> None:
    async def inner(_: Question) -> int:
        return 1

    async def outer(question: Question) -> Answer:
        return FunctionLLM(inner).ask(question)

    async def awaits(question: Question) -> Answer:
        return await FunctionLLM(inner).aask(question)

    with pytest.raises(LLMError, match=r"await aask\(request\) there"):
        FunctionLLM(outer).ask(QUESTION)
    assert FunctionLLM(awaits).ask(QUESTION).number == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_begins_anew() -> None:
    program = (
        "import os\n"
        "from formal_llm import FunctionLLM, Question\n"
        "async def one(question): return 1\n"
        "llm, question = FunctionLLM(one), Question('?', ['a'])\n"
        "assert llm.ask(question).number == 1\n"
        "child = os.fork()\n"
        "assert llm.ask(question).number == 1\n"
        "if child: assert os.waitpid(child, 0)[1] == 0\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_interrupting_whoever_waits_ends_the_request() -> None:
    program = (
        "import asyncio, os, signal, threading\n"
        "from formal_llm import FunctionLLM, Question\n"
        "async def hang(question):\n"
        "    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    try: await asyncio.sleep(60)\n"
        "    except asyncio.CancelledError: print('ended', flush=True); raise\n"
        "llm = FunctionLLM(hang)\n"
        "try: llm.ask(Question('?', ['a']))\n"
        "except KeyboardInterrupt: print('interrupted', flush=True)\n"
        "import time; time.sleep(0.2)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert sorted(re.findall("ended|interrupted", done.stdout)) == ["ended", "interrupted"]


class Moody(LLM):
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
