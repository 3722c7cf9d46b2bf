"""The creation of data for the OpenAGI tasks: pictures of the scikit-image wheel and texts of the project, degraded.

The benchmark (Ge et al. 2023) makes a picture gray, blurs it, adds noise, and lowers its resolution; in a text it
masks a word. The differences here: a low resolution is half the width and height, not a strongly compressed JPEG; the
noise is added last, as in a camera; blur and noise are stronger and vary.

Nothing is downloaded, and the same seed gives the same data. Layout: :mod:`formal_llm.packs.openagi.data.samples`.
"""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
from PIL import Image, ImageFilter

from formal_llm.packs.openagi.data.pixels import Pixels, picture_of
from formal_llm.packs.openagi.data.samples import ImageOrText, tasks_in
from formal_llm.packs.openagi.data.sources import Photograph, load_opinions, load_passages, load_pictures
from formal_llm.planning import Task, TaskPack

INDEX = "index.json"
#: The marker file that exists while data are made, which identifies the data of an interrupted run.
_BEGUN = "unfinished"
_FORMAT = "formal-llm openagi data 1"


class TaskIndex(TypedDict):
    """The index entry of a task: its number, its sentence, its group, and facts about each sample."""

    number: int
    task: str
    group: str
    samples: list[dict[str, object]]


class DataIndex(TypedDict):
    """The index of task data: the arguments, the sources of the pictures, and each task."""

    format: str
    seed: int
    samples: int
    side: int
    sources: list[dict[str, str]]
    tasks: list[TaskIndex]


@dataclass(frozen=True)
class _Made:
    """A sample to write: for each file, a picture or a line; and its facts in the index."""

    inputs: Mapping[str, ImageOrText]
    outputs: Mapping[str, ImageOrText]
    facts: Mapping[str, object]


