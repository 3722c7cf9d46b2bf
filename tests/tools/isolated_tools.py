"""Tools that run in a process of their own."""

from __future__ import annotations

import os
import time

from PIL import Image

from formal_llm.tools import tool


@tool
def flip(image: Image.Image) -> Image.Image:
    return image.rotate(180)


@tool
def hang(text: str) -> str:
    time.sleep(60)
    return text


@tool
def eat(text: str) -> str:
    return str(len(bytearray(40_000_000_000)))


@tool
def die(text: str) -> str:
    os._exit(7)


@tool
def fail(text: str) -> str:
    raise ValueError(f"not {text}")


@tool
def who(text: str) -> str:
    print("this must not get among the answers")
    return str(os.getpid())


NOT_A_TOOL = 3
