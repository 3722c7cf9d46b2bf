"""Rewards: numbers, stated rewards, errors that name task and plan."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from formal_llm import CFG, Plan, Planner, Task
from formal_llm.errors import (
    Cancelled,
    ExecutionError,
    FormalLLMError,
    InputError,
    ResourceNotFound,
    RewardError,
    ToolError,
    ToolkitError,
)
from formal_llm.rltf.reward_cache import CachedReward
from formal_llm.rltf.rewards import (
    ExecutedReward,
    Judged,
    Reward,
    TimedReward,
    name_of,
    register,
    reward_of,
)
from formal_llm.tools import Executor, Toolkit, tool
from tests.rltf.merged_pictures import CFG_TEXT, PLAN, TASK, plan_of


def length(task: Task, plan: Plan) -> float:
    return float(len(plan.word))


def test_the_plan_used_here() -> None:
    assert PLAN.word == ("merge", "sharpen", "picture", "picture")


# -- a function as a reward ----------------------------------------------------------------------------------------


def test_a_function_is_a_reward() -> None:
    reward = reward_of(length)
    assert reward(TASK, PLAN) == 4.0
    assert reward.judge(TASK, PLAN) == Judged(4.0)
    assert reward.judge_many([(TASK, PLAN)] * 3) == [Judged(4.0)] * 3
    assert reward.deterministic
    assert reward.name.endswith(":length")
    assert reward.identity == {"reward": reward.name, "invalid": 0.0}
    assert reward_of(reward) is reward
    assert "length" in repr(reward)


@pytest.mark.parametrize("given", [1, True, Fraction(1), 1.0, Judged(1)])
def test_whatever_is_a_number_will_do(given: Any) -> None:
    judged = Reward(lambda task, plan: given).judge(TASK, PLAN)
    assert judged == Judged(1.0)
    assert type(judged.value) is float


def test_numbers_of_numpy_and_torch_will_do() -> None:
    numpy, torch = pytest.importorskip("numpy"), pytest.importorskip("torch")
    assert Reward(lambda task, plan: numpy.float32(0.5))(TASK, PLAN) == 0.5
    assert Reward(lambda task, plan: torch.tensor(0.5))(TASK, PLAN) == 0.5


BAD = [math.nan, math.inf, -math.inf, None, "1", b"1", [1.0], 1j, 10**400, Judged(math.nan), Judged(None)]  # type: ignore[arg-type]


@pytest.mark.parametrize("given", BAD, ids=repr)
@pytest.mark.parametrize("many", [False, True])
def test_what_is_no_finite_number_is_an_error_that_names_task_and_plan(given: Any, many: bool) -> None:
    reward = Reward(lambda task, plan: given, name="odd")
    with pytest.raises(RewardError, match=r"odd.*finite.*Make it sharp.*merge sharpen picture picture") as caught:
        reward.judge_many([(TASK, PLAN)] * 2, workers=2) if many else reward.judge(TASK, PLAN)
    assert isinstance(caught.value, FormalLLMError)
    assert isinstance(caught.value, ValueError)
    assert not isinstance(caught.value, ExecutionError)
    assert (caught.value.task, caught.value.word, caught.value.file) == (TASK.description, PLAN.word, "")


@pytest.mark.parametrize("error", [KeyError("no such thing"), TimeoutError(), SyntaxError("x"), ZeroDivisionError()])
def test_what_the_function_raises_is_told_with_task_and_plan(error: Exception) -> None:
    def broken(task: Task, plan: Plan) -> float:
        raise error

    with pytest.raises(RewardError, match=f"broken raised {type(error).__name__}.*merge sharpen picture") as caught:
        reward_of(broken).judge(TASK, PLAN)
    assert caught.value.__cause__ is error
    assert (caught.value.task, caught.value.word) == (TASK.description, PLAN.word)


@pytest.mark.parametrize("error", [ExecutionError("no tool"), MemoryError("too little")])
def test_what_is_raised_on_purpose_goes_through_with_a_note(error: Exception) -> None:
    def broken(task: Task, plan: Plan) -> float:
        raise error

    with pytest.raises(type(error)) as caught:
        reward_of(broken).judge(TASK, PLAN)
    assert caught.value is error
    assert "merge sharpen picture picture" in error.__notes__[0]
    assert TASK.description in error.__notes__[0]


def test_an_unfinished_plan_has_a_stated_reward_and_is_not_judged() -> None:
    walk = Planner(CFG.from_string(CFG_TEXT)).start(TASK)
    walk.answer(2)
    reward = Reward(lambda task, plan: 1 / 0, invalid=-1.0)
    assert reward.judge(TASK, walk.partial) == Judged(-1.0, "the plan is not finished")
    assert reward(TASK, walk.partial) == -1.0


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_stated_rewards_are_finite(value: float) -> None:
    for make in (
        lambda: Reward(length, invalid=value),
        lambda: ExecutedReward(length, value),
    ):
        with pytest.raises(ValueError, match="finite"):
            make()


@pytest.mark.parametrize("workers", [1, 3])
def test_many_come_in_their_order_and_the_first_error_is_raised(workers: int) -> None:
    plans = [plan_of(), plan_of(1), plan_of(1, 1), PLAN]
    pairs = [(TASK, plan) for plan in plans * 5]
    reward = reward_of(length)
    assert [judged.value for judged in reward.judge_many(pairs, workers)] == [len(plan.word) for _, plan in pairs]
    assert reward.judge_many([], workers) == []

    def fails(task: Task, plan: Plan) -> float:
        if len(plan.word) > 1:
            raise RuntimeError(len(plan.word))
        return 0.0

    with pytest.raises(RewardError, match="raised RuntimeError: 2"):
        reward_of(fails).judge_many(pairs, workers)
    with pytest.raises(ValueError, match="workers"):
        reward.judge_many(pairs, 0)


def test_workers_judge_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=20)

    def waits(task: Task, plan: Plan) -> float:
        both.wait()
        return 1.0

    assert Reward(waits).judge_many([(TASK, PLAN)] * 2, workers=2) == [Judged(1.0)] * 2


@pytest.mark.parametrize("workers", [1, 2])
def test_each_is_told_with_its_number_until_one_fails(workers: int) -> None:
    rows = [(TASK, plan_of(*[1] * count)) for count in (0, 2, 1)]

    def fails(task: Task, plan: Plan) -> float:
        if len(plan.word) == 2:
            raise RuntimeError("two")
        return length(task, plan)

    found = Reward(length).judge_each(rows, workers)
    assert sorted((number, judged.value) for number, judged in found) == [(0, 1.0), (1, 3.0), (2, 2.0)]
    told = []
    with pytest.raises(RewardError, match="raised RuntimeError: two"):
        told += Reward(fails).judge_each(rows, workers)
    assert list(Reward(length).judge_each([], workers)) == []


# -- by name -------------------------------------------------------------------------------------------------------


def made() -> Reward:
    return Reward(length, name="made")


READY = Reward(length, name="ready")
NO_REWARD = 5


@pytest.mark.parametrize(("name", "told"), [("length", f"{__name__}:length"), ("made", "made"), ("READY", "ready")])
def test_rewards_by_module_and_name(name: str, told: str) -> None:
    reward = reward_of(f"{__name__}:{name}")
    assert reward(TASK, PLAN) == 4.0
    assert reward.name == told


def test_rewards_by_a_registered_name() -> None:
    register("test-length", made)
    assert reward_of("test-length").name == "made"
    for name in ("", "a:b"):
        with pytest.raises(ValueError, match="colon"):
            register(name, made)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("test-lenght", "Did you mean"),
        ("formal_llm.rltf.no_such_module:x", "no module of rewards"),
        ("no_such_package.module:x", "no module of rewards"),
        (f"{__name__}:lenght", "Did you mean"),
        (f"{__name__}:", "no reward"),
    ],
)
def test_names_that_mean_nothing(name: str, match: str) -> None:
    register("test-length", made)
    with pytest.raises(ResourceNotFound, match=match):
        reward_of(name)


def test_what_cannot_be_called_is_no_reward() -> None:
    for wrong in (5, f"{__name__}:NO_REWARD"):
        with pytest.raises(TypeError, match="int"):
            reward_of(wrong)  # type: ignore[arg-type]


def test_names_of_functions() -> None:
    assert name_of(length) == f"{__name__}:length"
    assert name_of(Reward) == "formal_llm.rltf.rewards:Reward"
    for function in (lambda task: 1, READY.judge, READY, 5):
        assert name_of(function) is None
    assert Reward(lambda task, plan: 1.0).identity is None
    assert Reward(lambda task, plan: 1.0, name="one").identity == {"reward": "one", "invalid": 0.0}


# -- executed plans ------------------------------------------------------------------------------------------------


def executed(sharpen: Callable[[str], str], failed: float = -0.5, **settings: Any) -> ExecutedReward:
    """Texts for pictures: what is sharp is twice as long."""

    def merge(one: str, other: str) -> str:
        return one + other

    toolkit = Toolkit([tool(sharpen), tool(merge)])

    def judge(task: Task, plan: Plan) -> float:
        return float(len(Executor(toolkit, **settings).run(plan, {"picture": "x"}).output))

    return ExecutedReward(judge, failed)


def test_the_score_of_what_comes_out() -> None:
    def sharpen(picture: str) -> str:
        return picture * 2

    assert executed(sharpen).judge(TASK, PLAN) == Judged(3.0)


def test_a_tool_that_fails_gets_the_stated_reward_and_the_reason() -> None:
    def sharpen(picture: str) -> str:
        raise OSError("the lens is dirty")

    judged = executed(sharpen).judge(TASK, PLAN)
    assert judged.value == -0.5
    assert "sharpen" in judged.failed
    assert "the lens is dirty" in judged.failed
    assert not judged.passing


def test_a_tool_that_takes_too_long_may_do_better_another_time() -> None:
    free = threading.Event()

    def sharpen(picture: str) -> str:
        free.wait(20)
        return picture

    judged = executed(sharpen, timeout=0.05).judge(TASK, PLAN)
    free.set()
    assert (judged.value, judged.passing) == (-0.5, True)
    assert "sharpen" in judged.failed


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (ToolkitError(["no tool"]), True), (InputError("no input"), True), (ExecutionError("hm"), True),
        (ToolError("sharpen", "failed"), False), (ToolError("sharpen", "failed", reason="kind"), False),
        (ToolError("sharpen", "failed", reason="memory"), True),
        (ToolError("sharpen", "failed", cause=ImportError()), True),
        (ToolError("sharpen", "failed", cause=ValueError()), False),
    ],
)  # fmt: skip
def test_all_failures_of_an_execution_are_stated(error: ExecutionError, passing: bool) -> None:
    def judge(task: Task, plan: Plan) -> float:
        raise error

    assert ExecutedReward(judge).judge(TASK, PLAN) == Judged(0.0, f"{type(error).__name__}: {error}", passing)


@pytest.mark.parametrize("error", [Cancelled(), RewardError("no"), KeyboardInterrupt(), MemoryError()])
def test_nothing_else_is_a_failure_of_the_plan(error: BaseException) -> None:
    def judge(task: Task, plan: Plan) -> float:
        raise error

    with pytest.raises(type(error)):
        ExecutedReward(judge).judge(TASK, PLAN)


def test_a_judge_may_say_that_a_plan_failed() -> None:
    assert ExecutedReward(lambda task, plan: Judged(0.25, "no file")).judge(TASK, PLAN) == Judged(0.25, "no file")


def test_names_of_executed_rewards() -> None:
    assert ExecutedReward(length).identity == {"reward": f"{__name__}:length", "invalid": 0.0, "failed": 0.0}
    assert ExecutedReward(length, -1, name="own").name == "own"
    assert ExecutedReward(lambda task, plan: 0.0).identity is None
    assert not ExecutedReward(length, deterministic=False).deterministic


TIMED_REWARD_TASK = Task("short")
PLANNER = Planner(CFG.from_string("S -> a S | b"), "test:script=2")
TIMED_REWARD_PLAN = PLANNER.plan(TIMED_REWARD_TASK)


def test_what_is_judged_in_time_is_as_ever() -> None:
    timed = TimedReward(length, 60, failed=-1.0)
    assert timed.judge(TIMED_REWARD_TASK, TIMED_REWARD_PLAN) == Judged(1.0)
    plain = Reward(length)
    assert (timed.name, timed.identity, timed.settings) == (plain.name, plain.identity, plain.settings)
    assert TimedReward(Reward(length, deterministic=False), 1).deterministic is False


def test_what_takes_longer_gets_a_stated_reward_that_no_file_keeps(tmp_path: object) -> None:
    free = threading.Event()

    def hanging(task: Task, plan: Plan) -> float:
        assert free.wait(60)
        return 1.0

    with CachedReward(TimedReward(Reward(hanging, name="slow"), 0.01, failed=-1.0), f"{tmp_path}/rewards") as cached:
        judged = cached.judge(TIMED_REWARD_TASK, TIMED_REWARD_PLAN)
        assert judged == Judged(-1.0, "the reward slow took more than 0.01 seconds", passing=True)
        assert len(cached) == 0
    free.set()


def test_many_that_hang_are_an_error_that_names_the_plan() -> None:
    free = threading.Event()
    timed = TimedReward(Reward(lambda task, plan: float(free.wait(60)), name="slow"), 0.001)
    for _ in range(32):
        assert timed.judge(TIMED_REWARD_TASK, TIMED_REWARD_PLAN).failed
    with pytest.raises(RewardError, match=r"slow still hangs in 32 earlier calls \(task: 'short'; plan: b\)"):
        timed.judge(TIMED_REWARD_TASK, TIMED_REWARD_PLAN)
    free.set()
    for thread in threading.enumerate():
        if thread.name == "formal-llm-reward":
            thread.join(60)
    assert timed._hung == 0  # they have come back


def test_what_it_raises_comes_back() -> None:
    def broken(task: Task, plan: Plan) -> float:
        raise KeyError("no such thing")

    with pytest.raises(RewardError, match=r"broken raised KeyError: 'no such thing' \(task: 'short'; plan: b\)"):
        TimedReward(broken, 60).judge(TIMED_REWARD_TASK, TIMED_REWARD_PLAN)
    for seconds in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="above 0"):
            TimedReward(length, seconds)
