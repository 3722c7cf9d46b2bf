"""Plans become one graph of calls; what cannot be executed is told before anything runs."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from PIL import Image

from formal_llm import CFG, Planner
from formal_llm.errors import InputError, ToolkitError
from formal_llm.tools import Executor, Toolkit
from formal_llm.tools.graph import Given, Graph
from formal_llm.tools.kinds import TEXT
from tests.tools.picture_tools import picture, plan_of, toolkit
from tests.tools.text_tools import TEXTS, TOOLS, upper


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
    cfg = CFG.from_string("%order prefix\nI -> denoising photo")
    with (
        Image.open(tmp_path / "half.png") as half,
        pytest.raises(InputError, match="the input photo: no acceptable image"),
    ):
        Executor(toolkit()).run(plan_of(cfg, "denoising", "photo"), {"photo": half})


def test_equal_sub_plans_are_one_node() -> None:
    graph = Graph(TOOLS.tools, keep=False)
    given = Given({"doc": "a"}, {})
    one = graph.add_plan(plan_of(TEXTS, "join", "upper", "doc", "turned", "upper", "doc"), given, 0)
    other = graph.add_plan(plan_of(TEXTS, "turned", "upper", "doc"), Given({"doc": "a"}, {}), 1)
    assert [node.name for node in graph.nodes] == ["doc", "upper", "turned", "join"]
    assert one.nodes[1] is one.nodes[4] is other.nodes[1]
    assert one.arguments == [(1, 3), (2,), (), (4,), (5,), ()]
    assert (one.left, other.left) == (4, 3)
    assert one.nodes[1].jobs == [one, other]
    third = graph.add_plan(plan_of(TEXTS, "turned", "upper", "doc"), Given({"doc": "b"}, {}), 2)
    assert third.nodes[0] is not other.nodes[0]


def test_a_value_is_needed_as_often_as_it_is_used() -> None:
    word = ("join", "doc", "upper", "doc")
    for keep, uses in ((False, [1, 2, 1]), (True, [1, 3, 2])):
        job = Graph(TOOLS.tools, keep=keep).add_plan(plan_of(TEXTS, *word), Given({"doc": "a"}, {}), 0)
        assert [node.uses for node in dict.fromkeys(job.nodes)] == uses
