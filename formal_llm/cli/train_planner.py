"""``formal-llm train-planner``: train a planner that reads from one sentence which steps it calls for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from formal_llm.cli.console import command, counted, err, print_text, progress_bars, without_loading_bars
from formal_llm.errors import FormalLLMError
from formal_llm.planning import TaskPack

HELP = """Train a planner for the steps of a pack, offline and in a minute or two on a CPU.

It is a head of some kilobytes on a sentence encoder: it reads a sentence once and scores all steps. What it
learns from are sentences with the steps that they call for, in TOML:

  [[sentences]]
  given = ["image"]
  goal = "text"
  steps = ["denoising", "captioning"]
  texts = ["There is snow all over this picture. What is going on in it?"]

given and goal name inputs and a goal of the pack; without them, they are read in the sentence. Without any sentences,
the labels and descriptions of the steps are what it learns from. Use the file as an LLM: minilm-planner:FILE

Examples:

  formal-llm train-planner mypack --sentences sentences.toml --out my-planner.safetensors

  formal-llm plan mypack "..." --llm minilm-planner:my-planner.safetensors
"""


@command
def train_planner(
    pack: Annotated[str, typer.Argument(help="The name or the path of a task pack.")],
    to: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file of the planner; it is replaced.")],
    sentences: Annotated[
        str, typer.Option(metavar="FILES", help="Files of sentences, with + between them. None: the descriptions.")
    ] = "",
    validation: Annotated[
        str, typer.Option(metavar="FILES", help="Sentences that are not trained on, by which the best seed is kept.")
    ] = "",
    epochs: Annotated[int, typer.Option(min=1, help="How often each sentence is read.")] = 15,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds are tried.")] = 3,
) -> None:
    """Train a planner."""
    from formal_llm.llms.local.planner import load_encoder
    from formal_llm.packs.training import labelled

    if to.is_dir() or not to.parent.is_dir():
        raise FormalLLMError(f"{to} cannot be written: it is a folder, or its folder does not exist")
    loaded = TaskPack.load(pack)
    planner = loaded.planner("test:random")
    neutral = [entry["terminal"] for entry in loaded.data.get("inputs", {}).values()]
    read, held = labelled(loaded, sentences), labelled(loaded, validation)
    without_loading_bars()
    loaded_encoder = load_encoder()
    # Imported after the encoder, whose error explains how to install torch.
    from formal_llm.rltf.head_training import HeadSettings, describe_steps, train_head

    read = read or describe_steps(planner, neutral)
    err().print(f"{counted(len(read), 'sentence')} to train on, {len(held)} for validation")
    with progress_bars() as bars:
        bar = bars.add_task("", total=seeds * epochs, said="training")
        trained = train_head(
            planner, loaded_encoder, read, held, HeadSettings(epochs, range(seeds)), neutral=neutral,
            on_epoch=lambda seed, epoch: bars.update(bar, completed=seed * epochs + epoch, said=f"seed {seed}"),
        )  # fmt: skip
    trained.head.save(to)
    exact = f"; {trained.exact} of {len(held)} plans for validation have exactly the right steps" if held else ""
    print_text(f"{to}: seed {trained.seed}{exact}. Use it: --llm minilm-planner:{to}")
