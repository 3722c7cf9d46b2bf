"""How often the plans of answerers that need no network have exactly the right tools; and training ``minilm-planner``.

Measured on 120 sentences that nobody trained or tuned on (``tasks/openagi/paraphrases.toml`` and
``benchmarks/paraphrases.toml``), on 60 of a writer who saw neither code nor data
(``benchmarks/paraphrases_held_out.toml``), and on the benchmark's own 185. ``--train`` trains the planner again, as
``make planner`` does, and measures that; ``--maximise plans`` trains it by the likelihood of plans under the rules,
``--maximise rewards`` by rewards of drawn plans alone. ``--describe`` trains one without sentences, on the labels and
descriptions of the tools. ``--on-top`` goes on from the shipped planner.

Run: python benchmarks/planner.py [--train [--maximise plans]] [--describe]
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from formal_llm import TaskPack
from formal_llm.errors import MissingDependency
from formal_llm.llms import LLM, resolve
from formal_llm.llms.local.encoders import EncoderLLM
from formal_llm.llms.local.planner import PlannerLLM, SentenceScorer, SimilarWords, load_encoder, shipped_head
from formal_llm.llms.local.step_head import StepHead
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.packs.training import labelled
from formal_llm.planning import Task
from formal_llm.planning.drivers.planner import Search
from formal_llm.planning.rewordings import read_rewordings
from formal_llm.rltf.head_training import HeadSettings, Maximised, describe_steps, train_head
from formal_llm.rltf.reference_tools import compute_f1

HERE = Path(__file__).parent
#: What the shipped planner is trained on, and by which its seed is chosen (see the Makefile).
SENTENCES, VALIDATION = "sentences.toml + sentences.toml + training + rewordings.toml", "sentences_validation.toml"
EPOCHS = 30
UNTRAINED = "minilm untrained, with words"


class Measured(NamedTuple):
    """For each sentence the F1 of the plan's tools, its questions and characters; and the CPU seconds of a plan."""

    f1: tuple[float, ...]
    questions: float
    seconds: float

    @property
    def exact(self) -> list[bool]:
        """Whether each plan has exactly the right tools."""
        return [value == 1 for value in self.f1]


def measure(pack: TaskPack, llm: LLM, tasks: Sequence[Task], search: Search | None = None) -> Measured:
    """Make a plan for each sentence."""
    planner = pack.planner(llm, search=search)
    inputs = {entry["terminal"] for entry in pack.data["inputs"].values()}
    planner.plan_all(tasks[:1])
    begin = process_time()
    plans = [outcome.unwrap() for outcome in planner.plan_all(tasks)]
    seconds = (process_time() - begin) / len(tasks)
    f1 = [compute_f1(tools_called_for(task), set(plan.word) - inputs) for task, plan in zip(tasks, plans, strict=True)]
    asked = statistics.fmean(plan.usage.questions + plan.usage.drafts for plan in plans)
    return Measured(tuple(f1), asked, seconds)


def compare_pairs(one: Sequence[bool], other: Sequence[bool], tasks: Sequence[Task]) -> str:
    """The difference of two exact shares on the same sentences, with its middle 95 % over resampled tasks."""
    by_task: dict[str, list[int]] = {}
    for first, second, task in zip(one, other, tasks, strict=True):
        by_task.setdefault(task.original or task.description, []).append(first - second)
    groups, rng = list(by_task.values()), random.Random(0)

    def resample() -> float:
        drawn = [value for group in rng.choices(groups, k=len(groups)) for value in group]
        return statistics.fmean(drawn)

    values = sorted(resample() for _ in range(2_000))
    mean = statistics.fmean(value for group in groups for value in group)
    return f"{mean:+.2f} [{values[50]:+.2f}, {values[-51]:+.2f}]"


