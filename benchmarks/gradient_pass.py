"""What it saves to read once, in a gradient pass, what questions share (``formal_llm/llms/local/prefix_cache.py``).

The questions are those of plans drawn for six OpenAGI training tasks from a decoder with random weights, the worst
case: hardly a question comes twice. One update's gradient is computed with packed rows alone, and with a trunk before
them, in turn, on one thread; the best of three times counts. Told are the tokens that were read and the CPU time.

Run: python benchmarks/gradient_pass.py [--sizes 64x2,256x4,512x4]
"""

from __future__ import annotations

import argparse
import time

from rich.console import Console
from rich.table import Table

from benchmarks import tiny_decoder
from benchmarks.gpu import counted
from formal_llm import TaskPack
from formal_llm.llms.local import causal
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.rltf.episode import Episode
from formal_llm.rltf.objective import Objective
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.rollout import Start, rollout

#: How many plans of each task, by the width of the model: a wide one takes long.
SAMPLES = {64: 8, 256: 3}


def measured(policy: Policy, episodes: list[Episode], worth: float) -> tuple[int, float]:
    """The tokens that a gradient pass read, and its CPU seconds; without a trunk where ``worth`` is 0."""
    objective = Objective(policy)
    objective.add(episodes, [1.0] * len(episodes))
    causal._WORTH, before = worth, causal._WORTH
    try:
        with counted() as (_, read):
            begin = time.process_time()
            objective.backward()
            return read.tokens, time.process_time() - begin
    finally:
        causal._WORTH = before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="64x2,256x4,512x4", help="models: width x layers")
    told = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    tiny_decoder.quiet()
    pack = TaskPack.load("openagi")
    planner, tasks = pack.planner("test:random"), pack.split("training")[:6]
    tokenizer = tiny_decoder.tokenizer(tiny_decoder.questions(planner, pack.tasks))
    console = Console(width=120)
    console.print(tiny_decoder.machine(), highlight=False)
    table = Table(title="One gradient pass")
    for column in ("model", "questions", "tokens, rows", "with trunk", "CPU s, rows", "with trunk", "faster by"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for size in told.sizes.split(","):
        width, layers = map(int, size.split("x"))
        policy = Policy(TransformersLLM.of(tiny_decoder.decoder(width, layers), tokenizer, name=size))
        many = SAMPLES.get(width, 2)
        starts = [Start(number, task, f"{number} {n}") for number, task in enumerate(tasks) for n in range(many)]
        episodes = rollout(planner, policy, starts)
        questions = len({policy.scorer.key(one.question) for episode in episodes for one in episode.decisions})
        found: dict[float, list[tuple[int, float]]] = {0.0: [], causal._WORTH: []}
        for _ in range(3):
            for worth, times in found.items():
                times.append(measured(policy, episodes, worth))
        (rows, slow), (trunk, fast) = ((times[0][0], min(t for _, t in times)) for times in found.values())
        table.add_row(
            size, f"{questions:,}", f"{rows:,}", f"{trunk:,}", f"{slow:.2f}", f"{fast:.2f}", f"{slow / fast:.2f}"
        )
    console.print(table)


if __name__ == "__main__":
    main()
