"""A tool that a worker process imports."""

from __future__ import annotations

import os

from formal_llm.tools import tool


@tool
def whose(text: str) -> str:
    """Whose process this is."""
    return str(os.getpid()) if text else ""
