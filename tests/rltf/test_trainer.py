"""The trainer: it learns, it can be stopped, killed and resumed to the same bits, and what goes wrong is told."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file

from formal_llm import Limits, Planner, Task
from formal_llm.errors import RecordError, RewardError, TrainingError
from formal_llm.planning import Plan
from formal_llm.rltf.advantages import ADVANTAGES
from formal_llm.rltf.distributed import Processes, world
from formal_llm.rltf.metrics_log import read_log
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.rollout import Start, rollout
from formal_llm.rltf.trainer import Trainer
from tests.rltf import training_runs as runs
from tests.warm import Warm

HERE = Path(__file__).parent
ENVIRONMENT = {
    **os.environ, "PYTHONPATH": str(HERE.parents[1]), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore",
}  # fmt: skip

_warm = Warm("import torch, transformers, peft, tests.rltf.training_runs", **ENVIRONMENT)


def twice(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A run in two processes that know of each other; others of these tests start them by torchrun."""
    given = (*arguments, "--processes", "2")
    module = "tests.rltf.training_runs"
    return _warm.run(module, "main_twice", given, cwd=None, stdin="", env=ENVIRONMENT, timeout=300)


def only_slow(name: str, quick: str) -> Any:
    """A parameter that is slow unless it is the quick one."""
    return name if name == quick else pytest.param(name, marks=pytest.mark.slow)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(str(folder / "adapter_model.safetensors"))


def equal(one: Path, other: Path) -> bool:
    ours, theirs = weights(one), weights(other)
    assert ours.keys() == theirs.keys()
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


def figures(folder: Path) -> list[tuple[int, dict[str, Any]]]:
    """What was measured in each update, times left out."""
    return [
        (entry.step, {name: value for name, value in entry.figures.items() if name != "seconds"})
        for entry in read_log(folder)
        if entry.kind in ("update", "evaluation")
    ]


@pytest.mark.parametrize("advantage", [only_slow(name, "rloo") for name in ADVANTAGES])
def test_every_estimator_learns(tmp_path: Path, advantage: str) -> None:
    trainer = runs.small_trainer(tmp_path, advantage=advantage, updates=25, samples=6, learning_rate=1e-2, clip=1.0)
    before = trainer.evaluate(runs.TASKS)["reward"]
    trainer.run()
    rewards = [entry.figures["reward"] for entry in read_log(tmp_path) if entry.kind == "update"]
    assert len(rewards) == 25
    assert sum(rewards[-5:]) / 5 > sum(rewards[:3]) / 3 + 0.15
    assert trainer.evaluate(runs.TASKS)["reward"] >= before


@pytest.mark.parametrize(("kind", "temperature"), [pytest.param("t5", 60, marks=pytest.mark.slow), ("bert", 5)])
def test_other_models_learn_too(tmp_path: Path, kind: str, temperature: float) -> None:
    terms = {"advantage": "exact", "updates": 20, "learning_rate": 1e-2}
    trainer = runs.small_trainer(tmp_path, kind=kind, temperature=temperature, **terms)
    trainer.run()
    rewards = [entry.figures["reward"] for entry in read_log(tmp_path) if entry.kind == "update"]
    assert rewards[-1] > rewards[0] + 0.05 * (1 - rewards[0])  # expected rewards, without the noise of samples
    assert sum(rewards[-5:]) > sum(rewards[:5])


def test_a_run_leaves_its_story(tmp_path: Path) -> None:
    trainer = runs.small_trainer(tmp_path, evaluate_every=2, kl=0.1)
    done = trainer.run()
    assert (done.step, done.reason) == (6, "done")
    assert [entry.step for entry in read_log(tmp_path) if entry.kind == "evaluation"] == [0, 2, 4, 6]
    update = next(entry.figures for entry in read_log(tmp_path) if entry.kind == "update")
    assert update.keys() >= {"reward", "reward_spread", "loss", "entropy", "kl", "failed", "seconds", "gradient_norm"}
    assert sorted(place.name for place in (tmp_path / "checkpoints").iterdir()) == ["step-000004", "step-000006"]
    assert (tmp_path / "report.md").is_file()
    assert done.before.keys() == done.after.keys() >= {"reward"}
    policy = runs.tiny_policy()
    base = policy.model.unload()
    loaded = PeftModel.from_pretrained(base, str(tmp_path / "final"))
    ids = torch.tensor([[7, 8, 9]])
    with torch.no_grad():
        assert torch.equal(loaded(input_ids=ids).logits, trainer.setup.policy.model(input_ids=ids).logits)


