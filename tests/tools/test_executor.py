"""The executor: plans run from the inside out, in parallel, once for equal inputs, and failures are told in full."""

from __future__ import annotations

import contextlib
import gc
import itertools
import random
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from formal_llm import CFG, Plan, Planner, RandomLLM
from formal_llm.errors import Cancelled, InputError, ToolError, ToolkitError
from formal_llm.tools import DiskCache, Executor, Kind, Progress, Tool, Toolkit, tool
from formal_llm.tools.kinds import IMAGE, TEXT
from tests.tools.picture_tools import PACK, Log, functions, picture, plan_of, toolkit

TEXTS = CFG.from_string("""
    T -> D T | F T T | doc
    D -> upper | turned
    F -> join
""")


@tool
def upper(text: str) -> str:
    """Capital letters."""
    return text.upper()


@tool
def turned(text: str) -> str:
    return text[::-1]


@tool(cost=2.5)
def join(first: str, second: str) -> str:
    return f"{first}|{second}"


TOOLS = Toolkit([upper, turned, join])


def nested(plan: Plan, inputs: dict[str, Any]) -> Any:
    """What the nested calls give, by recursion: what the executor must agree with."""
    table = functions()

    def value(call: Any) -> Any:
        return table[call.name][2](*map(value, call.arguments)) if call.arguments else inputs[call.name]

    return value(plan.call)


def test_a_chain_and_its_record() -> None:
    plan = plan_of(TEXTS, "join", "upper", "doc", "turned", "upper", "doc")
    result = Executor(TOOLS).run(plan, {"doc": "abc"})
    assert result.output == "ABC|CBA"
    assert result.error is None
    assert [(s.position, s.name, s.state, s.value and s.value.get(), s.inputs) for s in result.steps] == [
        (0, "join", "executed", "ABC|CBA", (1, 3)),
        (1, "upper", "executed", "ABC", (2,)),
        (2, "doc", "given", "abc", ()),
        (3, "turned", "executed", "CBA", (4,)),
        (4, "upper", "executed", "ABC", (5,)),
        (5, "doc", "given", "abc", ()),
    ]
    assert result.cost == 2.5
    assert result.seconds > 0
    assert repr(result) == "<Result of t = join(upper(doc), turned(upper(doc))): done>"


def test_equal_sub_plans_of_one_plan_run_once() -> None:
    executor = Executor(TOOLS)
    executor.run(plan_of(TEXTS, "join", "upper", "doc", "turned", "upper", "doc"), {"doc": "abc"})
    assert executor.stats.executed == 3
    executor.run(plan_of(TEXTS, "turned", "upper", "doc"), {"doc": "abc"})
    assert (executor.stats.executed, executor.stats.from_memory) == (3, 2)
    assert executor.stats.calls == 5


def test_one_terminal_several_inputs() -> None:
    plan = plan_of(TEXTS, "join", "doc", "join", "doc", "doc")
    assert Executor(TOOLS).run(plan, {"doc": ("a", "b")}).output == "a|b|b"
    with pytest.raises(InputError, match="empty"):
        Executor(TOOLS).run(plan, {"doc": ()})


def test_a_plan_that_is_only_an_input() -> None:
    assert Executor(TOOLS).run(plan_of(TEXTS, "doc"), {"doc": "a"}).output == "a"


def test_both_branches_of_a_tree_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=20)  # a branch that runs alone breaks it

    def meet(name: str, function: Any) -> Any:
        def met(*values: Any) -> Any:
            both.wait()
            return function(*values)

        return met

    table = functions()
    tools = [
        Tool(name, inputs, output, meet(name, function) if name in ("denoising", "summarization") else function)
        for name, (inputs, output, function) in table.items()
    ]
    plan = plan_of(
        PACK.cfg, "visual_question_answering", "colorization", "denoising", "input_image", "translation",
        "summarization", "input_text", goal="text_plan",
    )  # fmt: skip
    inputs = {"input_image": picture(), "input_text": "What is it?"}
    result = Executor(Toolkit(tools), workers=2).run(plan, inputs)
    assert result.output == nested(plan, inputs)
    assert result.steps[1].value is not None
    assert result.steps[1].value.kind == IMAGE


