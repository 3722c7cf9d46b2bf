"""How fast large models of LLaMA's shape score choices and train on one GPU, in bfloat16 with random weights.

Run: python benchmarks/gpu.py [--models 1b 7b]     on a machine with a CUDA device
     python benchmarks/gpu.py --cpu                the same code with a tiny model, to see that it runs

Models are built from their configs on the device, so nothing is downloaded. For each model:

choices/s
    Walks over OpenAGI tasks that advance together, choices drawn from the model, caches empty at the start.
plans/s
    Updates of the trainer (GRPO weights, LoRA of rank 8 on queries and values): plans sampled, judged and learned from.
tokens/s
    Tokens that the model really read; what a cache or a shared row saved is not counted, nor is padding.
share of the card
    Floating-point operations for these tokens, divided by the time and by the rate of a large matrix product, measured
    in the same run. A token costs 2 operations for each weight of the layers, and 4 for each of its keys, times the
    width, in each layer; a place that is looked at costs 2 for each weight of the head. In training the backward pass
    counts as much again: the frozen weights take no gradient, but it goes through them.
memory
    The most that was allocated, weights included.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

from benchmarks import tiny_decoder
from formal_llm import Planner, RandomLLM, TaskPack
from formal_llm.llms.local import text_scorer
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.local.packing import PackedRow, write_row
from formal_llm.packs.openagi.references import openagi_reward
from formal_llm.rltf.policy import LoRA, Policy
from formal_llm.rltf.rollout import Start, rollout
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.trainer import Trainer


@dataclass(frozen=True)
class Shape:
    """The shape of a model, and how much work it is given.

    Attributes:
        width, inner, layers, heads, vocabulary: as of a LLaMA config.
        walks: made together when choices are counted.
        samples: of each of the 13 training tasks in an update.
        questions_per_pass: of the trainer; bounds the memory.
    """

    width: int
    inner: int
    layers: int
    heads: int
    vocabulary: int
    walks: int
    samples: int
    questions_per_pass: int


#: TinyLlama's shape with all key heads (1.3 thousand million weights), and LLaMA 2's and Vicuna's of 7.
SHAPES = {
    "1b": Shape(2_048, 5_632, 22, 32, 32_000, walks=512, samples=8, questions_per_pass=64),
    "7b": Shape(4_096, 11_008, 32, 32, 32_000, walks=256, samples=8, questions_per_pass=16),
    "tiny": Shape(64, 176, 2, 4, 1_000, walks=16, samples=1, questions_per_pass=64),
}


@dataclass
class Read:
    """What a model has read.

    Attributes:
        tokens: how many tokens, padding left out.
        pairs: how many pairs of a token and one that it attends to.
        looks: places at which the head was used.
    """

    tokens: int = 0
    pairs: int = 0
    looks: int = 0


@contextmanager
def counted() -> Iterator[tuple[Read, Read]]:
    """What scorers read in the meantime: without gradients, and with them."""
    import torch

    plain, learned = Read(), Read()

    def counting(*row_of: Any) -> PackedRow:
        into, row = learned if torch.is_grad_enabled() else plain, write_row(*row_of)
        into.tokens += len(row.ids)
        into.pairs += int((row.positions + 1).sum())  # a token attends to those on its path, and to itself
        into.looks += len(row.looks)
        return row

    with patch.object(text_scorer, "write_row", counting):  # the one place that all packed rows go through
        yield plain, learned


def operations(model: Any, read: Read) -> float:
    """Floating-point operations of a forward pass over what was read."""
    config = model.config
    head = config.vocab_size * config.hidden_size
    weights = sum(p.numel() for name, p in model.named_parameters() if "layers." in name and "lora" not in name)
    attention = 4.0 * config.hidden_size * config.num_hidden_layers
    return float(2 * weights * read.tokens + attention * read.pairs + 2 * head * read.looks)


def card_rate(device: str, dtype: Any, size: int) -> float:
    """Operations per second of a product of two large square matrices: the best of ten."""
    import torch

    one, other = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
    times = []
    for _ in range(10):
        _, seconds = timed(lambda: one @ other, device)
        times.append(seconds)
    return float(2 * size**3 / min(times))


def timed(work: Callable[[], Any], device: str) -> tuple[Any, float]:
    """What a piece of work returns, and its seconds, with all that it left to the device."""
    import torch

    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    begin = time.perf_counter()
    found = work()
    wait()
    return found, time.perf_counter() - begin


def memory(device: str) -> float:
    """The most memory that was allocated since it was last asked for, in GiB; 0 on a CPU."""
    import torch

    if device != "cuda":
        return 0.0
    most = torch.cuda.max_memory_allocated() / 2**30
    torch.cuda.reset_peak_memory_stats()
    return float(most)


def build(shape: Shape, device: str, dtype: Any) -> Any:
    """A model with random weights on the device."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=shape.vocabulary, hidden_size=shape.width, intermediate_size=shape.inner,
        num_hidden_layers=shape.layers, num_attention_heads=shape.heads, max_position_embeddings=4_096,
        bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)  # weights are never there in float32, which would take twice the memory
    try:
        with torch.device(device):
            return LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)


