"""Where what was computed once is kept for the next time."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """The folder of the user's cache: ``$XDG_CACHE_HOME/formal-llm``, else ``~/.cache/formal-llm``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "formal-llm"
