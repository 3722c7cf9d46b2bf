"""Samples per second in training: the library's trainer against TRL's GRPO and RLOO trainers, on one small model.

Run: python benchmarks/rltf.py [--width 64 --layers 2]

A sample is a plan with its reward, the update included. All contenders run in one side environment (``build/trl``,
made by the first run: TRL is not needed by the library), in processes of their own, with the same number of threads:
the same weights from one folder, the 13 OpenAGI training tasks, the same samples of each task in an update, the same
reward, LoRA of rank 8 on ``q_proj`` and ``v_proj``, float32 on the CPU. The first updates are not measured. Rounds are
interleaved; the best update time of all rounds counts, for every contender alike.

The library asks a question at a time and scores the legal answers. TRL's trainers generate text, so a sample is a
whole walk as numbers (``formal_llm.rltf.export``), with as many new tokens as the longest walk of ``--walks`` random
walks needs. Its prompts are once those of the export, which state the rules, since a later question is never shown;
and once only the task and its first question, the shortest that could be asked. Such completions may be no plan at
all: ``valid`` is the share that are. The row with one new token is a bound: no plan fits into it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import tiny_decoder
from formal_llm import Planner, RandomLLM, Task, TaskPack
from formal_llm.rltf.export import INSTRUCTION, write_tasks

ROOT = Path(__file__).parents[1]
#: torch first: what asks for a plain torch would bring gigabytes of another build.
PACKAGES = (("torch==2.13.0",), ("trl==1.16.0", "transformers==5.23.0", "peft==0.21.2", "accelerate==1.15.0"))


@dataclass
class Contender:
    """A row of the table.

    Attributes:
        name: of the row.
        arguments: for the worker.
        found: what it told, by round.
    """

    name: str
    arguments: tuple[str, ...]
    found: list[dict[str, Any]] = field(default_factory=list)

    def best(self, what: str) -> float:
        """The best samples per second, of wall time (``seconds``) or CPU time (``cpu``)."""
        return max(told["samples"] / min(told[what]) for told in self.found)


def environment(folder: Path) -> Path:
    """The Python of the side environment, which is made where it is not there."""
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = folder / "formal-llm-ready"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        for packages in (*PACKAGES, ("-e", f"{ROOT}[rltf]")):
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        done.touch()
    return python


def longest(planner: Planner, tasks: tuple[Task, ...], tokenizer: Any, walks: int) -> int:
    """How many tokens the numbers of the longest of some random walks have, with the end token."""
    found = 0
    for number in range(walks):
        walk, llm = planner.start(tasks[number % len(tasks)]), RandomLLM(number)
        numbers = []
        while (question := walk.question) is not None:
            numbers.append(llm.choose(question).number)
            walk.answer(numbers[-1])
        found = max(found, len(tokenizer(" ".join(map(str, numbers)), add_special_tokens=False)["input_ids"]))
    return found + 1


def write_questions(path: Path, planner: Planner, tasks: tuple[Task, ...]) -> Path:
    """Tasks with their first question alone as the prompt."""
    with path.open("w", encoding="utf-8") as out:
        for place, task in enumerate(tasks):
            question = planner.start(task).question
            assert question is not None
            asked = question.prompt.rpartition("\n\n")[0]
            out.write(json.dumps({"task": place, "prompt": f"{asked}\n\n{INSTRUCTION}\n"}) + "\n")
    return path


def run(python: Path, contender: Contender, out: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """One contender in a process of its own; what it told."""
    out.unlink(missing_ok=True)
    threads = str(arguments.threads)
    many = (
        part for name in ("warm", "updates", "samples", "threads") for part in (f"--{name}", str(vars(arguments)[name]))
    )
    finished = subprocess.run(
        [python, "-m", "benchmarks.rltf_workers", *contender.arguments, *many, "--out", out],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise SystemExit(f"{contender.name} failed:\n{finished.stderr[-4_000:]}")
    told: dict[str, Any] = json.loads(out.read_text())
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=64, help="the size of the model's hidden states")
    parser.add_argument("--layers", type=int, default=2, help="the model's layers")
    parser.add_argument("--samples", type=int, default=8, help="of each task in an update")
    parser.add_argument("--warm", type=int, default=1, help="updates that are not measured")
    parser.add_argument("--updates", type=int, default=3, help="updates that are measured, in each round")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each contender")
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--walks", type=int, default=1_300, help="walks of which the longest sets TRL's new tokens")
    parser.add_argument("--environment", type=Path, default=ROOT / "build" / "trl", help="where TRL is installed")
    arguments = parser.parse_args()
    console = Console(width=120)
    python = environment(arguments.environment)
    folder = ROOT / "build" / "rltf"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    pack = TaskPack.load("openagi")
    planner = Planner(pack.cfg, RandomLLM(0), wording=pack.wording)
    tasks = pack.split("training")
    tokenizer = tiny_decoder.tokenizer(tiny_decoder.questions(planner, pack.tasks))
    model = tiny_decoder.decoder(arguments.width, arguments.layers)
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    tokens = longest(planner, tasks, tokenizer, arguments.walks)
    exported = str(write_tasks(folder / "tasks.jsonl", planner, tasks))
    short = str(write_questions(folder / "questions.jsonl", planner, tasks))
    made = str(folder)

    def trl(method: str, prompts: str, new: int) -> tuple[str, ...]:
        return ("trl", method, made, "--prompts", prompts, "--tokens", str(new))

    rows = [
        Contender("formal_llm, grpo", ("ours", "grpo", made)),
        Contender("formal_llm, rloo", ("ours", "rloo", made)),
        Contender("TRL GRPO, prompts of the export", trl("GRPO", exported, tokens)),
        Contender("TRL RLOO, prompts of the export", trl("RLOO", exported, tokens)),
        Contender("TRL GRPO, first question only", trl("GRPO", short, tokens)),
        Contender("TRL RLOO, first question only", trl("RLOO", short, tokens)),
        Contender("TRL GRPO, first question only, one new token", trl("GRPO", short, 1)),
    ]
    for _ in range(arguments.rounds):
        for row in rows:
            row.found.append(run(python, row, folder / "told.json", arguments))
    console.print(tiny_decoder.machine(), highlight=False)
    console.print(f"{tiny_decoder.told(model)}; {sys.version.split()[0]}; {PACKAGES[1][0]}", highlight=False)
    title = f"{len(tasks)} tasks x {arguments.samples} samples in an update, {arguments.threads} thread(s)"
    table = Table(title=title)
    columns = ("trainer", "new tokens", "valid", "samples/s", "samples per CPU second", "formal_llm is faster by")
    for column in columns:
        table.add_column(column, justify="left" if column == "trainer" else "right")
    ours = {"grpo": rows[0], "rloo": rows[1]}
    for row in rows:
        other = ours["rloo" if "rloo" in row.name.lower() else "grpo"]
        table.add_row(
            row.name, str(row.found[0]["tokens"] or "-"), f"{row.found[0]['valid']:.0%}", f"{row.best('seconds'):,.1f}",
            f"{row.best('cpu'):,.1f}", "" if row is other else f"{other.best('cpu') / row.best('cpu'):.1f}",
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    main()
