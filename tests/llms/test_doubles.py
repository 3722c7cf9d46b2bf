"""The public test doubles, and a person on the terminal."""

from __future__ import annotations

import asyncio
import io
import json
from collections import Counter
from functools import partial
from typing import Any

import pytest

from formal_llm import CFG, Answer, Planner, Question
from formal_llm.errors import InvalidAnswer, LLMError
from formal_llm.llms import Message, RecordedLLM, TextRequest, TokenUsage, resolve
from formal_llm.llms.doubles import TEXTS, FunctionLLM, Person, RandomLLM, ScriptedLLM
from formal_llm.llms.schemas import closed, problem_in
from formal_llm.llms.text_request import CUT_OFF

QUESTION = Question("Which?", ["a", "b", "c"])


def test_random_answers_are_uniform_and_reproducible() -> None:
    llm = RandomLLM(7)
    drawn = [llm.ask(QUESTION).number for _ in range(3_000)]
    again = RandomLLM(7)
    assert drawn == [again.ask(QUESTION).number for _ in range(3_000)]
    assert all(900 < count < 1_100 for count in Counter(drawn).values())
    several = Question("?", ["a", "b"], several=True)
    subsets = Counter(llm.ask(several).numbers for _ in range(3_000))
    assert set(subsets) == {(1,), (2,), (1, 2)}
    assert all(850 < count < 1_150 for count in subsets.values())


def test_seeds_for_other_doubles_are_positive_and_reproducible() -> None:
    one, other = RandomLLM(7), RandomLLM(7)
    seeds = [one.draw_seed() for _ in range(20_000)]
    assert seeds == [other.draw_seed() for _ in range(20_000)]
    assert (min(seeds), max(seeds)) == (1, 1_000)


def test_random_selections_respect_the_question_s_objection() -> None:
    question = Question("?", ["a", "b"], several=True, objection=lambda numbers: "no" if 1 in numbers else "")
    assert {RandomLLM(seed).ask(question).numbers for seed in range(20)} == {(2,)}


def test_a_script_plays_and_ends() -> None:
    llm = ScriptedLLM([2, "Option 3", Answer((1,))])
    assert [llm.ask(QUESTION).number for _ in range(3)] == [2, 3, 1]
    assert llm.questions == [QUESTION] * 3
    with pytest.raises(InvalidAnswer, match="script ended before question 4"):
        llm.ask(QUESTION)
    with pytest.raises(InvalidAnswer, match="4 is not one"):
        ScriptedLLM([4]).ask(QUESTION)


# -- async functions ---------------------------------------------------------------------------------------------------


async def second(question: Question) -> int:
    await asyncio.sleep(0)
    return 2


class Second:
    async def __call__(self, question: Question) -> str:
        return "Option 2"


def test_an_async_function_can_be_awaited_and_asked() -> None:
    async def with_more(question: Question, number: int) -> Answer:
        return Answer((number,))

    for function in (second, Second(), partial(with_more, number=2)):
        llm = resolve(function)
        assert not llm.blocks and asyncio.run(llm.aask(QUESTION)).number == llm.ask(QUESTION).number == 2
    assert resolve(lambda question: 1).blocks
    assert Planner(CFG.from_string("S -> a | b"), second).plan("t").word == ("b",)


def test_many_questions_are_under_way_at_once() -> None:
    together = asyncio.Barrier(100)

    async def wait_for_all(question: Question) -> int:
        await together.wait()
        return 1

    assert [one.result(10).number for one in FunctionLLM(wait_for_all).submit([QUESTION] * 100)] == [1] * 100


def test_errors_and_bad_answers_of_an_async_function() -> None:
    async def broken(question: Question) -> int:
        raise RuntimeError("the stove is on fire")

    async def bad(question: Question) -> str:
        return "hm"

    with pytest.raises(RuntimeError, match="stove"):
        FunctionLLM(broken).ask(QUESTION)
    with pytest.raises(InvalidAnswer, match="'hm' is not a number"):
        FunctionLLM(bad).ask(QUESTION)


def test_a_coroutine_is_no_answer() -> None:
    with pytest.raises(TypeError, match="define it by async def"):
        resolve(lambda question: second(question)).ask(QUESTION)


def test_a_person_is_shown_the_question_and_asked_again_as_often_as_it_takes() -> None:
    screen = io.StringIO()
    person = Person(io.StringIO("what?\n3\n\n1, 2\n2\n"), screen)
    plan = Planner(CFG.from_string("S -> a | b"), person).plan("t")
    assert plan.word == ("b",)
    assert screen.getvalue().count("1: a\n2: b") == 1
    for said in ("'what?' is not a number", "'3' is not one of the numbers from 1 to 2", "it was empty", "'1, 2' is"):
        assert said in screen.getvalue()
    assert screen.getvalue().count("\n> ") == 5


