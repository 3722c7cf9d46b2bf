"""One contender of ``benchmarks/rltf.py``: trains for some updates in a process of its own and tells their times.

Called by the benchmark: python -m benchmarks.rltf_workers CONTENDER FOLDER --updates N ...

Both sides get the folder's model in float32 on the CPU, LoRA of rank 8 on ``q_proj`` and ``v_proj``, AdamW at a rate so
small that the policy stays what it is, no KL term, and the same reward function of the same plans.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import random
import time
import warnings
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import few_tools, tiny_decoder
from formal_llm import Planner, Question, Task, TaskPack
from formal_llm.packs.openagi.references import openagi_reward
from formal_llm.packs.training import selected
from formal_llm.planning.walks.wording import shortened

#: The reward of a TRL completion that leads to no plan; a plan's own reward is never below 0.
INVALID = -1.0
RATE = 1e-6


def asked(room: str, wording: str) -> tuple[TaskPack, Planner, tuple[Task, ...]]:
    """The pack, a planner of all or few tools that puts its questions so, and the tasks that are trained on."""
    pack = TaskPack.load("openagi")
    texts = pack.wording if wording == "pack" else shortened(pack.wording, wording)
    if room == "few":
        few = few_tools.planner(pack, "test:random", wording=texts)
        return pack, few, tuple(selected(pack, few_tools.TASKS))
    return pack, pack.planner("test:random", wording=texts), pack.split("training")


def scoring(wording: str) -> str:
    """What options are scored by: their texts, where a question has no list of them."""
    return "text" if wording == "unlisted" else "number"


def answers(question: Question, wording: str) -> list[str]:
    """What is written for each option: its text, where a question has no list of them."""
    return [option.text if wording == "unlisted" else str(option.number) for option in question.options]


@dataclass(frozen=True)
class Measured:
    """What a contender tells.

    Attributes:
        samples: in one update.
        seconds: of each update, the first ones left out.
        cpu: the same in seconds of CPU time of the process.
        valid: the share of samples that are plans.
        tokens: new tokens of a sample; 0 where none are generated.
        reward, spread, read: of the library's last update: the mean of the rewards, their standard deviation, and how
            many distinct questions had a gradient.
    """

    samples: int
    seconds: tuple[float, ...]
    cpu: tuple[float, ...]
    valid: float
    tokens: int = 0
    reward: float = 0.0
    spread: float = 0.0
    read: float = 0.0


class Clock:
    """Notes when updates end."""

    def __init__(self, warm: int) -> None:
        self.warm = warm
        self.walls: list[float] = []
        self.cpus: list[float] = []

    def tick(self) -> None:
        """An update has ended."""
        self.walls.append(time.perf_counter())
        self.cpus.append(time.process_time())

    def between(self, times: list[float]) -> tuple[float, ...]:
        """The lengths of the updates after those that warm up."""
        kept = times[self.warm - 1 :]
        return tuple(b - a for a, b in pairwise(kept))


@dataclass(frozen=True)
class Work:
    """What all contenders do.

    Attributes:
        folder: of the model, and for what is written.
        planner, tasks: the questions.
        warm, updates: how many updates are not measured, and are.
        samples: of each task in an update; an update has all tasks.
        wording: how questions are put: ``pack``, ``terse`` or ``unlisted``.
        graph_bytes: memory for graphs of rollouts.
    """

    folder: Path
    planner: Planner
    tasks: tuple[Task, ...]
    warm: int
    updates: int
    samples: int
    wording: str
    graph_bytes: int


def ours(work: Work, advantage: str) -> Measured:
    """The library's trainer."""
    from formal_llm.rltf.policy import LoRA, Policy
    from formal_llm.rltf.settings import Settings
    from formal_llm.rltf.trainer import Trainer

    clock = Clock(work.warm)
    last: dict[str, float] = {}

    class Watch:
        def note(self, entry: Any) -> None:
            if entry.kind == "update":
                clock.tick()
                last.update(entry.figures)

        def close(self) -> None:
            pass

    settings = Settings(
        advantage=advantage, samples=work.samples, tasks_per_update=len(work.tasks), updates=work.warm + work.updates,
        learning_rate=RATE, checkpoint_every=0, dtype="float32", device="cpu", graph_bytes=work.graph_bytes,
    )  # fmt: skip
    model = f"transformers:{work.folder / 'model'}?scoring={scoring(work.wording)}"
    policy = Policy(model, LoRA(8, 16.0, targets=("q_proj", "v_proj")))
    name = f"ours-{advantage}-{time.time_ns()}"
    Trainer(
        work.planner, policy, openagi_reward(), work.tasks, work.folder / "runs" / name, settings=settings,
        views=(Watch(),),
    ).run()  # fmt: skip
    return Measured(
        len(work.tasks) * work.samples, clock.between(clock.walls), clock.between(clock.cpus), valid=1.0,
        reward=last["reward"], spread=last["reward_spread"], read=last["gradients"],
    )  # fmt: skip


