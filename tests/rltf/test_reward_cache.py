"""The cache of rewards: on real files, with real threads and processes, killed at any moment."""

from __future__ import annotations

import json
import math
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CachedLLM, Limits, Planner, RandomLLM, Task, TaskPack
from formal_llm.errors import RewardError
from formal_llm.planning import Plan
from formal_llm.rltf.reference_tools import ReferenceTools
from formal_llm.rltf.reward_cache import CachedReward, RewardStats
from formal_llm.rltf.rewards import ExecutedReward, Judged, Reward

PACK = TaskPack.load("openagi")
TASKS = PACK.tasks[:4]


def plans(count: int, task: Task = TASKS[0]) -> list[Plan]:
    """As many plans, all with another word."""
    planner = PACK.planner(RandomLLM(0))
    found: dict[tuple[str, ...], Plan] = {}
    while len(found) < count:
        plan = planner.plan(task)
        found.setdefault(plan.word, plan)
    return list(found.values())


PLANS = plans(12)


class Counting:
    """A reward that counts who was judged."""

    def __init__(self) -> None:
        self.judged: Counter[tuple[Task, tuple[str, ...]]] = Counter()
        self.lock = threading.Lock()

    def __call__(self, task: Task, plan: Plan) -> float:
        with self.lock:
            self.judged[task, plan.word] += 1
        return value_of(plan)


def value_of(plan: Plan) -> float:
    return random.Random(" ".join(plan.word)).random()


def refuse(task: Task, plan: Plan) -> float:
    raise AssertionError(f"this was judged and kept: {plan.word}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rewards.db"


@pytest.fixture(params=["memory", "file"])
def place(request: pytest.FixtureRequest, path: Path) -> Path | None:
    return path if request.param == "file" else None


def integrity(path: Path) -> str:
    connection = sqlite3.connect(path)
    try:
        return str(connection.execute("PRAGMA integrity_check").fetchone()[0])
    finally:
        connection.close()


# -- what it keeps -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 3])
def test_each_distinct_pair_is_judged_once(place: Path | None, workers: int) -> None:
    counting = Counting()
    pairs = [(task, plan) for task in TASKS[:2] for plan in PLANS] * 3
    random.Random(0).shuffle(pairs)
    with CachedReward(counting, place, name="c") as reward:
        judged = reward.judge_many(pairs, workers)
        assert [one.value for one in judged] == [value_of(plan) for _, plan in pairs]
        assert set(counting.judged.values()) == {1}
        assert reward.stats == RewardStats(hits=48, misses=24)
        assert reward.judge_many(pairs, workers) == judged
        assert reward.stats == RewardStats(hits=120, misses=24)
        assert len(reward) == 24
        assert reward(TASKS[0], PLANS[0]) == value_of(PLANS[0])
        assert reward.judge_many([]) == []
        with pytest.raises(ValueError, match="workers"):
            reward.judge_many(pairs, 0)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), max_size=30), st.integers(1, 3))
def test_with_a_cache_rewards_are_the_same(rows: list[tuple[int, int]], workers: int) -> None:
    pairs = [(TASKS[task], PLANS[plan]) for task, plan in rows]
    counting = Counting()
    reward = CachedReward(counting)
    assert reward.judge_many(pairs, workers) == Reward(Counting()).judge_many(pairs)
    assert reward.stats.misses == len(set(rows)) == counting.judged.total()
    assert reward.stats.hits + reward.stats.misses == len(rows)


def test_it_outlives_the_process_and_keeps_numbers_as_they_are(path: Path) -> None:
    values = [0.1, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, math.pi]
    given = dict(zip((plan.word for plan in PLANS), values, strict=False))
    with CachedReward(lambda task, plan: given[plan.word], path, name="x") as reward:
        reward.judge_many([(TASKS[0], plan) for plan in PLANS[:6]])
    with CachedReward(refuse, path, name="x") as reward:
        again = [reward.judge(TASKS[0], plan).value for plan in PLANS[:6]]
        assert list(map(repr, again)) == list(map(repr, values))
        assert reward.stats == RewardStats(6, 0)


