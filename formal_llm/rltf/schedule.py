"""What is decided before a run begins: how many updates it has, which tasks each has, and at which rate.

All of it follows from the settings and the number of an update alone, so a checkpoint has none of it.
"""

from __future__ import annotations

import math
import random

from formal_llm.rltf.settings import Settings


def count_updates(settings: Settings, tasks: int) -> int:
    """How many updates a run has, those of the warm start included.

    Args:
        settings: of the run.
        tasks: how many tasks are trained on.
    """
    wanted = settings.updates
    if wanted is None:
        wanted = math.ceil(settings.epochs * tasks / settings.tasks_per_update)
    return settings.warm_start + wanted


def tasks_of(settings: Settings, tasks: int, update: int) -> list[int]:
    """The places of the tasks of an update: all tasks in a new order each epoch, one after the other.

    Args:
        settings: of the run.
        tasks: how many tasks are trained on.
        update: the number of the update, from 1; those of the warm start, which have all tasks, do not count.
    """
    size = settings.tasks_per_update
    found = []
    for number in range((update - 1) * size, update * size):
        epoch, place = divmod(number, tasks)
        order = list(range(tasks))
        random.Random(f"{settings.seed} epoch {epoch}").shuffle(order)
        found.append(order[place])
    return found


def learning_rate(settings: Settings, step: int, updates: int) -> float:
    """The learning rate of an update.

    Args:
        settings: of the run.
        step: the number of the update, from 1, those of the warm start included.
        updates: how many there are (:func:`count_updates`).
    """
    if step <= settings.warm_start:
        return settings.warm_learning_rate or settings.learning_rate
    number, total = step - settings.warm_start, updates - settings.warm_start
    if number <= settings.warmup:
        return settings.learning_rate * number / settings.warmup
    done = (number - settings.warmup - 1) / max(total - settings.warmup, 1)
    falls = {"constant": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}
    return settings.learning_rate * falls[settings.schedule]
