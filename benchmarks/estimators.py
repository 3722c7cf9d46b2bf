"""How many updates each estimator of the policy gradient takes on the plan tree of a real task.

The task is one of OpenAGI's. Its language is made small enough to be listed by allowing nine of the tools, so that the
expected reward and the optimum are known exactly. The policy is a table: a logit for each option of each question, all
0 at first. Counted are the updates until the expected reward has made 80 % of its way from the first policy's to the
best plan's.

An update is a step of plain gradient ascent, or one of Adam (the trainer's optimizer). Every estimator gets the
learning rate of one grid at which nine of ten runs arrive soonest, found with other seeds than those that are shown; a
second table has one rate for all.

The last table needs no rate: how far the gradient of one update is from the exact one, at policies on the way. It is
the mean squared distance divided by the squared length of the exact gradient, so 0 is exact, and at 4 the noise is
twice as long as what it hides. ``grpo`` estimates something else and is left out.

Run: python benchmarks/estimators.py
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from formal_llm import Limits, TaskPack
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.rltf.advantages import ADVANTAGES, KnownPlans, estimate
from formal_llm.rltf.baselines import Baseline
from formal_llm.rltf.reference_tools import compute_f1, tools_of
from formal_llm.rltf.tabular import TabularPolicy

#: Denoising, deblurring, captioning and translation are called for; the other tools are beside the point.
TASK = "Given noisy blurry image, how to return the caption in German step by step?"
TOOLS = (
    *("denoising", "deblurring", "colorization", "super_resolution"),
    *("captioning", "classification", "detection", "translation", "summarization"),
)
#: The learning rates that are tried, for each way to make a step.
RATES = {"plain ascent": [2.0**power for power in range(-2, 11)], "Adam": [2.0**power for power in range(-7, 2)]}
ORDER = ("plain", "reinforce", "grpo", "grpo_unscaled", "rloo", "stratified", "exact")


@dataclass(frozen=True)
class Setting:
    """What all runs have in common.

    Attributes:
        tree: the plans.
        rewards: of each plan.
        samples: for an update.
        cap: the most updates of a run.
        start: the expected reward of the first policy.
        goal: the expected reward at which a run ends.
    """

    tree: TabularPolicy
    rewards: Any
    samples: int
    cap: int
    start: float
    goal: float


@dataclass(frozen=True)
class Run:
    """What a run took: updates until the goal (infinite if not reached), samples, different plans executed."""

    updates: float
    drawn: int
    executed: int


class Ascent:
    """Steps of plain gradient ascent, or of Adam (Kingma and Ba 2015) with its usual settings."""

    def __init__(self, way: str, rate: float, size: int) -> None:
        self.adam = way == "Adam"
        self.rate = rate
        self.mean, self.square = np.zeros(size), np.zeros(size)
        self.count = 0

    def step(self, gradient: Any) -> Any:
        """What to add to the logits."""
        if not self.adam:
            return self.rate * gradient
        self.count += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        mean, square = self.mean / (1 - 0.9**self.count), self.square / (1 - 0.999**self.count)
        return self.rate * mean / (np.sqrt(square) + 1e-8)


def greedy(tree: TabularPolicy) -> int:
    """The plan of the first policy's most probable options, the first of equal ones."""
    return min(range(len(tree.episodes)), key=lambda number: tree.episodes[number].path)


