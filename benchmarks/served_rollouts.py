"""Plans from a server (``--rollouts vllm:URL``): what old weights on it do to the gradient, and what it has to read.

Run: python benchmarks/served_rollouts.py [--updates 40] [--tasks 13]

Old weights: a tiny decoder with random weights is trained on the 16 plans of three tools by the exact gradient; the
server is given the weights from some updates before. All is summed over all plans, nothing is drawn: how far the two
are apart, what the samples are worth, and how far the expected gradient is from the exact one, as a share of its
length: without a correction, with ratios cut at 2, and with ratios that are not cut.

Reading: the questions of plans that are drawn evenly for OpenAGI's training tasks, all of an update together, as they
are sent to servers that tell of tokens by their numbers, and to older ones. Of the former the tokens are counted that
it has not read before in this update (vLLM keeps what it has read in blocks of 16 tokens); the latter read all they are
sent.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import tiny_decoder
from formal_llm import CFG, Planner, Task, TaskPack
from formal_llm.llms.hosted.vllm import LoRAServer, Text
from formal_llm.llms.local.model import TransformersLLM
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.objective import Objective, factors, log_probabilities_of
from formal_llm.rltf.policy import Policy
from formal_llm.rltf.rollout import Start, rollout
from formal_llm.rltf.served import ServedPolicy

RULES = '%limit 1\n%limit * e\nS -> a S | b S | c S | e\na "Alpha"\nb "Beta"\nc "Gamma"\ne "the input"'
BLOCK = 16


def policy_for(planner: Planner, tasks: Sequence[Task]) -> Policy:
    """A tiny decoder whose tokenizer knows the words of the tasks."""
    tokenizer = tiny_decoder.tokenizer(tiny_decoder.questions(planner, tasks))
    return Policy(TransformersLLM.of(tiny_decoder.decoder(64, 2), tokenizer, name="tiny"), temperature=2)


def old_weights(updates: int, rate: float) -> Table:
    """What weights from some updates before do."""
    import torch

    planner, task = Planner(CFG.from_string(RULES), "test:first"), Task("make it alpha")
    policy = policy_for(planner, [task])
    plans = enumerate_episodes(planner, task, 0, 100)
    rewards = [float("a" in plan.word) - 0.1 * len(plan.word) for plan in plans]
    optimizer = torch.optim.Adam(policy.parameters, lr=rate)

    def gradient(weights: Sequence[float]) -> torch.Tensor:
        optimizer.zero_grad()
        objective = Objective(policy)
        objective.add_episodes(plans, weights)
        objective.backpropagate_loss()
        return torch.cat([parameter.grad.flatten() for parameter in policy.parameters if parameter.grad is not None])

    def exact(logs: Sequence[float]) -> list[float]:
        mean = math.fsum(math.exp(log) * reward for log, reward in zip(logs, rewards, strict=True))
        return [math.exp(log) * (reward - mean) for log, reward in zip(logs, rewards, strict=True)]

    history = []
    for _ in range(updates):
        history.append(log_probabilities_of(policy, plans))
        gradient(exact(history[-1]))
        optimizer.step()
        policy.changed()
    own = log_probabilities_of(policy, plans)
    true = gradient(exact(own))
    table = Table(title=f"Weights on the server from before; learning rate {rate:g}, after {updates} updates")
    for name in ("updates ago", "nats apart", "samples are worth", "off, uncorrected", "cut at 2", "not cut"):
        table.add_column(name, justify="right")
    for ago in (0, 1, 2, 4, 8, 16):
        drawn = own if ago == 0 else history[-ago]
        ratios = [one - other for one, other in zip(own, drawn, strict=True)]
        chances = [math.exp(log) for log in drawn]
        apart = math.fsum(-chance * ratio for chance, ratio in zip(chances, ratios, strict=True))
        worth = 1 / math.fsum(chance * math.exp(2 * ratio) for chance, ratio in zip(chances, ratios, strict=True))
        mean = math.fsum(chance * reward for chance, reward in zip(chances, rewards, strict=True))

        def off(by: Sequence[float], chances: list[float] = chances, mean: float = mean) -> str:
            weights = [c * (r - mean) * f for c, r, f in zip(chances, rewards, by, strict=True)]
            return f"{float((gradient(weights) - true).norm() / true.norm()):.1%}"

        table.add_row(
            str(ago), f"{max(apart, 0):.4f}", f"{worth:.1%}", off([1.0] * len(plans)), off(factors(ratios, 2)),
            off(factors(ratios)),
        )  # fmt: skip
    return table


class Counting(LoRAServer):
    """A server that is not there: it counts what it would be sent, and finds all tokens equally probable."""

    def __init__(self, names_tokens: bool) -> None:
        super().__init__("http://127.0.0.1:9")
        self.numbered = names_tokens
        self.sent = self.new = self.texts = 0
        self._blocks: set[Text] = set()

    def _request_completions(
        self,
        model: str,  # noqa: ARG002
        texts: Sequence[Text],
        more: Mapping[str, object],
        field: str,  # noqa: ARG002
    ) -> list[list[Any]]:
        if "logprob_token_ids" in more and not self.numbered:
            return [[{}] for _ in texts]
        for text in texts:
            begins = {text[:end] for end in range(BLOCK, len(text), BLOCK)}
            known = len(begins & self._blocks) * BLOCK if self.numbered else 0
            self._blocks |= begins
            self.texts, self.sent, self.new = self.texts + 1, self.sent + len(text), self.new + len(text) - known
        if not self.numbered:
            return [[None, *[-1.0] * len(text)] for text in texts]
        numbers: Any = more["logprob_token_ids"]
        return [[{f"token_id:{number}": -1.0 for number in numbers}] for _ in texts]


def reading(count: int) -> Table:
    """What a server has to read for the plans of an update."""
    pack = TaskPack.load("openagi")
    planner, tasks = pack.planner("test:random"), pack.split("training")[:count]
    policy = policy_for(planner, tasks)
    table = Table(title=f"Reading on the server: one update of {count} tasks, 8 plans each")
    for name in ("server", "questions", "texts sent", "tokens sent", "tokens read", "read a question"):
        table.add_column(name, justify="left" if name == "server" else "right")
    for named in (True, False):
        server = Counting(named)
        by = ServedPolicy(policy, server, "build/served")
        rollout(planner, by, [Start(i, task, f"{i} {n}") for i, task in enumerate(tasks) for n in range(8)])
        questions = by.scorer.stats["computed"]
        table.add_row(
            "tells by numbers" if named else "older: is sent the answers", f"{questions:,}", f"{server.texts:,}",
            f"{server.sent:,}", f"{server.new:,}", f"{server.new / questions:,.0f}",
        )  # fmt: skip
        server.client.close()
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=40, help="of the training before")
    parser.add_argument("--rate", type=float, default=1e-3, help="its learning rate")
    parser.add_argument("--tasks", type=int, default=13, help="whose questions are read")
    told = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    tiny_decoder.quiet()
    console = Console(width=120)
    console.print(old_weights(told.updates, told.rate))
    console.print(reading(told.tasks))


if __name__ == "__main__":
    main()