def test_many_random_plans_give_what_the_nested_calls_give() -> None:
    planner = Planner(PACK.cfg, RandomLLM(3))
    plans = [planner.plan(task) for task in PACK.tasks[::5] for _ in range(3)]
    inputs = [{"input_image": picture(n % 3), "input_text": "a b c"} for n in range(len(plans))]
    log = Log()
    results = Executor(toolkit(log), window=20).run_many(plans, inputs, keep=True)
    for plan, row, result in zip(plans, inputs, results, strict=True):
        assert result.plan is plan
        expected = nested(plan, row)
        assert result.output == expected if isinstance(expected, str) else result.output.tobytes() == expected.tobytes()
    assert max(log.calls.values()) == 1


def test_errors_before_anything_runs() -> None:
    executor = Executor(TOOLS)
    plan = plan_of(TEXTS, "upper", "doc")
    with pytest.raises(InputError, match="needs doc"):
        executor.run(plan, {"dog": "x"})
    with pytest.raises(InputError, match="of class bytes"):
        executor.run(plan, {"doc": b"x"})
    with pytest.raises(ToolkitError, match="no tool turned"):
        Executor(TOOLS.without("turned")).run(plan_of(TEXTS, "upper", "turned", "doc"), {"doc": "x"})
    with pytest.raises(ToolkitError, match=r"upper\(text\) -> text is applied to image at place 1"):
        executor.run(plan, {"doc": picture()})
    with pytest.raises(InputError, match="kind text was expected"):
        Executor(Toolkit([upper], inputs={"doc": TEXT})).run(plan, {"doc": picture()})
    flat = Planner(TEXTS, "test:script=3").start("t").partial
    with pytest.raises(ToolkitError, match="no nesting of calls"):
        executor.run(flat, {"doc": "x"})
    with pytest.raises(InputError) as caught:
        executor.run_many([plan, plan_of(TEXTS, "doc")], [{"doc": "x"}, {}])
    assert caught.value.__notes__ == ["in plan 1 (counted from 0)"]
    assert executor.stats.calls == 0
    for wrong in ({"workers": 0}, {"timeout": 0}, {"retries": -1}, {"window": 0}, {"batch_size": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Executor(TOOLS, **wrong)  # type: ignore[arg-type]


def test_a_damaged_picture_is_told_before_anything_runs(tmp_path: Path) -> None:
    picture(size=64).save(tmp_path / "whole.png")
    data = (tmp_path / "whole.png").read_bytes()
    (tmp_path / "half.png").write_bytes(data[: len(data) // 2])
    cfg = CFG.from_string("I -> denoising photo")
    with (
        Image.open(tmp_path / "half.png") as half,
        pytest.raises(InputError, match="the input photo: no acceptable image"),
    ):
        Executor(toolkit()).run(plan_of(cfg, "denoising", "photo"), {"photo": half})


def test_a_failure_says_where_and_keeps_what_was_computed() -> None:
    @tool("turned")
    def broken(text: str) -> str:
        raise RuntimeError(f"no mirror for {text}")

    plan = plan_of(TEXTS, "join", "upper", "doc", "turned", "upper", "doc")
    with pytest.raises(ToolError) as caught:
        Executor(Toolkit([upper, broken, join]), workers=1).run(plan, {"doc": "abc"})
    error = caught.value
    assert (error.tool, error.position, error.reason) == ("turned", 3, "failed")
    assert error.step is not None
    assert error.step.name == "turned"
    assert isinstance(error.cause, RuntimeError)
    assert str(error) == f"turned (step {error.step.number}) failed: RuntimeError: no mirror for ABC"
    states = {step.position: step.state for step in error.result.steps}
    assert states == {0: "not run", 1: "executed", 2: "given", 3: "failed", 4: "executed", 5: "given"}
    assert error.result.steps[4].value.get() == "ABC"
    assert error.result.value is None


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
        (lambda text: time.sleep(5), "timeout", "did not return within 0.1 seconds"),
    ],
)
def test_what_tools_do_wrong(function: Any, reason: str, words: str) -> None:
    broken = Tool("upper", (TEXT,), TEXT, function)
    begin = time.monotonic()
    timeout = 0.1 if reason == "timeout" else 20
    with pytest.raises(ToolError, match=words) as caught:
        Executor(Toolkit([broken]), timeout=timeout, max_bytes=2_000).run(plan_of(TEXTS, "upper", "doc"), {"doc": "a"})
    assert caught.value.reason == reason
    assert time.monotonic() - begin < 3


def test_retries() -> None:
    tries: list[str] = []

    @tool("upper")
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
    for _ in range(200):  # a busy machine may take longer than the timeout to start a thread
        time.sleep(0.01)
        with contextlib.suppress(ToolError):
            assert executor.run(plan, {"doc": "text 0"}).output == "TEXT 0"
            break
    else:
        raise AssertionError("called no more")


def test_cancel() -> None:
    cancel, begun = threading.Event(), threading.Event()

    @tool("turned")
    def slow(text: str) -> str:
        begun.set()
        time.sleep(5)
        return text

    plan = plan_of(TEXTS, "turned", "upper", "doc")
    threading.Thread(target=lambda: (begun.wait(5), cancel.set())).start()
    begin = time.monotonic()
    executor = Executor(Toolkit([upper, slow]))
    with pytest.raises(Cancelled) as caught:
        executor.run(plan, {"doc": "a"}, cancel=cancel)
    assert time.monotonic() - begin < 3
    assert caught.value.result.steps[1].value.get() == "A"
    results = executor.run_many([plan_of(TEXTS, "doc"), plan], {"doc": "a"}, cancel=cancel)
    assert [type(result.error) for result in results] == [type(None), Cancelled]


def test_progress() -> None:
    seen: list[Progress] = []
    plan = plan_of(TEXTS, "upper", "turned", "doc")
    executor = Executor(TOOLS, workers=1)
    executor.run(plan, {"doc": "a"}, on_progress=seen.append)
    assert [(p.event, p.tool, p.position, p.done, p.total) for p in seen] == [
        ("started", "turned", 1, 0, 2),
        ("executed", "turned", 1, 1, 2),
        ("started", "upper", 0, 1, 2),
        ("executed", "upper", 0, 2, 2),
    ]
    seen.clear()
    executor.run(plan, {"doc": "a"}, on_progress=seen.append)
    assert [p.event for p in seen] == ["started", "cached"] * 2


def test_one_failure_among_many_touches_no_other() -> None:
    @tool("upper")
    def picky(text: str) -> str:
        if text == "bad":
            raise ValueError("bad text")
        return text.upper()

    plan = plan_of(TEXTS, "turned", "upper", "doc")
    rows = [{"doc": "bad" if n % 3 == 1 else f"good {n}"} for n in range(9)]
    results = Executor(Toolkit([picky, turned])).run_many(plan, rows)
    assert [result.error is None for result in results] == [n % 3 != 1 for n in range(9)]
    assert results[0].output == "0 DOOG"
    with pytest.raises(ToolError, match="bad text"):
        _ = results[1].output
    with pytest.raises(ValueError, match="run"):
        Executor(TOOLS).run_many(plan, {"doc": "x"})
    with pytest.raises(ValueError, match="zip"):
        Executor(TOOLS).run_many([plan], [{"doc": "x"}] * 2)


def test_values_that_nobody_needs_are_let_go() -> None:
    plans = [plan_of(TEXTS, "turned", "upper", "doc")]
    (result,) = Executor(TOOLS).run_many(plans, {"doc": "a"})
    assert [step.value is None for step in result.steps] == [False, True, True]
    (result,) = Executor(TOOLS).run_many(plans, {"doc": "a"}, keep=True)
    assert [step.value is None for step in result.steps] == [False, False, False]


def test_results_come_one_by_one_and_plans_are_taken_as_places_become_free() -> None:
    taken: list[int] = []

    def rows() -> Any:
        for number in range(10):
            taken.append(number)
            yield {"doc": f"{number}"}

    results = Executor(TOOLS, window=3).iterate(plan_of(TEXTS, "upper", "doc"), rows())
    assert next(results).output == "0"
    assert taken == [0, 1, 2]
    assert [result.output for result in results] == [f"{n}" for n in range(1, 10)]


def test_memory_is_bounded() -> None:
    """60 pictures of a megabyte each go through two tools: what is alive at one time is a window and the bound."""
    alive: set[int] = set()
    numbers = itertools.count()
    most = 0
    lock = threading.Lock()

    def watched(image: Any) -> Any:
        nonlocal most
        made = image.rotate(90)
        with lock:
            number = next(numbers)
            alive.add(number)
            weakref.finalize(made, alive.discard, number)
            most = max(most, len(alive))
        return made

    cfg = CFG.from_string("I -> A I | photo\nA -> one | two")
    tools = Toolkit([Tool(name, (IMAGE,), IMAGE, watched, version=name) for name in ("one", "two")])
    executor = Executor(tools, memory=10_000_000, window=8, workers=2)
    rows = ({"photo": Image.new("RGB", (580, 580), (n, 1, 2))} for n in range(60))
    for result in executor.iterate(plan_of(cfg, "one", "two", "photo"), rows):
        assert result.error is None
    gc.collect()
    assert executor._store._bytes <= 10_000_000
    assert len(alive) <= 10
    assert most <= 8 * 2 + 10 + 6


def test_batches() -> None:
    sizes: list[int] = []

    def many(texts: list[str]) -> list[str]:
        sizes.append(len(texts))
        if "bad" in texts:
            raise ValueError("one of them is bad")
        return [text.upper() for text in texts]

    def one(text: str) -> str:
        if text == "bad":
            raise ValueError("bad")
        return text.upper()

    tools = Toolkit([Tool("upper", (TEXT,), TEXT, one, batch=many), turned])
    plan = plan_of(TEXTS, "turned", "upper", "doc")
    executor = Executor(tools, workers=1, batch_size=4)
    results = executor.run_many(plan, [{"doc": f"{n}"} for n in range(10)])
    assert [result.output for result in results] == [f"{n}" for n in range(10)]
    assert sizes == [4, 4, 2]
    results = executor.run_many(plan, [{"doc": text} for text in ("x", "bad", "y")])
    assert [result.error is None for result in results] == [True, False, True]
    short = Tool("upper", (TEXT,), TEXT, one, batch=lambda texts: texts[1:])
    assert [r.output for r in Executor(Toolkit([short, turned])).run_many(plan, [{"doc": "a"}, {"doc": "b"}])] == [
        "A",
        "B",
    ]


def test_threads_that_share_an_executor_do_not_do_things_twice() -> None:
    log = Log()
    slow = threading.Semaphore(0)

    def once(text: str) -> str:
        log.note(text)
        slow.acquire(timeout=10)
        return text.upper()

    executor = Executor(Toolkit([Tool("upper", (TEXT,), TEXT, once)]))
    plan = plan_of(TEXTS, "upper", "doc")
    outputs: list[str] = []
    threads = [
        threading.Thread(target=lambda: outputs.append(executor.run(plan, {"doc": "a"}).output)) for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    slow.release()
    for thread in threads:
        thread.join(10)
    assert outputs == ["A"] * 6
    assert log.calls == {("a",): 1}


def test_who_waits_for_a_cancelled_call_makes_it_itself() -> None:
    begun, cancel = threading.Event(), threading.Event()
    calls: list[int] = []

    def once(text: str) -> str:
        calls.append(1)
        begun.set()
        if len(calls) == 1:
            time.sleep(1)
        return text.upper()

    executor = Executor(Toolkit([Tool("upper", (TEXT,), TEXT, once)]))
    plan = plan_of(TEXTS, "upper", "doc")
    errors: list[Exception] = []

    def first() -> None:
        try:
            executor.run(plan, {"doc": "a"}, cancel=cancel)
        except Cancelled as error:
            errors.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(5)
    threading.Timer(0.1, cancel.set).start()
    assert executor.run(plan, {"doc": "a"}).output == "A"
    thread.join(5)
    assert len(errors) == 1
    assert len(calls) == 2


def test_a_kind_that_cannot_be_written_fails_its_call_only(tmp_path: Path) -> None:
    def write(value: Any) -> bytes:
        raise TypeError("cannot be written")

    odd = Kind("odd", set, write, bytes, canonical=lambda value: repr(sorted(value)).encode(), size=len)
    cfg = CFG.from_string("T -> letters doc | upper doc")
    letters = Tool("letters", (TEXT,), odd, set, batch=lambda texts: [set(text) for text in texts])
    plans = [plan_of(cfg, name, "doc") for name in ("letters", "upper")] * 2
    rows = [{"doc": text} for text in "abcd"]
    executor = Executor(Toolkit([letters, upper]), cache=tmp_path)
    results = executor.run_many(plans, rows)
    assert [result.error is None for result in results] == [False, True] * 2
    with pytest.raises(ToolError, match="returned a value that cannot be kept: TypeError: cannot be written"):
        _ = results[0].output
    assert Executor(Toolkit([letters, upper])).run(plans[0], rows[0]).output == {"a"}


def test_tools_that_are_not_deterministic_run_every_time(tmp_path: Path) -> None:
    numbers = iter(range(100))
    dice = Tool("upper", (TEXT,), TEXT, lambda text: f"{text}{next(numbers)}", deterministic=False)
    executor = Executor(Toolkit([dice, join]), workers=1, cache=tmp_path)
    plan = plan_of(TEXTS, "join", "upper", "doc", "upper", "doc")
    assert sorted(executor.run(plan, {"doc": "x"}).output.split("|")) == ["x0", "x1"]
    assert sorted(executor.run(plan, {"doc": "x"}).output.split("|")) == ["x2", "x3"]


def test_tools_may_change_what_they_are_given() -> None:
    def spoil(image: Any) -> Any:
        image.paste(0, (0, 0, *image.size))
        return image

    cfg = CFG.from_string("I -> spoil I | join I I | photo")
    both = Tool("join", (IMAGE, IMAGE), IMAGE, lambda first, second: second)
    executor = Executor(Toolkit([Tool("spoil", (IMAGE,), IMAGE, spoil), both]), workers=1)
    photo = picture()
    before = photo.tobytes()
    result = executor.run(plan_of(cfg, "join", "spoil", "photo", "photo"), {"photo": photo})
    assert result.output.tobytes() == before == photo.tobytes()


@pytest.mark.slow
def test_two_thousand_plans_of_one_group_execute_each_distinct_sub_plan_once(tmp_path: Path) -> None:
    tasks = [task for task in PACK.tasks if task.group == "Task X"]
    planner = Planner(PACK.cfg, RandomLLM(11))
    rng = random.Random(5)
    plans = [planner.plan(rng.choice(tasks)) for _ in range(2000)]
    inputs = {"input_image": picture(), "input_text": "What do you see?"}
    log = Log()
    executor = Executor(toolkit(log), cache=DiskCache(tmp_path))
    results = executor.run_many(plans, inputs)
    assert all(result.error is None for result in results)
    distinct = {str(call).split(" = ")[-1] for plan in plans for call in plan.call.walk() if call.arguments}
    assert max(log.calls.values()) == 1
    # Sub-plans with equal content (two that give the same picture) are one call, so at most one for each.
    assert executor.stats.executed == log.calls.total() <= len(distinct)
    # Another process, or another day: everything is on the disk.
    again = Executor(toolkit(log), cache=DiskCache(tmp_path))
    for old, new in zip(results[:200], again.run_many(plans[:200], inputs), strict=True):
        assert old.value is not None
        assert new.value is not None
        assert old.value.key == new.value.key
    assert again.stats.executed == 0