def test_the_same_settings_make_the_same_weights(tmp_path: Path) -> None:
    terms = {"advantage": "stratified", "dropout": 0.2, "updates": 3}
    for name in ("one", "other"):
        runs.small_trainer(tmp_path / name, **terms).run()
    assert equal(tmp_path / "one" / "final", tmp_path / "other" / "final")
    runs.small_trainer(tmp_path / "third", **terms, seed=1).run()
    assert not equal(tmp_path / "one" / "final", tmp_path / "third" / "final")


@pytest.mark.parametrize("advantage", [only_slow(name, "stratified") for name in ("reinforce", "stratified", "exact")])
def test_stopped_and_resumed_it_ends_with_the_same_bits(tmp_path: Path, advantage: str) -> None:
    more = {"dropout": 0.1, "entropy": 0.01, "kl": 0.02, "warmup": 2}
    terms = {"advantage": advantage, "warm_start": 1, "updates": 4, **more}
    runs.small_trainer(tmp_path / "whole", **terms).run()
    for until in (1, 3, None):
        done = stopping(tmp_path / "parts", until, **terms).run(resume=True)
    assert done.reason == "done"
    assert equal(tmp_path / "whole" / "final", tmp_path / "parts" / "final")
    assert figures(tmp_path / "whole") == figures(tmp_path / "parts")


def stopping(folder: Path, until: int | None, **terms: Any) -> Trainer:
    """A trainer that is told to stop in the update after ``until``."""

    def reward(task: Task, plan: Plan) -> float:
        if until is not None and trainer.step >= until:
            trainer.stop()
        return runs.wanted_tool(task, plan)

    trainer = runs.small_trainer(folder, reward=reward, **terms)
    return trainer


