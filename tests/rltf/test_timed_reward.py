"""A reward that is waited for only so long; events stand for time, so nothing here sleeps."""

from __future__ import annotations

import threading

import pytest

from formal_llm import CFG, Plan, Planner, Task
from formal_llm.errors import RewardError
from formal_llm.rltf.reward_cache import CachedReward
from formal_llm.rltf.rewards import Judged, Reward
from formal_llm.rltf.timed_reward import TimedReward

TASK = Task("short")
PLANNER = Planner(CFG.from_string("S -> a S | b"), "test:script=2")
PLAN = PLANNER.plan(TASK)


def length(task: Task, plan: Plan) -> float:
    return float(len(plan.word))


def test_what_is_judged_in_time_is_as_ever() -> None:
    timed = TimedReward(length, 60, failed=-1.0)
    assert timed.judge(TASK, PLAN) == Judged(1.0)
    plain = Reward(length)
    assert (timed.name, timed.identity, timed.settings) == (plain.name, plain.identity, plain.settings)
    assert TimedReward(Reward(length, deterministic=False), 1).deterministic is False


def test_what_takes_longer_gets_a_stated_reward_that_no_file_keeps(tmp_path: object) -> None:
    free = threading.Event()

    def hanging(task: Task, plan: Plan) -> float:
        assert free.wait(60)
        return 1.0

    with CachedReward(TimedReward(Reward(hanging, name="slow"), 0.01, failed=-1.0), f"{tmp_path}/rewards") as cached:
        judged = cached.judge(TASK, PLAN)
        assert judged == Judged(-1.0, "the reward slow took more than 0.01 seconds", passing=True)
        assert len(cached) == 0
    free.set()


def test_many_that_hang_are_an_error_that_names_the_plan() -> None:
    free = threading.Event()
    timed = TimedReward(Reward(lambda task, plan: float(free.wait(60)), name="slow"), 0.001)
    for _ in range(32):
        assert timed.judge(TASK, PLAN).failed
    with pytest.raises(RewardError, match=r"slow still hangs in 32 earlier calls \(task: 'short'; plan: b\)"):
        timed.judge(TASK, PLAN)
    free.set()
    for thread in threading.enumerate():
        if thread.name == "formal-llm-reward":
            thread.join(60)
    assert timed._hung == 0  # they have come back


def test_what_it_raises_comes_back() -> None:
    def broken(task: Task, plan: Plan) -> float:
        raise KeyError("no such thing")

    with pytest.raises(RewardError, match=r"broken raised KeyError: 'no such thing' \(task: 'short'; plan: b\)"):
        TimedReward(broken, 60).judge(TASK, PLAN)
    for seconds in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="above 0"):
            TimedReward(length, seconds)
