"""Plans from a server: the gradient is that of the policy, and what a server may do wrong is told."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from formal_llm import Planner
from formal_llm.errors import ModelError, ProviderError, TrainingError
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.rltf.advantages import estimate
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.objective import Objective, factors, log_probabilities_of
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.rewards import Reward
from formal_llm.rltf.served import RETRIES, ServedPolicy, server_at
from formal_llm.rltf.settings import Settings
from formal_llm.rltf.setup import TrainingSetup
from formal_llm.rltf.task_memory import TaskMemory
from formal_llm.rltf.trainer import Trainer
from formal_llm.rltf.update import Learner, PlanCollector
from tests import tiny_models
from tests.rltf import training_runs as runs
from tests.rltf.vllm_server import VLLMServer

PLANNER = Planner(runs.RULES, "test:first")


@pytest.fixture
def vllm() -> Iterator[VLLMServer]:
    with VLLMServer().running() as server:
        yield server


def moved(policy: Policy, by: float = 0.2, seed: int = 0) -> Policy:
    """A policy with other adapters: fresh ones do nothing."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in policy.parameters:
            parameter.add_(by * torch.randn_like(parameter))
    policy.changed()
    return policy


def served(policy: Policy, vllm: VLLMServer, folder: Path) -> ServedPolicy:
    return ServedPolicy(policy, server_at(f"vllm:{vllm.url}"), folder)


def setup(policy: Policy, by: ServedPolicy | None = None, **settings: Any) -> TrainingSetup:
    how = Settings.of({"samples": 4, "tasks_per_update": 3, "advantage": "rloo", **settings})
    return TrainingSetup(PLANNER, policy, Reward(runs.wanted_tool, name="wanted"), tuple(runs.TASKS), how, served=by)


def gradients(policy: Policy) -> torch.Tensor:
    return torch.cat([torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in policy.parameters])


def learned(one: TrainingSetup) -> torch.Tensor:
    """The gradient of an update."""
    groups = PlanCollector(one).collect_groups(1, [(0, 0), (1, 1), (2, 2)], TaskMemory())
    objective = Objective(one.policy, 1 / 3)
    for group in groups:
        objective.add_episodes(group.episodes, group.weights, group.shares)
    with one.policy.training():
        objective.backpropagate_loss(entropy=0.1)
    found = gradients(one.policy)
    for parameter in one.policy.parameters:
        parameter.grad = None
    return found


