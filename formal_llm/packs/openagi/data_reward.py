"""The reward of reinforcement learning from task feedback: what a plan is worth on task data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from formal_llm.packs.openagi.data.samples import TaskData
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


def data_identity(data: Mapping[int, TaskData]) -> str:
    """A hash of task data: of the names and the content of all files."""
    said = hashlib.sha256()
    for number, task in sorted(data.items()):
        for file in sorted(path for path in Path(task.folder).rglob("*") if path.is_file()):
            with file.open("rb") as opened:
                content = hashlib.file_digest(opened, "sha256").hexdigest()
            said.update(f"{number} {file.relative_to(task.folder).as_posix()} {content}\0".encode())
    return said.hexdigest()[:16]
