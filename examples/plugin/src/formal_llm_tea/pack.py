"""The task pack ``tea``: a folder without code, as ``docs/howto/task-packs.md`` tells."""

from __future__ import annotations

from pathlib import Path


def folder() -> Path:
    """Where the pack is; the folder is called as the pack."""
    return Path(__file__).parent / "tea"
