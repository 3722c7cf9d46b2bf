"""Checkpoints: everything that a run needs to continue exactly where it was.

A checkpoint is a folder ``checkpoints/step-000120``: the adapters in the format of peft, the optimizer's state, and
``state.json`` with the rest. Draws need no state: each depends on the seed, the update and the task. A checkpoint is
written under another name and then moved into place, so one in place is complete; checksums of its files are in
``state.json``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formal_llm.authored.files import parse_json, read_bytes
from formal_llm.errors import TrainingError
from formal_llm.rltf.policy import Policy

if TYPE_CHECKING:
    import torch

_FORMAT = "formal_llm.rltf.checkpoint/1"
_FOLDER = "checkpoints"
_NAME = "step-{:06d}"
#: The adapters with the best held-out reward, and those at the end.
BEST, FINAL = "best", "final"


@dataclass(frozen=True)
class RunState:
    """The state saved besides adapters and optimizer.

    Attributes:
        step: the number of updates performed.
        data: the data of the trainer, as JSON data.
    """

    step: int
    data: Mapping[str, object]


class Checkpoints:
    """The checkpoints of a run.

    Args:
        folder: the folder of the run.
        keep: the number of latest checkpoints to keep.
        fingerprint: what the run depends on, as JSON data: a checkpoint with another fingerprint is refused.
    """

    def __init__(self, folder: str | Path, *, keep: int = 2, fingerprint: Mapping[str, object] | None = None) -> None:
        self.folder = Path(folder) / _FOLDER
        self.keep = keep
        self.fingerprint = json.loads(json.dumps(dict(fingerprint or {})))

    def save(self, policy: Policy, optimizer: torch.optim.Optimizer, state: RunState) -> Path:
        """Save a checkpoint and remove old ones; raise TrainingError if it cannot be written."""
        import torch

        place = self.folder / _NAME.format(state.step)  # may exist from before a resume
        try:
            with _put_whole(place) as fresh:
                policy.save(fresh)
                torch.save(optimizer.state_dict(), fresh / "optimizer.pt")
                sums = {file.name: _compute_checksum(file) for file in sorted(fresh.iterdir())}
                data = {
                    "format": _FORMAT, "step": state.step, "fingerprint": self.fingerprint, "files": sums, **state.data
                }  # fmt: skip
                (fresh / "state.json").write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
                for file in fresh.iterdir():
                    _sync_file(file)
            _sync_file(self.folder)
        except (OSError, RuntimeError) as error:
            raise TrainingError(
                f"the checkpoint {place} cannot be written: {error}; earlier checkpoints are as they were"
            ) from error
        for old in self.steps()[: -self.keep]:
            shutil.rmtree(self.folder / _NAME.format(old), ignore_errors=True)
        return place

    def steps(self) -> list[int]:
        """Return the steps with a complete checkpoint, in ascending order."""
        complete = []
        for place in self.folder.glob("step-*") if self.folder.is_dir() else ():
            number = place.name.removeprefix("step-")
            if number.isdigit() and (place / "state.json").is_file():
                complete.append(int(number))
        return sorted(complete)

    def load(self, policy: Policy, optimizer: torch.optim.Optimizer, step: int | None = None) -> RunState | None:
        """Load a checkpoint, by default the last, into policy and optimizer; return None if there is none.

        Raises:
            TrainingError: it is damaged, or belongs to a run with other settings; the error specifies which.
            ModelError: its adapters do not fit the model.
        """
        import torch

        steps = self.steps()
        if not steps:
            return None
        place = self.folder / _NAME.format(steps[-1] if step is None else step)
        try:
            data: Any = parse_json(read_bytes(place / "state.json"))
            if data.pop("format") != _FORMAT:
                raise TrainingError(f"{place} is no checkpoint that this version can read")
            changed = [key for key, value in self.fingerprint.items() if data["fingerprint"].get(key) != value]
            if changed:
                was, now = data["fingerprint"].get(changed[0]), self.fingerprint[changed[0]]
                raise TrainingError(
                    f"{place} is of a run with other settings ({changed[0]} was {was!r}, now {now!r}); go on with the "
                    "same, or begin a run in another folder"
                )
            step_found = int(data.pop("step"))
            _check_files(place, data.pop("files"))
            # Via the CPU: a run may continue on another device, and not every process should use that of the first one.
            state = torch.load(place / "optimizer.pt", weights_only=True, map_location="cpu")
        except TrainingError:
            raise
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, EOFError) as error:
            raise TrainingError(
                f"the checkpoint {place} is damaged ({type(error).__name__}: {error}); remove it to go on from the one "
                "before"
            ) from error
        policy.load(place)
        try:
            optimizer.load_state_dict(state)
        except (ValueError, KeyError) as error:
            raise TrainingError(f"the optimizer of {place} does not fit: {error}") from error
        data.pop("fingerprint")
        return RunState(step_found, data)

    def mark(self, policy: Policy, name: str) -> Path:
        """Save the adapters alone under a name (``best``, ``final``) in the folder of the run."""
        place = self.folder.parent / name
        with _put_whole(place) as fresh:
            policy.save(fresh)
        return place


def _compute_checksum(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _check_files(place: Path, sums: Mapping[str, str]) -> None:
    """Raise ValueError for a file that is not as it was written."""
    for name, checksum in sums.items():
        if Path(name).name != name or _compute_checksum(place / name) != checksum:
            raise ValueError(f"{name} is not the file that was written")


@contextmanager
def _put_whole(place: Path) -> Iterator[Path]:
    """Create a new folder to fill, which then replaces an existing one."""
    fresh, old = (place.with_name(place.name + ending) for ending in (".new", ".old"))
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    yield fresh
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    fresh.rename(place)
    shutil.rmtree(old, ignore_errors=True)


def _sync_file(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