@pytest.mark.parametrize("names_tokens", ["yes", "ignored", "refused"])
def test_with_the_same_weights_the_gradient_is_that_without_a_server(
    vllm: VLLMServer, names_tokens: str, tmp_path: Path
) -> None:
    vllm.names_tokens = names_tokens
    policy = moved(runs.tiny_policy())
    by = served(policy, vllm, tmp_path)
    by.renew(0)
    alone, corrected = learned(setup(policy)), learned(setup(policy, by))
    assert alone.norm() > 1e-3
    assert torch.allclose(corrected, alone, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("scoring", ["text", "calibrated+0.5*number"])
def test_the_server_scores_in_the_modes_of_the_policy(vllm: VLLMServer, scoring: str, tmp_path: Path) -> None:
    spoken = tiny_models.tokenizer()
    llm = TransformersLLM.of(tiny_models.causal("llama", len(spoken)), spoken, name="tiny", scoring=scoring)
    policy = moved(Policy(llm))
    by = served(policy, vllm, tmp_path)
    by.renew(0)
    questions = [e.decisions[0].question for e in enumerate_episodes(PLANNER, runs.TASKS[2], 2, 100)][:1]
    with torch.no_grad():
        assert torch.allclose(by.log_probabilities(questions), policy.log_probabilities(questions), atol=1e-4)


def test_with_older_weights_on_the_server_the_expected_gradient_is_the_exact_one(
    vllm: VLLMServer, tmp_path: Path
) -> None:
    """Over all plans that the server may draw, each with its chance there, without a cap."""
    policy = moved(runs.tiny_policy(temperature=3))
    by = served(policy, vllm, tmp_path)
    by.renew(0)
    moved(policy, 0.15, seed=1)
    task = runs.TASKS[0]
    plans = enumerate_episodes(PLANNER, task, 0, 100)
    drawn = log_probabilities_of(by, plans)
    own = log_probabilities_of(policy, plans)
    assert math.fsum(map(math.exp, drawn)) == pytest.approx(1, abs=1e-4)
    ratios = [log - other for log, other in zip(own, drawn, strict=True)]
    assert max(map(abs, ratios)) > 0.1  # they are older
    rewards = [runs.wanted_tool(e.task, e.plan) for e in plans]

    def gradient(weights: list[float]) -> torch.Tensor:
        objective = Objective(policy)
        objective.add_episodes(plans, weights)
        objective.backpropagate_loss()
        found = gradients(policy)
        for parameter in policy.parameters:
            parameter.grad = None
        return found

    def expected(cap: float) -> torch.Tensor:
        weights = [estimate("plain", rewards=[reward]).sampled[0] for reward in rewards]
        chances = map(math.exp, drawn)
        return gradient([c * w * f for c, w, f in zip(chances, weights, factors(ratios, cap), strict=True)])

    (group,) = PlanCollector(setup(policy, by, advantage="exact")).collect_groups(1, [(0, 0)], TaskMemory())
    assert [e.path for e in group.episodes] == [e.path for e in plans]
    exact = gradient(list(group.weights))
    assert torch.allclose(expected(0), exact, rtol=1e-3, atol=1e-5 * float(exact.norm()) + 1e-6)
    uncorrected = gradient([math.exp(log) * reward for log, reward in zip(drawn, rewards, strict=True)])
    far = float((uncorrected - exact).norm())
    assert far > 20 * float((expected(0) - exact).norm())
    assert float((expected(1.2) - exact).norm()) > 1e-3  # a cap is a bias


def test_the_weights_of_samples_are_those_of_the_estimator_times_their_ratios(vllm: VLLMServer, tmp_path: Path) -> None:
    policy = moved(runs.tiny_policy(temperature=3))
    by = served(policy, vllm, tmp_path)
    by.renew(0)
    moved(policy, 0.3, seed=1)
    (group,) = PlanCollector(setup(policy, by, rollout_cap=1.1)).collect_groups(1, [(0, 0)], TaskMemory())
    own = log_probabilities_of(policy, group.episodes)
    ratios = [log - e.log_probability for log, e in zip(own, group.episodes, strict=True)]
    plain = estimate("rloo", rewards=group.outcome.rewards).sampled
    assert group.outcome.log_ratios == pytest.approx(ratios, abs=1e-6)
    assert group.weights == pytest.approx([w * min(math.exp(r), 1.1) for w, r in zip(plain, ratios, strict=True)])
    assert group.shares == pytest.approx([min(math.exp(r), 1.1) for r in ratios])


def test_each_update_has_the_newest_adapters_on_the_server(vllm: VLLMServer, tmp_path: Path) -> None:
    policy = runs.tiny_policy()
    made = Learner(setup(policy, served(policy, vllm, tmp_path), warm_start=1, updates=3, learning_rate=3e-2))
    made.update()
    assert vllm.asked == []  # a warm start draws nothing
    figures = [made.update(), made.update()]
    assert [name.rpartition("-")[2] for name in vllm.adapters] == ["2"]
    assert [one.name for one in tmp_path.iterdir()] == list(vllm.adapters)
    for one in figures:
        assert one["ratio"] == pytest.approx(1, abs=1e-3)
        assert one["effective_samples"] == pytest.approx(1, abs=1e-3)
        assert one["drift"] < 1e-6
        assert one["ratios_cut"] == 0


def test_a_server_that_disagrees_is_warned_of_once(vllm: VLLMServer, tmp_path: Path) -> None:
    policy = moved(runs.tiny_policy())
    by = served(policy, vllm, tmp_path)
    by.renew(-1)
    vllm.frozen = by.adapter  # it goes on with these, whatever it is given
    moved(policy, 0.5, seed=1)
    made = Learner(setup(policy, by, updates=2, samples=8))
    with pytest.warns(UserWarning, match="the server that makes the plans and the trainer disagree in update 1"):
        figures = made.update()
    assert figures["drift"] > 0.1
    assert figures["effective_samples"] < 1
    made.update()  # a second warning would be an error here


# -- what may go wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("started", "said"),
    [
        ({"updating": False}, "takes no adapters while it runs; start it with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"),
        ({"lora": False}, "was started without LoRA; start it with .*--enable-lora"),
        ({"rank": 4}, "rank is too large for the server; start it with --max-lora-rank 8"),
        ({"failing": RETRIES + 1}, "the engine is busy"),
    ],
)
def test_a_server_that_takes_no_adapters(started: dict[str, Any], said: str, tmp_path: Path) -> None:
    with VLLMServer(**started).running() as server, pytest.raises(TrainingError, match=said):
        served(runs.tiny_policy(), server, tmp_path).renew(0)