def started(command: list[str], **settings: Any) -> subprocess.Popen[str]:
    """A run that waits for a line at each update, once with what it has to judge."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([*command, "--paced"], env=ENVIRONMENT, **pipes, **settings)


def led(process: subprocess.Popen[str], step: int) -> None:
    """Let it go on until so many updates are made; it waits in the middle of the next one."""
    assert process.stdin is not None
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= step:
            return
        process.stdin.write("\n")
        process.stdin.flush()
    pytest.fail(f"the run ended before update {step}")


@pytest.mark.slow
def test_killed_and_resumed_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "training_runs.py")]
    runs.main([str(tmp_path / "whole")])
    for killed_after in (2, 4):
        with started([*command, str(tmp_path / "parts"), "--resume"]) as process:
            led(process, killed_after)
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert read_log(tmp_path / "parts")[-1].step == killed_after
    runs.main([str(tmp_path / "parts"), "--resume"])
    assert equal(tmp_path / "whole" / "final", tmp_path / "parts" / "final")
    assert figures(tmp_path / "whole") == figures(tmp_path / "parts")


def test_a_run_that_is_stopped_says_which_update_was_judged(tmp_path: Path) -> None:
    def reward(task: Task, plan: Plan) -> float:
        if trainer.step == 4:
            trainer.stop()
        return runs.wanted_tool(task, plan)

    trainer = runs.small_trainer(tmp_path, reward=reward, evaluate_every=3)
    stopped = trainer.run()
    assert (stopped.reason, stopped.step, stopped.judged) == ("interrupted", 5, 3)
    judged = [entry for entry in read_log(tmp_path) if entry.kind == "evaluation"]
    assert judged[-1].step == 3
    assert stopped.after["reward"] == judged[-1].figures["reward"]
    again = runs.small_trainer(tmp_path, evaluate_every=3).run(resume=True)
    assert (again.reason, again.step, again.judged) == ("done", 6, 6)


def interrupted(process: subprocess.Popen[str], folder: Path) -> None:
    """Press Ctrl-C in the middle of the fourth update; the run ends with a checkpoint."""
    led(process, 3)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)  # the end of input: it waits no more
    last = read_log(folder)[-1]
    assert (last.kind, last.data["reason"]) == ("end", "interrupted")
    assert (folder / "checkpoints" / f"step-{last.step:06d}").is_dir()


@pytest.mark.slow
def test_ctrl_c_ends_two_processes_with_a_checkpoint(tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launch, str(HERE / "training_runs.py"), str(tmp_path), "--updates", "500"]
    with started(command, stderr=subprocess.DEVNULL) as process:
        interrupted(process, tmp_path)  # torchrun hands it on


@pytest.mark.slow
def test_two_processes_give_the_weights_of_one(tmp_path: Path) -> None:
    terms = ["--advantage", "reinforce", "--updates", "3", "--dropout", "0"]
    runs.main([str(tmp_path / "one"), *terms])
    done = twice(str(tmp_path / "two"), *terms)
    assert done.returncode == 0, done.stderr
    one, two = weights(tmp_path / "one" / "final"), weights(tmp_path / "two" / "final")
    for name, tensor in one.items():
        # Up to rounding; where a gradient is nearly 0, Adam makes a step of what is left of it.
        assert (tensor - two[name]).abs().median() < 1e-5, name
        assert torch.allclose(tensor, two[name], atol=1e-3), name
    samples, rewards = (
        [[e.figures[figure] for e in read_log(tmp_path / name) if figure in e.figures] for name in ("one", "two")]
        for figure in ("samples", "reward")
    )
    assert samples[0] == samples[1]
    assert rewards[0] == pytest.approx(rewards[1], abs=1e-4)


@pytest.mark.slow
def test_what_fails_in_one_process_ends_all(tmp_path: Path) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launch, str(HERE / "training_runs.py"), str(tmp_path), "--fail", "1", "--fail-after", "3"]
    done = subprocess.run(command, env=ENVIRONMENT, timeout=300, capture_output=True, text=True)
    assert done.returncode != 0
    assert "not a finite number" in done.stderr
    last = read_log(tmp_path)[-1]
    assert (last.kind, last.step) == ("end", 3)
    assert last.data["reason"].startswith("process 1 failed: ")
    assert (tmp_path / "checkpoints" / "step-000003").is_dir()  # nothing of what both had by then is lost


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_reward_that_is_no_number_ends_the_run_with_nothing_lost(tmp_path: Path, value: float) -> None:
    def reward(task: Task, plan: Plan) -> float:
        return value if trainer.step == 3 else runs.wanted_tool(task, plan)

    trainer = runs.small_trainer(tmp_path, reward=reward, checkpoint_every=0)
    with pytest.raises(RewardError, match=r"not a finite number \(task: 'make it .*plan: "):
        trainer.run()
    assert (tmp_path / "checkpoints" / "step-000003").is_dir()
    again = runs.small_trainer(tmp_path, checkpoint_every=0)
    assert again.run(resume=True).step == 6
    runs.small_trainer(tmp_path / "whole", checkpoint_every=0).run()
    assert equal(tmp_path / "final", tmp_path / "whole" / "final")


def test_memory_that_runs_out_is_told_with_what_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = runs.small_trainer(tmp_path, checkpoint_every=0)
    compute = trainer.setup.policy.scorer._compute

    def full(questions: Any) -> Any:
        if trainer.step == 2 and torch.is_grad_enabled():
            torch.empty(1 << 48)  # what a system without memory says
        return compute(questions)

    monkeypatch.setattr(trainer.setup.policy.scorer, "_compute", full)
    with pytest.raises(TrainingError, match=r"memory ran out in step 3, .*: gradient_checkpointing takes less"):
        trainer.run()
    monkeypatch.undo()
    assert runs.small_trainer(tmp_path, checkpoint_every=0).run(resume=True).reason == "done"


def test_memory_that_runs_out_in_an_evaluation_is_told_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = runs.small_trainer(tmp_path)
    monkeypatch.setattr(trainer.setup.policy.scorer, "_compute", lambda _: torch.empty(1 << 48))
    with pytest.raises(TrainingError, match="memory ran out in step 0"):
        trainer.run()


def test_a_folder_with_another_run_is_refused(tmp_path: Path) -> None:
    runs.small_trainer(tmp_path, updates=2).run()
    log = (tmp_path / "log.jsonl").read_bytes()
    with pytest.raises(RecordError):
        runs.small_trainer(tmp_path, updates=2).run()
    with pytest.raises(TrainingError, match=r"other settings.*samples was 4, now 5"):
        runs.small_trainer(tmp_path, samples=5).run(resume=True)
    assert (tmp_path / "log.jsonl").read_bytes() == log
    assert runs.small_trainer(tmp_path, updates=4).run(resume=True).step == 4  # a longer run of the same


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    runs.small_trainer(tmp_path, updates=4).run()
    last = tmp_path / "checkpoints" / "step-000004"
    (last / "optimizer.pt").write_bytes(b"half")
    with pytest.raises(TrainingError, match=r"step-000004 is damaged.*remove it"):
        runs.small_trainer(tmp_path, updates=6).run(resume=True)
    for file in last.iterdir():
        file.unlink()
    last.rmdir()
    assert runs.small_trainer(tmp_path, updates=6).run(resume=True).step == 6


def test_tasks_that_cannot_be(tmp_path: Path, planner: Planner) -> None:
    with pytest.raises(TrainingError, match="no task"):
        Trainer(planner, runs.tiny_policy(), runs.Reward(runs.wanted_tool), [], tmp_path)
    with pytest.raises(TrainingError, match="held out and trained on: 'make it alpha'"):
        Trainer(
            planner, runs.tiny_policy(), runs.Reward(runs.wanted_tool), runs.TASKS, tmp_path, held_out=runs.TASKS[:1]
        )


def test_a_warm_start_imitates_reference_plans(tmp_path: Path) -> None:
    tools = {"alpha": "a", "beta": "b", "gamma": "c"}

    def references(task: Task) -> Limits:
        tool = next(tool for word, tool in tools.items() if word in task.description)
        return Limits({name: 0 for name in "abc" if name != tool}, {tool: 1})

    trainer = runs.small_trainer(tmp_path, references=references, warm_start=25, updates=0, learning_rate=1e-2)
    before = trainer.evaluate(runs.TASKS)["reward"]
    trainer.run()
    assert trainer.evaluate(runs.TASKS)["reward"] > max(before, 0.9)


def test_only_the_main_thread_hears_of_ctrl_c(tmp_path: Path) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(runs.small_trainer(tmp_path, updates=1).run()))
    thread.start()
    thread.join()
    assert found[0].reason == "done"


def test_the_state_is_readable(tmp_path: Path) -> None:
    runs.small_trainer(tmp_path, advantage="reinforce").run()
    state = json.loads((tmp_path / "checkpoints" / "step-000006" / "state.json").read_text())
    assert state["memory"]["baselines"]["decay"] == 0.8
    assert set(state["memory"]["baselines"]["values"]) == {"0", "1", "2"}


def test_the_figures_are_means_over_greedy_plans(tmp_path: Path) -> None:
    planner, policy, reward = Planner(runs.RULES, "test:first"), runs.tiny_policy(), Reward(runs.wanted_tool)
    greedy = rollout(planner, policy, [Start(n, task) for n, task in enumerate(runs.TASKS)])
    rewards = [runs.wanted_tool(one.task, one.plan) for one in greedy]
    lengths = Reward(lambda task, plan: len(plan.word))
    measured = Trainer(planner, policy, reward, runs.TASKS, tmp_path, metrics={"length": lengths})
    found = measured.evaluate(runs.TASKS)
    assert found == pytest.approx({"reward": sum(rewards) / 3, "length": sum(len(one.word) for one in greedy) / 3})
    grouped = [replace(task, group="odd" if n % 2 else "even") for n, task in enumerate(runs.TASKS)]
    trainer = Trainer(planner, policy, reward, runs.TASKS, tmp_path)
    found = trainer.evaluate(grouped)
    assert found["reward odd"] == pytest.approx(rewards[1])
    assert found["reward even"] == pytest.approx((rewards[0] + rewards[2]) / 2)
    assert trainer.evaluate([replace(task, group="one") for task in runs.TASKS]).keys() == {"reward"}


# -- other tasks tell when to stop -------------------------------------------------------------------------------------


OTHERS = [Task("please, some alpha")]


def judged_by(trainer: Trainer, rewards: list[float]) -> None:
    """Let the tasks of validation come out so and so, one evaluation after the other; others as they do."""
    evaluate = trainer.evaluate

    def told(tasks: Any) -> dict[str, float]:
        return {"reward": rewards.pop(0)} if tuple(tasks) == tuple(OTHERS) else evaluate(tasks)

    trainer.evaluate = told  # type: ignore[method-assign]


def early(folder: Path, **settings: Any) -> Trainer:
    base = runs.small_trainer(folder, advantage="rloo", updates=8, evaluate_every=1, checkpoint_every=1, **settings)
    setup = base.setup
    return Trainer(
        setup.planner, setup.policy, setup.reward, setup.tasks, folder, held_out=runs.HELD_OUT, validation=OTHERS,
        settings=setup.settings,
    )  # fmt: skip


def test_it_stops_where_validation_comes_out_no_better_and_keeps_the_best(tmp_path: Path) -> None:
    trainer = early(tmp_path, patience=3)
    judged_by(trainer, [0.1, 0.3, 0.2, 0.5, 0.4, 0.5, 0.5, 0.9])
    done = trainer.run()
    assert (done.step, done.reason) == (6, "stopped early")
    log = read_log(tmp_path)
    assert [entry.step for entry in log if entry.kind == "checkpoint" and entry.data["best"]] == [0, 1, 3]
    judged = {(entry.data["split"], entry.step) for entry in log if entry.kind == "evaluation"}
    assert judged == {(split, step) for split in ("held-out", "validation") for step in range(7)}
    assert "after update 3, held-out reward" in (tmp_path / "report.md").read_text()
    assert "It ended: stopped early." in (tmp_path / "report.md").read_text()
    assert not equal(tmp_path / "best", tmp_path / "final")
    assert done.after == pytest.approx(trainer.evaluate(runs.HELD_OUT))  # of the last update


def test_patience_goes_on_where_it_was(tmp_path: Path) -> None:
    first = early(tmp_path, patience=2)
    judged_by(first, [0.5, 0.4])
    heard = first.learner.update

    def one() -> Any:
        first.stop()
        return heard()

    first.learner.update = one  # type: ignore[method-assign]
    assert first.run().reason == "interrupted"
    again = early(tmp_path, patience=2)
    judged_by(again, [0.4, 0.6])
    done = again.run(resume=True)
    assert (done.step, done.reason) == (2, "stopped early")


def test_patience_without_what_it_counts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="patience counts evaluations"):
        runs.small_trainer(tmp_path, patience=1)
    base = runs.small_trainer(tmp_path).setup
    with pytest.raises(TrainingError, match="is for validation and trained on: 'make it alpha'"):
        Trainer(base.planner, base.policy, base.reward, base.tasks, tmp_path, validation=runs.TASKS[:1])


# -- several processes -----------------------------------------------------------------------------------------------


SCRIPT = """
import torch

