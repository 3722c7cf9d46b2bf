"""The same results on Ray as on threads. Needs the extra ``ray``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray", reason="the extra 'ray' is not installed")
from formal_llm import Cancelled, InputError, Planner, RandomLLM, ToolError
from formal_llm.tools import TEXT, Executor, Progress, Tool, Toolkit
from formal_llm.tools.ray_executor import RayExecutor
from tests.tools.picture_tools import PACK, picture, toolkit

pytestmark = [pytest.mark.slow, pytest.mark.enable_socket, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    import ray

    here = str(Path(__file__).parent)
    root = str(Path(__file__).parent.parent.parent)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            runtime_env={"env_vars": {"PYTHONPATH": f"{here}:{root}"}},
        )
        yield
        ray.shutdown()


def test_the_same_results_as_on_threads(cluster: None, tmp_path: Path) -> None:
    planner = Planner(PACK.cfg, RandomLLM(5))
    plans = [planner.plan(task) for task in PACK.tasks[::9]]
    rows = [{"input_image": picture(n % 2), "input_text": ("a b", "c")} for n in range(len(plans))]
    here = Executor(toolkit()).run_many(plans, rows, keep=True)
    there = RayExecutor(toolkit(), chunk=4, cache=str(tmp_path))
    seen: list[Progress] = []
    far = there.run_many(plans, rows, keep=True, on_progress=seen.append)
    for one, other in zip(here, far, strict=True):
        assert other.plan == one.plan
        keys = [(step.name, step.state == "given", step.inputs, step.value and step.value.key) for step in one.steps]
        assert keys == [
            (step.name, step.state == "given", step.inputs, step.value and step.value.key) for step in other.steps
        ]
    assert {event.event for event in seen} <= {"executed", "cached"}
    solution = Planner(PACK.cfg, RandomLLM(1)).solve(PACK.tasks[0], {"input_image": picture()}, there)
    assert solution.result.error is None
    there.close()


def test_failures(cluster: None) -> None:
    from formal_llm import CFG

    def fail(text: str) -> str:
        raise RuntimeError(f"not {text}")

    plan = Planner(CFG.from_string("T -> upper U\nU -> fail doc")).plan("t")
    kit = Toolkit([Tool("fail", (TEXT,), TEXT, fail), Tool("upper", (TEXT,), TEXT, str.upper)])
    there = RayExecutor(kit, actors=1)
    with pytest.raises(ToolError, match=r"fail .*failed: RuntimeError: not a") as caught:
        there.run(plan, {"doc": "a"})
    assert caught.value.position == 1
    assert caught.value.result.steps[1].state == "failed"
    with pytest.raises(InputError):
        there.run(plan, {})
    there.close()
    with pytest.raises(ValueError, match="count from 1"):
        RayExecutor(kit, actors=0)
    with pytest.raises(ValueError, match="workers"):
        RayExecutor(kit, workers=0)


def test_cancel(cluster: None) -> None:
    import threading
    import time

    from formal_llm import CFG

    def slow(text: str) -> str:
        time.sleep(20)
        return text

    plan = Planner(CFG.from_string("T -> slow doc")).plan("t")
    there: Any = RayExecutor(Toolkit([Tool("slow", (TEXT,), TEXT, slow)]), actors=1)
    cancel = threading.Event()
    threading.Timer(0.5, cancel.set).start()
    begin = time.monotonic()
    with pytest.raises(Cancelled):
        there.run(plan, {"doc": "a"}, cancel=cancel)
    assert time.monotonic() - begin < 15
    there.close()