def test_a_person_may_mistype_a_selection() -> None:
    person = Person(io.StringIO("1 1\n1, 2\n"), io.StringIO())
    plan = Planner(CFG.from_string("S -> some(a, b)"), person, tries=1).plan("t")
    assert plan.word == ("a", "b")


def test_a_script_without_an_answer_to_ask_again_says_what_was_wrong_with_its_own() -> None:
    with pytest.raises(InvalidAnswer, match=r"9 is not one of .* no answer after that one, which was for question 2$"):
        Planner(CFG.from_string("S -> a S | b"), "test:script=1,9").plan("t")
    with pytest.raises(InvalidAnswer, match=r"tries: the script ended before question 2$"):
        Planner(CFG.from_string("S -> a S | b"), "test:script=1").plan("t")
    assert Planner(CFG.from_string("S -> a S | b"), "test:script=9,2").plan("t").word == ("b",)


def test_the_end_of_the_input_is_told() -> None:
    with pytest.raises(LLMError, match="input ended"):
        Person(io.StringIO(""), io.StringIO()).ask(QUESTION)


def test_a_function_of_the_request() -> None:
    llm = FunctionLLM(lambda asked: f"{asked.prompt}, {asked.continues}", can=TEXTS, choose=lambda _: 1)
    assert llm.ask(TextRequest([Message("system", "Be brief."), Message("user", "a")])) == Answer(
        (), text="a, False", usage=TokenUsage(1, 2, 2), ended=""
    )
    assert llm.ask(TextRequest("a", continues=True)) == Answer((), text="a, True", usage=TokenUsage(1, 0, 2), ended="")
    assert llm.ask(TextRequest("a", continues=True, stop=["Tr"])) == Answer(
        (), text="a, ", usage=TokenUsage(1, 0, 1), ended="Tr"
    )
    assert llm.ask(TextRequest("a", continues=True, max_tokens=1)) == Answer(
        (), text="a, T", usage=TokenUsage(1, 0, 1), ended=None, stopped=CUT_OFF
    )
    assert list(llm.stream(TextRequest("a", continues=True))) == [
        "a, ",
        "Tru",
        "e",
        llm.ask(TextRequest("a", continues=True)),
    ]
    assert list(llm.stream(TextRequest("a"))) == ["a, ", "Fal", "se", llm.ask(TextRequest("a"))]
    assert llm.ask(Question("Which?", ["x", "y"])).number == 1
    assert FunctionLLM(lambda _: "", can=TEXTS, choose=lambda _: 2).ask(Question("Which?", ["x", "y"])).number == 2


def test_a_script() -> None:
    llm = ScriptedLLM([2], ["a", "b"])
    assert (llm.ask(TextRequest("x")).text, llm.ask(TextRequest("y", continues=True)).text) == ("a", "b")
    assert [one.prompt for one in llm.requests] == ["x", "y"]
    assert llm.ask(Question("Which?", ["x", "y"])).number == 2
    with pytest.raises(LLMError, match="before text 3"):
        llm.ask(TextRequest("z"))


def test_chance_is_the_same_for_a_seed(tmp_path) -> None:
    texts = [RandomLLM(seed, can=TEXTS, words=["a", "b"]).ask(TextRequest("x")).text for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert set("".join(texts)) <= {"a", "b"}


def test_a_request_is_answered_through_wrappers(tmp_path) -> None:
    with RecordedLLM(ScriptedLLM(texts=["a", "b"]), tmp_path / "file.jsonl", again=True) as llm:
        assert llm.ask(TextRequest("x", continues=True)).ended == ""
        assert llm.ask(TextRequest("y", continues=True)) == Answer((), text="b", usage=TokenUsage(1, 0, 1), ended="")


def test_random_objects_keep_their_schemas() -> None:
    schema: Any = closed({
        "name": {"type": "string", "minLength": 3, "maxLength": 8}, "tool": {"enum": ["a", "b"]},
        "count": {"anyOf": [{"type": "integer", "minimum": 2, "maximum": 3}, {"$ref": "#/$defs/inner"}]},
        "list": {"type": "array", "items": {"type": "boolean"}, "minItems": 1}, "share": {"type": "number"},
    })  # fmt: skip
    schema["$defs"] = {"inner": closed({"none": {"type": "null"}})}
    made = [RandomLLM(seed, can={"object"}).ask(TextRequest("?", schema=schema)) for seed in range(50)]
    assert (
        all(problem_in(json.loads(one.text), schema) is None for one in made) and len({one.text for one in made}) > 40
    )
    assert made[3] == RandomLLM(3, can={"object"}).ask(TextRequest("?", schema=schema))
