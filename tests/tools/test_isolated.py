"""Tools in a process of their own: killed when they hang, alone when they eat memory."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import select
import signal
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from formal_llm import CFG, Planner
from formal_llm.errors import ToolError, ToolkitError
from formal_llm.tools import Executor, Tool, Toolkit
from formal_llm.tools.isolated import (
    find_memory_group,
    isolated,
    read_message,
    select_environment,
    write_message,
)
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


def made_with_a_limit(made: Any) -> Any:
    """A tool with a memory limit, made without the warning of systems that limit each process alone."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "tests.tools.isolated_tools:eat: the memory limit")
        return made("eat", memory=1_500_000_000)


def test_what_goes_wrong(made: Any) -> None:
    with pytest.raises(RuntimeError, match="ValueError: not x"):
        made("fail")("x")
    with pytest.raises(RuntimeError, match="ended by itself, with exit code 7"):
        made("die")("x")
    with pytest.raises(MemoryError):
        made_with_a_limit(made)("x")
    with pytest.raises(ToolkitError, match="no tool 'tests"):
        isolated("tests.tools.isolated_tools:nothing")


def test_a_hanging_process_is_killed(made: Any) -> None:
    cfg = CFG.from_string("%order prefix\nT -> hang doc | shout doc")
    kit = Toolkit([made("hang", timeout=2.0), made("shout")])
    solution = Planner(cfg, "test:first").solve("t", {"doc": "x"}, Executor(kit))
    assert solution.result.output == "X"
    (error,) = solution.failures
    assert isinstance(error, ToolError)
    assert (error.tool, error.reason) == ("hang", "timeout")


@pytest.fixture
def left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """A function that tells the process that a tool forked; it is ended afterwards if it got away."""
    path = tmp_path / "pids"
    monkeypatch.setenv("FORMAL_LLM_TEST_PID", str(path))
    yield lambda: int(path.read_text())
    if path.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(path.read_text()), signal.SIGKILL)


