"""The same results on Ray as on threads, and progress as it goes.

The first tests need no Ray: a module that stands for it runs the workers in this process.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import types
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from formal_llm import CFG, Planner, RandomLLM
from formal_llm.errors import Cancelled, ExecutionError, InputError, MissingDependency, ToolError
from formal_llm.tools import TEXT, Executor, Progress, Tool, Toolkit
from formal_llm.tools.ray_executor import RayExecutor, _RayWorker, _Share, _Together
from tests.tools.picture_tools import PACK, picture, plan_of, toolkit
from tests.tools.text_tools import TEXTS, TOOLS


class Stream:
    """What Ray gives for a generator on a worker: references to what it yields."""

    def __init__(self, told: Iterator[Any]) -> None:
        self.told = told
        self.taken = 0

    def __next__(self) -> Any:
        self.taken += 1
        return next(self.told)


class Died(Exception):
    """What Ray raises where a worker was."""

    actor_init_failed = False


class NoRay(types.ModuleType):
    """Stands for the module ``ray``: whatever is sent is pickled, and all streams are ready in turn."""

    def __init__(self) -> None:
        super().__init__("ray")
        self.streams: list[Stream] = []
        self.cancelled: list[Stream] = []
        self.killed: list[object] = []
        self.options: list[dict[str, object]] = []
        self.made = 0
        self.unable: Died | None = None
        self.full = False
        self.dying_once = False
        self.exceptions = types.SimpleNamespace(
            RayActorError=Died, NodeDiedError=Died, WorkerCrashedError=Died, ObjectLostError=Died, OutOfMemoryError=Died
        )

    def remote(self, made: Any = None, **options: object) -> Any:
        if made is None:
            self.options.append(options)
            return self.remote
        return types.SimpleNamespace(remote=lambda *given: self._actor(made(*pickle.loads(pickle.dumps(given)))))

    def _actor(self, worker: Any) -> Any:
        def run(*given: Any) -> Stream:
            self.streams.append(Stream(self._told(worker, *pickle.loads(pickle.dumps(given)))))
            return self.streams[-1]

        def ready() -> Stream:
            return Stream(iter([pickle.dumps(worker.ready())]))

        self.made += 1
        return types.SimpleNamespace(run=types.SimpleNamespace(remote=run), ready=types.SimpleNamespace(remote=ready))

    def _told(self, worker: Any, rows: Any, *how: Any) -> Iterator[Any]:
        if self.dying_once:
            self.dying_once = False
            raise Died("its machine is gone")
        for told in worker.run(rows, *how):
            if any(value.get() == "die" for _, given in rows for values in given.values() for value in values):
                raise Died("killed")  # when it has told of some and is about to tell of more
            yield pickle.dumps(told)

    def wait(self, streams: list[Any], *, num_returns: int, timeout: float | None) -> Any:
        if self.full:  # who comes in the place of another one has no room
            streams = [stream for stream in streams if stream in self.streams]
            assert streams, "it waits for ever"
        return streams[:num_returns], streams[num_returns:]

    def get(self, reference: Any) -> Any:
        if isinstance(reference, Stream):
            if self.unable is not None:
                raise self.unable
            reference = next(reference)
        return pickle.loads(reference)

    def cancel(self, stream: Stream) -> None:
        self.cancelled.append(stream)

    def kill(self, actor: object) -> None:
        self.killed.append(actor)


@pytest.fixture
def no_ray(monkeypatch: pytest.MonkeyPatch) -> NoRay:
    module = NoRay()
    monkeypatch.setitem(sys.modules, "ray", module)
    return module


PLANS = [plan_of(TEXTS, "join", "upper", "doc", "turned", "doc"), plan_of(TEXTS, "upper", "doc")]


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependency, match=r"pip install 'formal-llm\[ray\]'"):
        RayExecutor(TOOLS)


def test_progress_is_told_as_it_goes(no_ray: NoRay) -> None:
    there = RayExecutor(TOOLS, actors=2, chunk=2, workers=1, options={"num_cpus": 1})
    assert no_ray.options == [{"num_cpus": 1}]
    rows = [{"doc": text} for text in ("ab", "cd", "ef", "ab")]
    seen: list[tuple[Progress, int]] = []
    results = there.run_many(
        [PLANS[0], PLANS[1]] * 2, rows, on_progress=lambda told: seen.append((told, no_ray.streams[0].taken))
    )
    assert [result.output for result in results] == ["AB|ba", "CD", "EF|fe", "AB"]
    # Each event is told when one thing more was taken from its worker, not in the end.
    told = [event for event, _ in seen]
    assert [taken for event, taken in seen if event.job < 2] == list(range(1, len(seen) // 2 + 1))
    ended = [event for event in told if event.event != "started"]
    assert sorted((event.job, event.tool, event.position) for event in ended) == [
        (0, "join", 0), (0, "turned", 3), (0, "upper", 1), (1, "upper", 0),
        (2, "join", 0), (2, "turned", 3), (2, "upper", 1), (3, "upper", 0),
    ]  # fmt: skip
    assert [event.done for event in ended] == list(range(1, 9))
    assert told[-1].total == told[-1].done == 8
    assert {event.job < 2 for event in told[:4]} == {True, False}  # both workers are at it


def test_the_same_steps_as_here(no_ray: NoRay) -> None:
    here = Executor(TOOLS).run(PLANS[0], {"doc": ("ab", "c")})
    there = RayExecutor(TOOLS).run(PLANS[0], {"doc": ("ab", "c")})
    assert [(step.name, step.state, step.value, step.inputs) for step in there.steps] == [
        (step.name, step.state, step.value, step.inputs) for step in here.steps
    ]
    assert there.plan == here.plan


def test_nothing_is_streamed_where_nobody_listens(no_ray: NoRay) -> None:
    there = RayExecutor(TOOLS, actors=1)
    assert there.run(PLANS[1], {"doc": "a"}).output == "A"
    assert no_ray.streams[0].taken == 1
    there.close()
    assert len(no_ray.killed) == 1


def test_an_error_comes_back_without_what_cannot_be_sent(no_ray: NoRay) -> None:
    with pytest.raises(ToolError, match="broken") as caught:
        RayExecutor(Toolkit([Tool("upper", (TEXT,), TEXT, break_down)])).run(PLANS[1], {"doc": "a"})
    assert (caught.value.reason, caught.value.position, caught.value.cause) == ("failed", 0, None)
    assert caught.value.result.steps[0].state == "failed"
    with pytest.raises(InputError, match="needs doc"):
        RayExecutor(TOOLS).run(PLANS[1], {})
    assert len(no_ray.streams) == 1


def break_down(text: str) -> str:
    class LocalError(Exception):
        """Of a class that no other process finds."""

    raise LocalError("broken")


def test_cancelled_plans_end(no_ray: NoRay) -> None:
    cancel = threading.Event()
    there = RayExecutor(TOOLS, actors=2, chunk=1)
    results = there.run_many(PLANS, {"doc": "a"}, cancel=cancel, on_progress=lambda _: cancel.set())
    assert [type(result.error) for result in results] == [Cancelled] * 2
    assert set(no_ray.cancelled) == set(no_ray.streams)


def test_a_worker_tells_and_then_gives_results() -> None:
    *events, results = _RayWorker(TOOLS, {"workers": 1}).run([(PLANS[1], {"doc": []})][:0], True, True)
    assert (events, results) == ([], [])


def test_the_progress_of_several_is_that_of_one() -> None:
    jobs = [types.SimpleNamespace(index=index) for index in (4, 5, 6)]
    first, second = _Share(jobs[:2]), _Share(jobs[2:])  # type: ignore[arg-type]
    together = _Together([first, second])
    one = Progress("started", "t", 1, 0, 0, 3)
    assert together.merge_progress(first, one) == Progress("started", "t", 5, 0, 0, 3)
    other = Progress("executed", "t", 0, 2, 1, 2, 0.5)
    assert together.merge_progress(second, other) == Progress("executed", "t", 6, 2, 1, 5, 0.5)
    again = Progress("failed", "t", 0, 0, 2, 3)
    assert together.merge_progress(first, again) == Progress("failed", "t", 4, 0, 3, 5)
    anew = _Share(first.jobs, 1)
    together.requeue_share(first, [anew])  # its worker has died: what it had done does not count any more
    assert together.merge_progress(anew, one) == Progress("started", "t", 5, 0, 1, 5)


@pytest.mark.parametrize(("deaths", "workers"), [(1, 1 + 3), (2, 1 + 6)])
def test_a_plan_over_which_workers_die_is_told_and_the_others_are_done(
    no_ray: NoRay, deaths: int, workers: int
) -> None:
    there = RayExecutor(TOOLS, actors=1, chunk=4, deaths=deaths)
    seen: list[Progress] = []
    results = there.run_many(
        [PLANS[1]] * 4, [{"doc": text} for text in ("a", "b", "die", "c")], on_progress=seen.append
    )
    assert [result.output for result in results if result.error is None] == ["A", "B", "C"]
    assert isinstance(results[2].error, ExecutionError)
    assert f"{deaths} workers died over the plan doc / upper: Died: killed" in str(results[2].error)
    assert no_ray.made == workers  # the share of four, that of two and that of one, each so often
    assert len(no_ray.killed) == workers - 1
    assert (seen[-1].done, seen[-1].total) == (3, 3)


def test_where_there_is_no_room_for_another_worker_those_that_are_left_do_its_work(no_ray: NoRay) -> None:
    there = RayExecutor(TOOLS, actors=2, chunk=1, deaths=2)
    no_ray.full = True
    no_ray.dying_once = True
    for _ in range(2):  # the second time there is one worker from the beginning
        rows = [{"doc": text} for text in ("a", "b")]
        assert [result.output for result in there.run_many([PLANS[1]] * 2, rows)] == ["A", "B"]
    assert no_ray.made == 3
    assert len(no_ray.streams) == 3 + 2


def test_a_worker_that_cannot_be_started_again_is_told(no_ray: NoRay) -> None:
    there = RayExecutor(TOOLS, actors=1)
    no_ray.unable = Died("no module tools")
    no_ray.unable.actor_init_failed = True
    with pytest.raises(ExecutionError, match="no worker can be started: Died: no module tools"):
        there.run_many([PLANS[1]] * 2, [{"doc": text} for text in ("die", "a")])


def test_settings_that_are_none(no_ray: NoRay) -> None:
    for settings in ({"actors": 0}, {"chunk": 0}, {"deaths": 0}):
        with pytest.raises(ValueError, match="count from 1"):
            RayExecutor(TOOLS, **settings)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="workers counts from 1"):
        RayExecutor(TOOLS, workers=0)


# -- with Ray itself: a cluster of two nodes on this machine -----------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two nodes with one CPU each; at the end none of their processes is left."""
    before = set(children())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ray
        from ray.cluster_utils import Cluster

        root = str(Path(__file__).parents[2])
        nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        try:
            nodes.add_node(num_cpus=1)
            environment = {"env_vars": {"PYTHONPATH": root, "OMP_NUM_THREADS": "1"}}
            ray.init(address=nodes.address, log_to_driver=False, runtime_env=environment)
            yield nodes
        finally:
            ray.shutdown()
            nodes.shutdown()
    assert not set(children()) - before


