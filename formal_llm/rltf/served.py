"""Plans from a vLLM server: it receives the adapters after each update, and answers the questions of rollouts.

The server scores exactly the answers that the trainer scores (the same tokens, in the same modes), so with the same
weights both give the same probabilities up to rounding. Options are drawn by the trainer, with the same draws as
without a server. The remaining difference, due to rounding or to weights that are not the latest, is corrected
(:mod:`formal_llm.rltf.objective`).

Each state of the adapters has its own name on the server, derived from the run, the process and the update: trainers do
not interfere with each other, and what a server has cached for one state is never used for another.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from formal_llm.errors import FormalLLMError, ModelError, ProviderError, TrainingError
from formal_llm.llms.hosted.vllm import LoRAServer, Text
from formal_llm.llms.local.causal import CausalScorer
from formal_llm.llms.local.rendering import Prompted
from formal_llm.llms.local.scorer import PromptScorer
from formal_llm.llms.question import Question
from formal_llm.rltf.distributed import Processes
from formal_llm.rltf.policy import Policy

if TYPE_CHECKING:
    import torch

#: The folder of the adapters on the server, in the folder of a run.
SERVED = "served"
#: The number of retries after a temporary failure of the server, which may be slow while it loads an adapter.
RETRIES = 5


class ServedScorer(PromptScorer):
    """A scorer of the policy's questions that asks a server.

    Attributes:
        adapter: the name of the adapter that answers.
    """

    def __init__(self, scorer: PromptScorer, server: LoRAServer) -> None:
        super().__init__(scorer.model, scorer.renderer, 1)
        self.scoring = scorer.scoring
        self.server = server
        self.adapter = ""

    def score(self, prompts: Sequence[Prompted]) -> list[torch.Tensor]:
        """Return the log-probabilities of each prompt's answers, as the server would write them."""
        import torch

        ways = [[_token_steps(prompt, path) for path in prompt.tree.paths] for prompt in prompts]
        tokens: dict[Text, set[int]] = {}
        for text, token in (step for row in ways for steps in row for step in steps):
            tokens.setdefault(text, set()).add(token)
        logs = self.server.next_tokens(self.adapter, tokens)
        return [torch.tensor([sum(logs[text][token] for text, token in steps) for steps in row]) for row in ways]


