"""What an update of training saves by reading nothing twice: plans are made, and their gradient is computed.

The plans are of OpenAGI training tasks, from decoders with random weights, the worst case: hardly a question comes
twice. An update is made in three ways, in turn, on one thread, and the best time of each counts:

- ``rows``: the gradient reads the questions again, in packed rows alone;
- ``trunk``: before them it reads once what questions share (``formal_llm/llms/local/prefix_cache.py``);
- ``graphs``: the graphs of what the plans were made with are kept (``formal_llm/llms/local/kept_graphs.py``).

Told are the tokens that were read, the CPU time, and the memory of the graphs. All three come to the same gradient:
how far they are apart is told too, as a part of its norm.

Run: python benchmarks/gradient_pass.py [--sizes 64x2,256x4,512x4]
     OMP_NUM_THREADS=1 python benchmarks/gradient_pass.py --llm smollm2 --tasks 2 --samples 3 --rounds 1
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from benchmarks import tiny_decoder
from formal_llm import Planner, TaskPack
from formal_llm.llms.local import causal
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.rltf.objective import Objective
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.rollout import Start, rollout

if TYPE_CHECKING:
    import torch

#: How many plans of each task, by the width of the model: a wide one takes long.
SAMPLES = {64: 8, 256: 3}
#: For each way what a trunk has to save, and the memory for graphs.
WAYS = {"rows": (0.0, 0), "trunk": (causal._WORTH, 0), "graphs": (causal._WORTH, 16 << 30)}


@dataclass(frozen=True)
class Update:
    """What one update came to: the questions, the tokens read, CPU seconds, bytes of graphs, and the gradient."""

    questions: int
    tokens: int
    seconds: float
    bytes: int
    gradient: torch.Tensor


def update(planner: Planner, policy: Policy, starts: list[Start], way: str) -> Update:
    """Make plans, and the gradient of their sum with weights that differ."""
    import torch

    scorer = policy.scorer
    assert isinstance(scorer, causal.CausalScorer)
    policy.changed()
    for parameter in policy.parameters:
        parameter.grad = None
    worth, most = WAYS[way]
    causal._WORTH, before = worth, causal._WORTH
    begin, read = time.process_time(), scorer.tokens_read
    try:
        with policy.keeping_graphs(most):
            episodes = rollout(planner, policy, starts)
            objective = Objective(policy)
            objective.add_episodes(episodes, [number % 5 - 2.0 for number in range(len(episodes))])
            kept = 0 if scorer.graphs is None else scorer.graphs.graph_bytes
            with policy.training():
                figures = objective.backpropagate_loss()
    finally:
        causal._WORTH = before
    gradient = torch.cat([p.grad.flatten() for p in policy.parameters if p.grad is not None])
    taken = time.process_time() - begin
    return Update(figures.questions, scorer.tokens_read - read, taken, kept, gradient)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="64x2,256x4,512x4", help="models: width x layers")
    parser.add_argument("--llm", default="", help="a model instead, such as smollm2")
    parser.add_argument("--tasks", type=int, default=6, help="how many tasks plans are made for")
    parser.add_argument("--samples", type=int, help="plans of each task")
    parser.add_argument("--rounds", type=int, default=3, help="of which the best counts")
    told = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    tiny_decoder.quiet()
    pack = TaskPack.load("openagi")
    planner, tasks = pack.planner("test:random"), pack.split("training")[: told.tasks]
    console = Console(width=120)
    console.print(tiny_decoder.machine(), highlight=False)
    table = Table(title="One update: plans and their gradient")
    columns = ("model", "way", "questions", "tokens read", "CPU s", "faster by", "graphs, GB", "gradient off by")
    for place, column in enumerate(columns):
        table.add_column(column, justify="left" if place < 2 else "right")
    for size in [told.llm] if told.llm else told.sizes.split(","):
        if told.llm:
            policy, many = Policy(told.llm), told.samples or 3
            planner = pack.planner(policy.llm)
        else:
            width, layers = map(int, size.split("x"))
            tokenizer = tiny_decoder.tokenizer(tiny_decoder.questions(planner, pack.tasks))
            policy = Policy(TransformersLLM.of(tiny_decoder.decoder(width, layers), tokenizer, name=size))
            many = told.samples or SAMPLES.get(width, 2)
        starts = [Start(number, task, f"{number} {n}") for number, task in enumerate(tasks) for n in range(many)]
        found: dict[str, list[Update]] = {way: [] for way in WAYS}
        for _ in range(told.rounds):
            for way, updates in found.items():
                updates.append(update(planner, policy, starts, way))
        best = {way: min(updates, key=lambda one: one.seconds) for way, updates in found.items()}
        slow = best["rows"]
        for way, one in best.items():
            off = float((one.gradient - slow.gradient).norm() / slow.gradient.norm())
            table.add_row(
                size, way, f"{one.questions:,}", f"{one.tokens:,}", f"{one.seconds:.2f}",
                f"{slow.seconds / one.seconds:.2f}", f"{one.bytes / 1e9:.2f}", f"{off:.0e}",
            )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    main()