def children() -> Iterator[int]:
    """The processes that this one started, and those that they started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:  # it has ended meanwhile
            continue
        if state != "Z":
            parents[int(stat.parent.name)] = int(parent)
    for process in parents:
        above = process
        while above in parents and above != os.getpid():
            above = parents[above]
        if above == os.getpid() and process != above:
            yield process


with_ray = [
    pytest.mark.slow,
    pytest.mark.enable_socket,
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are counted in /proc"),
]


def marked(function: Any) -> Any:
    for mark in with_ray:
        function = mark(function)
    return function


ONE_CPU = {"num_cpus": 1}  # so that each worker is on a node of its own


@marked
def test_a_worker_is_killed_in_the_middle_and_nothing_is_lost(cluster: Any, tmp_path: Path) -> None:
    def slow(text: str) -> str:
        """Tells who works on what; what begins with ``!`` waits until it may go on."""
        with (tmp_path / text.strip("!")).open("a") as told:
            told.write(f"{os.getpid()}\n")
        while text.startswith("!") and not (tmp_path / "go").exists():
            threading.Event().wait(0.02)
        return text.upper()

    plan = Planner(CFG.from_string("%order prefix\nT -> slow doc")).plan("t")
    texts = ["a", "!b", "c", "d", "!e", "f"]
    there = RayExecutor(Toolkit([Tool("slow", (TEXT,), TEXT, slow)]), chunk=3, workers=1, options=ONE_CPU)
    seen: list[Progress] = []
    killed: list[int] = []

    def watch(told: Progress) -> None:
        seen.append(told)
        # Both have done one text, and are held at the next one as soon as they have told who works on it.
        if not killed and {one.job for one in seen if one.event == "executed"} == {0, 3}:
            while not all((tmp_path / text).exists() and (tmp_path / text).read_text() for text in "be"):
                threading.Event().wait(0.02)
            killed.append(int((tmp_path / "b").read_text().split()[0]))
            os.kill(killed[0], signal.SIGKILL)
            (tmp_path / "go").touch()

    results = there.run_many([plan] * 6, [{"doc": text} for text in texts], on_progress=watch)
    there.close()
    assert killed
    assert [result.output for result in results] == [text.upper() for text in texts]
    workers = {text: [int(line.split()[0]) for line in (tmp_path / text).read_text().splitlines()] for text in "abcdef"}
    assert {text: len(pids) for text, pids in workers.items()} == {"a": 2, "b": 2, "c": 1, "d": 1, "e": 1, "f": 1}
    assert workers["a"][0] == killed[0] != workers["a"][1]
    assert workers["d"] == workers["e"] == workers["f"]
    # Progress came as it went: what the first worker had done counted until it died, and not twice.
    assert seen[-1].done == seen[-1].total == 6
    assert max(one.done for one in seen) == 6
    assert all(one.done <= one.total for one in seen)


@marked
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
        assert [(step.name, step.state == "given", step.inputs, step.value) for step in one.steps] == [
            (step.name, step.state == "given", step.inputs, step.value) for step in other.steps
        ]
    assert {event.event for event in seen} == {"started", "executed", "cached"}
    ended = [event for event in seen if event.event != "started"]
    assert {event.job for event in seen} <= set(range(len(plans)))
    assert len(ended) >= max(event.done for event in ended)
    solution = Planner(PACK.cfg, RandomLLM(1)).solve(PACK.tasks[0], {"input_image": picture()}, there)
    assert solution.result.error is None
    there.close()


@marked
def test_failures(cluster: None) -> None:
    def fail(text: str) -> str:
        raise RuntimeError(f"not {text}")

    plan = Planner(CFG.from_string("%order prefix\nT -> upper U\nU -> fail doc")).plan("t")
    kit = Toolkit([Tool("fail", (TEXT,), TEXT, fail), Tool("upper", (TEXT,), TEXT, str.upper)])
    there = RayExecutor(kit, actors=1)
    with pytest.raises(ToolError, match=r"fail .*failed: RuntimeError: not a") as caught:
        there.run(plan, {"doc": "a"})
    assert caught.value.position == 1
    assert caught.value.result.steps[1].state == "failed"
    with pytest.raises(InputError):
        there.run(plan, {})
    there.close()


@marked
def test_cancel(cluster: None) -> None:
    def slow(text: str) -> str:
        threading.Event().wait(60)
        return text

    plan = Planner(CFG.from_string("%order prefix\nT -> slow doc")).plan("t")
    there = RayExecutor(Toolkit([Tool("slow", (TEXT,), TEXT, slow)]), actors=1)
    cancel = threading.Event()
    with pytest.raises(Cancelled):  # the tool would return long after the test has ended
        there.run(plan, {"doc": "a"}, cancel=cancel, on_progress=lambda _: cancel.set())
    there.close()