def ends(pid: int, seconds: float = 10.0) -> bool:
    """Whether a process ends within some seconds."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], seconds)[0])
    finally:
        os.close(watched)


@pytest.mark.parametrize("name", ["fork_and_hang", "fork_and_die"])
@pytest.mark.parametrize("session", ["", "session"])
def test_a_forked_child_that_holds_the_line_is_not_waited_for(
    name: str, session: str, made: Any, left_behind: Callable[[], int]
) -> None:
    # The child would sleep for a minute, and hold all that the worker had open.
    tool = made(name, environment=["FORMAL_LLM_TEST_*"])
    error: type[Exception] = RuntimeError
    words = "exit code 3"
    if name == "fork_and_hang":
        assert tool("warm") == "warm"
        tool.function._timeout = 1.0  # that of the call alone, without the start of the process
        error, words = TimeoutError, "killed after 1 seconds"
    with pytest.raises(error, match=words):
        tool(session)
    assert ends(left_behind())


def test_what_a_tool_starts_ends_with_its_process(made: Any) -> None:
    tool = made("fork_and_return", timeout=20.0)
    child = int(tool("x"))
    assert not ends(child, 0)
    tool.function.close()
    assert ends(child)


@pytest.mark.parametrize("text", ["", "hang", "die"])
def test_a_daemon_ends_with_the_worker_of_its_tool(text: str, made: Any, left_behind: Callable[[], int]) -> None:
    tool = made("start_daemon", environment=["FORMAL_LLM_TEST_*"])
    first = int(tool(""))
    assert not ends(first, 0)
    if text == "hang":
        tool.function._timeout = 1.0
        with pytest.raises(TimeoutError):
            tool(text)
    elif text == "die":
        with pytest.raises(RuntimeError, match="exit code 3"):
            tool(text)
    else:
        tool.function.close()
    assert ends(first)
    assert ends(left_behind())


def test_a_tool_that_forks_and_returns_twice_gives_no_wrong_answer(made: Any) -> None:
    tool = made("fork_and_return_twice", timeout=60.0)
    workers, lost = set(), 0
    for number in range(1_000):
        text = f"fork {number}" if number % 50 == 0 else f"call {number}"
        try:
            answer = tool(text)
        except RuntimeError as error:  # the second answer came after the next call had begun
            assert "its process sent an answer to another call" in str(error)
            lost += 1
        else:
            assert answer.startswith(f"{text} ")
            workers.add(answer.split()[-1])
    assert 1 < len(workers) <= 1_000 // 50 + 1
    assert lost <= 1_000 // 50


def test_large_answers_that_two_processes_write_at_once_are_not_mixed(made: Any) -> None:
    tool = made("fork_and_return_twice", timeout=60.0)
    text = "fork" + "abcdefg" * 200_000
    for _ in range(8):
        with contextlib.suppress(RuntimeError):
            answer, _, worker = tool(text).rpartition(" ")
            assert answer == text
            assert worker.isdigit()


def test_an_answer_to_an_earlier_call_is_an_error(made: Any) -> None:
    tool = made("answer_late")
    assert tool("first") == "first"
    with pytest.raises(RuntimeError, match=r"its process sent an answer to another call, .* and was killed"):
        tool("second")
    assert not tool.function._idle
    assert tool("first") == "first"


@pytest.mark.parametrize(
    ("name", "given", "error", "words"),
    [
        ("leave", "now", RuntimeError, r"SystemExit: the tool called sys\.exit\('now'\)"),
        ("interrupt", "", RuntimeError, "KeyboardInterrupt"),
        ("crash", "", RuntimeError, "crashed: SIGSEGV"),
        ("end", "SIGABRT", RuntimeError, "crashed: SIGABRT"),
        ("end", "SIGTERM", RuntimeError, "crashed: SIGTERM"),
        ("end", "SIGKILL", MemoryError, "killed from outside.*short of memory"),
        ("hang_up", "", RuntimeError, "answered no more"),
    ],
)
def test_ends_are_told_as_what_they_are(
    name: str, given: str, error: type[Exception], words: str, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("formal_llm.tools.isolated._GRACE", 0.3)
    with pytest.raises(error, match=words):
        made(name)(given)


def test_a_crash_in_a_plan_is_a_failure_and_not_a_want_of_memory(made: Any) -> None:
    cfg = CFG.from_string("%order prefix\nT -> crash doc")
    with pytest.raises(ToolError, match=r"crash .*SIGSEGV") as caught:
        Executor(Toolkit([made("crash")])).run(Planner(cfg).plan("t"), {"doc": "x"})
    assert caught.value.reason == "failed"


def test_the_environment_is_passed_by_name(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "GITHUB_TOKEN", "MY_PLACE", "MY_OTHER"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    passed = json.loads(made("environment")(""))
    assert passed["LC_ALL"] == "C.UTF-8"
    assert passed["PATH"] == os.environ["PATH"]
    assert "secret" not in passed.values()
    passed = json.loads(made("environment", environment=["MY_P*", "HF_TOKEN"])(""))
    assert {name for name, value in passed.items() if value == "secret"} == {"MY_PLACE", "HF_TOKEN"}


def test_no_secret_is_in_the_environment() -> None:
    harmless = ["PATH", "LC_TIME", "XDG_CACHE_HOME", "PYTHONHASHSEED", "HF_HUB_OFFLINE", "CUDA_VISIBLE_DEVICES"]
    secret = ["HF_HUB_TOKEN", "TRANSFORMERS_API_KEY", "CUDA_API_KEY", "LC_Password", "SSL_CERT_SECRET"]
    unknown = ["XDG_ANYTHING", "XDG_RUNTIME_DIR", "PYTHONANYTHING", "PYTHONSTARTUP", "HF_HUB_ANYTHING"]
    variables = dict.fromkeys([*harmless, *secret, *unknown], "x")
    assert list(select_environment(variables)) == harmless
    assert list(select_environment(variables, ["HF_HUB_TOKEN", "XDG_A*"])) == [
        *harmless,
        "HF_HUB_TOKEN",
        "XDG_ANYTHING",
    ]
    assert list(select_environment(variables, ["*"])) == list(variables)


def test_the_memory_limit_is_for_the_group_where_there_are_cgroups(tmp_path: Path) -> None:
    def make_group(name: str, controllers: str) -> Path:
        group = tmp_path / "cgroups" / name
        group.mkdir(parents=True, exist_ok=True)
        (group / "cgroup.subtree_control").write_text(controllers)
        (group / "cgroup.procs").write_text("")
        return group

    def find(membership: str) -> Path | None:
        (tmp_path / "membership").write_text(membership)
        return find_memory_group(tmp_path / "cgroups", tmp_path / "membership")

    top = make_group("", "cpu memory\n")
    app = make_group("user/app", "memory pids\n")
    make_group("user/app/run", "")
    make_group("user/other/run", "cpu memory_other\n")
    assert find("0::/\n") == top
    assert find("4:memory:/elsewhere\n0::/user/app/run\n") == find("0::/user/app\n") == app
    assert find("0::/user/other/run\n") is None  # neither the group nor the one above gives its groups memory limits
    assert find("4:memory:/user/app/run\n") is None  # version 1 alone
    assert find_memory_group(tmp_path, tmp_path / "nothing") is None


def test_a_limit_for_each_process_alone_is_warned_of(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formal_llm.tools.isolated.find_memory_group", lambda: None)
    with pytest.warns(
        UserWarning, match=r"isolated_tools:shout: the memory limit holds for each of its processes alone"
    ):
        made("shout", memory=10**9)
    made("shout")


def test_a_tool_reads_nothing_of_its_calls(made: Any) -> None:
    read = made("read_input", timeout=20.0)
    assert read("a") + read("b") == "ab"


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


def test_damaged_messages_are_errors() -> None:
    for damaged in (b"\0\0\0\2[]", b"\0\0\0\2{}", b"\0\0\0\2\xff\xff"):
        with pytest.raises(ValueError, match="damaged"):
            read_message(io.BytesIO(damaged))
    # Two processes write the same message at the same time: one begins while the other is in the midst of it.
    stream = io.BytesIO()
    write_message(stream, {"call": "0123"}, [b"abcdef"])
    whole = stream.getvalue()
    assert read_message(io.BytesIO(whole)) == ({"call": "0123"}, [b"abcdef"])
    for cut in range(1, len(whole)):
        with pytest.raises((ValueError, EOFError)):
            read_message(io.BytesIO(whole[:cut] + whole + whole[cut:]))
