"""Settings: recipes, their errors, the figures of the paper; and the fingerprint of a run."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Planner
from formal_llm.errors import NotationError, ResourceNotFound
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.settings import Settings, count_updates, learning_rate, tasks_of
from formal_llm.rltf.setup import TrainingSetup, advise_threads, hash_values, slow_threads
from tests.rltf import training_runs as runs
from tests.rltf.training_runs import small_trainer


def recipe(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_paper_s_settings_are_the_defaults() -> None:
    settings = Settings()
    assert (settings.advantage, settings.decay) == ("reinforce", 0.8)
    assert (settings.learning_rate, settings.weight_decay, settings.schedule) == (1e-3, 0.0, "constant")
    assert settings.epochs == 30
    assert (settings.rank, settings.targets) == (8, ())


def test_tables_only_put_in_order(tmp_path: Path) -> None:
    flat = Settings.read(recipe(tmp_path, 'rank = 4\nadvantage = "rloo"\nsamples = 8\n'))
    tables = Settings.read(recipe(tmp_path, '[policy]\nrank = 4\n[update]\nadvantage = "rloo"\nsamples = 8\n'))
    assert flat == tables
    assert flat.rank == 4
    assert Settings.read(recipe(tmp_path, "rank = 4"), {"rank": 2}).rank == 2


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rank = 0", "rank: .*greater than or equal to 1, not 0"),
        ("# a\n[policy]\nrnk = 4", ":3:1: there is no setting rnk; did you mean rank?"),
        ("x = " + "[" * 50_000, "nested too deeply"),
        ('advantage = "rlo"', "no advantage 'rlo'; did you mean rloo?"),
        ("learning_rate = nan", "learning_rate: .*finite"),
        ('schedule = "steps"', "schedule: .*'constant'"),
        ("[a]\nrank = 1\n[b]\nrank = 2", "the setting rank is there twice"),
        ("rank 4", "this is not TOML"),
        ("seed = -1", "seed: "),
        ('updates = "many"', "updates: .*integer.*'many'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, told: str) -> None:
    path = recipe(tmp_path, text)
    with pytest.raises(NotationError, match=told) as caught:
        Settings.read(path)
    assert str(path) in str(caught.value)


def test_a_recipe_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound, match="recipe"):
        Settings.read(tmp_path / "none.toml")


def test_every_setting_is_described() -> None:
    assert all(field.description for field in Settings.model_fields.values())


def rates(**terms: Any) -> list[float]:
    settings = Settings(**{"updates": 6, "learning_rate": 1.0, **terms})
    updates = count_updates(settings, 3)
    return [round(learning_rate(settings, step, updates), 3) for step in range(1, updates + 1)]


def test_schedules() -> None:
    assert rates() == [1.0] * 6
    assert rates(warmup=2) == [0.5, 1.0, 1.0, 1.0, 1.0, 1.0]
    assert rates(schedule="linear") == [1.0, 0.833, 0.667, 0.5, 0.333, 0.167]
    assert rates(schedule="cosine", warmup=2) == [0.5, 1.0, 1.0, 0.854, 0.5, 0.146]
    assert rates(schedule="linear", warm_start=2)[:3] == [1.0, 1.0, 1.0]
    assert rates(warm_start=2, warm_learning_rate=0.25, warmup=2)[:4] == [0.25, 0.25, 0.5, 1.0]


@pytest.mark.parametrize("schedule", ["constant", "linear", "cosine"])
@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 20))
def test_rates_are_above_0_and_never_rise_after_the_warm_up(
    schedule: Any, warm_start: int, warmup: int, updates: int
) -> None:
    found = rates(schedule=schedule, warm_start=warm_start, warmup=warmup, updates=updates)
    assert len(found) == warm_start + updates
    assert all(0 < rate <= 1 for rate in found)
    after = found[warm_start + warmup :]
    assert after == sorted(after, reverse=True)


@given(st.integers(1, 9), st.integers(1, 12), st.integers(1, 6), st.integers(0, 99))
def test_each_epoch_has_every_task_once(tasks: int, size: int, epochs: int, seed: int) -> None:
    settings = Settings(tasks_per_update=size, epochs=epochs, seed=seed)
    updates = count_updates(settings, tasks)
    assert updates == math.ceil(epochs * tasks / size)
    order = [place for update in range(1, updates + 1) for place in tasks_of(settings, tasks, update)]
    assert len(order) == updates * size
    for epoch in range(epochs):
        assert Counter(order[epoch * tasks : (epoch + 1) * tasks]) == Counter(range(tasks))


def test_epochs_differ_and_seeds_do() -> None:
    def orders(seed: int) -> list[tuple[int, ...]]:
        settings = Settings(tasks_per_update=5, seed=seed)
        return [tuple(tasks_of(settings, 5, update)) for update in range(1, 9)]

    assert len(set(orders(0))) > 4
    assert orders(0) != orders(1)


# -- what a run is made of -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def policy() -> Policy:
    return runs.tiny_policy()


def setup(policy: Policy, tasks: int = 3, **settings: Any) -> TrainingSetup:
    planner = Planner(runs.RULES, "test:first")
    return TrainingSetup(planner, policy, Reward(runs.wanted_tool), tuple(runs.TASKS[:tasks]), Settings.of(settings))


@pytest.mark.parametrize("change", [{"samples": 2}, {"seed": 1}, {"kl": 0.1}, {"advantage": "rloo"}])
def test_what_is_computed_is_in_the_fingerprint(policy: Policy, change: dict[str, Any]) -> None:
    assert setup(policy, **change).fingerprint != setup(policy).fingerprint
    assert setup(policy, tasks=2).fingerprint != setup(policy).fingerprint


@pytest.mark.parametrize("change", [{"updates": 9}, {"device": "cpu"}, {"keep_checkpoints": 5}, {"batch_tokens": 9}])
def test_how_it_is_computed_is_not(policy: Policy, change: dict[str, Any]) -> None:
    fingerprint = setup(policy, **change).fingerprint
    assert fingerprint == setup(policy).fingerprint
    assert json.loads(json.dumps(fingerprint))["weights"] == policy.trainable


def test_updates_are_counted(policy: Policy) -> None:
    assert setup(policy, epochs=2, warm_start=1).updates == 7
    assert setup(policy, updates=4).updates == 4


def test_a_digest_is_the_same_in_every_process() -> None:
    assert hash_values([0, 1, "a"]) == "23e32875dceb8805"
    assert hash_values(["a", "b"]) != hash_values(["ab"])


def test_the_advice() -> None:
    assert (
        advise_threads(1.0, 3.0, 2)
        == "one thread is 3.0 times as fast as 2 here: give threads = 1, or set OMP_NUM_THREADS=1"
    )
    assert advise_threads(1.0, 1.05, 2) == advise_threads(3.0, 1.0, 4) == ""


@pytest.fixture
def two_threads() -> object:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_what_is_measured_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, two_threads: None) -> None:
    setup = small_trainer(tmp_path).setup
    used: list[int] = []

    def seconds(policy: object, questions: list[object]) -> float:
        assert len(questions) == 3
        used.append(torch.get_num_threads())
        return 0.5 * torch.get_num_threads()

    monkeypatch.setattr("formal_llm.rltf.setup._time_policy", seconds)
    assert slow_threads(setup).startswith("one thread is 2.0 times as fast as 2 here")
    assert used == [2, *[1, 2] * 3]
    assert torch.get_num_threads() == 2
    used.clear()
    monkeypatch.setattr("formal_llm.rltf.setup._LONG", 0.9)  # a large model
    assert slow_threads(setup) == ""
    assert used == [2]
    torch.set_num_threads(1)
    used.clear()
    assert (slow_threads(setup), used) == ("", [])


def test_a_run_is_the_same_whether_it_was_measured(tmp_path: Path, two_threads: None) -> None:
    weights = []
    for name in ("one", "other"):
        trainer = small_trainer(tmp_path / name, updates=2, dropout=0.1)
        if name == "one":
            slow_threads(trainer.setup)
        torch.set_num_threads(1)
        trainer.run()
        torch.set_num_threads(2)
        weights.append([parameter.clone() for parameter in trainer.setup.policy.parameters])
    assert all(torch.equal(*pair) for pair in zip(*weights, strict=True))
