"""Does RLTF learn? Three kinds of models over several seeds, and how many updates ``exact`` saves.

The models are trained on the paper's 13 training tasks and judged, with greedy plans, by the 16 test tasks that are not
trained on. The reward is the agreement (F1) with the tools that a task calls for; ``exact`` is the share of plans with
just the right tools.

- ``minilm``: the pretrained sentence encoder MiniLM, with the recipe ``minilm-demo``.
- ``causal``, ``t5``: a tiny LLaMA-like decoder and a tiny T5-like encoder-decoder with random weights, built on the
  spot, with the recipe ``tiny``: first a warm start, then RLTF. Nobody taught them to read, so what they carry over to
  other tasks is little; the table tells what the warm start did and what RLTF added.

A seed stands for the adapters' first weights, the draws, and the weights of the tiny models.

The second table compares estimators: ``reinforce`` with one sample of each task in an update (the paper's) and
``exact``, with the same first weights, each with the learning rate of ``--rates`` with which it is fastest. OpenAGI's
tasks have too many plans to be listed, so ``exact`` falls back to ``stratified`` on them. To see the real one as well,
four of the image-to-image tasks are trained on with the four tools that mend images, 64 plans each. Counted are the
updates until the mean reward of the plans in an update, over a window of five, has made four fifths of the way from
where it began to 1, the best there is.

Run: python benchmarks/learning.py                                (some hours on two cores; OMP_NUM_THREADS=1 or 2)
     python benchmarks/learning.py --quick                        (two seeds, tiny models, few updates)
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import few_tools
from formal_llm import authored
from formal_llm.llms.local.encoders import EncoderLLM
from formal_llm.llms.local.llm import LocalLLM
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.packs.training import Ingredients
from formal_llm.rltf.metrics_log import LogEntry, read_log
from formal_llm.rltf.policy import LoRA, Policy
from formal_llm.rltf.run_view import format_duration
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.trainer import Trainer
from tests import tiny_models

#: What each model has besides its recipe.
RECIPES: dict[str, tuple[str, dict[str, Any]]] = {
    "minilm": ("minilm-demo", {}),
    "causal": ("tiny", {"targets": ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")}),
    "t5": ("tiny", {
        "targets": ("q", "k", "v", "o", "wi", "wo"), "warm_start": 50, "warm_plans": 4, "warm_learning_rate": 1e-2,
        "learning_rate": 7e-4,
    }),
}  # fmt: skip
WINDOW = 5


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Attributes:
        before, warm, after: held-out mean reward before, after the warm start (nan without one), at the end.
        exact_before, exact_after: held-out share of plans with just the right tools.
        rewards: the mean reward of each update.
        seconds: that it took.
    """

    before: float
    warm: float
    after: float
    exact_before: float
    exact_after: float
    rewards: tuple[float, ...]
    seconds: float


def model(name: str, seed: int) -> LocalLLM:
    """The model; tiny ones are made anew for each seed."""
    if name == "minilm":
        return EncoderLLM()
    spoken = tiny_models.tokenizer(end_after=name == "t5")
    build = tiny_models.seq2seq if name == "t5" else tiny_models.causal
    return TransformersLLM.of(build(vocabulary=len(spoken), width=64, seed=seed), spoken, name=f"{name} {seed}")


def run(name: str, settings: Settings, *, few: bool = False) -> Outcome:
    """Train one model; with few tools or all."""
    parts = Ingredients.of(settings)
    planner = few_tools.planner(parts.pack) if few else parts.planner
    lora = LoRA(settings.rank, settings.alpha, settings.dropout, settings.targets)
    policy = Policy(model(name, settings.seed), lora, temperature=settings.temperature, seed=settings.seed)
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        Trainer(
            planner, policy, parts.reward, parts.tasks, folder, held_out=parts.held_out, settings=settings,
            metrics=parts.metrics, references=parts.references,
        ).run()  # fmt: skip
        entries = read_log(folder)
    return outcome(entries, settings, time.monotonic() - begin)


def outcome(entries: Sequence[LogEntry], settings: Settings, seconds: float) -> Outcome:
    judged = {entry.step: entry.figures for entry in entries if entry.kind == "evaluation"}
    updates = [entry for entry in entries if entry.kind == "update" and entry.step > settings.warm_start]
    first, last = judged[min(judged)], judged[max(judged)]
    warm = judged[settings.warm_start]["reward"] if settings.warm_start in judged and settings.warm_start else math.nan
    rewards = tuple(entry.figures["reward"] for entry in updates)
    return Outcome(first["reward"], warm, last["reward"], first["exact"], last["exact"], rewards, seconds)


# -- learning ----------------------------------------------------------------------------------------------------------