from formal_llm.rltf.distributed import world

with world(2) as here:
    both, second, none = (torch.nn.Parameter(torch.zeros(2)) for _ in range(3))
    both.grad = torch.full((2,), 1.0 + here.rank)
    if here.rank == 1:
        second.grad = torch.ones(2)
    here.sum_gradients([both, second, none])
    assert both.grad.tolist() == [3, 3]
    assert second.grad.tolist() == [1, 1]
    assert none.grad is None
    assert here.gather({here.rank: here.first}) == {0: True, 1: False}
    assert here.own("abc") == list("ac" if here.first else "b")
"""


@pytest.mark.slow
def test_gradients_are_summed_where_there_are_any(tmp_path: Path) -> None:
    script = tmp_path / "sums.py"
    script.write_text(SCRIPT)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OMP_NUM_THREADS": "1"}
    subprocess.run(launch, env=environment, check=True, timeout=300)


def test_the_number_of_processes_is_asserted() -> None:
    with pytest.raises(TrainingError, match="torchrun --nproc-per-node 2"), world(2):
        pass


def test_alone_there_is_nothing_to_exchange() -> None:
    with world() as here:
        assert here == Processes(0, 1)
        assert here.first
        assert here.own([1, 2, 3]) == [1, 2, 3]
        assert here.gather({"a": 1}) == {"a": 1}
        here.wait()
