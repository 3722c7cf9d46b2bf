"""Small runs that tests make, also in processes of their own: ``python training_runs.py FOLDER``."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from formal_llm import CFG, Limits, Planner, Task
from formal_llm.llms.local.encoders import BiEncoderScorer
from formal_llm.llms.local.llm import LocalLLM
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.planning import Plan
from formal_llm.rltf.distributed import Processes, world
from formal_llm.rltf.policy import LoRA, Policy
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.trainer import Trainer
from formal_llm.rltf.warm_start import ReferenceLimits
from tests import tiny_models

RULES = CFG.from_string(
    '%order prefix\n%limit 1\n%limit * e\nS -> a S | b S | c S | e\na "Alpha"\nb "Beta"\nc "Gamma"\ne "the input"'
)
TASKS = [Task("make it alpha"), Task("make it beta"), Task("make it gamma", limits=Limits({"b": 0}))]
HELD_OUT = [Task("make it alpha, please"), Task("make it beta, please")]
WANTED = {"alpha": "a", "beta": "b", "gamma": "c"}


def wanted_tool(task: Task, plan: Plan) -> float:
    """1 for the tool that the task names, less a tenth for every other one."""
    tool = next(tool for word, tool in WANTED.items() if word in task.description)
    used = set(plan.word) - {"e"}
    return float(tool in used) - 0.1 * len(used - {tool})


def tiny_policy(kind: str = "llama", **settings: Any) -> Policy:
    spoken = tiny_models.tokenizer(end_after=kind == "t5")
    llm: LocalLLM
    if kind == "t5":
        llm = TransformersLLM.of(tiny_models.seq2seq("t5", len(spoken)), spoken, name="tiny t5")
    elif kind == "bert":
        llm = LocalLLM(BiEncoderScorer(tiny_models.encoder(len(spoken)), spoken), "tiny bert")
    else:
        llm = TransformersLLM.of(tiny_models.causal(kind, len(spoken)), spoken, name=f"tiny {kind}")
    return Policy(llm, **settings)


def small_trainer(
    folder: Path, *, kind: str = "llama", temperature: float = 1.0, reward: Any = wanted_tool,
    policy: Policy | None = None, references: ReferenceLimits | None = None, alone: Processes | None = None,
    **settings: Any,
) -> Trainer:  # fmt: skip
    given = {"samples": 4, "tasks_per_update": 3, "updates": 6, "learning_rate": 3e-3, "checkpoint_every": 2}
    dropout = {"lora": LoRA(dropout=settings.get("dropout", 0.0))}
    made = policy or tiny_policy(kind, temperature=temperature, **dropout)
    judge = reward if isinstance(reward, Reward) else Reward(reward, name="wanted tool")
    return Trainer(
        Planner(RULES, "test:first"), made, judge, TASKS, folder,
        held_out=HELD_OUT, settings=Settings.of({**given, **settings}), references=references, world=alone,
    )  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """A run as the arguments say, or as those of the program do."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--paced", action="store_true", help="tell how many updates were made, and go on at a line or the end of input"
    )
    parser.add_argument("--advantage", default="rloo")
    parser.add_argument("--updates", type=int, default=6)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--processes", type=int, default=None)
    parser.add_argument("--fail", type=int, default=None, help="the process whose reward fails")
    parser.add_argument("--fail-after", type=int, default=0, help="from which update on")
    given = parser.parse_args(arguments)
    import torch

    torch.set_num_threads(1)
    told: set[int] = set()

    def reward(task: Task, plan: Plan) -> float:
        if given.paced and here.first and trainer.step not in told:
            told.add(trainer.step)
            print(trainer.step, flush=True)
            sys.stdin.readline()
        failing = given.fail is not None and given.fail == int(os.environ.get("RANK", "0"))
        if failing and trainer.step >= given.fail_after:
            return float("nan")
        return wanted_tool(task, plan)

    with world(given.processes) as here:
        trainer = small_trainer(
            given.folder, reward=reward, alone=here, advantage=given.advantage, updates=given.updates,
            checkpoint_every=1 if given.paced else 2, warm_start=1, entropy=0.01, kl=0.01, dropout=given.dropout,
        )  # fmt: skip
        trainer.run(resume=given.resume)
    return 0


def main_twice() -> None:
    """The run in two processes that know of each other, as ``torchrun`` starts them; this one is the first."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    os.environ.update(WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    second = os.fork()
    os.environ.update(dict.fromkeys(("RANK", "LOCAL_RANK"), "0" if second else "1"))
    try:
        main()
    finally:
        ended = os.waitstatus_to_exitcode(os.waitpid(second, 0)[1]) if second else 0
    sys.exit(ended)


if __name__ == "__main__":
    sys.exit(main())
