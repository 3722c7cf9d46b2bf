"""How plans are carried out: side by side where that is allowed, in batches, with progress, until cancelled."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from formal_llm import CFG, Planner
from formal_llm.errors import Cancelled, InputError, ToolError, ToolkitError
from formal_llm.tools import Executor, Kind, Progress, Tool, Toolkit, tool
from formal_llm.tools.kinds import IMAGE, TEXT
from tests.tools.picture_tools import PACK, functions, nested, picture, plan_of, toolkit
from tests.tools.text_tools import TEXTS, TOOLS, join, turned, upper


def test_one_terminal_several_inputs() -> None:
    plan = plan_of(TEXTS, "join", "doc", "join", "doc", "doc")
    assert Executor(TOOLS).run(plan, {"doc": ("a", "b")}).output == "a|b|b"
    with pytest.raises(InputError, match="empty"):
        Executor(TOOLS).run(plan, {"doc": ()})


def test_a_plan_that_is_only_an_input() -> None:
    assert Executor(TOOLS).run(plan_of(TEXTS, "doc"), {"doc": "a"}).output == "a"


def test_errors_before_anything_runs() -> None:
    executor = Executor(TOOLS)
    plan = plan_of(TEXTS, "upper", "doc")
    with pytest.raises(InputError, match="needs doc"):
        executor.run(plan, {"dog": "x"})
    with pytest.raises(ToolkitError, match=r"upper\(text\) -> text is applied to bytes at place 2"):
        executor.run(plan, {"doc": b"x"})
    with pytest.raises(InputError, match="of class Thread is of no kind"):
        executor.run(plan, {"doc": threading.Thread()})
    with pytest.raises(InputError, match="the input doc: a object that cannot be written"):
        executor.run(plan, {"doc": object()})
    with pytest.raises(ToolkitError, match="no tool turned"):
        Executor(TOOLS.without("turned")).run(plan_of(TEXTS, "upper", "turned", "doc"), {"doc": "x"})
    with pytest.raises(ToolkitError, match=r"upper\(text\) -> text is applied to image at place 2"):
        executor.run(plan, {"doc": picture()})
    with pytest.raises(InputError, match="kind text was expected"):
        Executor(Toolkit([upper], inputs={"doc": TEXT})).run(plan, {"doc": picture()})
    with pytest.raises(ToolkitError, match="not finished"):
        executor.run(Planner(TEXTS, "test:script=3").start("t").partial, {"doc": "x"})
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
    cfg = CFG.from_string("%order prefix\nI -> denoising photo")
    with (
        Image.open(tmp_path / "half.png") as half,
        pytest.raises(InputError, match="the input photo: no acceptable image"),
    ):
        Executor(toolkit()).run(plan_of(cfg, "denoising", "photo"), {"photo": half})


def test_both_branches_of_pure_tools_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=20)  # a branch that runs alone breaks it

    def meet(name: str, function: Any) -> Any:
        def met(*values: Any) -> Any:
            both.wait()
            return function(*values)

        return met

    table = functions()
    tools = [
        Tool(
            name, inputs, output, meet(name, function) if name in ("denoising", "summarization") else function,
            pure=True,
        )
        for name, (inputs, output, function) in table.items()
    ]  # fmt: skip
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
    begun.clear()
    results = executor.run_many([plan_of(TEXTS, "doc"), plan], {"doc": "a"}, cancel=cancel)
    assert [type(result.error) for result in results] == [type(None), Cancelled]
    assert not begun.is_set()


def test_progress() -> None:
    seen: list[Progress] = []
    plan = plan_of(TEXTS, "upper", "turned", "doc")
    executor = Executor(TOOLS)
    executor.run(plan, {"doc": "a"}, on_progress=seen.append)
    assert [(p.event, p.tool, p.position, p.done, p.total) for p in seen] == [
        ("started", "turned", 1, 0, 2),
        ("executed", "turned", 1, 1, 2),
        ("started", "upper", 0, 1, 2),
        ("executed", "upper", 0, 2, 2),
    ]
    seen.clear()
    executor.run(plan, {"doc": "a"}, on_progress=seen.append)
    assert [p.event for p in seen] == ["cached"] * 2
    with pytest.raises(ZeroDivisionError):
        executor.run(plan, {"doc": "a"}, on_progress=lambda _: 1 / 0)  # type: ignore[arg-type,return-value]


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
    tools = Toolkit([Tool(name, (IMAGE,), IMAGE, watched, version=name, pure=True) for name in ("one", "two")])
    executor = Executor(tools, memory=10_000_000, window=8, workers=2)
    rows = ({"photo": Image.new("RGB", (580, 580), (n, 1, 2))} for n in range(60))
    for result in executor.iterate(plan_of(cfg, "one", "two", "photo"), rows):
        assert result.error is None
    gc.collect()
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

    tools = Toolkit([Tool("upper", (TEXT,), TEXT, one, batch=many, pure=True), turned])
    plan = plan_of(TEXTS, "turned", "upper", "doc")
    executor = Executor(tools, workers=1, batch_size=4)
    results = executor.run_many(plan, [{"doc": f"{n}"} for n in range(10)])
    assert [result.output for result in results] == [f"{n}" for n in range(10)]
    assert sizes == [4, 4, 2]
    results = executor.run_many(plan, [{"doc": text} for text in ("x", "bad", "y")])
    assert [result.error is None for result in results] == [True, False, True]
    short = Tool("upper", (TEXT,), TEXT, one, batch=lambda texts: texts[1:], pure=True)
    results = Executor(Toolkit([short, turned])).run_many(plan, [{"doc": "a"}, {"doc": "b"}])
    assert [result.output for result in results] == ["A", "B"]


def test_a_kind_that_cannot_be_written_fails_its_call_only(tmp_path: Path) -> None:
    def write(value: Any) -> bytes:
        raise TypeError("cannot be written")

    odd = Kind("odd", set, write, bytes, canonical=lambda value: repr(sorted(value)).encode(), size=len)
    cfg = CFG.from_string("%order prefix\nT -> letters doc | upper doc")
    letters = Tool("letters", (TEXT,), odd, set, batch=lambda texts: [set(text) for text in texts], pure=True)
    plans = [plan_of(cfg, name, "doc") for name in ("letters", "upper")] * 2
    rows = [{"doc": text} for text in "abcd"]
    executor = Executor(Toolkit([letters, upper]), cache=tmp_path)
    results = executor.run_many(plans, rows)
    assert [result.error is None for result in results] == [False, True] * 2
    with pytest.raises(ToolError, match="returned a value that cannot be kept: TypeError: cannot be written"):
        _ = results[0].output
    assert Executor(Toolkit([letters, upper])).run(plans[0], rows[0]).output == {"a"}


def test_tools_that_are_not_pure_run_every_time(tmp_path: Path) -> None:
    numbers = iter(range(100))
    dice = Tool("upper", (TEXT,), TEXT, lambda text: f"{text}{next(numbers)}")
    executor = Executor(Toolkit([dice, join]), cache=tmp_path)
    plan = plan_of(TEXTS, "join", "upper", "doc", "upper", "doc")
    assert sorted(executor.run(plan, {"doc": "x"}).output.split("|")) == ["x0", "x1"]
    assert sorted(executor.run(plan, {"doc": "x"}).output.split("|")) == ["x2", "x3"]


@pytest.mark.parametrize("pair", [({1: "a"}, {"1": "a"}), ((1, 2), [1, 2]), ({"a": (1,)}, {"a": [1]})])
def test_what_is_written_alike_and_is_not_equal_is_neither_shared_nor_kept(pair: Any, tmp_path: Path) -> None:
    @tool("show", pure=True)
    def show(value: Any) -> str:
        return repr(value)

    @tool("same", pure=True)
    def same(value: Any) -> Any:
        return value

    kit = Toolkit([show, same], inputs={"it": same.output})
    plan = plan_of(CFG.from_string("%order prefix\nT -> show V\nV -> same it"), "show", "same", "it")
    executor = Executor(kit, cache=tmp_path)
    for _ in range(2):
        results = executor.run_many(plan, [{"it": (value,)} for value in (*pair, *pair)])
        assert [result.output for result in results] == [repr(value) for value in (*pair, *pair)]


def test_what_fits_is_taken() -> None:
    @tool("f")
    def half(x: float | None) -> float:
        return (x or 0) / 2

    @tool("g")
    def one(numbers: list) -> int:  # type: ignore[type-arg]
        return len(numbers)

    cfg = CFG.from_string("%order prefix\nT -> f N\nN -> g L\nL -> numbers")
    plan = plan_of(cfg, "f", "g", "numbers")
    assert Toolkit([half, one]).run(plan, {"numbers": [1, 2, 3]}).output == 1.5


def test_what_can_be_read_only_once_is_refused_with_the_name_of_its_tool() -> None:
    @tool("upper")
    def lines(text: str) -> Any:
        return iter(text)

    with pytest.raises(ToolError, match=r"upper .*a str_ascii_iterator can be read only once; return what is in it"):
        Toolkit([lines]).run(plan_of(TEXTS, "upper", "doc"), {"doc": "ab"})


def test_functions_that_enclose_different_values_are_different_tools(tmp_path: Path) -> None:
    def make(times: int) -> Tool:
        @tool("upper", pure=True)
        def repeat(text: str) -> str:
            return text * times

        return repeat

    plan = plan_of(TEXTS, "upper", "doc")
    for times in (2, 3, 2):
        assert Executor(Toolkit([make(times)]), cache=tmp_path).run(plan, {"doc": "ab"}).output == "ab" * times
