"""What the tests of the experts are given: pictures, texts, columns of inputs; and when results are the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

from tests.packs.openagi.experts import tiny_experts

TOOLS = list(tiny_experts.BUILDERS)


FEELINGS = [name.lower() for name in tiny_experts.FEELINGS]


#: What the shipped settings make slow, or ask for more than a tiny model has.
FASTER = """
[tools.colorization]
instruction = "colour it"
steps = 2
side = 32
[tools.text_to_image]
steps = 2
width = 16
height = 16
[tools.detection]
threshold = 0.01
[tools.super_resolution]
batch = 4
[tools.denoising]
tile = 16
overlap = 4
[tools.captioning]
generation = { max_new_tokens = 6, num_beams = 2 }
[tools.summarization]
generation = { max_new_tokens = 8, num_beams = 2 }
[tools.translation]
generation = { max_new_tokens = 8 }
[tools.text_generation]
generation = { max_new_tokens = 8 }
[tools.question_answering]
overlap = 8
"""


TEXTS = [
    "The cat sat on the mat. It was [MASK].",
    "Who saw the lighthouse?",
    "",
    "A storm came, and the old boat went under. " * 12,
    "red",
]


def picture(seed: int, width: int = 20, height: int = 13, mode: str = "RGB") -> Image.Image:
    """A colour with some noise; opaque in part, where it can be."""
    rng = np.random.default_rng(seed)
    values = np.clip(rng.uniform(0, 255, 4) + rng.normal(0, 40, (height, width, 4)), 0, 255).astype(np.uint8)
    image = Image.fromarray(values, "RGBA") if mode == "RGBA" else Image.fromarray(values[..., :3])
    return image.convert(mode)


PICTURES = [picture(0), picture(1, 33, 40), picture(2, mode="L"), picture(3, mode="RGBA"), picture(4)]


def columns(tool: Any, count: int = 5) -> list[list[Any]]:
    """Values for each input of a tool."""
    documents = ["The lighthouse was built in 1874 by the keeper. " * 9, "Two boats.", "A red house.", "", TEXTS[3]]
    kinds = tuple(map(str, tool.inputs))
    table: dict[tuple[str, ...], list[list[Any]]] = {
        ("image",): [PICTURES], ("text",): [TEXTS], ("image", "text"): [PICTURES, TEXTS],
        ("text", "text"): [documents, ["When was it built?", "How many boats?", "who", "what?", "what went under?"]],
    }  # fmt: skip
    return [column[:count] for column in table[kinds]]


def plain(value: Any) -> Any:
    return value if isinstance(value, str) else (value.size, value.mode, value.tobytes())


def same(first: Any, second: Any) -> bool:
    """Equal texts; pictures that differ by one level of brightness at most, as sums in another order may."""
    if isinstance(first, str):
        return bool(first == second)
    arrays = [np.asarray(value, dtype=np.int16) for value in (first, second)]
    return first.mode == second.mode and first.size == second.size and bool((np.abs(arrays[0] - arrays[1]) <= 1).all())