class ServedPolicy:
    """A policy whose questions a vLLM server answers.

    Args:
        policy: the policy; a generative model that is not an encoder-decoder.
        server: the server that receives its adapters.
        folder: where they are put for the server, which must see it under the same path; created if it does not exist.
        world: the processes of the run; the first one loads adapters into the server.
        run: the folder of the run, which identifies its adapters; default: ``folder``, which runs may share.

    Attributes:
        scorer: scores the policy's questions by asking the server.
        step: the update after which the served adapters were saved; None before the first.

    Raises:
        ModelError: vLLM cannot serve adapters of such a model.
    """

    def __init__(
        self,
        policy: Policy,
        server: LoRAServer,
        folder: str | Path,
        world: Processes | None = None,
        run: str | Path | None = None,
    ) -> None:
        if not isinstance(policy.scorer, CausalScorer):
            raise ModelError(
                f"plans of {policy.llm.name or 'this model'} cannot be made on a vLLM server: it serves adapters of "
                "models that write (decoders); leave out --rollouts"
            )
        self.policy = policy
        self.server = server
        self.folder = Path(folder).absolute()
        self.step: int | None = None
        self.scorer = ServedScorer(policy.scorer, server)
        self._world = world or Processes()
        owner = hashlib.sha256(f"{socket.gethostname()} {Path(run or folder).absolute()}".encode()).hexdigest()
        self._run = f"formal-llm-{owner[:8]}"
        self._session = secrets.token_hex(3)
        self._left: list[str] = []  # the adapters of a killed process

    @property
    def adapter(self) -> str:
        """The name of the adapter in use; empty before the first."""
        return self.scorer.adapter

    def log_probabilities(self, questions: Sequence[Question]) -> torch.Tensor:
        """Like :meth:`Policy.log_probabilities`, for the adapter on the server; constants.

        Raises:
            ProviderError: the server does not answer.
        """
        import torch

        with torch.no_grad():
            try:
                values = self.scorer.log_probabilities(questions)
            except ProviderError as error:
                if getattr(error.cause, "status_code", None) != 404 or not self.adapter:
                    raise
                self._load_adapter(self.adapter)  # the server was restarted since
                values = self.scorer.log_probabilities(questions)
        return values if self.policy.temperature == 1.0 else torch.log_softmax(values / self.policy.temperature, dim=-1)

    def renew(self, step: int) -> None:
        """Load the adapters after an update into the server; all processes call it together.

        Raises:
            TrainingError: the server does not accept them; raised in all processes.
        """
        if step == self.step:
            return
        outcome: dict[str, str] = {}
        if self._world.first:
            name = f"{self._run}-{self._session}-{step}"
            try:
                self.policy.save(self.folder / name)
                self._load_adapter(name)
                outcome["name"] = name
            except (FormalLLMError, OSError) as error:
                outcome["problem"] = str(error)
        outcome = self._world.gather(outcome)
        if "problem" in outcome:
            raise TrainingError(outcome["problem"])
        previous, self.scorer.adapter, self.step = self.adapter, outcome["name"], step
        self.scorer.forget()
        self._drop_adapters([*self._left, previous])
        self._left = []

    def close(self) -> None:
        """Remove the adapter from the server; failures to do so are ignored."""
        self._drop_adapters([*self._left, self.adapter])
        self.scorer.adapter, self.step, self._left = "", None, []
        if self._world.first:
            with suppress(OSError):
                self.folder.rmdir()

    def to_data(self) -> dict[str, object]:
        """Return which adapter is on the server, as JSON data."""
        return {"adapter": self.adapter, "step": self.step}

    def resume(self, data: Mapping[str, object]) -> None:
        """Take over from a process that is gone: its adapters leave the server after the next ones are loaded.

        Args:
            data: the result of :meth:`to_data`.
        """
        adapters = {str(data.get("adapter") or "")}
        if self._world.first:
            with suppress(ProviderError):  # reported when the next adapter is loaded
                adapters |= {name for name in self.server.models() if name.startswith(f"{self._run}-")}
            adapters |= {one.name for one in self.folder.glob(f"{self._run}-*")}
        self._left = sorted(adapters - {""})

    def _load_adapter(self, name: str) -> None:
        ranks = [one.r for one in self.policy.model.peft_config.values()]
        self.server.load(name, self.folder / name, max(ranks, default=None))

    def _drop_adapters(self, names: Sequence[str]) -> None:
        """Remove adapters from the server and from the disk; only the first process does so."""
        if not self._world.first:
            return
        for name in filter(None, names):
            with suppress(ProviderError):
                self.server.unload(name)
            shutil.rmtree(self.folder / name, ignore_errors=True)


def _token_steps(prompt: Prompted, path: Sequence[tuple[int, int]]) -> list[tuple[Text, int]]:
    """Return an answer as its tokens, each with the text before it."""
    text, steps = tuple(prompt.tokens), []
    for _, token in path:
        steps.append((text, token))
        text = (*text, token)
    return steps


def server_at(rollouts: str, timeout: float | None = None) -> LoRAServer:
    """Return the server that the setting ``rollouts`` specifies: ``vllm:URL``, or ``vllm`` for the default address.

    Raises:
        TrainingError: the setting specifies no server.
        ProviderError: the address is invalid.
    """
    kind, _, url = rollouts.partition(":")
    if kind != "vllm":
        raise TrainingError(f"rollouts are made on vllm:URL, such as vllm:http://localhost:8000, not on {rollouts!r}")
    return LoRAServer(url or None, max_retries=RETRIES, timeout=timeout)
