"""The reward of reinforcement learning from task feedback: what a plan is worth on task data."""

from __future__ import annotations

import hashlib
import json

from formal_llm.packs.openagi.data.samples import data_identity
from formal_llm.packs.openagi.scores.judging import PlanJudge
from formal_llm.planning import Plan, Task
from formal_llm.rltf.rewards import Judged, Reward


def data_reward(judge: PlanJudge) -> Reward:
    """A judge as a reward, whose name changes whenever its rewards would: with tools, scores, samples or data.

    A plan that is not valid, or that fails on every sample, gets 0, and the reason is on record.

    Args:
        judge: carries plans out and scores them.
    """
    said = json.dumps([judge.identity, data_identity(judge.data)], sort_keys=True, default=str)
    name = f"openagi data, {hashlib.sha256(said.encode()).hexdigest()[:16]}"

    def worth(task: Task, plan: Plan) -> Judged:
        judged = judge.judge(task, plan)
        failed = judged.reason or (judged.errors[0] if judged.errors and all(judged.errors) else "")
        return Judged(judged.value, failed, judged.passing)

    return Reward(worth, name=name)
