"""Rewards: numbers, stated rewards, errors that name task and plan; a cache; agreement with reference tools."""

from __future__ import annotations

import itertools
import math
import threading
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.reference_tools import ReferenceTools, compute_f1, tools_of
from formal_llm.rltf.rewards import CachedReward, ExecutedReward, Judged, Reward, name_of, reward_of
from formal_llm.tools import Executor, Toolkit, tool

CFG_TEXT = """
%order prefix
%start S
%limit 2
S -> sharpen S | merge S S | picture
"""
TASK = Task("Make it sharp", inputs=("picture",))


def plan_of(*numbers: int) -> Plan:
    """The plan of these answers, and of 3 (the input) where there are no more."""
    told = iter(numbers)
    return Planner(CFG.from_string(CFG_TEXT), lambda question: min(next(told, 3), len(question.options))).plan(TASK)


PLAN = plan_of(2, 1)


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
    assert (caught.value.task, caught.value.word) == (TASK.description, PLAN.word)


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
    assert "picture / picture / sharpen / merge" in error.__notes__[0]
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


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("lenght", "no reward 'lenght'"),
        ("formal_llm.rltf.no_such_module:x", "no module of rewards"),
        ("no_such_package.module:x", "no module of rewards"),
        (f"{__name__}:lenght", "Did you mean"),
        (f"{__name__}:", "no reward"),
    ],
)
def test_names_that_mean_nothing(name: str, match: str) -> None:
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


@pytest.mark.parametrize(
    "error", [ToolkitError(["no tool"]), InputError("no input"), ExecutionError("hm"), ToolError("sharpen", "failed")]
)
def test_all_failures_of_an_execution_are_stated(error: ExecutionError) -> None:
    def judge(task: Task, plan: Plan) -> float:
        raise error

    assert ExecutedReward(judge).judge(TASK, PLAN) == Judged(0.0, f"{type(error).__name__}: {error}")


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


# -- a cache -------------------------------------------------------------------------------------------------------

#: Two plans have the word "f f x x".
AMBIGUOUS = CFG.from_string('%order prefix\n%limit 2 f\n%limit 2 x\nS -> f S | f S S | x\nf "F"\nx "the input"')
PLANS = [one.plan for one in enumerate_episodes(Planner(AMBIGUOUS, "test:first"), TASK, 0, 200)]
TASKS = [TASK, Task(TASK.description), Task("something else")]


class Counting:
    """The number of arguments of the outer call; counts how often each plan was judged."""

    def __init__(self) -> None:
        self.judged: Counter[tuple[Task, int]] = Counter()

    def __call__(self, task: Task, plan: Plan) -> float:
        self.judged[task, id(plan)] += 1
        assert plan.call is not None
        return float(len(plan.call.arguments))


def test_plans_with_the_same_word_have_their_own_rewards() -> None:
    same = [plan for plan in PLANS if plan.word == ("f", "f", "x", "x")]
    assert [str(plan.call) for plan in same] == ["s = f(f(x, x))", "s = f(f(x), x)"]
    for plans in (same, same[::-1]):
        cached = CachedReward(Counting())
        assert [cached(TASK, plan) for plan in plans] == [float(len(plan.call.arguments)) for plan in plans]  # type: ignore[union-attr]


@given(st.lists(st.tuples(st.sampled_from(TASKS), st.sampled_from(PLANS)), max_size=30), st.integers(1, 3))
def test_with_a_cache_rewards_are_the_same_and_each_pair_is_judged_once(
    pairs: list[tuple[Task, Plan]], workers: int
) -> None:
    counting = Counting()
    reward = CachedReward(Reward(counting, name="arguments", invalid=-2.0))
    for _ in range(2):
        assert reward.judge_many(pairs, workers) == Reward(Counting()).judge_many(pairs)
    assert len(reward) == len(set(counting.judged)) == counting.judged.total()
    partial = Plan(TASK.description, PLANS[0].tree, order=PLANS[0].order, complete=False)
    assert reward(TASK, partial) == -2.0
    assert reward(TASK, PLANS[0]) == Counting()(TASK, PLANS[0])
    assert (reward.name, reward.identity) == ("arguments", {"reward": "arguments", "invalid": -2.0})


def test_what_is_not_deterministic_is_not_kept() -> None:
    counting = Counting()
    reward = CachedReward(Reward(counting, deterministic=False))
    reward.judge_many([(TASK, PLANS[0])] * 3)
    assert (counting.judged.total(), len(reward), reward.deterministic) == (3, 0, False)


@pytest.mark.parametrize("workers", [1, 4])
def test_an_error_loses_nothing_that_was_judged_before(workers: int) -> None:
    def fails(task: Task, plan: Plan) -> float:
        return math.nan if plan is PLANS[-1] else 1.0

    reward = CachedReward(fails)
    with pytest.raises(RewardError, match="finite"):
        reward.judge_many([(TASK, plan) for plan in PLANS], workers)
    assert len(reward) == len(PLANS) - 1


# -- agreement with reference tools ----------------------------------------------------------------------------------

NAMES = st.frozensets(st.sampled_from("abcdefgh"))


@given(NAMES, NAMES)
def test_f1_is_the_harmonic_mean_of_precision_and_recall(wanted: frozenset[str], used: frozenset[str]) -> None:
    shared = len(wanted & used)
    if shared:
        precision, recall = Fraction(shared, len(used)), Fraction(shared, len(wanted))
        expected = 2 * precision * recall / (precision + recall)
    else:
        expected = Fraction(not wanted and not used)
    assert compute_f1(wanted, used) == pytest.approx(float(expected), abs=1e-15)
    assert (compute_f1(wanted, used) == 1.0) == (wanted == used)


def test_inputs_are_not_tools() -> None:
    assert tools_of(PLAN) == {"merge", "sharpen"}
    assert tools_of(PLAN, ["picture", "merge"]) == {"sharpen"}
    assert tools_of(plan_of()) == set()
    listed = Plan(TASK.description, PLAN.tree, order="forward")
    assert tools_of(listed) == {"merge", "sharpen", "picture"}


@pytest.mark.parametrize(
    ("wanted", "score", "exact"),
    [({"merge", "sharpen"}, 1.0, 1.0), ({"merge"}, 2 / 3, 0.0), ({"colour"}, 0.0, 0.0), (set(), 0.0, 0.0)],
)
def test_agreement_with_reference_tools(wanted: set[str], score: float, exact: float) -> None:
    assert ReferenceTools(lambda task: wanted)(TASK, PLAN) == pytest.approx(score)
    assert ReferenceTools(lambda task: wanted, "exact")(TASK, PLAN) == exact


def wanted_tools(task: Task) -> set[str]:
    return {"sharpen"}


def test_identities_of_reference_rewards_differ() -> None:
    rewards = [
        ReferenceTools(wanted_tools), ReferenceTools(wanted_tools, "exact"), ReferenceTools(tuple),
        ReferenceTools(wanted_tools, inputs=["picture"]), ReferenceTools(wanted_tools, inputs=[]),
        ReferenceTools(wanted_tools, name="other"), ReferenceTools(wanted_tools, invalid=-1),
    ]  # fmt: skip
    identities = [reward.identity for reward in rewards]
    assert all(one != other for one, other in itertools.combinations(identities, 2))
    assert ReferenceTools(wanted_tools).identity == ReferenceTools(wanted_tools).identity
    assert ReferenceTools(lambda task: set()).identity is None
    assert ReferenceTools(lambda task: set()).name == "reference tools, f1"
    with pytest.raises(ValueError, match="kind"):
        ReferenceTools(wanted_tools, "f2")  # type: ignore[arg-type]
