"""The sources of task data: pictures in the wheel of scikit-image, texts next to the task pack."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from PIL import Image

from formal_llm import authored
from formal_llm.authored.files import lines_of, read_text
from formal_llm.authored.tables import Items, Keys, NamedEntries, Shape, read_toml
from formal_llm.errors import MissingDependency, ResourceNotFound


@dataclass(frozen=True)
class Photograph:
    """A picture of the wheel of scikit-image, and descriptions of it.

    Attributes:
        name: its name here.
        file: the name of its file.
        source: its author and origin.
        caption, label, objects, answer: descriptions by a person, by language ("English", "German").
        question: the question that ``answer`` answers.
    """

    name: str
    file: str
    licence: str
    source: str
    caption: Mapping[str, str]
    label: Mapping[str, str]
    objects: Mapping[str, str]
    question: str
    answer: Mapping[str, str]
    colours: bool = True

    def open(self) -> Image.Image:
        """Open the picture.

        Raises:
            MissingDependency: scikit-image is not installed.
            ResourceNotFound: the installed scikit-image does not contain it.
        """
        # Found without importing scikit-image, whose own loader may download what its wheel lacks.
        package = importlib.util.find_spec("skimage")
        if package is None or package.origin is None:
            raise MissingDependency("the pictures are in scikit-image: pip install 'formal-llm[openagi]'")
        folder = Path(package.origin).parent / "data"
        if not (folder / self.file).is_file():
            raise ResourceNotFound("picture of scikit-image", self.file, [path.name for path in folder.iterdir()])
        with Image.open(folder / self.file) as image:
            return image.convert("RGB" if self.colours else "L")


@dataclass(frozen=True)
class SamplePassage:
    """A text written for the project, with its summary and the answer to a question, both by language."""

    text: str
    summary: Mapping[str, str]
    question: str
    answer: Mapping[str, str]


@dataclass(frozen=True)
class Opinion:
    """A sentence that expresses a sentiment, ``"positive"`` or ``"negative"``; both by language."""

    text: Mapping[str, str]
    sentiment: Mapping[str, str]


_SAID = NamedEntries(str)  # by language
_PICTURE: dict[str, Shape] = {
    "name": str, "file": str, "licence": str, "source": str, "caption": _SAID, "label": _SAID, "objects": _SAID,
    "question": str, "answer": _SAID, "colours": bool,
}  # fmt: skip
_PASSAGE: dict[str, Shape] = {"text": str, "summary": _SAID, "question": str, "answer": _SAID}
_OPINION: dict[str, Shape] = {"text": _SAID, "sentiment": _SAID}
_PICTURES = Keys({"pictures": Items(Keys(_PICTURE, needed=[name for name in _PICTURE if name != "colours"]))})
_TEXTS = Keys(
    {"passages": Items(Keys(_PASSAGE, needed=[*_PASSAGE])), "opinions": Items(Keys(_OPINION, needed=[*_OPINION]))}
)


@cache
def load_pictures() -> tuple[Photograph, ...]:
    """Return the pictures, those with colours first."""
    return tuple(Photograph(**entry) for entry in read_toml(_find_file("pictures.toml"), _PICTURES)["pictures"])


@cache
def load_passages() -> tuple[SamplePassage, ...]:
    """Return the texts to summarize and to ask questions about."""
    return tuple(SamplePassage(**entry) for entry in read_toml(_find_file("texts.toml"), _TEXTS)["passages"])


@cache
def load_opinions() -> tuple[Opinion, ...]:
    """Return the sentences to translate and to determine the sentiment of."""
    return tuple(Opinion(**entry) for entry in read_toml(_find_file("texts.toml"), _TEXTS)["opinions"])


@cache
def load_prose() -> str:
    """Return the prose in the public domain for the n-gram model, without the lines that describe its origin."""
    return "\n".join(line for line in lines_of(read_text(_find_file("prose.txt"))) if not line.startswith("#"))


def _find_file(name: str) -> Path:
    return authored.find("tasks", "openagi") / name
