"""Planners without a single sentence about their tools: how often they choose exactly the right ones of a second set.

The tools are the fourteen steps of a kitchen robot (``benchmarks/kitchen/kitchen.cfg``), each with one line of
description. The sentences were written by somebody who saw the descriptions and nothing else. What answers knows the
names and the descriptions: it was trained on other tools, on none, or on the descriptions alone
(:func:`~formal_llm.rltf.head_training.describe_steps`).

Run: python benchmarks/second_tools.py
"""

from __future__ import annotations

import statistics
import tomllib
from pathlib import Path
from time import process_time

from rich.console import Console
from rich.table import Table

from formal_llm import CFG, Planner
from formal_llm.llms import LLM, resolve
from formal_llm.llms.local.encoders import EncoderLLM
from formal_llm.llms.local.planner import PlannerLLM, SentenceScorer, SimilarWords, load_encoder
from formal_llm.planning.drivers.planner import Search
from formal_llm.rltf.head_training import HeadSettings, describe_steps, train_head
from formal_llm.rltf.reference_tools import compute_f1

FOLDER = Path(__file__).parent / "kitchen"
SEEDS = range(3)


def train_on_descriptions(cfg: CFG) -> tuple[list[PlannerLLM], float]:
    """Train a head for each seed on the descriptions of the steps; return the CPU seconds for each."""
    planner, encoder = Planner(cfg, "test:random"), load_encoder()
    begin = process_time()
    heads = [
        train_head(planner, encoder, describe_steps(planner), (), HeadSettings(seeds=[seed])).head for seed in SEEDS
    ]
    seconds = (process_time() - begin) / len(SEEDS)
    words = SimilarWords(encoder.vectors)
    return [PlannerLLM(SentenceScorer(head, encoder), EncoderLLM(), words, "described") for head in heads], seconds


def main() -> None:
    cfg = CFG.from_file(FOLDER / "kitchen.cfg")
    tasks = tomllib.loads((FOLDER / "sentences.toml").read_text(encoding="utf-8"))["task"]
    table = Table(title=f"{len(tasks)} sentences about a kitchen: plans with exactly the right steps (F1 of the steps)")
    for column in ("", "exact", "F1", "CPU ms a plan"):
        table.add_column(column, justify="right" if column else "left")
    described, seconds = train_on_descriptions(cfg)
    answerers: list[tuple[str, LLM, Search | None]] = [
        ("test:random", resolve("test:random"), None),
        ("builtin", resolve("builtin"), None),
        ("builtin:minilm", resolve("builtin:minilm"), None),
        ("minilm-planner, trained for other tools", resolve("minilm-planner"), None),
        *((f"trained on the descriptions, seed {seed}", llm, None) for seed, llm in zip(SEEDS, described, strict=True)),
    ]
    for name, llm, search in answerers:
        planner = Planner(cfg, llm, search=search)
        planner.plan("cook")
        begin = process_time()
        plans = [planner.plan(task["text"]) for task in tasks]
        spent = (process_time() - begin) / len(tasks)
        found = [compute_f1(set(task["steps"]), set(plan.word)) for task, plan in zip(tasks, plans, strict=True)]
        exact = sum(value == 1 for value in found)
        table.add_row(name, str(exact), f"{statistics.fmean(found):.3f}", f"{spent * 1e3:.0f}")
    Console(width=120).print(table)
    print(f"training on descriptions: {seconds:.1f} s of CPU")


if __name__ == "__main__":
    main()
