"""A real photograph is damaged, restored by planned tools, and judged: offline, with a report of pictures for each.

Then a question about the noisy photograph is answered. That plan has two branches that meet: one cleans the photograph
and says what is on it, the other is the question.

Run: make demo-run   (or python benchmarks/demo_run.py [FOLDER])
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

from benchmarks.restoration import TRIALS, scaled
from formal_llm import TaskPack
from formal_llm.packs.openagi.data.sources import load_pictures
from formal_llm.packs.openagi.scores.images import PSNR, SSIM
from formal_llm.packs.openagi.toolkits import classical
from formal_llm.tools import save_report

TASKS = {
    "denoising": "Given noisy image, how to return the regular image step by step?",
    "deblurring": "Given blurry image, how to return the regular image step by step?",
    "super_resolution": "Given low-resolutioned image, how to return the regular image step by step?",
}

QUESTION = "How many faces are there?"
BRANCHES = "Given noisy image and English query, how to answer the question from the object names step by step?"


def main() -> int:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/demo-run")
    pack = TaskPack.load("openagi")
    (picture,) = (one for one in load_pictures() if one.name == "astronaut")
    good = scaled(picture.open())
    ssim, psnr, worse = SSIM(), PSNR(), []
    table = Table(title=f"{picture.name}, {good.width} x {good.height}: before and after the plan")
    for column in ("task", "plan", "SSIM before", "after", "PSNR before", "after"):
        table.add_column(column, justify="left" if column in ("task", "plan") else "right")
    for tool, sentence in TASKS.items():
        bad = TRIALS[tool].apply(good, np.random.default_rng(0))
        task = pack.read(sentence, inputs=["image"])
        solution = pack.planner("builtin").solve(task, {"input_image": bad}, classical())
        restored = solution.result.output
        place = folder / tool
        place.mkdir(parents=True, exist_ok=True)
        save_report(place / "report.html", solution.result)
        for name, image in (("original", good), ("damaged", bad), ("restored", restored)):
            image.save(place / f"{name}.png")
        figures = ssim(bad, good), ssim(restored, good), psnr(bad, good), psnr(restored, good)
        table.add_row(sentence, str(solution.plan.call), *(f"{figure:.3f}" for figure in figures))
        if figures[1] <= figures[0] or figures[3] <= figures[2]:
            worse.append(tool)
    Console(width=150).print(table)
    plan, said = answered(pack, TRIALS["denoising"].apply(good, np.random.default_rng(0)), folder / "branches")
    print(f"{BRANCHES}\n  {plan}\n  {QUESTION} {said}")
    print(f"reports: {', '.join(str(folder / name / 'report.html') for name in (*TASKS, 'branches'))}")
    return 1 if worse or said != "1" else 0


def answered(pack: TaskPack, noisy: Image.Image, place: Path) -> tuple[str, str]:
    """The plan that answers the question about a picture, as nested calls, and the answer; its report is written."""
    task = pack.read(BRANCHES, inputs=["image", "text"], goal="text")
    inputs = {"input_image": noisy, "input_text": QUESTION}
    solution = pack.planner("builtin").solve(task, inputs, classical())
    place.mkdir(parents=True, exist_ok=True)
    about = {"LLM": "builtin", "questions": str(solution.usage.questions), "toolkit": "classical"}
    save_report(place / "report.html", solution.result, about=about)
    return str(solution.plan.call), solution.result.output


if __name__ == "__main__":
    sys.exit(main())
