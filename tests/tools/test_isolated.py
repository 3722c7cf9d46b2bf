"""Tools in a process of their own: killed when they hang, alone when they eat memory."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from formal_llm import CFG, Planner
from formal_llm.errors import ToolError, ToolkitError
from formal_llm.tools import Executor, Tool, Toolkit
from formal_llm.tools.isolated import isolated, read_message, write_message
from tests.tools.isolated_tools import flip as plain_flip
from tests.tools.picture_tools import picture


@pytest.fixture
def made() -> Iterator[Any]:
    tools: list[Tool] = []

    def make(name: str, **settings: Any) -> Tool:
        tools.append(isolated(f"tests.tools.isolated_tools:{name}", **settings))
        return tools[-1]

    yield make
    for one in tools:
        one.function.close()  # type: ignore[attr-defined]


def test_values_go_there_and_back(made: Any) -> None:
    shout = made("shout")
    assert shout("grüße\n\0") == "GRÜSSE\n\0"
    assert shout("") == ""
    flip = made("flip")
    assert flip(picture()).tobytes() == plain_flip(picture()).tobytes()
    who = made("who")
    first = who("")
    assert first == who("") != str(os.getpid())


def test_what_goes_wrong(made: Any) -> None:
    with pytest.raises(RuntimeError, match="ValueError: not x"):
        made("fail")("x")
    with pytest.raises(MemoryError, match="exit code 7"):
        made("die")("x")
    with pytest.raises(MemoryError):
        made("eat", memory=1_500_000_000)("x")
    with pytest.raises(ToolkitError, match="no tool 'tests"):
        isolated("tests.tools.isolated_tools:nothing")


def test_a_hanging_process_is_killed(made: Any) -> None:
    cfg = CFG.from_string("T -> hang doc | shout doc")
    kit = Toolkit([made("hang", timeout=2.0), made("shout")])
    solution = Planner(cfg, "test:first").solve("t", {"doc": "x"}, Executor(kit))
    assert solution.result.output == "X"
    (error,) = solution.failures
    assert isinstance(error, ToolError)
    assert (error.tool, error.reason) == ("hang", "timeout")


def test_calls_at_the_same_time_have_processes_of_their_own(made: Any) -> None:
    shout = made("shout", idle=2)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(shout, ["a", "b", "c", "d"])) == ["A", "B", "C", "D"]


def test_an_isolated_tool_travels_and_starts_processes_of_its_own(made: Any) -> None:
    shout = made("shout")
    again = pickle.loads(pickle.dumps(shout))
    try:
        assert again("a") == shout("a") == "A"
        assert again.function is not shout.function
    finally:
        again.function.close()


def test_messages_come_back_and_cut_off_ones_are_told() -> None:
    stream = io.BytesIO()
    write_message(stream, {"error": "no"}, [b"", b"abc"])
    write_message(stream, {}, [])
    whole = stream.getvalue()
    stream.seek(0)
    assert read_message(stream) == ({"error": "no"}, [b"", b"abc"])
    assert read_message(stream) == ({}, [])
    with pytest.raises(EOFError, match="cut off"):
        read_message(stream)
    with pytest.raises(EOFError, match="cut off"):
        read_message(io.BytesIO(whole[:30]))
    with pytest.raises(EOFError, match="too large"):
        read_message(io.BytesIO(b"\xff\xff\xff\xff"))
