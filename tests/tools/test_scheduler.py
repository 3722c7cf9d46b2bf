"""What is ready runs at once, what happens is told, and what nobody needs is let go."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from formal_llm import CFG
from formal_llm.errors import Cancelled, ToolError
from formal_llm.tools import Executor, Kind, Progress, Tool, Toolkit, Value, tool
from formal_llm.tools.calling import Caller, CallLimits
from formal_llm.tools.graph import CallNode
from formal_llm.tools.kinds import IMAGE, TEXT
from formal_llm.tools.scheduler import CallRunner
from formal_llm.tools.store import Store, step_key
from tests.tools.picture_tools import PACK, Log, functions, nested, picture, plan_of
from tests.tools.text_tools import TEXTS, TOOLS, join, turned, upper


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


def test_cancel() -> None:
    cancel, begun, end = threading.Event(), threading.Event(), threading.Event()

    @tool("turned")
    def slow(text: str) -> str:
        begun.set()
        end.wait(20)
        return text

    plan = plan_of(TEXTS, "turned", "upper", "doc")
    threading.Thread(target=lambda: (begun.wait(20), cancel.set())).start()
    executor = Executor(Toolkit([upper, slow]))
    with pytest.raises(Cancelled) as caught:
        executor.run(plan, {"doc": "a"}, cancel=cancel)  # which does not wait for the end of the tool
    end.set()
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


def test_values_that_nobody_needs_are_let_go() -> None:
    plans = [plan_of(TEXTS, "turned", "upper", "doc")]
    (result,) = Executor(TOOLS).run_many(plans, {"doc": "a"})
    assert [step.value is None for step in result.steps] == [False, True, True]
    (result,) = Executor(TOOLS).run_many(plans, {"doc": "a"}, keep=True)
    assert [step.value is None for step in result.steps] == [False, False, False]


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

    cfg = CFG.from_string("%order prefix\nI -> A I | photo\nA -> one | two")
    tools = Toolkit([Tool(name, (IMAGE,), IMAGE, watched, version=name) for name in ("one", "two")])
    executor = Executor(tools, memory=10_000_000, window=8, workers=2)
    rows = ({"photo": Image.new("RGB", (580, 580), (n, 1, 2))} for n in range(60))
    for result in executor.iterate(plan_of(cfg, "one", "two", "photo"), rows):
        assert result.error is None
    gc.collect()
    assert executor._store._bytes <= 10_000_000
    assert len(alive) <= 10
    assert most <= 8 * 2 + 10 + 6


def claims(executor: Executor) -> threading.Semaphore:
    """Is released once for each time that somebody asks for a result."""
    asked, store = threading.Semaphore(0), executor._store
    claim = store.claim_result

    def noted(key: str) -> Any:
        flight = claim(key)
        asked.release()
        return flight

    store.claim_result = noted  # type: ignore[method-assign]
    return asked


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
    asked = claims(executor)
    for thread in threads:
        thread.start()
    for _ in threads:
        assert asked.acquire(timeout=10)  # all six have asked for the result before it is there
    slow.release()
    for thread in threads:
        thread.join(10)
    assert outputs == ["A"] * 6
    assert log.calls == {("a",): 1}


def test_who_waits_for_a_cancelled_call_makes_it_itself() -> None:
    begun, cancel, end = threading.Event(), threading.Event(), threading.Event()
    calls: list[int] = []

    def once(text: str) -> str:
        calls.append(1)
        begun.set()
        if len(calls) == 1:
            end.wait(20)
        return text.upper()

    executor = Executor(Toolkit([Tool("upper", (TEXT,), TEXT, once)]))
    asked = claims(executor)
    plan = plan_of(TEXTS, "upper", "doc")
    errors: list[Exception] = []

    def first() -> None:
        try:
            executor.run(plan, {"doc": "a"}, cancel=cancel)
        except Cancelled as error:
            errors.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    assert begun.wait(20)
    assert asked.acquire(timeout=20)
    threading.Thread(target=lambda: asked.acquire(timeout=20) and cancel.set()).start()
    assert executor.run(plan, {"doc": "a"}).output == "A"
    thread.join(20)
    end.set()
    assert len(errors) == 1
    assert len(calls) == 2


def test_a_kind_that_cannot_be_written_fails_its_call_only(tmp_path: Path) -> None:
    def write(value: Any) -> bytes:
        raise TypeError("cannot be written")

    odd = Kind("odd", set, write, bytes, canonical=lambda value: repr(sorted(value)).encode(), size=len)
    cfg = CFG.from_string("%order prefix\nT -> letters doc | upper doc")
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


def test_nobody_waits_for_what_an_interrupted_thread_was_to_make() -> None:
    class Interrupted(Caller):
        def call_many(self, *_: Any) -> Any:
            raise KeyboardInterrupt

    store = Store(1000)
    nodes = [CallNode(n, "upper", upper, (CallNode(9, "doc", None, value=Value(TEXT, f"{n}")),)) for n in range(2)]
    keys = [step_key(upper, [Value(TEXT, f"{n}")]) for n in range(2)]
    with pytest.raises(KeyboardInterrupt):
        CallRunner(store, Interrupted(CallLimits())).run_nodes(nodes)
    assert [store.claim_result(key) for key in keys] == [None, None]


def test_known_results_are_not_made_again() -> None:
    store = Store(1000)
    node = CallNode(0, "upper", upper, (CallNode(1, "doc", None, value=Value(TEXT, "a")),))
    outcomes = [CallRunner(store, Caller(CallLimits())).run_nodes([node])[0] for _ in range(2)]
    assert [(one.state, one.tries, one.given) for one in outcomes] == [
        ("executed", 1, Value(TEXT, "A")),
        ("cached", 0, Value(TEXT, "A")),
    ]
    assert (store.stats.executed, store.stats.from_memory) == (1, 1)
