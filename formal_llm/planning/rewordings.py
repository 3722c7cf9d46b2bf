"""Paraphrased tasks of a pack: a file of sentences, each of which rewords a task of the pack.

The file ``paraphrases.toml`` of a pack, for instance, has tables such as::

    [[paraphrases]]
    task = 7
    texts = ["Colourise grandma's wedding photo."]

The inputs, the goal and the judgement of plans are those of task 7; only the words differ. When many sentences are
needed, as for training, they are composed: with ``draw = 24``, texts are drawn and filled in 24 times. ``{photo}``
stands for one of ``phrases.photo``, and ``{each:adj}`` for one of ``words.NAME.adj`` of each NAME in the table's
``each``, in any order. The draws depend only on the seed, the task and their number, so they are the same on every
machine.

A file of labelled sentences gives the steps that sentences call for, without a task of the pack::

    [[sentences]]
    given = ["image"]
    goal = "text"
    steps = ["denoising", "captioning"]
    texts = ["There is snow all over this picture. What is going on in it?"]
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from formal_llm.authored.tables import Items, Keys, NamedEntries, TablePath, TableProblem, TomlFile, parse_toml
from formal_llm.errors import ResourceNotFound, unknown
from formal_llm.planning.packs import TaskPack
from formal_llm.planning.task import Task

_TEXTS = Items(str)
#: The allowed contents of such a file.
SHAPE = Keys(
    {
        "seed": int,
        "paraphrases": Items(
            Keys({"task": int, "texts": _TEXTS, "each": _TEXTS, "draw": int}, needed=("task", "texts"))
        ),
        "phrases": NamedEntries(_TEXTS),
        "words": NamedEntries(NamedEntries(_TEXTS)),
    },
    needed=("paraphrases",),
)
#: The allowed contents of a file of labelled sentences.
SENTENCES = Keys(
    {
        "sentences": Items(
            Keys({"given": _TEXTS, "goal": str, "steps": _TEXTS, "texts": _TEXTS}, needed=("steps", "texts"))
        )
    },
    needed=("sentences",),
)
_PLACE = re.compile(r"\{(?:(each):)?(\w+)\}")
#: The maximum nesting of phrases; a phrase that contains itself would never end.
_DEEPEST = 20
#: The maximum number of draws for each requested sentence, since draws may repeat.
_TRIES = 20


class _WrongPlaceholder(ValueError):
    """A placeholder without a value."""


def read_rewordings(pack: TaskPack, file: str | Path) -> list[Task]:
    """Read the tasks of a file, in its order.

    Args:
        pack: the pack whose tasks are reworded.
        file: a path, or the name of a file in the pack's folder.

    Raises:
        ResourceNotFound: there is no such file.
        NotationError: it cannot be read, names a task that the pack does not have, or has a placeholder without a
            value; with the place.
    """
    read = TomlFile.read(_find_file(pack, file), SHAPE)
    found: list[Task] = []
    for number, row in enumerate(read.data["paraphrases"]):
        path: TablePath = ("paraphrases", number)
        if not 0 <= row["task"] < len(pack.tasks):
            read.fail(TableProblem((*path, "task"), f"the pack {pack.name} has the tasks 0 to {len(pack.tasks) - 1}"))
        task = pack.tasks[row["task"]]
        try:
            texts = row["texts"] if "draw" not in row else _draw_sentences(read.data, row)
        except _WrongPlaceholder as error:
            read.fail(TableProblem((*path, "texts"), str(error)))
        found += [replace(task, description=text, original=task.description) for text in texts]
    return found


class LabelledTask(NamedTuple):
    """A task and the steps that its sentence calls for."""

    task: Task
    steps: frozenset[str]


def read_sentences(pack: TaskPack, file: str | Path) -> list[LabelledTask]:
    """Read the labelled sentences of a file, in its order.

    Args:
        pack: the pack whose steps they call for.
        file: a path, or the name of a file in the pack's folder.

    Raises:
        ResourceNotFound: there is no such file, or the pack has no such input or goal.
        NotationError: it cannot be read, or names a step that the pack's rules do not have; with the place.
    """
    read = TomlFile.read(_find_file(pack, file), SENTENCES)
    found: list[LabelledTask] = []
    for number, row in enumerate(read.data["sentences"]):
        for place, step in enumerate(row["steps"]):
            if step not in pack.source.terminals:
                path = ("sentences", number, "steps", place)
                read.fail(TableProblem(path, unknown("step", step, pack.source.terminals)))
        tasks = [pack.read(text, inputs=row.get("given"), goal=row.get("goal")) for text in row["texts"]]
        found += [LabelledTask(task, frozenset(row["steps"])) for task in tasks]
    return found


def has_labels(pack: TaskPack, file: str | Path) -> bool:
    """Whether a file is one of labelled sentences.

    Raises:
        ResourceNotFound, NotationError: there is no such file, or it is no TOML file.
    """
    place = _find_file(pack, file)
    return "sentences" in parse_toml(place.read_text(encoding="utf-8"), str(place))


def _find_file(pack: TaskPack, file: str | Path) -> Path:
    place = Path(file) if Path(file).is_file() else pack.folder / file
    if not place.is_file():
        available = sorted(one.name for one in pack.folder.glob("*.toml"))
        raise ResourceNotFound("file of sentences", str(file), available)
    return place


def _draw_sentences(data: Mapping[str, Any], row: Mapping[str, Any]) -> Sequence[str]:
    """Draw the requested number of different sentences of a row; fewer if its texts do not yield as many."""
    found: dict[str, None] = {}
    for number in range(row["draw"] * _TRIES):
        if len(found) == row["draw"]:
            break
        dice = random.Random(f"{data.get('seed', 0)} {row['task']} {number}")
        found[_tidy_sentence(_fill_text(dice.choice(row["texts"]), data, row, dice, 0))] = None
    return list(found)


def _fill_text(text: str, data: Mapping[str, Any], row: Mapping[str, Any], dice: random.Random, depth: int) -> str:
    if depth > _DEEPEST:
        raise _WrongPlaceholder(f"phrases stand for themselves: {text}")

    def draw_one_of(table: Mapping[str, Sequence[str]], name: str, what: str) -> str:
        if not table.get(name):
            raise _WrongPlaceholder(unknown(what, name, table))
        return _fill_text(dice.choice(table[name]), data, row, dice, depth + 1)

    def replace_placeholder(found: re.Match[str]) -> str:
        if not found[1]:
            return draw_one_of(data.get("phrases", {}), found[2], "phrase")
        names = list(row.get("each", ()))
        dice.shuffle(names)
        words = data.get("words", {})
        if lacking := [name for name in names if name not in words]:
            raise _WrongPlaceholder(unknown("word", lacking[0], words))
        parts = [draw_one_of(words[name], found[2], f"form of {name}") for name in names]
        return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)

    return _PLACE.sub(replace_placeholder, text)


def _tidy_sentence(text: str) -> str:
    """Capitalise the beginnings of sentences and write "an" before vowels."""
    text = re.sub(r"\b([Aa]) (?=[aeiouAEIOU])", r"\1n ", " ".join(text.split()))
    return re.sub(r"(^|[.!?] )([a-z])", lambda found: found[1] + found[2].upper(), text)
