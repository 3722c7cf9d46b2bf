"""The reader of task data: folders ``N/inputs`` and ``N/outputs`` with pictures and lines of text.

This is the layout of the OpenAGI benchmark, for its own data and for those of
:mod:`formal_llm.packs.openagi.data.making`. Each of the two folders contains a folder of pictures, one file for each
sample, named by its number, or files of texts, one line for each sample, or both::

    117/inputs/images/0.png     the picture of sample 0, and so on
    117/inputs/questions.txt    line 1: the question of sample 0, and so on
    117/outputs/answers.txt     line 1: the answer of sample 0, and so on
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

from PIL import Image

from formal_llm.authored.files import check_plain
from formal_llm.errors import InputError, ResourceNotFound
from formal_llm.packs.openagi.data.pixels import check_size

#: A picture or a text.
ImageOrText: TypeAlias = Image.Image | str
#: The formats of pictures to read. Others are not needed and would enlarge the attack surface.
_FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "TIFF")
_ENDINGS = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".tif", ".tiff"})
#: A document comes before the question about it.
_ORDER = ("images", "context", "text", "captions", "questions")
_MOST_BYTES = 50_000_000


@dataclass(frozen=True)
class Sample:
    """An input of a task and the expected output, by the name of the file or folder: ``images``, ``questions`` ...

    Pictures come first, a document before its question; outputs are empty if the benchmark has no reference.
    """

    inputs: Mapping[str, ImageOrText]
    outputs: Mapping[str, ImageOrText]


class TaskData(Sequence[Sample]):
    """The samples of one task, read on access.

    Args:
        folder: the folder of the task; its name is the number of the task.

    Raises:
        ResourceNotFound: there is no such folder, or it has no inputs.
        InputError: its parts have different numbers of samples, or a link leads out of the folder.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not (self.folder / "inputs").is_dir():
            raise ResourceNotFound("task data", str(folder), tasks_in(self.folder.parent))
        lengths = {name: len(part) for part_of in self._parts for name, part in part_of.items()}
        if len(set(lengths.values())) > 1:
            counts = ", ".join(f"{name}: {length}" for name, length in lengths.items())
            raise InputError(f"{self.folder}: the parts have not the same number of samples ({counts})")
        self._length = next(iter(lengths.values()), 0)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Sample:  # type: ignore[override]  # one at a time, since pictures are large
        if not -len(self) <= index < len(self):
            raise IndexError(f"{self.folder} has {len(self)} samples, none of number {index}")
        inputs, outputs = self._parts
        return Sample(
            {name: part[index]() for name, part in inputs.items()},
            {name: part[index]() for name, part in outputs.items()},
        )

    def __repr__(self) -> str:
        return f"TaskData({str(self.folder)!r}: {len(self)} samples)"

    @cached_property
    def _parts(self) -> tuple[dict[str, list[Callable[[], ImageOrText]]], dict[str, list[Callable[[], ImageOrText]]]]:
        """The readers of all samples by the name of the file or folder, for inputs and outputs."""
        return dict(self._read_side("inputs")), dict(self._read_side("outputs"))

    def _read_side(self, side: str) -> Iterator[tuple[str, list[Callable[[], ImageOrText]]]]:
        place = self.folder / side
        entries = sorted(place.iterdir(), key=_get_rank) if place.is_dir() else []
        _check_inside(self.folder, entries)
        for entry in entries:
            if entry.is_dir():
                files = _pictures_in(entry)
                _check_inside(self.folder, files)
                yield entry.name, [partial(read_picture, file) for file in files]
            elif entry.suffix == ".txt":
                yield entry.stem, [partial(str, line) for line in _read_lines(entry)]


def read_data(folder: str | Path) -> dict[int, TaskData]:
    """Read all task data in a folder, by the number of the task.

    Args:
        folder: the folder that contains the folders ``0``, ``1`` and so on.

    Raises:
        ResourceNotFound: it contains none.
        InputError: some data cannot be used; the error names them.
    """
    root = Path(folder)
    tasks = [root / number for number in tasks_in(root)]
    if not tasks:
        raise ResourceNotFound(
            "folder of task data (formal_llm.packs.openagi.data.making.make_data makes some)", str(folder), []
        )
    _check_inside(root, tasks)
    return {int(task.name): TaskData(task) for task in tasks}


def data_identity(data: Mapping[int, TaskData]) -> str:
    """Return a hash of task data: of the names and the content of all files."""
    digest = hashlib.sha256()
    for number, task in sorted(data.items()):
        for file in sorted(path for path in task.folder.rglob("*") if path.is_file()):
            with file.open("rb") as opened:
                content = hashlib.file_digest(opened, "sha256").hexdigest()
            digest.update(f"{number} {file.relative_to(task.folder).as_posix()} {content}\0".encode())
    return digest.hexdigest()[:16]


def read_picture(file: str | Path) -> Image.Image:
    """Read and decode the picture in a file.

    Raises:
        InputError: it is too large, damaged, or not a picture.
    """
    path = Path(file)
    try:
        _check_bytes(path)
        with warnings.catch_warnings():
            # The size is checked here before a pixel is decoded.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(path, formats=_FORMATS) as image:
                check_size(*image.size)
                image.load()
                return image.copy()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise InputError(f"{path}: {error}") from None


def _check_inside(folder: Path, paths: Iterable[Path]) -> None:
    """Raise an error for a link that leads out of the folder."""
    for path in paths:
        if not path.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{path}: it leads out of the folder {folder}")


def _get_rank(path: Path) -> tuple[int, str]:
    return (_ORDER.index(path.stem) if path.stem in _ORDER else len(_ORDER), path.name)


def tasks_in(folder: Path) -> list[str]:
    """Return the names of the folders of tasks, in the order of their numbers."""
    if not folder.is_dir():
        return []
    found = [path.name for path in folder.iterdir() if path.name.isdecimal() and (path / "inputs").is_dir()]
    return sorted(found, key=int)


def _pictures_in(folder: Path) -> list[Path]:
    """Return the pictures 0, 1, 2 ... of a folder.

    Raises:
        InputError: a number is missing or occurs twice, so that pictures and lines would not match.
    """
    found = [path for path in folder.iterdir() if path.suffix.lower() in _ENDINGS and path.stem.isdecimal()]
    found.sort(key=lambda path: int(path.stem))
    if [int(path.stem) for path in found] != list(range(len(found))):
        raise InputError(f"{folder}: the pictures are not numbered 0, 1, 2 and so on")
    return found


def _read_lines(path: Path) -> list[str]:
    """Read the lines of a file; an empty line is an empty text."""
    try:
        _check_bytes(path)
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: {error}") from None
    return text.removesuffix("\n").split("\n") if text else []


def _check_bytes(path: Path) -> None:
    check_plain(path)
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"the file has more than {_MOST_BYTES:,} bytes")
