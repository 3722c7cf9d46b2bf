"""Tasks, prompts and rewards for other trainers, such as TRL.

The trainer of this package asks one question at a time and scores its legal answers. Trainers that sample text use
prompts, completions and a reward function. Here a completion is therefore a whole walk: the prompt has the rules, the
task and the first question, and asks for the numbers of all choices in order, such as ``2 1 3``. Later questions are
not shown, so the model must infer from the rules, and learns from the rewards, what its numbers will mean. A completion
that leads to no plan gets a fixed reward.

With TRL (its ``GRPOTrainer`` and ``RLOOTrainer`` take a data set with a column ``prompt`` and pass the other columns to
the reward function by name)::

    from datasets import load_dataset
    from trl import GRPOTrainer

    write_tasks("tasks.jsonl", planner, tasks)
    data = load_dataset("json", data_files="tasks.jsonl", split="train")
    trainer = GRPOTrainer(model, reward_funcs=completion_reward(planner, reward, tasks), train_dataset=data)

The column ``task`` holds the position of the task in ``tasks``; both functions must receive the same tasks.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TypeAlias

from formal_llm.errors import BudgetExceeded, InvalidAnswer, NoValidPlan
from formal_llm.llms.local.selections import Selecting
from formal_llm.llms.question import Answer, Message
from formal_llm.planning.drivers.json_lines import write_atomically
from formal_llm.planning.drivers.planner import Planner
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.task import Task
from formal_llm.rltf.episode import Episode
from formal_llm.rltf.rewards import Judged, RewardFunction, reward_of

#: The end of a prompt, which replaces the instruction of a single question.
INSTRUCTION = (
    "Answer with the numbers of your choices at this question and at all that follow until the plan is finished, in "
    "order, separated by blanks, and nothing else. Where a question allows several choices, join their numbers with a "
    "plus sign. A step that leaves only one choice is not asked."
)
#: A choice in a completion, and the separators between choices.
_CHOICE = re.compile(r"\d{1,9}(?:\+\d{1,9})*")
_BETWEEN = re.compile(r"[\s,;]+")
#: A prompt or completion: a text, or the messages of a chat, each with ``role`` and ``content``.
Prompt: TypeAlias = str | list[dict[str, object]]


def walk_messages(planner: Planner, task: str | Task) -> tuple[Message, ...]:
    """Return the prompt of a whole walk as chat messages: the rules, the task with its first question, the instruction.

    Raises:
        NoValidPlan: no plan follows all the rules.
    """
    task = Task.of(task)
    walk = planner.start(task)
    # The examples of a wording show single questions, with one number as the answer.
    wording = replace(planner.wording.with_rules(), examples=())
    rules = wording.before((), task.description, lambda: planner.table(task).rules())
    question = walk.question
    if question is None:
        return (*rules, Message("user", f"{task.description}\n\n{INSTRUCTION}"))
    instruction = planner.wording.instruction_several if question.several else planner.wording.instruction
    prompt = question.prompt
    single = instruction.replace("{count}", str(len(question.options)))
    prompt = prompt.replace(single, INSTRUCTION) if single in prompt else f"{prompt}\n\n{INSTRUCTION}"
    return (*rules, Message("user", prompt))


def walk_prompt(planner: Planner, task: str | Task) -> str:
    """Like :func:`walk_messages`, as one text, for models without a chat template."""
    return "\n\n".join(message.content for message in walk_messages(planner, task)) + "\n"


def write_tasks(
    path: str | os.PathLike[str], planner: Planner, tasks: Sequence[Task], *, conversational: bool = False
) -> Path:
    """Write tasks with their prompts as JSON lines: ``task``, ``description``, ``group``, ``prompt``.

    Args:
        path: the file; existing content is replaced.
        planner: provides the rules and the wording.
        tasks: the tasks; ``task`` is the position among them, from 0.
        conversational: whether ``prompt`` is a list of messages with ``role`` and ``content``, to which the trainer
            applies the model's chat template, or one text. (There are no separate columns for both: TRL would treat
            such a data set as either kind by chance.)

    Returns:
        The path.

    Raises:
        NoValidPlan: for one of the tasks no plan follows all the rules.
    """
    rows = (
        {"task": index, "description": task.description, "group": task.group, "prompt": prompt}
        for index, task in enumerate(tasks)
        for prompt in [_prompt_of(planner, task, conversational)]
    )
    return _write_lines(path, rows)


def write_completions(
    path: str | os.PathLike[str],
    planner: Planner,
    episodes: Iterable[Episode],
    judged: Iterable[Judged],
    *,
    conversational: bool = False,
) -> Path:
    """Write plans with their rewards as JSON lines: ``task``, ``prompt``, ``completion``, ``reward``, ``failed``.

    The file serves supervised fine-tuning on good plans and learning from existing plans.

    Args:
        path: the file; existing content is replaced.
        planner: provides the rules and the wording.
        episodes: the plans with their decisions; ``task`` is :attr:`Episode.index`.
        judged: the judgement of each.
        conversational: see :func:`write_tasks`; the completion is then a list of one message.

    Returns:
        The path.

    Raises:
        ValueError: the numbers of rewards and episodes differ, or an episode belongs to other rules.
    """
    prompts: dict[Task, Prompt] = {}

    def make_row(episode: Episode, worth: Judged) -> dict[str, object]:
        if episode.task not in prompts:
            prompts[episode.task] = _prompt_of(planner, episode.task, conversational)
        text = _write_numbers(planner, episode)
        completion = [{"role": "assistant", "content": text}] if conversational else text
        data = {"task": episode.index, "prompt": prompts[episode.task], "completion": completion}
        return {**data, "reward": worth.value, "failed": worth.failed}

    return _write_lines(path, (make_row(episode, worth) for episode, worth in zip(episodes, judged, strict=True)))


def _write_numbers(planner: Planner, episode: Episode) -> str:
    """Return the answers of an episode as a completion; a selection, recorded option by option, is one answer."""
    walk = planner.start(episode.task)
    numbers = [decision.number for decision in episode.decisions]
    remaining, words = iter(numbers), []
    try:
        while (question := walk.question) is not None:
            if question.several:
                selecting = Selecting.of(question)
                while selecting.asked is not None:
                    selecting = selecting.after(next(remaining))
                chosen = selecting.chosen
            else:
                chosen = (next(remaining),)
            walk.answer(Answer(chosen))
            words.append("+".join(map(str, chosen)))
    except (StopIteration, InvalidAnswer):
        raise ValueError(f"the numbers {numbers} lead to no plan of {episode.task.description!r}") from None
    return " ".join(words)


# -- completions ------------------------------------------------------------------------------------------------------


def read_completion(planner: Planner, task: str | Task, completion: str) -> Plan:
    """Return the plan to which a completion leads: the numbers of choices, separated by blanks, commas or semicolons.

    Raises:
        InvalidAnswer: the completion has something other than numbers, a number that was not offered, too few
            numbers or too many.
        NoValidPlan, BudgetExceeded: see :attr:`Walk.question`.
    """
    text = completion.strip()
    words = [word for word in _BETWEEN.split(text) if word]
    walk = planner.start(task)
    for place, word in enumerate(words, 1):
        question = walk.question
        if question is None:
            raise InvalidAnswer(f"the plan is finished after {place - 1} of {len(words)} numbers", [("", text)])
        if not _CHOICE.fullmatch(word):
            excerpt = word if len(word) <= 40 else f"{word[:37]}..."
            raise InvalidAnswer(f"{excerpt!r} is not a number", [(question.prompt, text)])
        walk.answer(tuple(map(int, word.split("+"))))
    if not walk.done:
        raise InvalidAnswer(f"the plan is not finished after {len(words)} numbers", [("", text)])
    return walk.plan


def completion_reward(
    planner: Planner, reward: str | RewardFunction, tasks: Sequence[Task], *, invalid: float = 0.0, workers: int = 1
) -> Callable[..., list[float]]:
    """Return a reward function for TRL: it takes prompts, completions and the other columns of the data set.

    Args:
        planner: provides the rules that the completions follow.
        reward: the reward of a plan, preferably a :class:`~formal_llm.rltf.reward_cache.CachedReward`.
        tasks: the tasks that were exported.
        invalid: the reward of a completion that leads to no plan.
        workers: the number of threads that judge plans.

    Returns:
        ``function(prompts, completions, *, task=None, **columns) -> list[float]``. Completions are texts or lists of
        messages. ``task`` has the position of the task of each; if omitted, the task is the one that was exported with
        this prompt. Other columns are ignored. The function raises ValueError for a prompt that was exported for no
        task or for several, and RewardError as the reward does.

    Raises:
        ValueError: ``invalid`` is not a finite number.
    """
    judge = reward_of(reward)
    if not math.isfinite(invalid):
        raise ValueError(f"the reward of completions that lead to no plan is a finite number, not {invalid}")
    stated = Judged(float(invalid), "no plan")
    exported = cache(partial(_places_by_prompt, planner, tasks))  # only if prompts must identify the tasks

    def reward_completions(
        prompts: Sequence[Prompt],
        completions: Sequence[Prompt],
        *,
        task: Sequence[int] | None = None,
        **_columns: object,
    ) -> list[float]:
        places = [_place_of(prompt, exported(), tasks) for prompt in prompts] if task is None else list(map(int, task))
        results = [stated] * len(completions)
        plans: list[tuple[int, tuple[Task, Plan]]] = []
        for row, (place, completion) in enumerate(zip(places, completions, strict=True)):
            if not 0 <= place < len(tasks):
                raise ValueError(f"there is no task {place}; {len(tasks)} tasks were given")
            try:
                plan = read_completion(planner, tasks[place], _completion_text(completion))
            except (InvalidAnswer, NoValidPlan, BudgetExceeded):
                continue
            plans.append((row, (tasks[place], plan)))
        judged = judge.judge_many([pair for _, pair in plans], workers)
        for (row, _), worth in zip(plans, judged, strict=True):
            results[row] = worth
        return [worth.value for worth in results]

    reward_completions.__name__ = re.sub(r"\W+", "_", judge.name)  # TRL logs rewards under the function's name
    return reward_completions


def _places_by_prompt(planner: Planner, tasks: Sequence[Task]) -> dict[str, set[int]]:
    """Map each exported prompt, in both its forms, to the positions of the tasks that have it."""
    places: dict[str, set[int]] = {}
    for place, task in enumerate(tasks):
        for conversational in (False, True):
            places.setdefault(json.dumps(_prompt_of(planner, task, conversational)), set()).add(place)
    return places


def _place_of(prompt: Prompt, exported: Mapping[str, set[int]], tasks: Sequence[Task]) -> int:
    """Return the position of the only task that a prompt was exported for."""
    places = exported.get(json.dumps(_strip_messages(prompt)), set())
    if len({tasks[place] for place in places}) != 1:
        problem = "several tasks" if places else "no task"
        raise ValueError(f"this prompt was exported for {problem}; keep the column 'task' in the data set: {prompt!r}")
    return min(places)


# -- forms ------------------------------------------------------------------------------------------------------------


def _prompt_of(planner: Planner, task: Task, conversational: bool) -> Prompt:
    if not conversational:
        return walk_prompt(planner, task)
    return [message.to_data() for message in walk_messages(planner, task)]


def _strip_messages(prompt: Prompt) -> Prompt:
    """Return a prompt as it was exported; trainers may add keys to messages."""
    if isinstance(prompt, str):
        return prompt
    return [{"role": message["role"], "content": message["content"]} for message in prompt]


def _completion_text(completion: Prompt) -> str:
    """Return the text of a completion: the text itself, or the content of its last message."""
    if isinstance(completion, str):
        return completion
    content = completion[-1].get("content") if completion else ""
    return content if isinstance(content, str) else ""


def _write_lines(path: str | os.PathLike[str], rows: Iterable[Mapping[str, object]]) -> Path:
    """Write a file of JSON lines completely or not at all."""
    write_atomically(Path(path), ((json.dumps(row, ensure_ascii=False) + "\n").encode() for row in rows))
    return Path(path)