def train(pack: TaskPack, given: argparse.Namespace, *, described: bool = False) -> PlannerLLM:
    """Train a planner; without sentences where ``described``."""
    planner, encoder = pack.planner("test:random"), load_encoder()
    neutral = [entry["terminal"] for entry in pack.data["inputs"].values()]
    read = describe_steps(planner, neutral) if described else labelled(pack, SENTENCES)
    held = [] if described else labelled(pack, VALIDATION)
    maximise: Maximised = "steps" if described else given.maximise
    start = StepHead.load(shipped_head()) if given.on_top else None
    settings = HeadSettings(given.epochs, range(1 if described else given.seeds), maximise, given.samples, start=start)
    curve: list[float] = []
    begin = process_time()
    trained = train_head(
        planner, encoder, read, held, settings, neutral=neutral, on_update=lambda _, value: curve.append(value)
    )
    print(
        f"{len(read)} sentences, {process_time() - begin:.0f} s of CPU: "
        f"{trained.exact} of {len(held)} exact for validation, seed {trained.seed}"
    )
    if maximise == "rewards":
        first = curve[: len(curve) // given.seeds]
        smooth = [statistics.fmean(first[max(place - 9, 0) : place + 1]) for place in range(len(first))]
        goal = smooth[0] + 0.8 * (smooth[-1] - smooth[0])
        update = next(place for place, value in enumerate(smooth, 1) if value >= goal)
        print(
            f"seed 0: mean reward {smooth[0]:.3f} at first, {smooth[-1]:.3f} after {len(first)} updates with "
            f"{given.samples} samples a sentence; four fifths of the way after {update}"
        )
    return PlannerLLM(SentenceScorer(trained.head, encoder), EncoderLLM(), SimilarWords(encoder.vectors), "trained")


def collect_answerers(pack: TaskPack, given: argparse.Namespace) -> dict[str, tuple[LLM, Search | None]]:
    """Who answers, and with which search."""
    found: dict[str, tuple[LLM, Search | None]] = {}
    if given.only:
        return {name: (resolve(name), "exact") for name in given.only}
    for name in ("test:random", "builtin", "builtin:minilm", "minilm-planner", "mpnet-planner"):
        try:
            found[name] = resolve(name), None
        except MissingDependency as error:
            print(f"left out: {name}: {error}")
    shipped = found.get("minilm-planner")
    if shipped is None:
        return found
    llm = shipped[0]
    assert isinstance(llm, PlannerLLM)
    found["minilm-planner, question by question"] = llm, "greedy"
    nothing = SentenceScorer(llm.scorer.head.without_steps(), llm.scorer.encoder)
    found[UNTRAINED] = PlannerLLM(nothing, llm.encoder, llm.likeness, UNTRAINED), None
    if given.train:
        found[f"trained here by {given.maximise}"] = train(pack, given), None
    if given.describe:
        found["trained on descriptions alone"] = train(pack, given, described=True), None
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", action="store_true", help="train the planner again")
    parser.add_argument(
        "--maximise", choices=("steps", "plans", "rewards"), default="steps", help="what training maximises"
    )
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="how often each sentence is read")
    parser.add_argument("--seeds", type=int, default=3, help="how many are trained")
    parser.add_argument("--samples", type=int, default=64, help="for rewards: the plans drawn for a sentence")
    parser.add_argument("--only", action="append", help="measure this LLM alone, by one question a plan; repeatable")
    parser.add_argument(
        "--limit", type=int, help="measure every n-th sentence, so that there are this many of each kind"
    )
    parser.add_argument("--on-top", action="store_true", help="start from the shipped head instead of from nothing")
    parser.add_argument("--describe", action="store_true", help="train one on the descriptions of the tools alone")
    given = parser.parse_args()
    console = Console(width=150)
    pack = TaskPack.load("openagi")
    neither = read_rewordings(pack, "paraphrases.toml") + read_rewordings(pack, HERE / "paraphrases.toml")
    sets: Mapping[str, Sequence[Task]] = {
        "120 sentences": neither,
        "60 held out": read_rewordings(pack, HERE / "paraphrases_held_out.toml"),
        "the benchmark's 185": pack.tasks,
    }
    if given.limit:
        sets = {name: tasks[:: -(-len(tasks) // given.limit)] for name, tasks in sets.items()}
    table = Table(title=f"plans with exactly the right tools (F1 of the tools); head: {shipped_head().name}")
    for column in ("", *sets, "paired with untrained, 120", "questions a plan", "CPU ms a plan"):
        table.add_column(column, justify="right" if column else "left")
    results = {
        name: [measure(pack, llm, tasks, search) for tasks in sets.values()]
        for name, (llm, search) in collect_answerers(pack, given).items()
    }
    base = results.get(UNTRAINED)
    for name, parts in results.items():
        cells = [f"{sum(one.exact)} ({statistics.fmean(one.f1):.3f})" for one in parts]
        paired = "" if base is None else compare_pairs(parts[0].exact, base[0].exact, neither)
        table.add_row(name, *cells, paired, f"{parts[0].questions:.1f}", f"{parts[0].seconds * 1e3:.0f}")
    console.print(table)


if __name__ == "__main__":
    main()