def learning(console: Console, names: Sequence[str], seeds: int, quick: bool) -> bool:
    """The first table; whether every model is better after RLTF than before it."""
    table = Table(title=f"Held-out tasks: mean ± standard deviation over {seeds} seeds")
    for column in ("model", "reward before", "after warm start", "after RLTF", "exact before", "exact after", "a run"):
        table.add_column(column, justify="left" if column == "model" else "right")
    better = True
    for name in names:
        recipe, more = RECIPES[name]
        less = {"updates": 6, "evaluate_every": 0} if quick else {"evaluate_every": 0}
        found = []
        for seed in range(seeds):
            path = authored.find("training", recipe, (".toml",))
            one = run(name, Settings.read(path, {**more, **less, "seed": seed, "checkpoint_every": 0}))
            found.append(one)
            told = f"{one.before:.3f} -> {one.warm:.3f} -> {one.after:.3f}, exact {one.exact_after:.3f}"
            print(f"{name} seed {seed}: {told}, {format_duration(one.seconds)}", file=sys.stderr, flush=True)
        table.add_row(
            name,
            *(spread([getattr(one, what) for one in found]) for what in ("before", "warm", "after")),
            *(spread([getattr(one, what) for one in found]) for what in ("exact_before", "exact_after")),
            format_duration(statistics.fmean(one.seconds for one in found)),
        )
        began = [one.before if math.isnan(one.warm) else one.warm for one in found]
        better &= statistics.fmean(one.after for one in found) > statistics.fmean(began)
    console.print(table)
    return better


def spread(values: Sequence[float]) -> str:
    if any(map(math.isnan, values)):
        return "-"
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.3f} ± {deviation:.3f}"


# -- estimators --------------------------------------------------------------------------------------------------------


def estimators(
    console: Console, name: str, seeds: int, updates: int, room_names: Sequence[str], rates: Sequence[float]
) -> None:
    """The second table."""
    table = Table(title=f"Updates to four fifths of the way to 1 ({name}, {seeds} seeds, median and range)")
    for column in ("tasks", "estimator", "rate", "updates", "of reinforce's", "reward at the end"):
        table.add_column(column, justify="left" if column in ("tasks", "estimator") else "right")
    common: dict[str, Any] = {
        **RECIPES[name][1], "samples": 1, "schedule": "constant", "warmup": 0, "known_plans": 16,
        "checkpoint_every": 0, "evaluate_every": 0, "updates": updates,
    }  # fmt: skip
    rooms: dict[str, dict[str, Any]] = {
        "exact": {"train": few_tools.TASKS, "held_out": "13", "tasks_per_update": 4, "warm_start": 0},
        "stratified": {"train": "training", "held_out": "2", "tasks_per_update": 13},
    }
    path = authored.find("training", RECIPES[name][0], (".toml",))
    titles = {
        "exact": "image to image, 64 plans each: exact", "stratified": "training tasks: exact falls back to stratified",
    }  # fmt: skip
    for room in room_names:
        best: dict[str, tuple[float, float, list[float], list[float]]] = {}
        for advantage in ("reinforce", "exact"):
            for rate in rates:
                counts, ends = [], []
                for seed in range(seeds):
                    changes = {**common, **rooms[room], "advantage": advantage, "seed": seed, "learning_rate": rate}
                    curve = windows(run(name, Settings.read(path, changes), few=room == "exact").rewards)
                    goal = curve[0] + 0.8 * (1 - curve[0])
                    counts.append(next((number for number, value in enumerate(curve, 1) if value >= goal), math.inf))
                    ends.append(curve[-1])
                    told = f"{room}, {advantage} at {rate:g}, seed {seed}: {counts[-1]:g}, ends at {ends[-1]:.3f}"
                    print(told, file=sys.stderr, flush=True)
                found = (statistics.median(counts), rate, counts, ends)
                if advantage not in best or found[0] < best[advantage][0]:
                    best[advantage] = found
        base = best["reinforce"][0]
        for advantage, (middle, rate, counts, ends) in best.items():
            table.add_row(
                titles[room], advantage, f"{rate:g}", f"{middle:g} ({min(counts):g} to {max(counts):g})",
                f"{middle / base:.2f}", spread(ends),
            )  # fmt: skip
    console.print(table)


def windows(curve: Sequence[float]) -> list[float]:
    """The mean over the last few updates, at each of them."""
    return [statistics.fmean(curve[max(0, number - WINDOW) : number]) for number in range(1, len(curve) + 1)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="minilm,causal,t5")
    parser.add_argument("--estimator-model", default="minilm", choices=list(RECIPES))
    parser.add_argument("--rooms", default="exact,stratified", help="of the second table")
    parser.add_argument("--rates", default="1e-3,3e-3", help="learning rates of the second table")
    parser.add_argument("--updates", type=int, default=40, help="of each run of the second table")
    parser.add_argument("--part", choices=("learning", "estimators", "both"), default="both")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="two seeds of the tiny models, few updates")
    told = parser.parse_args()
    names = [name for name in told.models.split(",") if not (told.quick and name == "minilm")]
    seeds = min(told.seeds, 2) if told.quick else told.seeds
    from transformers.utils import logging

    logging.disable_progress_bar()
    console = Console(width=150)
    fine = True
    if told.part != "estimators":
        fine = learning(console, names, seeds, told.quick)
    if told.part != "learning":
        name, updates = ("causal", 15) if told.quick else (told.estimator_model, told.updates)
        rates = [float(rate) for rate in told.rates.split(",")]
        estimators(console, name, seeds, updates, told.rooms.split(","), rates)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