def run(setting: Setting, name: str, way: str, rate: float, seed: int) -> Run:
    """Updates with one estimator until the goal is reached."""
    tree, rewards, needs = setting.tree, setting.rewards, ADVANTAGES[name]
    rng = np.random.default_rng(seed)
    logits, ascent = np.zeros(tree.size), Ascent(way, rate, tree.size)
    first = greedy(tree)
    baseline = Baseline.start(float(rewards[first]))
    known = list(range(len(rewards))) if needs.needs_all else [first] if needs.needs_known else []
    executed, drawn = {first, *known}, 0
    for update in range(setting.cap + 1):
        likely = tree.compute_probabilities(logits)
        if likely @ rewards >= setting.goal:
            return Run(update, drawn, len(executed))
        sample: list[int] = []
        if needs.needs_samples:
            sample = rng.choice(len(rewards), size=setting.samples, p=likely / likely.sum()).tolist()
        before = set(known)
        repeats = tuple(plan in before for plan in sample)
        told = KnownPlans(tuple(likely[known].tolist()), tuple(rewards[known].tolist()), repeats)
        gained = tuple(rewards[sample].tolist()) if sample else ()
        found = estimate(name, rewards=gained, baseline=baseline, known=told)
        weights = np.zeros(len(rewards))
        np.add.at(weights, np.array(sample, dtype=int), found.sampled)
        if needs.needs_known:
            weights[known] += found.known
            known += [plan for plan in dict.fromkeys(sample) if plan not in before]
        baseline = baseline.updated(gained)
        logits += ascent.step(tree.compute_gradient(logits, weights))
        drawn += len(sample)
        executed.update(sample)
    return Run(math.inf, drawn, len(executed))


def seeds_of(name: str, seeds: Sequence[int]) -> Sequence[int]:
    """Without samples there is no chance, and one run says all."""
    return seeds if ADVANTAGES[name].needs_samples else seeds[:1]


def best_rate(setting: Setting, name: str, way: str, seeds: Sequence[int]) -> float:
    """The rate at which nine runs of ten arrive soonest; where no rate gets that many there, the best mean (capped)."""
    some = seeds_of(name, seeds)
    place = math.ceil(0.9 * len(some)) - 1
    best, chosen = (math.inf, math.inf), RATES[way][0]
    for rate in RATES[way]:
        updates: list[float] = []
        for seed in some:
            updates.append(run(setting, name, way, rate, seed).updates)
            if sum(value > best[0] for value in updates) > len(some) - 1 - place:
                break  # it cannot be better any more
        else:
            mean = statistics.fmean(min(value, setting.cap) for value in updates)
            if (found := (sorted(updates)[place], mean)) < best:
                best, chosen = found, rate
    return chosen


def report(
    console: Console, setting: Setting, title: str, way: str, rate_of: Mapping[str, float], seeds: Sequence[int]
) -> None:
    """Run all seeds; print a table, and what it says of exact and reinforce."""
    table = Table(title=title)
    for column in ("estimator", "rate", "updates", "quartiles", "range", "arrived", "samples", "plans executed"):
        table.add_column(column, justify="left" if column == "estimator" else "right")
    medians: dict[str, float] = {}

    def shown(value: float) -> str:
        return f"> {setting.cap}" if value == math.inf else f"{value:g}"

    for name in ORDER:
        runs = [run(setting, name, way, rate_of[name], seed) for seed in seeds_of(name, seeds)]
        updates = sorted(one.updates for one in runs)
        medians[name] = statistics.median(updates)
        quarter = len(updates) // 4
        table.add_row(
            name,
            f"{rate_of[name]:g}",
            shown(medians[name]),
            f"{shown(updates[quarter])} to {shown(updates[-1 - quarter])}" if len(updates) > 1 else "no chance",
            f"{shown(updates[0])} to {shown(updates[-1])}" if len(updates) > 1 else "in it",
            f"{sum(value < math.inf for value in updates)} of {len(updates)}",
            f"{statistics.median(one.drawn for one in runs):g}",
            f"{statistics.median(one.executed for one in runs):g}",
        )
    console.print(table)
    few, many = medians["exact"], medians["reinforce"]
    console.print(
        f"exact needs at most half the updates of reinforce: {'yes' if few <= many / 2 else 'no'} "
        f"({shown(few)} and {shown(many)})\n"
    )