def test_a_server_that_sees_another_disk(vllm: VLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = runs.tiny_policy()
    monkeypatch.setattr(policy, "save", lambda _: None)
    with pytest.raises(TrainingError, match=r"does not see the folder .*give a folder that both see.*rollout_folder"):
        served(policy, vllm, tmp_path).renew(0)


def test_passing_failures_pass(vllm: VLLMServer, tmp_path: Path) -> None:
    policy = runs.tiny_policy()
    by = served(policy, vllm, tmp_path)
    vllm.failing = 2
    by.renew(0)
    vllm.failing = 2
    learned(setup(policy, by))


def test_a_server_that_was_started_anew_gets_the_adapter_again(vllm: VLLMServer, tmp_path: Path) -> None:
    policy = moved(runs.tiny_policy())
    by = served(policy, vllm, tmp_path)
    by.renew(0)
    vllm.adapters.clear()
    learned(setup(policy, by))
    assert list(vllm.adapters) == [by.adapter]


def test_an_answer_that_was_lost_does_no_harm(vllm: VLLMServer, tmp_path: Path) -> None:
    policy = runs.tiny_policy()
    by = served(policy, vllm, tmp_path)
    by.renew(0)
    by.server.load(by.adapter, tmp_path / by.adapter)  # the same request once more
    assert list(vllm.adapters) == [by.adapter]


def test_an_unreachable_server_is_told(tmp_path: Path) -> None:
    with VLLMServer().running() as server:
        url = server.url
    by = ServedPolicy(runs.tiny_policy(), server_at(f"vllm:{url}"), tmp_path)
    by.server.client.max_retries = 0
    with pytest.raises(TrainingError, match="cannot be reached"):
        by.renew(0)
    with pytest.raises(ProviderError, match="cannot be reached"):
        by.server.check()


def test_a_silent_server_is_given_up(vllm: VLLMServer) -> None:
    server = server_at(f"vllm:{vllm.url}", timeout=0.2)
    server.client.max_retries = 0
    with vllm._lock, pytest.raises(ProviderError, match="no answer came in time"):
        server.models()


def test_only_decoders_are_served(vllm: VLLMServer, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be made on a vLLM server"):
        served(runs.tiny_policy("t5"), vllm, tmp_path)


@pytest.mark.parametrize("rollouts", ["http://localhost", "sglang:http://localhost", "vLLM:"])
def test_what_names_no_server(rollouts: str) -> None:
    with pytest.raises(TrainingError, match="rollouts are made on vllm:URL"):
        server_at(rollouts)


# -- runs --------------------------------------------------------------------------------------------------------------


def trainer(folder: Path, vllm: VLLMServer, **settings: Any) -> Trainer:
    policy = runs.tiny_policy()
    how = Settings.of({"samples": 2, "advantage": "rloo", "learning_rate": 1e-2, **settings})
    by = served(policy, vllm, folder / "served")
    return Trainer(PLANNER, policy, Reward(runs.wanted_tool, name="wanted"), runs.TASKS[:1], folder, settings=how,
                   served=by)  # fmt: skip


def state(folder: Path, step: int) -> Any:
    return json.loads((folder / "checkpoints" / f"step-{step:06d}" / "state.json").read_text(encoding="utf-8"))


def weights_in(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return dict(load_file(str(folder / "final" / "adapter_model.safetensors")))


def test_a_run_on_a_server_is_stopped_and_goes_on(vllm: VLLMServer, tmp_path: Path) -> None:
    whole = trainer(tmp_path / "whole", vllm, updates=2)
    whole.run()
    by_whole, cut = whole.setup.served, tmp_path / "cut"
    assert by_whole is not None
    by_whole.close()
    first = trainer(cut, vllm, updates=2, checkpoint_every=1)
    update = first.learner.update

    def stopping() -> dict[str, float]:
        first.stop()
        return update()

    first.learner.update = stopping  # type: ignore[method-assign]
    assert first.run().reason == "interrupted"
    assert first.setup.served is not None
    left = first.setup.served.adapter
    # The plans of update 1 were drawn from the adapters from before it. The process was killed: they are still there.
    assert state(cut, 1)["served"] == {"adapter": left, "step": 0}
    assert list(vllm.adapters) == [left]
    second = trainer(cut, vllm, updates=2, checkpoint_every=1)
    assert second.run(resume=True).step == 2
    by = second.setup.served
    assert by is not None
    assert by.adapter.endswith("-1")
    assert list(vllm.adapters) == [by.adapter]  # that of the other process is gone
    assert [one.name for one in (cut / "served").iterdir()] == [by.adapter]
    by.close()
    assert vllm.adapters == {}
    assert not (cut / "served").exists()
    one, other = weights_in(tmp_path / "whole"), weights_in(cut)
    assert all(torch.allclose(one[name], other[name], atol=1e-5) for name in one)


def test_two_runs_share_a_server(vllm: VLLMServer, tmp_path: Path) -> None:
    made = [trainer(tmp_path / name, vllm, updates=2) for name in ("one", "other")]
    for one in made * 2:
        one.learner.renew_adapters()
        one.learner.step += 1
    adapters = [one.setup.served.adapter for one in made if one.setup.served is not None]
    assert len(set(adapters)) == 2
    assert set(vllm.adapters) == set(adapters)
    used = [body["lora_name"] for path, body in vllm.asked if path == "/v1/load_lora_adapter"]
    assert len(set(used)) == len(used) == 4  # no name is used twice: a server keeps what it has read under the name


def test_runs_that_share_a_folder_know_their_own_adapters(vllm: VLLMServer, tmp_path: Path) -> None:
    policy, server = runs.tiny_policy(), server_at(f"vllm:{vllm.url}")
    both = [ServedPolicy(policy, server, tmp_path / "shared", run=tmp_path / name) for name in ("one", "other")]
    for by in both:
        by.renew(0)
    again = ServedPolicy(policy, server, tmp_path / "shared", run=tmp_path / "one")
    again.resume({})  # the process before was killed, and nothing was saved
    again.renew(0)
    assert set(vllm.adapters) == {again.adapter, both[1].adapter}
    assert {one.name for one in (tmp_path / "shared").iterdir()} == set(vllm.adapters)