def test_failures_are_kept_with_their_reason_but_not_those_that_may_pass(path: Path) -> None:
    told = {PLANS[0].word: Judged(-1.0, "kaputt \ud800 \x00 日本"), PLANS[1].word: Judged(-1.0, "too slow", True)}
    pairs = [(TASKS[0], plan) for plan in PLANS[:2]]
    with CachedReward(lambda task, plan: told[plan.word], path, name="x \ud800") as reward:
        assert reward.judge_many(pairs) == list(told.values())
        assert reward.judge_many(pairs) == list(told.values())
        assert (reward.stats, len(reward)) == (RewardStats(2, 2), 1)
    with CachedReward(lambda task, plan: 1.0, path, name="x \ud800") as reward:
        assert reward.judge_many(pairs) == [told[PLANS[0].word], Judged(1.0)]


def other(**changes: Any) -> Task:
    task = TASKS[0]
    kept = {name: getattr(task, name) for name in ("description", "goal", "limits", "inputs", "group")}
    return Task(**{**kept, **changes})


@pytest.mark.parametrize(
    "task",
    [
        other(description="something else"), other(goal="text_plan"), other(inputs=("text",)), other(group="x"),
        other(limits=Limits({"denoising": 0})), other(limits=TASKS[0].limits & Limits(at_least={"denoising": 1})),
    ],
)  # fmt: skip
def test_another_task_is_judged_anew(place: Path | None, task: Task) -> None:
    with CachedReward(counting := Counting(), place, name="c") as reward:
        reward.judge_many([(TASKS[0], PLANS[0]), (task, PLANS[0]), (other(), PLANS[0])])
        assert counting.judged.total() == 2


def test_the_same_word_on_the_way_is_not_the_finished_plan(place: Path | None) -> None:
    partial = Plan(TASKS[0].description, PLANS[0].tree, complete=False)
    with CachedReward(Reward(Counting(), invalid=-2.0), place, name="c") as reward:
        assert reward(TASKS[0], partial) == -2.0
        assert reward(TASKS[0], PLANS[0]) == value_of(PLANS[0])
        assert reward(TASKS[0], partial) == -2.0


def test_rewards_do_not_get_in_each_others_way(path: Path) -> None:
    def tools(task: Task) -> set[str]:
        return {"denoising"}

    rewards = [
        CachedReward(ReferenceTools(tools, name="a"), path),
        CachedReward(ReferenceTools(tools, name="b"), path),
        CachedReward(ReferenceTools(tools, "exact", inputs=["input_image"], name="a"), path),
        CachedReward(ExecutedReward(lambda task, plan: 0.0, -1, name="a"), path),
        CachedReward(Counting(), path, name="a"),
        CachedReward(Counting(), path, name="b"),
        CachedReward(Counting(), path, name="b", fingerprint=lambda task: "other data"),
    ]
    for reward in rewards:
        reward.judge(TASKS[0], PLANS[0])
        assert reward.stats == RewardStats(0, 1)
    assert len(rewards[0]) == len(rewards)
    for reward in rewards:
        reward.close()


def test_the_data_of_a_task_are_looked_at_once(place: Path | None) -> None:
    asked: list[Task] = []

    def fingerprint(task: Task) -> str:
        asked.append(task)
        return "hash"

    with CachedReward(Counting(), place, name="c", fingerprint=fingerprint) as reward:
        reward.judge_many([(task, plan) for task in TASKS[:2] for plan in PLANS])
        assert asked == list(TASKS[:2])