def noise(console: Console, setting: Setting, groups: int) -> None:
    """Go up the exact gradient, with samples drawn on the way; print each estimator's noise at some policies."""
    tree, rewards, count = setting.tree, setting.rewards, len(setting.rewards)
    rng = np.random.default_rng(0)
    logits, known = np.zeros(tree.size), [greedy(tree)]
    baseline = Baseline.start(float(rewards[known[0]]))
    names = [name for name in ORDER if ADVANTAGES[name].unbiased]
    table = Table(title=f"Noise of one update, {setting.samples} samples ({groups} updates for each figure)")
    for column in ("expected reward", "plans known", "their probability", *names):
        table.add_column(column, justify="right")
    for part in (0.0, 0.2, 0.4, 0.6, 0.8):
        level = setting.start + part / 0.8 * (setting.goal - setting.start)
        while (likely := tree.compute_probabilities(logits)) @ rewards < level - 1e-9:
            sample = rng.choice(count, size=setting.samples, p=likely / likely.sum()).tolist()
            baseline = baseline.updated(rewards[sample].tolist())
            known += [plan for plan in dict.fromkeys(sample) if plan not in known]
            logits += 2 * tree.exact_gradient(logits, rewards)
        gradient = tree.exact_gradient(logits, rewards)
        missed = dict.fromkeys(names, 0.0)
        for _ in range(groups):
            sample = rng.choice(count, size=setting.samples, p=likely / likely.sum()).tolist()
            for name in names:
                needs = ADVANTAGES[name]
                listed = list(range(count)) if needs.needs_all else known
                repeats = tuple(plan in listed for plan in sample)
                told = KnownPlans(tuple(likely[listed].tolist()), tuple(rewards[listed].tolist()), repeats)
                found = estimate(name, rewards=rewards[sample].tolist(), baseline=baseline, known=told)
                weights = np.zeros(count)
                np.add.at(weights, sample, found.sampled)
                if needs.needs_known:
                    weights[listed] += found.known
                missed[name] += float(((tree.compute_gradient(logits, weights) - gradient) ** 2).sum())
        scale = groups * float((gradient**2).sum())
        figures = [f"{value / scale:.2f}" for value in missed.values()]
        table.add_row(f"{likely @ rewards:.2f}", str(len(known)), f"{likely[known].sum():.0%}", *figures)
    console.print(table)


def all_plans(tools: Sequence[str]) -> TabularPolicy:
    """All plans of the task with these tools."""
    pack = TaskPack.load("openagi")
    kept = {*tools, "input_image"}
    limits = Limits(at_most={name: int(name in kept) for name in pack.cfg.terminals})
    return TabularPolicy.from_task(pack.planner(limits=limits), pack.read(TASK), 10_000)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=20, help="runs that are shown, for each estimator")
    options.add_argument("--tuning-seeds", type=int, default=20, help="other runs, by which rates are chosen")
    options.add_argument("--samples", type=int, default=8, help="samples for an update")
    options.add_argument("--cap", type=int, default=500, help="the most updates of a run")
    options.add_argument("--tools", default=",".join(TOOLS), help="those that a plan may use")
    given = options.parse_args()
    tree = all_plans(given.tools.split(","))
    task = tree.episodes[0].task
    wanted = tools_called_for(task)
    rewards = np.array([compute_f1(wanted, tools_of(episode.plan)) for episode in tree.episodes])
    start, top = tree.expected_reward(np.zeros(tree.size), rewards), float(rewards.max())
    setting = Setting(tree, rewards, given.samples, given.cap, start, start + 0.8 * (top - start))
    console = Console(width=130)
    console.print(
        f"{task.description}\nReward: the F1 agreement with the tools called for: {', '.join(sorted(wanted))}\n"
        f"{len(rewards):,} plans, {int((rewards == top).sum())} of them best; {len(tree.questions):,} questions, "
        f"{tree.size:,} logits\nExpected reward: {start:.3f} at first, {top:.3f} at best, goal {setting.goal:.3f}\n"
    )
    tuning, seeds = range(1_000, 1_000 + given.tuning_seeds), range(given.seeds)
    runs = f"{given.samples} samples for an update, {given.seeds} seeds"
    for way in RATES:
        own = {name: best_rate(setting, name, way, tuning) for name in ORDER}
        same = dict.fromkeys(ORDER, own["reinforce"])
        report(console, setting, f"{way}: each at its own best rate ({runs})", way, own, seeds)
        report(console, setting, f"{way}: all at the rate that is best for reinforce ({runs})", way, same, seeds)
    noise(console, setting, 300)


if __name__ == "__main__":
    main()
