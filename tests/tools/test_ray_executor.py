"""The same results on two workers of Ray as on threads."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from formal_llm import CFG, Planner, RandomLLM
from formal_llm.errors import Cancelled, InputError, MissingDependency, ToolError
from formal_llm.tools import TEXT, Executor, Tool, Toolkit
from formal_llm.tools.ray_executor import RayExecutor
from tests.tools.picture_tools import PACK, picture, toolkit
from tests.tools.text_tools import TOOLS


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependency, match="pip install"):
        RayExecutor(TOOLS)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two CPUs, on which two workers run."""
    ray = pytest.importorskip("ray")
    environment = {"env_vars": {"PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    yield ray
    ray.shutdown()


@pytest.mark.slow
@pytest.mark.enable_socket
@pytest.mark.filterwarnings("default")
def test_the_same_as_on_threads(cluster: Any, tmp_path: Path) -> None:
    planner = Planner(PACK.cfg, RandomLLM(5))
    plans = [planner.plan(task) for task in PACK.tasks[::9]]
    rows = [{"input_image": picture(n % 2), "input_text": ("a b", "c")} for n in range(len(plans))]
    here = Executor(toolkit()).run_many(plans, rows, keep=True)
    there = RayExecutor(toolkit(), chunk=4, cache=str(tmp_path))
    for one, other in zip(here, there.run_many(plans, rows, keep=True), strict=True):
        assert other.plan == one.plan
        assert [(step.name, step.inputs, step.value) for step in one.steps] == [
            (step.name, step.inputs, step.value) for step in other.steps
        ]
    there.close()

    def fail(text: str) -> str:
        if text == "wait":
            threading.Event().wait(60)
        raise RuntimeError(f"not {text}")

    plan = Planner(CFG.from_string("%order prefix\nT -> upper U\nU -> fail doc")).plan("t")
    kit = Toolkit([Tool("fail", (TEXT,), TEXT, fail), Tool("upper", (TEXT,), TEXT, str.upper)])
    there = RayExecutor(kit, actors=1)
    with pytest.raises(ToolError, match=r"fail .*failed: RuntimeError: not a") as caught:
        there.run(plan, {"doc": "a"})
    assert (caught.value.position, caught.value.result.steps[1].state) == (1, "failed")
    with pytest.raises(InputError):
        there.run(plan, {})
    with pytest.raises(ValueError, match="reports no progress"):
        there.run(plan, {"doc": "a"}, on_progress=print)
    cancel = threading.Event()
    threading.Timer(1, cancel.set).start()
    with pytest.raises(Cancelled):
        there.run(plan, {"doc": "wait"}, cancel=cancel)
    there.close()
