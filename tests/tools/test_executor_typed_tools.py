"""Plans over tools of many types: kinds are made of type hints, results are cached, asynchronous tools are awaited."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path
from typing import Any

import pytest

from formal_llm import CFG, Planner
from formal_llm.errors import InputError, ToolError, ToolkitError
from formal_llm.tools import Executor, Tool, Toolkit, Value, tool
from formal_llm.tools.isolated import isolated
from formal_llm.tools.kinds import kind_for
from tests.tools.picture_tools import plan_of
from tests.tools.typed_tools import Person, add, birthday, total

NUMBERS = CFG.from_string("""
    %order prefix
    N -> add N N | total L | count T | number
    L -> numbers
    T -> name P | text
    P -> birthday P | person
""")


@tool("count", pure=True)
async def count_letters(text: str, factor: int = 1) -> int:
    await asyncio.sleep(0)
    return len(text) * factor


@tool("name", pure=True)
def name_of(person: Person) -> str:
    return person.name


KIT = Toolkit([add, total, birthday, count_letters, name_of], inputs={"numbers": kind_for(list[int])})
ADA = Person(name="Ada", age=36)
INPUTS: dict[str, Any] = {"number": 4, "numbers": [1, 2, 3], "person": ADA, "text": "four"}


def test_kinds_decide_what_fits() -> None:
    KIT.check(NUMBERS, {"N": "int", "T": "text", "P": "tests.tools.typed_tools.Person"})
    with pytest.raises(ToolkitError, match=r"add\(int, int\) -> int gives an int, N is a text"):
        KIT.check(NUMBERS, {"N": "text"})
    assert [str(kind) for one in KIT for kind in (*one.inputs, one.output)] == [
        "int", "int", "int", "list[int]", "int", "tests.tools.typed_tools.Person", "tests.tools.typed_tools.Person",
        "text", "int", "tests.tools.typed_tools.Person", "text",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("add number number", 8),
        ("add number total numbers", 10),
        ("add count text count name birthday person", 7),
    ],
)
def test_plans_of_typed_tools(word: str, expected: int) -> None:
    plan = plan_of(NUMBERS, *word.split())
    assert KIT.run(plan, INPUTS).output == expected
    assert Executor(KIT, workers=2, timeout=20).run(plan, INPUTS).output == expected

    async def block() -> object:  # a loop runs in this thread
        return Executor(KIT).run(plan, INPUTS).output

    assert asyncio.run(block()) == expected


def test_what_does_not_fit_is_told_before_anything_runs() -> None:
    plan = plan_of(NUMBERS, "add", "number", "number")
    with pytest.raises(ToolkitError, match=r"add\(int, int\) -> int is applied to text, text"):
        KIT.run(plan, {"number": "4"})
    with pytest.raises(ToolkitError, match="is applied to bool, bool"):
        KIT.run(plan, {"number": True})
    with pytest.raises(InputError, match=r"the input numbers: no acceptable list\[int\]: 1: Input should"):
        KIT.run(plan_of(NUMBERS, "total", "numbers"), {"numbers": [1, "2"]})


def test_results_are_what_the_hint_states() -> None:
    @tool("total")
    def lies(numbers: list[int]) -> int:
        return str(sum(numbers))  # type: ignore[return-value]

    with pytest.raises(ToolError, match="returned what it should not: no acceptable int: Input should be"):
        Toolkit([lies], inputs={"numbers": kind_for(list[int])}).run(plan_of(NUMBERS, "total", "numbers"), INPUTS)


def test_results_are_cached_under_what_they_depend_on(tmp_path: Path) -> None:
    plan = plan_of(NUMBERS, "count", "name", "birthday", "person")

    def run(kit: Toolkit = KIT) -> tuple[object, int]:
        executor = Executor(kit, cache=tmp_path)
        return executor.run(plan, INPUTS).output, executor.stats.executed

    assert [run(), run()] == [(3, 3), (3, 0)]

    @tool("count", pure=True)
    async def with_another_default(text: str, factor: int = 2) -> int:
        await asyncio.sleep(0)
        return len(text) * factor

    assert run(Toolkit([birthday, name_of, with_another_default])) == (6, 1)


def test_values_of_hints_travel_and_are_copied() -> None:
    value = Value(kind_for(Person), ADA)
    again = pickle.loads(pickle.dumps(value))
    assert again == value and again.get() == ADA and value.copy() is not ADA
    assert Value(kind_for(dict[str, int]), {"a": 1, "b": 2}) == Value(kind_for(dict[str, int]), {"b": 2, "a": 1})
    assert pickle.loads(pickle.dumps(Tool("f", (kind_for(list[int]),), kind_for(str), str))).inputs == (
        kind_for(list[int]),
    )


def test_the_grammar_of_typed_tools() -> None:
    cfg = CFG.from_tools(KIT.without("total"), {"person": kind_for(Person), "number": kind_for(int)}, uses=1)
    plan = Planner(cfg, "test:random=1").plan("t")
    assert KIT.run(plan, INPUTS).output is not None


def test_typed_tools_in_processes_of_their_own() -> None:
    asyncio.run(call_typed_tools_in_processes())


async def call_typed_tools_in_processes() -> None:
    assert (await isolated("tests.tools.typed_tools:birthday")(ADA)).age == 37
    later = isolated("tests.tools.typed_tools:wait")
    assert await later(seconds=0.01) == "waited 0.01" and await later() == "waited 0.0"


def test_a_batch_may_be_awaited() -> None:
    async def count_all(texts: list[str]) -> list[int]:
        await asyncio.sleep(0)
        return [len(text) for text in texts]

    counts = tool("count", pure=True, batch=count_all)(count_letters.function)  # type: ignore[call-overload]
    plan = plan_of(NUMBERS, "add", "count", "text", "count", "text")
    assert Toolkit([counts, add]).run(plan, {"text": ("a", "four")}).output == 5