def exact(work: Work, samples: int) -> Measured:
    """The head of a planner with random weights, trained by rewards of plans drawn from the exact distribution."""
    from formal_llm.llms.local.planner import load_encoder
    from formal_llm.packs.openagi.references import tools_called_for
    from formal_llm.planning.rewordings import LabelledTask
    from formal_llm.rltf.head_training import HeadSettings, train_head

    clock = Clock(work.warm)
    inputs = [entry["terminal"] for entry in TaskPack.load("openagi").data["inputs"].values()]
    sentences = [LabelledTask(task, frozenset(tools_called_for(task))) for task in work.tasks]
    settings = HeadSettings(work.warm + work.updates, [0], "rewards", samples)
    train_head(
        work.planner, load_encoder(), sentences, settings=settings, neutral=inputs, on_update=lambda *_: clock.tick()
    )
    return Measured(len(work.tasks) * samples, clock.between(clock.walls), clock.between(clock.cpus), valid=1.0)


def decision_reward(work: Work) -> Any:
    """A reward of single choices: that of the plan that begins so and ends with random legal choices."""
    judge = openagi_reward()
    rng = random.Random(0)

    def one(completion: Any, place: int, before: list[int]) -> float:
        said = completion if isinstance(completion, str) else completion[-1]["content"]
        walk = work.planner.start(work.tasks[place])
        for number in before:
            walk.answer(number)
        question = walk.question
        assert question is not None
        text = said.strip()
        choices = answers(question, work.wording)
        if text not in choices:
            return INVALID
        walk.answer(choices.index(text) + 1)
        while (question := walk.question) is not None:
            walk.answer(rng.randint(1, len(question.options)))
        return judge(work.tasks[place], walk.plan)

    def rewards(prompts: Any, completions: Any, *, task: list[int], before: list[list[int]]) -> list[float]:  # noqa: ARG001
        return [one(*row) for row in zip(completions, task, before, strict=True)]

    return rewards


def trl(work: Work, method: str, prompts: str, tokens: int) -> Measured:
    """A trainer of TRL: ``GRPO`` or ``RLOO``; ``prompts`` is a file of prompts.

    A row of the file has its ``task``; one for a single choice has ``before``, the choices made by then, as well.
    """
    datasets, peft, torch, trainers, transformers = map(
        importlib.import_module, ("datasets", "peft", "torch", "trl", "transformers")
    )
    from formal_llm.rltf.export import completion_reward

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    tiny_decoder.quiet()
    clock = Clock(work.warm)
    counted = [0, 0]
    whole = completion_reward(work.planner, openagi_reward(), work.tasks, invalid=INVALID)
    single = decision_reward(work)

    def reward(prompts: Any, completions: Any, **columns: Any) -> list[float]:
        if "before" in columns:
            values: list[float] = single(prompts, completions, task=columns["task"], before=columns["before"])
        else:
            values = whole(prompts, completions, task=columns["task"])
        counted[0] += len(values)
        counted[1] += sum(value != INVALID for value in values)
        return values

    base: Any = transformers.TrainerCallback

    class Watch(base):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock.tick()

    many = len(work.tasks) * work.samples
    config = getattr(trainers, f"{method}Config")(
        output_dir=str(work.folder / "runs" / f"trl-{time.time_ns()}"),
        max_steps=work.warm + work.updates,
        per_device_train_batch_size=many,
        num_generations=work.samples,
        max_completion_length=tokens,
        learning_rate=RATE,
        beta=0.0,
        temperature=1.0,
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        report_to="none",
        logging_strategy="no",
        save_strategy="no",
        disable_tqdm=True,
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(work.folder / "model", dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(work.folder / "model")
    trainer = getattr(trainers, f"{method}Trainer")(
        model=model,
        args=config,
        reward_funcs=reward,
        train_dataset=datasets.load_dataset("json", data_files=prompts, split="train"),
        processing_class=tokenizer,
        peft_config=peft.LoraConfig(r=8, lora_alpha=16.0, target_modules=["q_proj", "v_proj"], bias="none"),
        callbacks=[Watch()],
    )
    trainer.train()
    return Measured(
        many, clock.between(clock.walls), clock.between(clock.cpus), counted[1] / max(counted[0], 1), tokens
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contender", choices=("ours", "exact", "trl"))
    parser.add_argument("method", help="an advantage of ours, samples of exact ones, or GRPO or RLOO")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--prompts", default="")
    parser.add_argument("--tokens", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--room", default="all")
    parser.add_argument("--wording", default="pack")
    parser.add_argument("--graph-bytes", type=int, default=2 << 30)
    for name in ("warm", "updates", "samples"):
        parser.add_argument(f"--{name}", type=int, required=True)
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(arguments.threads)
    _, planner, tasks = asked(arguments.room, arguments.wording)
    work = Work(
        arguments.folder, planner, tasks, arguments.warm, arguments.updates, arguments.samples, arguments.wording,
        arguments.graph_bytes,
    )  # fmt: skip
    if arguments.contender == "ours":
        measured = ours(work, arguments.method)
    elif arguments.contender == "exact":
        measured = exact(work, int(arguments.method))
    else:
        measured = trl(work, arguments.method, arguments.prompts, arguments.tokens)
    arguments.out.write_text(json.dumps(asdict(measured)))


if __name__ == "__main__":
    main()
