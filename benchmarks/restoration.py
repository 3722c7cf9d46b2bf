"""What the classical tools of OpenAGI restore: SSIM and PSNR before and after, on ten photographs of scikit-image.

Run: python benchmarks/restoration.py
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

from formal_llm.packs.openagi.data.making import Degradation
from formal_llm.packs.openagi.data.sources import load_pictures
from formal_llm.packs.openagi.scores.images import PSNR, SSIM
from formal_llm.packs.openagi.toolkits import CLASSICAL

#: For each tool: what is done to a picture first.
TRIALS = {
    "denoising": Degradation(noise=0.08),
    "deblurring": Degradation(blur=1.5),
    "super_resolution": Degradation(low_resolution=True),
    "colorization": Degradation(grayscale=True),
}
TITLES = {
    "denoising": "denoising: noise of 0.08",
    "deblurring": "deblurring: a Gaussian blur of 1.5 pixels",
    "super_resolution": "super_resolution: half the width and height; before is bicubic interpolation",
    "colorization": "colorization: no colours; a picture is no reference for itself",
}
#: The longer side of the pictures.
SIDE = 256


def scaled(image: Image.Image, side: int = SIDE) -> Image.Image:
    """A version of even width and height, the longer one ``side``."""
    factor = side / max(image.size)
    width, height = (max(round(length * factor / 2) * 2, 2) for length in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS)


def measure(tool: str, name: str) -> tuple[float, float, float, float, float]:
    """SSIM before and after, PSNR before and after, and seconds, of one tool on one picture."""
    (picture,) = (one for one in load_pictures() if one.name == name)
    good = scaled(picture.open())
    bad = TRIALS[tool].apply(good, np.random.default_rng(0))
    begin = perf_counter()
    restored = CLASSICAL[tool](bad)
    seconds = perf_counter() - begin
    ssim, psnr = SSIM(), PSNR()
    return ssim(bad, good), ssim(restored, good), psnr(bad, good), psnr(restored, good), seconds


def main() -> int:
    console = Console(width=100)
    worse = []
    for tool, title in TITLES.items():
        CLASSICAL[tool](Image.new("L", (32, 32), 128))  # what is imported at the first use takes its time once
        table = Table(title=title, title_justify="left")
        table.add_column("picture")
        for column in ("SSIM before", "after", "PSNR before, dB", "after", "seconds"):
            table.add_column(column, justify="right")
        # A gray picture loses nothing by being made gray.
        names = [one.name for one in load_pictures() if one.colours or tool != "colorization"]
        rows = [measure(tool, name) for name in names]
        mean = tuple(float(np.mean(column)) for column in zip(*rows, strict=True))
        for name, row in [*zip(names, rows, strict=True), (f"mean of {len(names)}", mean)]:
            if name.startswith("mean"):
                table.add_section()
            table.add_row(name, f"{row[0]:.3f}", f"{row[1]:.3f}", f"{row[2]:.2f}", f"{row[3]:.2f}", f"{row[4]:.2f}")
        console.print(table)
        if mean[1] <= mean[0] or mean[3] <= mean[2]:
            worse.append(tool)
    if worse:
        console.print(f"worse after than before in the mean: {', '.join(worse)}")
    return len(worse)


if __name__ == "__main__":
    sys.exit(main())
