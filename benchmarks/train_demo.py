"""The pretrained sentence encoder MiniLM learns to plan: RLTF on a CPU, offline, in a few minutes.

It is trained on the paper's 13 training tasks. The reward is how well a plan's tools agree with those that the task's
sentence calls for (F1); ``exact`` is the share of plans with just the right tools. Both are measured on the 16 test
tasks that are not trained on, with greedy plans, before and after. The recipe is ``training/minilm-demo.toml``. Other
tasks in other words tell which adapters are the best: these are kept, and the report has both curves.

Run: make train-demo   (or python benchmarks/train_demo.py [FOLDER] [--updates N] [--seed N])
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from formal_llm import authored
from formal_llm.packs.training import Ingredients, trainer_of
from formal_llm.rltf.metrics_log import read_log
from formal_llm.rltf.report import LoggedRun
from formal_llm.rltf.run_view import RunView, format_duration
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.setup import slow_threads


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default="build/train-demo", help="of the run; an earlier demo goes")
    parser.add_argument("--updates", type=int, help="fewer or more than the recipe's")
    parser.add_argument("--seed", type=int)
    told = parser.parse_args()
    changes: dict[str, Any] = {name: getattr(told, name) for name in ("updates", "seed")}
    recipe = authored.find("training", "minilm-demo", (".toml",))
    settings = Settings.read(recipe, {name: value for name, value in changes.items() if value is not None})
    folder = Path(told.folder)
    if (folder / "log.jsonl").exists():
        shutil.rmtree(folder)
    _without_loading_bars()
    begin = time.monotonic()
    parts = Ingredients.of(settings, folder)
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    trainer = trainer_of(settings, folder, views=[RunView(parts.updates, every=15)], ingredients=parts)
    console.print(f"{trainer.setup.policy}; {len(parts.tasks)} tasks to train on, {len(parts.held_out)} held out")
    if slow := slow_threads(trainer.setup):
        console.print(f"note: {slow.partition(':')[0]}: make train-demo THREADS=1", style="yellow")
    trained = trainer.run()
    before, after = plans(trainer)
    table = Table(
        title=f"{settings.model}, {trained.step} updates in {format_duration(time.monotonic() - begin)}: held-out tasks"
    )
    # A run that was interrupted was judged at an earlier update than its last one.
    judged = "after" if trained.judged == trained.step else f"after update {trained.judged}"
    for column in ("", "before", judged):
        table.add_column(column, justify="right" if column else "left")
    names = {"reward": "mean reward (F1 of the tools)", "exact": "share of plans with just the right tools"}
    for name, said in names.items():
        table.add_row(said, f"{trained.before[name]:.3f}", f"{trained.after[name]:.3f}")
    Console(width=110).print(table)
    for task, first, last in zip(parts.held_out, before, after, strict=True):
        print(f"{task.description}\n  before: {first}\n  after:  {last}")
    best = LoggedRun.from_entries(read_log(folder)).best
    if best is not None:
        print(f"best on {len(parts.validation)} sentences in other words: after update {best.step}; {folder / 'best'}")
    print(f"report, with both curves: {folder / 'report.md'}")
    if trained.reason == "interrupted":
        print(f"{trained.reason} after update {trained.step} of {parts.updates}; plans 'after' are of that update")
        return 130
    return 0 if trained.after["reward"] > trained.before["reward"] else 1


def plans(trainer: Any) -> tuple[list[str], list[str]]:
    """The greedy plans for the held-out tasks, without the adapters and with them."""
    from formal_llm.rltf.rollout import Start, rollout

    starts = [Start(number, task) for number, task in enumerate(trainer.held_out)]

    def made() -> list[str]:
        episodes = rollout(trainer.setup.planner, trainer.setup.policy, starts)
        return [str(episode.plan.call).removeprefix("image = ").removeprefix("text = ") for episode in episodes]

    with trainer.setup.policy.without_adapters():
        before = made()
    return before, made()


def _without_loading_bars() -> None:
    from transformers.utils import logging

    logging.disable_progress_bar()


if __name__ == "__main__":
    sys.exit(main())
