"""A reward with a time limit."""

from __future__ import annotations

import threading
from concurrent.futures import Future, wait

from formal_llm.errors import RewardError
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.task import Task
from formal_llm.rltf.rewards import Judged, Reward, RewardFunction, reward_of

#: The maximum number of hanging judgements to abandon.
_MOST_HUNG = 32


class TimedReward(Reward):
    """A reward with a time limit for each plan; a plan that exceeds it gets a fallback reward and a reason.

    Python cannot stop a function from outside. One that takes too long is abandoned in its thread, and its result is
    dropped. 32 hanging judgements are an error. The fallback reward is not written to a cache's file, since the machine
    may only have been busy.

    Args:
        reward: the underlying reward.
        seconds: the time limit for one plan.
        failed: the reward of a plan that exceeds the limit.

    Raises:
        ValueError: the time is not positive.
    """

    def __init__(self, reward: str | RewardFunction, seconds: float, failed: float = 0.0) -> None:
        if not seconds > 0:
            raise ValueError(f"a timeout is a number of seconds above 0, not {seconds}")
        self.reward = reward_of(reward)
        self.seconds = seconds
        self.failed = float(failed)
        self._hung = 0
        self._lock = threading.Lock()
        super().__init__(
            self._judge_within,
            name=self.reward.name,
            deterministic=self.reward.deterministic,
            invalid=self.reward.invalid,
        )

    @property
    def identity(self) -> dict[str, object] | None:
        """The identity of the underlying reward: what is judged in time is worth the same."""
        return self.reward.identity

    @property
    def settings(self) -> dict[str, object]:
        """The settings of the underlying reward."""
        return self.reward.settings

    def _judge_within(self, task: Task, plan: Plan) -> Judged:
        if self._hung >= _MOST_HUNG:
            raise RewardError(
                f"the reward {self.name} still hangs in {self._hung} earlier calls",
                task=task.description,
                word=plan.word,
            )
        judging: Future[Judged] = Future()

        def judge_pair() -> None:
            try:
                judging.set_result(self.reward.judge(task, plan))
            except BaseException as error:  # passed on to the caller
                judging.set_exception(error)

        threading.Thread(target=judge_pair, name="formal-llm-reward", daemon=True).start()
        if wait([judging], self.seconds).done:
            return judging.result()
        with self._lock:
            self._hung += 1
        judging.add_done_callback(self._on_return)
        return Judged(self.failed, f"the reward {self.name} took more than {self.seconds:g} seconds", passing=True)

    def _on_return(self, _: Future[Judged]) -> None:
        with self._lock:
            self._hung -= 1
