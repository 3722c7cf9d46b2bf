"""What executing many plans together saves: a load as in training, 2,000 plans of one task group on one input.

Run: python benchmarks/executor.py [--plans N] [--size PIXELS] [--group NAME]

The plans are random plans of the OpenAGI tasks of one group. The tools do real work on an image with Pillow (filters,
rotations, text from pixels), some milliseconds each. ``nested calls`` evaluates every plan by plain recursion, as a
script would. The executor shares equal sub-plans; with a cache on disk also between runs: the second run executes none.
Calls in which the hit rate is counted are those that the executor had to look at; equal sub-plans within 256 plans
never come up twice.
"""

from __future__ import annotations

import argparse
import platform
import random
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from PIL import Image, ImageChops, ImageFilter, ImageOps
from rich.console import Console
from rich.table import Table

from formal_llm import Plan, Planner, RandomLLM, TaskPack
from formal_llm.planning.plans.tree import Call
from formal_llm.tools import IMAGE, TEXT, Executor, Tool, Toolkit
from formal_llm.tools.kinds import Value
from formal_llm.tools.store import step_key

FILTERS = {
    "colorization": lambda image: ImageChops.offset(image.filter(ImageFilter.GaussianBlur(4)), 3),
    "super_resolution": lambda image: ImageOps.autocontrast(image.filter(ImageFilter.UnsharpMask(3))),
    "denoising": lambda image: image.filter(ImageFilter.MedianFilter(5)),
    "deblurring": lambda image: ImageOps.solarize(image.filter(ImageFilter.SHARPEN).rotate(90), 200),
}


def say(name: str) -> Callable[..., str]:
    def said(*values: Any) -> str:
        told = []
        for value in values:
            if isinstance(value, str):
                told.append(value[:80])
            else:
                smooth = value.filter(ImageFilter.GaussianBlur(6)).resize((4, 4)).convert("L")
                told.append("".join(chr(97 + level // 16) for level in smooth.tobytes()))
        return f"{name}: {', '.join(told)}"

    return said


def draw(text: str) -> Image.Image:
    image = Image.new("RGB", (96, 96))
    image.putdata([tuple((n * 7 + len(text) + sum(text.encode())) % 256 for _ in "rgb") for n in range(96 * 96)])
    return image.filter(ImageFilter.GaussianBlur(3))


def toolkit() -> Toolkit:
    tools = [Tool(name, (IMAGE,), IMAGE, function, version="1") for name, function in FILTERS.items()]
    tools += [
        Tool(name, (IMAGE,), TEXT, say(name), version="1") for name in ("classification", "detection", "captioning")
    ]
    tools += [
        Tool(name, (TEXT,), TEXT, say(name), version="1")
        for name in ("summarization", "text_generation", "translation", "fill_mask", "sentiment")
    ]
    tools.append(Tool("text_to_image", (TEXT,), IMAGE, draw, version="1"))
    tools.append(Tool("visual_question_answering", (IMAGE, TEXT), TEXT, say("vqa"), version="1"))
    tools.append(Tool("question_answering", (TEXT, TEXT), TEXT, say("qa"), version="1"))
    return Toolkit(tools)


def nested(kit: Toolkit, plan: Plan, inputs: dict[str, Any]) -> Any:
    def value(call: Call) -> Any:
        return kit[call.name].function(*map(value, call.arguments)) if call.arguments else inputs[call.name]

    assert plan.call is not None
    return value(plan.call)


def key_of(output: Any) -> str:
    return (TEXT if isinstance(output, str) else IMAGE).key(output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plans", type=int, default=2000)
    parser.add_argument("--size", type=int, default=160, help="width and height of the input image")
    parser.add_argument("--group", default="Task X")
    arguments = parser.parse_args()
    pack = TaskPack.load("openagi")
    tasks = [task for task in pack.tasks if task.group == arguments.group]
    planner, rng = Planner(pack.cfg, RandomLLM(0)), random.Random(0)
    plans = [planner.plan(rng.choice(tasks)) for _ in range(arguments.plans)]
    side = arguments.size
    photo = Image.effect_mandelbrot((side, side), (-2.0, -1.5, 1.0, 1.5), 60).convert("RGB")
    inputs = {"input_image": photo, "input_text": "What is to be seen in the picture?"}
    kit = toolkit()
    calls = [str(call).split(" = ")[-1] for plan in plans for call in plan.call.walk() if call.arguments]  # type: ignore[union-attr]

    begin = perf_counter()
    expected = [key_of(nested(kit, plan, inputs)) for plan in plans]
    plain = perf_counter() - begin
    rows = [("nested calls", plain, len(calls), 0)]

    def measure(name: str, executor: Executor) -> None:
        begin = perf_counter()
        results = executor.run_many(plans, inputs)
        seconds = perf_counter() - begin
        assert [result.value.key for result in results if result.value is not None] == expected
        rows.append((name, seconds, executor.stats.executed, executor.stats.from_memory + executor.stats.from_disk))

    with tempfile.TemporaryDirectory() as folder:
        measure("executor, in memory", Executor(kit))
        measure("executor, cache on disk, first run", Executor(kit, cache=Path(folder)))
        measure("executor, cache on disk, second run", Executor(kit, cache=Path(folder)))
        measure("executor, one megabyte of memory, cache on disk", Executor(kit, cache=Path(folder), memory=1_000_000))

    console = Console(width=118)
    title = (
        f"{len(plans):,} plans of {arguments.group}, {len(calls):,} calls, {len(set(calls)):,} distinct sub-plans, "
        f"image of {side} x {side}; Python {platform.python_version()}"
    )
    table = Table(title=title)
    for column in ("", "seconds", "tools executed", "hit rate", "calls saved", "speed-up"):
        table.add_column(column, justify="right" if column else "left")
    for name, seconds, executed, found in rows:
        looked = executed + found
        table.add_row(
            name,
            f"{seconds:.2f}",
            f"{executed:,}",
            "" if name == "nested calls" else f"{found / looked:.0%}",
            f"{1 - executed / len(calls):.0%}",
            f"{plain / seconds:.1f}",
        )
    console.print(table)
    begin = perf_counter()
    value = Value(IMAGE, photo)
    for _ in range(1000):
        step_key(kit["denoising"], [value])
    console.print(f"key of a call: {(perf_counter() - begin) * 1000:.1f} us; of the image: once")


if __name__ == "__main__":
    main()
