"""A tool that a worker process imports."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import Literal

from formal_llm.tools import tool


@tool
def whose(text: str) -> str:
    """Whose process this is."""
    return str(os.getpid()) if text else ""


@dataclass
class Guest:
    name: str
    age: int


def seat(guests: list[Guest], tables: int = 2, *, by: Literal["name", "age"] = "name") -> dict[int, list[str]]:
    """Seat guests at tables.

    Args:
        guests: who comes
        tables: how many tables there are
        by: in which order they are seated
    """
    listed = [one.name for one in sorted(guests, key=lambda one: getattr(one, by))]
    return {number: listed[number - 1 :: tables] for number in range(1, tables + 1)}


async def wait(seconds: float = 0.0) -> str:
    """Wait."""
    await asyncio.sleep(seconds)
    return f"waited {seconds}"


def untyped(text):  # type: ignore[no-untyped-def]
    return text
