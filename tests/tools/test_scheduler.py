"""What is ready runs at once, what happens is told, and what nobody needs is let go."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from typing import Any

import pytest
from PIL import Image

from formal_llm import CFG
from formal_llm.errors import Cancelled
from formal_llm.tools import Executor, Progress, Tool, Toolkit, tool
from formal_llm.tools.kinds import IMAGE
from tests.tools.picture_tools import PACK, functions, nested, picture, plan_of
from tests.tools.text_tools import TEXTS, TOOLS, upper


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