def measure(name: str, device: str, dtype: Any, arguments: argparse.Namespace, rate: float, table: Table) -> None:
    """The rows of one model."""
    shape = SHAPES[name]
    pack = TaskPack.load("openagi")
    planner = Planner(pack.cfg, RandomLLM(0), wording=pack.wording)
    tokenizer = tiny_decoder.tokenizer(tiny_decoder.questions(planner, pack.tasks))
    model = build(shape, device, dtype)
    told = f"{name}, {sum(p.numel() for p in model.parameters()) / 1e9:.2f}G weights"
    llm = TransformersLLM.of(model, tokenizer, batch_tokens=arguments.batch_tokens)
    assert isinstance(llm.scorer, text_scorer.CausalScorer)
    llm.scorer.row_tokens = arguments.row_tokens
    policy = Policy(llm, LoRA(8, 16.0))
    settings = Settings(
        advantage="grpo", samples=shape.samples, tasks_per_update=13, updates=3, learning_rate=1e-5,
        questions_per_pass=shape.questions_per_pass, checkpoint_every=0,
    )  # fmt: skip

    def row(what: str, count: str, plain: Read, learned: Read, seconds: float) -> None:
        flops = operations(model, plain) + 2 * operations(model, learned)
        tokens = plain.tokens + learned.tokens
        table.add_row(
            told, what, count, f"{tokens / seconds:,.0f}", f"{flops / seconds / 1e12:,.3g}",
            f"{flops / seconds / rate:.0%}", f"{memory(device):.1f}",
        )  # fmt: skip

    def walks(count: int, seed: str) -> list[Start]:
        return [Start(n, task, f"{seed} {n}") for n, task in enumerate(islice(cycle(pack.tasks), count))]

    rollout(planner, policy, walks(shape.walks // 8, "warm"))  # kernels are chosen, the planner knows the grammar
    llm.scorer.forget()
    memory(device)
    with counted() as (plain, learned):
        episodes, seconds = timed(lambda: rollout(planner, policy, walks(shape.walks, "count")), device)
    choices = sum(len(episode.decisions) for episode in episodes)
    row("scoring", f"{choices / seconds:,.1f} choices/s", plain, learned, seconds)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(planner, policy, openagi_reward(), pack.split("training"), folder, settings=settings)
        trainer.learner.update()  # an update alone, without what a run writes
        memory(device)
        with counted() as (plain, learned):
            _, seconds = timed(lambda: trainer.learner.update(), device)
    row("training", f"{13 * shape.samples / seconds:,.1f} plans/s", plain, learned, seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=SHAPES, default=["1b", "7b"])
    parser.add_argument("--cpu", action="store_true", help="a tiny model in float32 on the CPU, to check the code")
    parser.add_argument("--row-tokens", type=int, default=512, help="packed into one row")
    parser.add_argument("--batch-tokens", type=int, default=16_384, help="read in one pass")
    arguments = parser.parse_args()
    import torch

    device, dtype, size = "cuda", torch.bfloat16, 8_192
    if arguments.cpu:
        device, dtype, size = "cpu", torch.float32, 1_024
        card = "the CPU, to check the code: these figures are no GPU's"
    elif not torch.cuda.is_available():
        raise SystemExit("there is no CUDA device here; with --cpu the same code runs a tiny model, as a check")
    else:
        card = torch.cuda.get_device_name()
    rate = card_rate(device, dtype, size)
    console = Console(width=130)
    console.print(tiny_decoder.machine(), highlight=False)
    table = Table(title=f"{card}; {str(dtype).removeprefix('torch.')}, matrix product {rate / 1e12:,.3g} TFLOP/s")
    for column in ("model", "work", "rate", "tokens/s", "TFLOP/s", "share of the card", "memory, GiB"):
        table.add_column(column, justify="left" if column in ("model", "work") else "right")
    for name in arguments.models:
        measure(name, device, dtype, arguments, rate, table)
        if device == "cuda":
            torch.cuda.empty_cache()
    console.print(table)


if __name__ == "__main__":
    main()
