"""Fast tools for every terminal of the OpenAGI grammar, and what tests need around them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from PIL import Image, ImageOps

from formal_llm import CFG, Plan, Planner, TaskPack
from formal_llm.tools import IMAGE, TEXT, Tool, Toolkit

PACK = TaskPack.load("openagi")
KINDS = PACK.data["kinds"]

IMAGE_TO_IMAGE = ["colorization", "super_resolution", "denoising", "deblurring"]
IMAGE_TO_TEXT = ["classification", "detection", "captioning"]
TEXT_TO_TEXT = ["summarization", "text_generation", "translation", "fill_mask", "sentiment"]


class Log:
    """What was called with what; threads may share it."""

    def __init__(self) -> None:
        self.calls: Counter[Any] = Counter()
        self._lock = threading.Lock()

    def note(self, *call: Any) -> None:
        with self._lock:
            self.calls[call] += 1


def about(image: Image.Image) -> str:
    """A picture in a few letters that differ where the picture does."""
    return f"{image.size} {sum(image.tobytes()[:4096]) % 9973}"


def functions() -> dict[str, tuple[tuple[Any, ...], Any, Callable[..., Any]]]:
    """Kinds and function of each tool; every tool makes something of its own."""

    def turn(number: int) -> Callable[[Image.Image], Image.Image]:
        return lambda image: ImageOps.solarize(image.rotate(90 * number), 20 * number + 10)

    def say(name: str) -> Callable[..., str]:
        return lambda *values: (
            f"{name}({', '.join(value if isinstance(value, str) else about(value) for value in values)})"
        )

    def draw(text: str) -> Image.Image:
        return Image.new("RGB", (8, 8), (len(text) % 256, sum(text.encode()) % 256, 7))

    table: dict[str, tuple[tuple[Any, ...], Any, Callable[..., Any]]] = {
        name: ((IMAGE,), IMAGE, turn(number)) for number, name in enumerate(IMAGE_TO_IMAGE, 1)
    }
    table |= {name: ((IMAGE,), TEXT, say(name)) for name in IMAGE_TO_TEXT}
    table |= {name: ((TEXT,), TEXT, say(name)) for name in TEXT_TO_TEXT}
    table["text_to_image"] = ((TEXT,), IMAGE, draw)
    table["visual_question_answering"] = ((IMAGE, TEXT), TEXT, say("vqa"))
    table["question_answering"] = ((TEXT, TEXT), TEXT, say("qa"))
    return table


def toolkit(log: Log | None = None, **settings: Any) -> Toolkit:
    """A toolkit of all fifteen tools, whose calls are logged."""

    def make(name: str, inputs: Any, output: Any, function: Callable[..., Any]) -> Tool:
        def logged(*values: Any) -> Any:
            if log is not None:
                log.note(name, *(value if isinstance(value, str) else value.tobytes() for value in values))
            return function(*values)

        return Tool(name, inputs, output, logged, version="1", pure=True, **settings)

    return Toolkit([make(name, *rest) for name, rest in functions().items()])


def picture(seed: int = 0, size: int = 16) -> Image.Image:
    data = bytes((7 * n * (seed + 1) + n // 5) % 256 for n in range(size * size * 3))
    return Image.frombytes("RGB", (size, size), data)


def plan_of(cfg: CFG, *word: str, goal: str | None = None) -> Plan:
    """The plan with this word."""

    def answer(question: Any) -> int:
        raise AssertionError("not asked")

    start = cfg if goal is None else cfg.with_start(goal)
    planner = Planner(start.with_limits(type(cfg.limits)()), answer, lookahead="off")
    walk = planner.start("test")
    while walk.question is not None:
        for number in range(1, len(walk.question.options) + 1):
            fork = walk.fork()
            fork.answer(number)
            if fork.word == word[: len(fork.word)] and (len(fork.word) > len(walk.word) or fork.done):
                walk.follow(fork)
                break
        else:
            raise AssertionError(f"{word} is no word: stuck at {walk.word}")
    assert walk.plan.word == word, walk.plan.word
    return walk.plan


def nested(plan: Plan, inputs: dict[str, Any]) -> Any:
    """What the nested calls give, by recursion: what the executor must agree with."""
    table = functions()

    def value(call: Any) -> Any:
        return table[call.name][2](*map(value, call.arguments)) if call.arguments else inputs[call.name]

    return value(plan.call)
