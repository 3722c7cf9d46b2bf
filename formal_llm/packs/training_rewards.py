"""The rewards of training runs by the names used in recipes, and the facts known about a pack's tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from formal_llm.automata import Limits
from formal_llm.errors import MissingDependency, NoValidPlan, ResourceNotFound, TrainingError
from formal_llm.packs.openagi.references import openagi_exact_reward, openagi_reward, tools_called_for
from formal_llm.planning import Plan, Task, TaskPack
from formal_llm.rltf.rewards import ExecutedReward, Judged, Reward, reward_of
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.warm_start import ReferenceLimits
from formal_llm.tools import Executor, toolkit_named

if TYPE_CHECKING:
    from formal_llm.packs.openagi.scores.judging import PlanJudge

#: The pack for which the tools that each task requires, and the scores of its plans' outputs, are known.
WITH_REFERENCES = "openagi"
#: The name of the folder of tool results in the folder of a run that executes plans.
EXECUTED = "executed"
_NAMED = ("references", "executed")


def reward_for(settings: Settings, pack: TaskPack, judge: PlanJudge | None = None) -> Reward:
    """Return the reward that the settings name; ``executed`` is that of the judge.

    Raises:
        ResourceNotFound: there is no such reward.
        TrainingError: the reward does not apply to this pack.
    """
    name = settings.reward
    if judge is not None:
        from formal_llm.packs.openagi.scores.judging import data_reward  # needs pillow

        return _override_failed(data_reward(judge), settings.failed_reward)
    if name == "references":
        if pack.name != WITH_REFERENCES:
            raise TrainingError(
                f"the reward 'references' is for the pack {WITH_REFERENCES}, of whose tasks it is known which tools "
                f"they call for; for {pack.name} give a reward of your own: MODULE:FUNCTION"
            )
        return openagi_reward()
    try:
        found = reward_of(name)
    except ResourceNotFound as error:
        if ":" in name:
            raise
        raise ResourceNotFound("reward", name, [*_NAMED, "MODULE:FUNCTION"]) from error
    if type(found) is not Reward:
        return found  # it defines the reward of failed plans itself
    return ExecutedReward(
        found.judge,
        settings.failed_reward,
        name=None if found.identity is None else found.name,
        deterministic=found.deterministic,
        invalid=found.invalid,
    )


def _override_failed(reward: Reward, failed: float) -> Reward:
    """Return the same reward with another value for plans that fail."""
    if not failed:
        return reward

    def judge_plan(task: Task, plan: Plan) -> Judged:
        judged = reward.judge(task, plan)
        return replace(judged, value=failed) if judged.failed else judged

    return Reward(
        judge_plan, name=f"{reward.name}, failed {failed!r}", deterministic=reward.deterministic, invalid=failed
    )


def exact_metric() -> Mapping[str, Reward]:
    """Return the metric ``exact`` of the OpenAGI tasks: 1 for a plan with exactly the required tools, else 0."""
    return {"exact": openagi_exact_reward()}


def exact_tools(pack: TaskPack) -> ReferenceLimits:
    """Return the function that limits plans of an OpenAGI task to exactly the tools that its sentence requires.

    Each of these tools is used once, and no other tool; inputs are used as the task allows.
    """
    inputs = {entry["terminal"] for entry in pack.data["inputs"].values()}
    tools = [name for name in pack.cfg.terminals if name not in inputs]

    def get_limits(task: Task) -> Limits:
        needed = tools_called_for(task)
        return Limits(at_most={name: int(name in needed) for name in tools}, at_least=dict.fromkeys(sorted(needed), 1))

    return get_limits


def judge_of(pack: TaskPack, settings: Settings, folder: str | Path | None) -> PlanJudge:
    """Create the judge that executes plans on task data and scores their outputs; the folder keeps tool results.

    Raises:
        TrainingError: the pack has no tools, or the settings name no data.
        ResourceNotFound: there is no such toolkit, or there are no data.
        MissingDependency: libraries are not installed.
    """
    if pack.name != WITH_REFERENCES:
        raise TrainingError(
            f"the reward 'executed' is for the pack {WITH_REFERENCES}, whose tools and scores are known"
        )
    if not settings.data:
        raise TrainingError(
            "the reward 'executed' needs task data: make some (formal_llm.packs.openagi.data.making.make_data) and "
            "give their folder as the setting data"
        )
    try:  # numpy, pillow and others
        from formal_llm.packs.openagi.scores.judging import PlanJudge
        from formal_llm.packs.openagi.toolkits import TOOLKITS
    except ImportError as error:
        raise MissingDependency(
            f"executing plans needs libraries: pip install 'formal-llm[openagi]' ({error})"
        ) from error
    tools = toolkit_named(settings.toolkit, TOOLKITS)
    tools.check(pack.cfg, pack.data.get("kinds", {}), missing=True)
    cache = None if folder is None else Path(folder) / EXECUTED
    return PlanJudge(Executor(tools, cache=cache), settings.data, pack=pack)


def select_judgeable(judge: PlanJudge, tasks: Sequence[Task], notes: list[str]) -> list[Task]:
    """Return the tasks, limited to the available tools, that have a plan and a score for its output."""
    planner = judge.pack.planner()
    found: list[Task] = []
    left_out: dict[str, list[Task]] = {"no plan with these tools": [], "no score for what comes out": []}
    for task in map(judge.get_task, tasks):
        try:
            planner.start(task)
        except NoValidPlan:
            left_out["no plan with these tools"].append(task)
            continue
        (left_out["no score for what comes out"] if judge.score_for(task) is None else found).append(task)
    notes += [f"{format_tasks(judge.pack, some)} left out: {why}" for why, some in left_out.items() if some]
    return found


def format_tasks(pack: TaskPack, tasks: Sequence[Task]) -> str:
    """Name tasks by their numbers, followed by the verb: "task 20 is"."""
    known = {task.description: str(number) for number, task in enumerate(pack.tasks)}
    numbers = [known.get(task.description, repr(task.description)) for task in tasks]
    return f"task {numbers[0]} is" if len(numbers) == 1 else f"tasks {', '.join(numbers)} are"
