"""One call of a tool: what it may do wrong, how long it may take, how often it is tried."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from formal_llm import CFG
from formal_llm.errors import ToolError, ToolkitError
from formal_llm.tools import Executor, Tool, Toolkit, Value, tool
from formal_llm.tools.calling import Caller, CallLimits, error_line
from formal_llm.tools.kinds import IMAGE, TEXT, kind_for
from tests.tools.picture_tools import picture, plan_of
from tests.tools.text_tools import TEXTS


@pytest.mark.parametrize(
    ("function", "reason", "words"),
    [
        (lambda text: 7, "kind", "returned a int where a value of kind text was expected"),
        (lambda text: None, "kind", "NoneType"),
        (lambda text: "\ud800", "kind", "returned what it should not"),
        (lambda text: "x" * 3_000, "memory", "at most 2,000"),
        (lambda text: [0] * 10**15, "memory", "ran out of memory"),
        (lambda text: text[10**3], "failed", "IndexError"),
        (lambda text: exit(3), "failed", "SystemExit"),
        (lambda text: threading.Event().wait(20), "timeout", "did not return within 0.1 seconds"),
    ],
)
def test_what_tools_do_wrong(function: Any, reason: str, words: str) -> None:
    broken = Tool("upper", (TEXT,), TEXT, function)
    timeout = 0.1 if reason == "timeout" else 20
    with pytest.raises(ToolError, match=words) as caught:
        Executor(Toolkit([broken]), timeout=timeout, max_bytes=2_000).run(plan_of(TEXTS, "upper", "doc"), {"doc": "a"})
    assert caught.value.reason == reason


def test_retries() -> None:
    tries: list[str] = []

    @tool("upper", pure=True)
    def flaky(text: str) -> str:
        tries.append(text)
        if len(tries) < 3:
            raise ConnectionError("try again")
        return text.upper()

    plan = plan_of(TEXTS, "upper", "doc")
    with pytest.raises(ToolError):
        Executor(Toolkit([flaky]), retries=1).run(plan, {"doc": "a"})
    assert len(tries) == 2
    result = Executor(Toolkit([flaky]), retries=5, retry_wait=0.001).run(plan, {"doc": "a"})
    assert (result.output, result.steps[0].tries) == ("A", 1)
    tries.clear()
    assert Executor(Toolkit([flaky]), retries=2).run(plan, {"doc": "a"}).steps[0].tries == 3


def test_a_failure_is_not_remembered_and_a_tool_that_hangs_is_not_called_for_ever() -> None:
    hang = threading.Event()
    called: list[str] = []

    @tool("upper", timeout=0.02)
    def hanging(text: str) -> str:
        called.append(text)
        hang.wait(20)
        return text.upper()

    executor = Executor(Toolkit([hanging]), max_hung=3)
    plan = plan_of(TEXTS, "upper", "doc")
    for number in range(5):
        with pytest.raises(ToolError) as caught:
            executor.run(plan, {"doc": f"text {number}"})
    assert len(called) == 3
    assert "still hangs in 3 earlier calls" in str(caught.value)
    hang.set()
    for thread in threading.enumerate():
        if thread.name == "formal-llm-tool":
            thread.join(20)
    for _ in range(50):  # a busy machine may take longer than the timeout to start a thread
        with contextlib.suppress(ToolError):
            assert executor.run(plan, {"doc": "text 0"}).output == "TEXT 0"
            break
    else:
        raise AssertionError("called no more")


def test_tools_may_change_what_they_are_given() -> None:
    def spoil(image: Any) -> Any:
        image.paste(0, (0, 0, *image.size))
        return image

    cfg = CFG.from_string("%order prefix\nI -> spoil I | join I I | photo")
    both = Tool("join", (IMAGE, IMAGE), IMAGE, lambda first, second: second)
    executor = Executor(Toolkit([Tool("spoil", (IMAGE,), IMAGE, spoil), both]), workers=1)
    photo = picture()
    before = photo.tobytes()
    result = executor.run(plan_of(cfg, "join", "spoil", "photo", "photo"), {"photo": photo})
    assert result.output.tobytes() == before == photo.tobytes()


def caller(**limits: Any) -> Caller:
    return Caller(CallLimits(**limits))


def test_a_call_has_its_own_time_and_tries() -> None:
    tries: list[int] = []

    def third(text: str) -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError
        return text

    patient = Tool("t", (TEXT,), TEXT, third, retries=2, idempotent=True)
    value, number = caller(retries=0).call(patient, [Value(TEXT, "a")])
    assert (value.get(), number, len(tries)) == ("a", 3, 3)
    tries.clear()
    hasty = Tool("t", (TEXT,), TEXT, third, retries=0, idempotent=True)
    with pytest.raises(ToolError, match="failed: ConnectionError") as caught:
        caller(retries=5).call(hasty, [Value(TEXT, "a")])
    assert isinstance(caught.value.cause, ConnectionError)
    assert len(tries) == 1


def test_what_may_have_had_an_effect_is_not_called_again() -> None:
    tries: list[int] = []

    def pay(text: str) -> str:
        tries.append(1)
        raise ConnectionError

    plain = Tool("t", (TEXT,), TEXT, pay)
    with pytest.raises(ToolError):
        caller(retries=5).call(plain, [Value(TEXT, "a")])
    assert len(tries) == 1
    with pytest.raises(ToolError):
        caller(retries=5).call(replace(plain, idempotent=True), [Value(TEXT, "a")])
    assert len(tries) == 7
    with pytest.raises(ToolkitError, match=r"t: retries= needs pure=True or idempotent=True"):
        replace(plain, retries=1)
    with pytest.raises(ToolkitError, match=r"t: batch= needs pure=True"):
        replace(plain, batch=list)


def test_ctrl_c_ends_the_program_and_counts_as_a_failure_of_the_tool_elsewhere() -> None:
    def interrupted(text: str) -> str:
        raise KeyboardInterrupt

    broken, given = Tool("t", (TEXT,), TEXT, interrupted), [Value(TEXT, "a")]
    with pytest.raises(KeyboardInterrupt):
        caller().call(broken, given)
    with ThreadPoolExecutor(1) as pool, pytest.raises(ToolError, match="KeyboardInterrupt"):
        pool.submit(caller().call, broken, given).result()


def test_many_calls_together_give_a_result_each() -> None:
    rows = [[Value(TEXT, text), Value(TEXT, "!")] for text in "abc"]
    joined = Tool(
        "t", (TEXT, TEXT), TEXT, str, pure=True, batch=lambda firsts, seconds: list(map(str.__add__, firsts, seconds))
    )
    assert [value.get() for value in asyncio.run(caller().acall_many(joined, rows))] == ["a!", "b!", "c!"]
    for wrong in ("abc", ["a"], None):
        short = Tool("t", (TEXT, TEXT), TEXT, str, pure=True, batch=lambda firsts, seconds, wrong=wrong: wrong)
        with pytest.raises(ToolError, match="did not return a list of 3 results"):
            asyncio.run(caller().acall_many(short, rows))


def test_an_exception_in_one_line() -> None:
    assert error_line(ValueError("two\n  lines")) == "ValueError: two lines"
    assert error_line(KeyError()) == "KeyError"
    assert len(error_line(ValueError("x" * 9999))) < 600


# -- asynchronous tools -----------------------------------------------------------------------------------------------


def flaky(tries: list[int], fails: int) -> Tool:
    async def third(text: str, times: int = 1) -> str:
        tries.append(1)
        await asyncio.sleep(0)
        if len(tries) <= fails:
            raise ConnectionError
        return text * times

    return tool("t", retries=2, idempotent=True)(third)


@pytest.mark.parametrize("awaited", [False, True])
def test_an_asynchronous_tool_is_tried_as_often_as_any_other(awaited: bool) -> None:
    made = caller(retry_wait=0.001)
    inputs, named = [Value(TEXT, "a")], {"times": Value(kind_for(int), 3)}

    def call(of: Tool) -> tuple[Value, int]:
        return asyncio.run(made.acall(of, inputs, named)) if awaited else made.call(of, inputs, named=named)

    tries: list[int] = []
    value, number = call(flaky(tries, 2))
    assert (value.get(), number, len(tries)) == ("aaa", 3, 3)
    with pytest.raises(ToolError, match="t failed: ConnectionError") as caught:
        call(flaky([], 3))
    assert caught.value.reason == "failed"

    @tool
    async def leave(text: str, times: int) -> str:
        raise SystemExit(3)

    with pytest.raises(ToolError, match="leave failed: SystemExit"):
        asyncio.run(made.acall(leave, [*inputs, *named.values()])) if awaited else made.call(
            leave, [*inputs, *named.values()]
        )


def test_a_timeout_of_the_tool_itself_is_no_timeout_of_the_call() -> None:
    @tool
    async def gives_up(text: str) -> str:
        async with asyncio.timeout(0.001):
            await asyncio.sleep(20)
        return text

    for call in (
        lambda: caller(timeout=20).call(gives_up, [Value(TEXT, "a")]),
        lambda: asyncio.run(caller(timeout=20).acall(gives_up, [Value(TEXT, "a")])),
    ):
        with pytest.raises(ToolError, match="gives_up timed out: TimeoutError") as caught:
            call()
        assert caught.value.reason == "timeout"


def test_a_run_that_is_cancelled_cancels_its_tool() -> None:
    begun, ended = threading.Event(), threading.Event()

    @tool
    async def hang(text: str) -> str:
        begun.set()
        try:
            await asyncio.sleep(20)
        finally:
            ended.set()
        return text

    async def follow() -> None:
        task = asyncio.create_task(caller().acall(hang, [Value(TEXT, "a")]))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(follow())
    assert ended.is_set()


def test_other_tools_do_not_block_the_loop() -> None:
    release = threading.Event()

    @tool
    def wait(text: str) -> str:
        return text if release.wait(20) else "blocked"

    async def follow() -> str:
        task = asyncio.create_task(caller().acall(wait, [Value(TEXT, "a")]))
        await asyncio.sleep(0.01)
        release.set()
        return str((await task)[0].get())

    assert asyncio.run(follow()) == "a"
    # What a function gives that is no coroutine function is awaited as well.
    lent = Tool("lent", (TEXT,), TEXT, lambda text: flaky([], 0).function(text))
    assert not lent.is_async
    assert asyncio.run(caller().acall(lent, [Value(TEXT, "b")]))[0].get() == "b"
    assert caller(timeout=20).call(lent, [Value(TEXT, "b")])[0].get() == "b"


def test_a_function_that_is_no_tool_has_the_limits_of_calls_too() -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return "b"

    assert caller().call_function("f", lambda: "a") == "a"
    assert caller(timeout=20).call_function("f", later) == "b"
    release = threading.Event()
    for work, reason, problem in (
        (lambda: 1 / 0, "failed", "failed: ZeroDivisionError: division by zero"),
        (lambda: release.wait(20), "timeout", "did not return within 0.01 seconds"),
    ):
        with pytest.raises(ToolError) as caught:
            caller(timeout=0.01).call_function("f", work)
        assert (caught.value.tool, caught.value.reason, caught.value.problem) == ("f", reason, problem)
    release.set()