def test_a_reward_without_an_identity_needs_a_name_for_a_file(path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no identity.*name="):
        CachedReward(lambda task, plan: 1.0, path)
    assert not path.exists()
    assert CachedReward(lambda task, plan: 1.0)(TASKS[0], PLANS[0]) == 1.0
    with CachedReward(value_for, path) as reward:
        assert reward.identity == Reward(value_for).identity
        assert reward.name == Reward(value_for).name


def value_for(task: Task, plan: Plan) -> float:
    return value_of(plan)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_not_deterministic_is_not_kept(path: Path, workers: int) -> None:
    counting = Counting()
    with CachedReward(Reward(counting, deterministic=False), path) as reward:
        reward.judge_many([(TASKS[0], PLANS[0])] * 3, workers)
        assert counting.judged.total() == 3
        assert reward.stats == RewardStats(0, 3)
        assert not reward.deterministic
        assert reward.known(TASKS[0], PLANS[0]) is None
    assert not path.exists()


def test_what_is_known(place: Path | None) -> None:
    with CachedReward(Counting(), place, name="c") as reward:
        assert reward.known(TASKS[0], PLANS[0]) is None
        judged = reward.judge(TASKS[0], PLANS[0])
        assert reward.known(TASKS[0], PLANS[0]) == judged
        assert reward.stats == RewardStats(0, 1)


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("bad", [math.nan, None])
def test_an_error_loses_nothing_that_was_judged_before(path: Path, workers: int, bad: Any) -> None:
    def fails(task: Task, plan: Plan) -> Any:
        return bad if plan is PLANS[-1] else 1.0

    pairs = [(TASKS[0], plan) for plan in PLANS]
    with CachedReward(fails, path, name="x") as reward:
        with pytest.raises(RewardError, match="finite") as caught:
            reward.judge_many(pairs, workers)
        assert (caught.value.word, caught.value.task) == (PLANS[-1].word, TASKS[0].description)
    with CachedReward(refuse, path, name="x") as reward:
        assert len(reward) == len(PLANS) - 1
        assert reward.judge_many(pairs[:-1], workers) == [Judged(1.0)] * (len(PLANS) - 1)


def test_threads_may_share_a_cache(path: Path) -> None:
    with CachedReward(Counting(), path, name="c") as reward:
        results: list[list[Judged]] = []
        pairs = [(task, plan) for task in TASKS for plan in PLANS]
        threads = [threading.Thread(target=lambda: results.append(reward.judge_many(pairs))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [[Judged(value_of(plan)) for _, plan in pairs]] * 4
        assert (reward.stats.hits + reward.stats.misses, len(reward)) == (4 * len(pairs), len(pairs))


# -- damage --------------------------------------------------------------------------------------------------------

DAMAGE: list[Any] = [
    None, 7, "", "{", "null", "[]", "7", "{}", '{"value": null}', '{"value": "1"}', '{"value": true}', '{"value": NaN}',
    '{"value": Infinity}', '{"value": 1.0, "failed": 5}', b"\xff\xfe", "[" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: repr(damage)[:30])
def test_a_damaged_entry_counts_as_none_and_is_replaced(path: Path, damage: Any) -> None:
    with CachedReward(Counting(), path, name="c") as reward:
        reward.judge(TASKS[0], PLANS[0])
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE answers SET answer = ? WHERE llm != ''", (damage,))
    connection.close()
    for judged in (1, 0):
        with CachedReward(counting := Counting(), path, name="c") as reward:
            assert reward(TASKS[0], PLANS[0]) == value_of(PLANS[0])
            assert (counting.judged.total(), len(reward)) == (judged, 1)


def test_a_file_that_is_no_database(path: Path) -> None:
    path.write_text("Milk, eggs, bread\n" * 100)
    with pytest.raises(RewardError, match="no SQLite database") as caught:
        CachedReward(value_for, path)
    assert caught.value.file == str(path)
    assert path.read_text() == "Milk, eggs, bread\n" * 100


def test_databases_of_something_else_are_left_alone(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE answers (key, answer)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(RewardError, match="belongs to something else"):
        CachedReward(value_for, path)
    assert path.read_bytes() == before


def test_a_cache_of_answers_is_not_one_of_rewards(path: Path) -> None:
    with CachedLLM(lambda question: 1, path, name="one") as llm:
        Planner(PACK.cfg, llm).plan(TASKS[0])
        rows = len(llm)
        with pytest.raises(RewardError, match="answers of LLMs; give the rewards another file"):
            CachedReward(value_for, path)
        assert len(llm) == rows


def test_a_place_where_no_file_can_be(tmp_path: Path) -> None:
    with pytest.raises(RewardError, match="folder must exist"):
        CachedReward(value_for, tmp_path / "missing" / "rewards.db")


def test_a_file_that_is_damaged_while_it_is_used(path: Path) -> None:
    with CachedReward(lambda task, plan: Judged(0.0, "x" * 500), path, name="x") as reward:
        reward.judge_many([(task, plan) for task in PACK.tasks[:30] for plan in PLANS])
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))
    with pytest.raises(RewardError, match="damaged; delete it, and the plans are judged again") as caught:
        CachedReward(refuse, path, name="x")
    assert caught.value.file == str(path)


def test_a_closed_cache_says_so(path: Path) -> None:
    reward = CachedReward(value_for, path)
    reward.close()
    reward.close()
    with pytest.raises(RewardError, match="closed"):
        reward.judge(TASKS[0], PLANS[0])
    memory = CachedReward(value_for)
    memory.close()
    assert memory(TASKS[0], PLANS[0]) == value_of(PLANS[0])


# -- processes -----------------------------------------------------------------------------------------------------

WRITER = """
import sys
from formal_llm import Task
from formal_llm.planning import Plan
from formal_llm.planning.plans.tree import Node
from formal_llm.rltf.reward_cache import CachedReward

path, first, last, size = sys.argv[1], *map(int, sys.argv[2:5])
plan = Plan("", Node("wash", "wash", terminal=True))
task = lambda number: Task(f"Task {number}, " * 20)
with CachedReward(lambda task, plan: len(task.description) / 7, path, name="length") as reward:
    for number in range(first, last, size):
        reward.judge_many([(task(n), plan) for n in range(number, number + size)], workers=1 + number % 2)
        print(number + size, flush=True)
"""


def stored(path: Path, numbers: range) -> None:
    """Fails where one of these tasks is not in the file."""
    from formal_llm.planning.plans.tree import Node

    plan = Plan("", Node("wash", "wash", terminal=True))
    with CachedReward(refuse, path, name="length") as reward:
        for number in numbers:
            task = Task(f"Task {number}, " * 20)
            assert reward.judge(task, plan) == Judged(len(task.description) / 7)


@pytest.fixture
def write(path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A function that starts a process that judges tasks and says how far it is."""
    started: list[subprocess.Popen[str]] = []

    def start(first: int, last: int, size: int = 1) -> subprocess.Popen[str]:
        arguments = [sys.executable, "-c", WRITER, str(path), str(first), str(last), str(size)]
        started.append(subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        with process:
            process.kill()


def test_two_processes_that_write_at_once(path: Path, write: Callable[..., subprocess.Popen[str]]) -> None:
    # Both make the file at the same time, and half of the tasks are those of the other.
    writers = [write(0, 300, 2), write(150, 450, 3)]
    assert [(writer.communicate()[0].count("\n"), writer.returncode) for writer in writers] == [(150, 0), (100, 0)]
    assert integrity(path) == "ok"
    with CachedReward(refuse, path, name="length") as reward:
        assert len(reward) == 450
    stored(path, range(450))


@pytest.mark.slow
def test_killing_the_writer_at_any_moment_loses_nothing(
    path: Path, write: Callable[..., subprocess.Popen[str]]
) -> None:
    done = 0
    for lines, size in ((0, 1), (1, 1), (3, 50), (10, 1), (31, 7), (100, 1), (316, 2)):
        process = write(done, done + 1_000_000 * size, size)
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        said += process.communicate()[0].splitlines(keepends=True)
        # The last line may have been cut off as it was printed; its rewards were kept all the same.
        done = max([done, *(int(line) for line in said if line.endswith("\n"))])
        if path.exists():
            assert integrity(path) == "ok"
        stored(path, range(done))
    assert done >= 461


def test_what_is_written_is_json_that_others_can_read(path: Path) -> None:
    with CachedReward(value_for, path) as reward:
        reward.judge(TASKS[0], PLANS[0])
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT llm, answer FROM answers WHERE llm != ''").fetchall()
    connection.close()
    assert [(name, json.loads(text)) for name, text in rows] == [(reward.name, {"value": value_of(PLANS[0])})]