def make_data(
    out: str | Path, *, tasks: Iterable[int] | None = None, samples: int = 8, seed: int = 0, side: int = 192
) -> DataIndex:
    """Write task data.

    Args:
        out: the folder to write to, created if missing; it must not hold data already.
        tasks: the numbers of the tasks, from 0; by default all.
        samples: the number of samples of each task.
        seed: 0 or more; the same seed gives the same data, and the samples of a task do not depend on other tasks.
        side: the longer side of the pictures in pixels, before their resolution is lowered.

    Returns:
        The index, as it is written to ``index.json``.

    Raises:
        FileExistsError: the folder already holds task data that are not those of an interrupted run.
        NotADirectoryError: there is a file in its place.
        ValueError: the number of samples is 0, the pictures are too small, or the seed is negative.
        ResourceNotFound: there is no task with such a number.
        MissingDependency: scikit-image is not installed.
    """
    if samples < 1 or side < 16 or seed < 0:
        raise ValueError("at least one sample, pictures of at least 16 pixels, and no negative seed")
    pack = TaskPack.load("openagi")
    numbers = list(range(len(pack.tasks))) if tasks is None else sorted(set(tasks))
    chosen = {number: pack.task(number) for number in numbers}
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is no folder; name another place")
    marker = folder / _BEGUN
    existing = tasks_in(folder)
    if (folder / INDEX).exists() or (existing and not marker.exists()):
        raise FileExistsError(f"{folder} holds task data already; give another folder, or remove them")
    folder.mkdir(parents=True, exist_ok=True)
    marker.touch()
    for number in existing:  # from an interrupted run, perhaps with more samples
        shutil.rmtree(folder / number)
    sentences = "".join(f"{task.description}\n" for task in pack.tasks)
    (folder / "task_description.txt").write_text(sentences, encoding="utf-8")
    index: DataIndex = {
        "format": _FORMAT, "seed": seed, "samples": samples, "side": side,
        "sources": [
            {"name": picture.name, "file": f"skimage/data/{picture.file}", "licence": picture.licence,
             "source": picture.source}
            for picture in load_pictures()
        ],
        "tasks": [
            {"number": number, "task": task.description, "group": task.group,
             "samples": _write_task(folder / str(number), _samples_of(pack, number, task, samples, seed, side))}
            for number, task in chosen.items()
        ],
    }  # fmt: skip
    # Written last: a folder with an index is complete.
    (folder / INDEX).write_text(json.dumps(index, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    marker.unlink()
    return index


def _write_task(folder: Path, made: Sequence[_Made]) -> list[dict[str, object]]:
    lines: dict[Path, list[str]] = {}
    for number, sample in enumerate(made):
        for side, values in (("inputs", sample.inputs), ("outputs", sample.outputs)):
            (folder / side).mkdir(parents=True, exist_ok=True)
            for name, value in values.items():
                if isinstance(value, str):
                    # Each sample has one line, so a text must be one line.
                    lines.setdefault(folder / side / f"{name}.txt", []).append(" ".join(value.split()))
                else:
                    (folder / side / name).mkdir(exist_ok=True)
                    value.save(folder / side / name / f"{number}.png")
    for path, texts in lines.items():
        path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return [dict(sample.facts) for sample in made]


# -- the sentences of tasks --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Wanted:
    """The properties of a task's data, according to its sentence.

    Attributes:
        degradations: the degradations of its picture.
        clozed: which of its texts have a gap: "text", "document", "query".
        given, wanted: the two halves of the sentence.
    """

    degradations: tuple[str, ...]
    clozed: frozenset[str]
    language: str
    given: str
    wanted: str

    @classmethod
    def from_task(cls, pack: TaskPack, task: Task) -> _Wanted:
        match = re.search(pack.data["sentence"]["pattern"], task.description, re.IGNORECASE)
        assert match is not None, task.description
        given, wanted = match["given"], match["wanted"]
        return cls(
            tuple(name for name in DEGRADATIONS if name in given.split()),
            frozenset(re.findall(r"\bclozed English (\w+)", given)),
            "German" if " in German" in wanted or "translate" in wanted else "English",
            given,
            wanted,
        )

    def add_gap(self, text: str, name: str, rng: random.Random) -> str:
        """Return the text, with a gap if the sentence specifies one for the text with this name."""
        return mask_word(text, rng) if name in self.clozed else text


def _samples_of(pack: TaskPack, number: int, task: Task, count: int, seed: int, side: int) -> list[_Made]:
    wanted = _Wanted.from_task(pack, task)
    chances = [random.Random(f"{seed} {number} {place}") for place in range(count)]
    if "image" in task.inputs:
        return [_from_picture(wanted, task, place, seed, side, rng) for place, rng in enumerate(chances)]
    return [_from_text(wanted, task, place, rng) for place, rng in enumerate(chances)]


def _from_picture(wanted: _Wanted, task: Task, place: int, seed: int, side: int, rng: random.Random) -> _Made:
    """Make a sample with a degraded picture, and a question if the task has one."""
    picture, image, box = _make_view(place, seed, side, colours="grayscale" in wanted.degradations)
    # Drawn by the number of the sample: the same picture is equally blurry and noisy in all tasks.
    degradation = Degradation.from_names(wanted.degradations, random.Random(f"{seed} {place}"))
    worse = degradation.apply(image, np.random.default_rng([seed, place]))
    facts = {"picture": picture.name, "box": box, "degradation": asdict(degradation)}
    inputs: dict[str, ImageOrText] = {"images": worse}
    if task.goal == "image_plan":
        return _Made(inputs, {"images": image}, facts)
    if "text" in task.inputs:
        inputs["questions"] = wanted.add_gap(picture.question, "query", rng)
        return _Made(inputs, {"answers": picture.answer[wanted.language]}, facts)
    labels = {"caption": picture.caption, "class label": picture.label, "object names": picture.objects}
    label = next(label for name, label in labels.items() if name in wanted.wanted)
    return _Made(inputs, {"labels": label[wanted.language]}, facts)


def _from_text(wanted: _Wanted, task: Task, place: int, rng: random.Random) -> _Made:
    """Make a sample with a text, or with a document and a question about it."""
    if task.goal == "image_plan":
        # The benchmark judges how well picture and caption match, so the whole caption is kept.
        picture = load_pictures()[place % len(load_pictures())]
        caption = picture.caption["English"]
        return _Made(
            {"captions": wanted.add_gap(caption, "text", rng)}, {"captions": caption}, {"picture": picture.name}
        )
    if "document" in wanted.given or "summarization" in wanted.wanted:
        number = place % len(load_passages())
        passage = load_passages()[number]
        if "document" not in wanted.given:
            inputs = {"text": wanted.add_gap(passage.text, "text", rng)}
            return _Made(inputs, {"labels": passage.summary[wanted.language]}, {"text": number})
        context = wanted.add_gap(passage.text, "document", rng)
        inputs = {"context": context, "questions": wanted.add_gap(passage.question, "query", rng)}
        return _Made(inputs, {"answers": passage.answer[wanted.language]}, {"text": number})
    number = place % len(load_opinions())
    opinion = load_opinions()[number]
    output = opinion.text if "translate" in wanted.wanted else opinion.sentiment
    text = wanted.add_gap(opinion.text["English"], "text", rng)
    return _Made({"text": text}, {"labels": output[wanted.language]}, {"text": number})


def _make_view(place: int, seed: int, side: int, *, colours: bool) -> tuple[Photograph, Image.Image, list[int]]:
    """Return the picture of a sample, scaled to its longer side: first whole pictures, then parts of 80 % or more.

    With ``colours`` only coloured pictures are used, since gray ones lose nothing by a conversion to gray.
    """
    known = [picture for picture in load_pictures() if picture.colours or not colours]
    picture = known[place % len(known)]
    image = picture.open()
    rng = random.Random(f"{seed} {place} view")
    share = 1.0 if place < len(known) else rng.uniform(0.8, 0.95)
    width, height = round(image.width * share), round(image.height * share)
    left, top = rng.randint(0, image.width - width), rng.randint(0, image.height - height)
    factor = side / max(width, height)
    # Even sides, so that they can be halved exactly.
    wide, high = (max(round(length * factor / 2) * 2, 2) for length in (width, height))
    box = (left, top, left + width, top + height)
    return picture, image.resize((wide, high), Image.Resampling.LANCZOS, box=box), list(box)


#: The words of the tasks' sentences for the degradations of a picture, in the order in which they are applied.
DEGRADATIONS = ("grayscale", "blurry", "low-resolutioned", "noisy")
MASK = "[MASK]"


@dataclass(frozen=True)
class Degradation:
    """The degradation of a picture.

    Attributes:
        grayscale: whether its colours are removed.
        blur: the standard deviation of the Gaussian blur in pixels; 0 for none.
        low_resolution: whether its width and height are halved.
        noise: the standard deviation of the Gaussian noise, where white is 1; 0 for none.
    """

    grayscale: bool = False
    blur: float = 0.0
    low_resolution: bool = False
    noise: float = 0.0

    @classmethod
    def from_names(cls, names: Iterable[str], rng: random.Random) -> Degradation:
        """Create a degradation of some kinds, named as in ``DEGRADATIONS``, with random strengths."""
        named = frozenset(names)
        # Both are always drawn, so that a picture is equally blurry in all tasks.
        blur, noise = round(rng.uniform(1.0, 2.0), 2), round(rng.uniform(0.05, 0.1), 3)
        return cls(
            grayscale="grayscale" in named,
            blur=blur if "blurry" in named else 0.0,
            low_resolution="low-resolutioned" in named,
            noise=noise if "noisy" in named else 0.0,
        )

    def apply(self, image: Image.Image, rng: np.random.Generator) -> Image.Image:
        """Degrade a gray or coloured picture; the noise comes from ``rng``."""
        if self.grayscale:
            image = image.convert("L")
        if self.blur:
            image = image.filter(ImageFilter.GaussianBlur(self.blur))
        if self.low_resolution:
            half = max(image.width // 2, 1), max(image.height // 2, 1)
            image = image.resize(half, Image.Resampling.BICUBIC)
        if self.noise:
            values = Pixels.from_image(image).values
            image = picture_of(values + rng.normal(0, self.noise, values.shape))
        return image


def mask_word(text: str, rng: random.Random) -> str:
    """Replace one word of a text by ``[MASK]``, as in the benchmark; a text without words is unchanged."""
    found = list(re.finditer(r"[^\W_]+(?:['’-][^\W_]+)*", text))
    if not found:
        return text
    word = rng.choice(found)
    return text[: word.start()] + MASK + text[word.end() :]
