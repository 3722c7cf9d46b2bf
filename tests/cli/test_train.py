"""``formal-llm train``: recipes, options, what is said, Ctrl-C and going on, several processes."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from formal_llm import Plan, Task
from formal_llm.cli.train import _describe_results, _format_command, _warn_of_idle, read_settings
from formal_llm.errors import InputError, NotationError
from formal_llm.rltf.metrics_log import read_log
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.trainer import Trained
from tests import tiny_models
from tests.cli.inside import runner

RECIPE = """
[what]
train = "0,13,116"
held_out = "7,13"
[update]
advantage = "rloo"
samples = 2
tasks_per_update = 2
updates = 3
rank = 2
"""

run = runner("train")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    spoken = tiny_models.tokenizer()
    return tiny_models.save(tmp_path_factory.mktemp("model"), tiny_models.causal(vocabulary=len(spoken)), spoken)


@pytest.fixture
def recipe(tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "140")
    monkeypatch.setenv("NO_COLOR", "1")
    file = tmp_path / "mine.toml"
    file.write_text(f"model = {json.dumps(model)}\n{RECIPE}")
    return str(file)


# -- settings and options ----------------------------------------------------------------------------------------------


def test_the_help_tells_every_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    code, printed, _ = run("--help")
    assert code == 0
    told = " ".join(printed.replace("│", " ").split())
    for name, setting in Settings.model_fields.items():
        assert " ".join(f"{name} = {setting.default!r}: {setting.description}".split()) in told


def test_changes_count_instead_of_the_recipe(recipe: str) -> None:
    settings = read_settings(recipe, ["samples=5", "targets=q_proj,v_proj", "learning_rate=1e-4", "tensorboard=true"])
    assert (settings.samples, settings.tasks_per_update, settings.targets) == (5, 2, ("q_proj", "v_proj"))
    assert (settings.learning_rate, settings.tensorboard) == (1e-4, True)
    assert read_settings(recipe, ["template=enable_thinking=false"]).template == ("enable_thinking=false",)
    assert read_settings(recipe, ["targets="]).targets == ()
    assert read_settings("openagi", []).advantage == "reinforce"


def test_wrong_settings_say_where_they_stand(recipe: str) -> None:
    with pytest.raises(NotationError, match="--set: samples"):
        read_settings(recipe, ["samples=0"])
    for wrong in (["samples"], ["samples=2", "samples=3"]):
        with pytest.raises(InputError, match="give each setting once, as NAME=VALUE"):
            read_settings(recipe, wrong)
    Path(recipe).write_text("sampels = 3")
    with pytest.raises(NotationError, match=r"mine.toml.*no setting sampels; did you mean samples"):
        read_settings(recipe, ["samples=3"])


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (("--set", "samples=0"), 2, "samples: Input should be greater than or equal to 1, not '0'"),
        (("--set", "samples=x"), 2, "samples: Input should be a valid integer"),
        (("--set", "sampels=2"), 2, "no setting sampels; did you mean samples?"),
        (("--more", "2"), 2, "No such option"),
        (("--set", "schedule=steep"), 2, "'constant'"),
        (("--set", "advantage=exat"), 2, "did you mean exact?"),
        (("--set", "train=trainin"), 2, "Did you mean 'training'?"),
        (("--set", "train=185"), 2, "no task '185'"),
        (("--set", "reward=refrences"), 2, "Did you mean 'references'?"),
        (("--set", "reward=executed"), 2, "making.make_data"),
        (("--set", "pack=openagy"), 2, "Did you mean 'openagi'?"),
        (("--set", "model=builtin"), 3, "builtin cannot be trained"),
        (("--set", "model=some/where/else"), 3, "no folder 'some/where/else'"),
        (("--set", "adapter=nowhere"), 2, "no adapter file"),
        (("--set", "processes=2"), 2, "torchrun --nproc-per-node 2"),
    ],
)
def test_what_cannot_be_done_is_said(recipe: str, tmp_path: Path, more: tuple[str, ...], code: int, said: str) -> None:
    ended, printed, told = run(recipe, *more, "--out", str(tmp_path / "run"))
    assert (ended, printed) == (code, "")
    assert said in " ".join(told.replace("│", " ").split())


def test_recipes_that_are_not_there() -> None:
    code, _, said = run("minilm-dem", "--out", "run")
    assert code == 2
    there = "minilm-demo, minilm-rewordings, openagi, single-gpu, smollm2-cpu, tiny"
    assert f"Did you mean 'minilm-demo'? There are: {there}." in said


def test_a_dry_run_tells_and_writes_nothing(recipe: str, tmp_path: Path) -> None:
    code, printed, said = run(recipe, "--dry-run", "--set", "warm_start=2", "--out", str(tmp_path / "run"))
    assert (code, said) == (0, "")
    lines = printed.splitlines()
    assert "samples = 2" in lines
    assert 'advantage = "rloo"' in lines
    assert "note: task 13 is trained on, so not held out" in lines
    assert "3 tasks to train on, with the number of their plans:" in lines
    assert "  348,042,253  Given noisy image, how to return the regular image step by step?" in lines
    assert "1 task held out:" in lines
    assert lines[-1] == f"3 updates after 2 of warm start, into {tmp_path / 'run'}; nothing was written"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("single-gpu", ["gradient_checkpointing = true", 'dtype = "bfloat16"', "tasks_per_update = 13"]),
        ("smollm2-cpu", ['scoring = "calibrated"', 'advantage = "rloo"', "tasks_per_update = 3"]),
    ],
)
def test_recipes_for_larger_models_tell_their_work(model: str, name: str, told: list[str], tmp_path: Path) -> None:
    code, printed, said = run(name, "--set", f"model={model}", "--dry-run", "--out", str(tmp_path / "run"))
    assert (code, said) == (0, "")
    lines = printed.splitlines()
    assert set(told) <= set(lines)
    assert f"{7 if name == 'smollm2-cpu' else 13} tasks to train on, with the number of their plans:" in lines
    assert lines[-1].endswith("nothing was written")


# -- runs --------------------------------------------------------------------------------------------------------------


def test_a_run_from_the_recipe_to_the_report(recipe: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, printed, said = run(recipe, "--set", "evaluate_every=2", "--out", str(out))
    assert code == 0, said
    first, second, *places = printed.splitlines()
    assert first.startswith("held-out reward: ")
    assert second.startswith("held-out exact: ")
    assert places == [str(out / name) for name in ("final", "best", "report.md")]
    assert "note: task 13 is trained on, so not held out" in said
    assert "update 2: held-out tasks: reward" in said
    assert "done after 3 of 3 updates" in said
    entries = read_log(out)
    assert [entry.step for entry in entries if entry.kind == "update"] == [1, 2, 3]
    assert entries[0].data["settings"]["evaluate_every"] == 2
    again, _, told = run(recipe, "--out", str(out))
    assert again == 2
    assert "has a run already: go on with it (--resume)" in told


def pressing(task: Task, plan: Plan) -> float:
    """A reward during which somebody presses Ctrl-C."""
    if not _pressed:
        _pressed.append(True)
        os.kill(os.getpid(), signal.SIGINT)
    return 1.0


_pressed: list[bool] = []


def test_ctrl_c_ends_with_a_checkpoint_and_says_how_to_go_on(recipe: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    _pressed.clear()
    reward = ("--set", f"reward={__name__}:pressing", "--set", "held_out=")
    code, _, said = run(recipe, *reward, "--set", "tensorboard=true", "--out", str(out))
    assert code == 130
    assert "interrupted after update 1; go on with: " in said
    command = shlex.split(said.partition("go on with: ")[2])
    assert command[:2] == ["formal-llm", "train"]
    assert command[-3:] == ["--out", str(out), "--resume"]
    assert "tensorboard=true" in command
    code, printed, said = run(*command[2:])
    assert code == 0, said
    assert "going on after update 1" in said
    assert printed.splitlines()[0] == str(out / "final")
    assert [entry.step for entry in read_log(out) if entry.kind == "update"] == [1, 2, 3]


def test_the_command_that_goes_on_starts_as_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = ["updates=3", "targets=q,v"]
    options = "train tiny --set updates=3 --set targets=q,v --out runs/one --resume"
    assert _format_command("tiny", Path("runs/one"), changes) == f"formal-llm {options}"
    monkeypatch.setenv("WORLD_SIZE", "4")
    started = "torchrun --standalone --nproc-per-node 4 -m formal_llm"
    assert _format_command("tiny", Path("runs/one"), changes) == f"{started} {options}"
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")  # on two machines
    assert _format_command("tiny", Path("runs/one"), changes) == f"torchrun --nproc-per-node 2 -m formal_llm {options}"


def test_idle_processes_are_told() -> None:
    assert not list(_warn_of_idle(Settings(tasks_per_update=2), 2))
    assert list(_warn_of_idle(Settings(tasks_per_update=2), 4)) == [
        "an update has 2 tasks, and each is one process's: 2 of 4 processes wait; raise tasks_per_update"
    ]


@pytest.mark.parametrize(
    ("step", "judged", "said"),
    [(4, 4, "0.250 before, 0.500 after"), (4, 2, "0.250 before, 0.500 after update 2, the last that was judged"),
     (1, 0, "0.250 before; not judged since")],
)  # fmt: skip
def test_what_is_said_is_of_the_update_that_was_judged(step: int, judged: int, said: str, tmp_path: Path) -> None:
    trained = Trained(tmp_path, step, "interrupted", {"reward": 0.25}, {"reward": 0.5}, judged)
    assert list(_describe_results(trained)) == [f"held-out reward: {said}"]


def failing(task: Task, plan: Plan) -> float:
    return float("nan")


def test_a_reward_that_is_no_number_names_the_plan(recipe: str, tmp_path: Path) -> None:
    code, _, said = run(recipe, "--set", f"reward={__name__}:failing", "--out", str(tmp_path / "run"))
    assert code == 2
    assert "is nan, not a finite number (task: 'Given" in said


def test_a_reward_in_the_folder_where_one_stands(recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reward_beside.py").write_text("def short(task, plan):\n    return 1 / len(plan.word)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    code, _, said = run(recipe, "--set", "reward=reward_beside:short", "--set", "updates=1", "--out", "run")
    assert code == 0, said


@pytest.mark.slow
def test_two_processes_and_one_voice(recipe: str, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "formal_llm", "train"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", "CUDA_VISIBLE_DEVICES": ""}
    arguments = [recipe, "--set", "processes=2", "--set", "updates=2", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, *command, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("held-out reward") == 1
    assert done.stderr.count("note: task 13") == 1
    assert [entry.step for entry in read_log(out) if entry.kind == "update"] == [1, 2]
