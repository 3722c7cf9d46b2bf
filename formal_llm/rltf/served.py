"""Plans from a vLLM server: the adapters are put on it after each update, and it answers the questions of rollouts.

The server scores the very answers that the trainer scores (the same tokens, in the same modes), so where both have the
same weights they give the same probabilities up to rounding. Options are drawn here, by the same draws as without a
server. What is left between the two, rounding or weights that are not the newest, is corrected
(:mod:`formal_llm.rltf.importance`).

Each state of the adapters has a name of its own on the server, of the run, the process and the update: two trainers do
not get in each other's way, and what a server has kept of one state never answers for another one.
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
from formal_llm.llms.hosted.vllm_lora import LoRAServer, Text
from formal_llm.llms.local.causal import CausalScorer
from formal_llm.llms.local.rendering import Prompted
from formal_llm.llms.local.scorer import PromptScorer
from formal_llm.llms.question import Question
from formal_llm.rltf.distributed import Processes
from formal_llm.rltf.policy import Policy

if TYPE_CHECKING:
    import torch

#: The folder of the adapters that are on the server, in the folder of a run.
SERVED = "served"
#: How often a passing failure of the server is tried again: a server that loads an adapter may be slow for a while.
RETRIES = 5


class ServedScorer(PromptScorer):
    """Scores what the policy scores, by asking a server.

    Attributes:
        adapter: the name of the adapter that answers.
    """

    def __init__(self, scorer: PromptScorer, server: LoRAServer) -> None:
        super().__init__(scorer.model, scorer.renderer, 1)
        self.scoring = scorer.scoring
        self.server = server
        self.adapter = ""

    def score(self, prompts: Sequence[Prompted]) -> list[torch.Tensor]:
        """For each prompt the log-probabilities of its answers, as the server would write them."""
        import torch

        ways = [[_token_steps(prompt, path) for path in prompt.tree.paths] for prompt in prompts]
        wanted: dict[Text, set[int]] = {}
        for text, token in (step for answers in ways for way in answers for step in way):
            wanted.setdefault(text, set()).add(token)
        told = self.server.next_tokens(self.adapter, wanted)
        return [torch.tensor([sum(told[text][token] for text, token in way) for way in answers]) for answers in ways]


class ServedPolicy:
    """A policy as a vLLM server answers for it.

    Args:
        policy: the policy; of a model that writes, and no encoder-decoder.
        server: where its adapters go.
        folder: where they are put for the server, which must see it under the same path; made if it is not there.
        world: the processes of the run; the first one puts adapters on the server.
        run: the folder of the run, by which it knows its adapters; ``folder`` where left out, which runs may share.

    Attributes:
        scorer: scores what the policy scores, by asking the server.
        step: the update after which it was saved; None before the first.

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
        whose = hashlib.sha256(f"{socket.gethostname()} {Path(run or folder).absolute()}".encode()).hexdigest()
        self._run = f"formal-llm-{whose[:8]}"
        self._session = secrets.token_hex(3)
        self._left: list[str] = []  # of a process that was killed

    @property
    def adapter(self) -> str:
        """The name of the adapter that answers; empty before the first."""
        return self.scorer.adapter

    def log_probabilities(self, questions: Sequence[Question]) -> torch.Tensor:
        """As :meth:`Policy.log_probabilities`, of the adapter that is on the server; constants.

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
                self._load_adapter(self.adapter)  # the server was started anew since
                values = self.scorer.log_probabilities(questions)
        return values if self.policy.temperature == 1.0 else torch.log_softmax(values / self.policy.temperature, dim=-1)

    def renew(self, step: int) -> None:
        """Put the adapters as they are after an update on the server; all processes call it together.

        Raises:
            TrainingError: the server does not take them; in all processes.
        """
        if step == self.step:
            return
        told: dict[str, str] = {}
        if self._world.first:
            name = f"{self._run}-{self._session}-{step}"
            try:
                self.policy.save(self.folder / name)
                self._load_adapter(name)
                told["name"] = name
            except (FormalLLMError, OSError) as error:
                told["problem"] = str(error)
        told = self._world.gather(told)
        if "problem" in told:
            raise TrainingError(told["problem"])
        before, self.scorer.adapter, self.step = self.adapter, told["name"], step
        self.scorer.forget()
        self._drop_adapters([*self._left, before])
        self._left = []

    def close(self) -> None:
        """Take the adapter from the server; what goes wrong then harms nobody."""
        self._drop_adapters([*self._left, self.adapter])
        self.scorer.adapter, self.step, self._left = "", None, []
        if self._world.first:
            with suppress(OSError):
                self.folder.rmdir()

    def to_data(self) -> dict[str, object]:
        """Which adapter is on the server, as JSON data."""
        return {"adapter": self.adapter, "step": self.step}

    def resume(self, data: Mapping[str, object]) -> None:
        """Take over from a process that is gone: its adapters are taken from the server when the next one is there.

        Args:
            data: what :meth:`to_data` made.
        """
        left = {str(data.get("adapter") or "")}
        if self._world.first:
            with suppress(ProviderError):  # told when the next adapter comes
                left |= {name for name in self.server.models() if name.startswith(f"{self._run}-")}
            left |= {one.name for one in self.folder.glob(f"{self._run}-*")}
        self._left = sorted(left - {""})

    def _load_adapter(self, name: str) -> None:
        ranks = [one.r for one in self.policy.model.peft_config.values()]
        self.server.load(name, self.folder / name, max(ranks, default=None))

    def _drop_adapters(self, names: Sequence[str]) -> None:
        """Take adapters from the server and from the disk: the first process does."""
        if not self._world.first:
            return
        for name in filter(None, names):
            with suppress(ProviderError):
                self.server.unload(name)
            shutil.rmtree(self.folder / name, ignore_errors=True)


def _token_steps(prompt: Prompted, path: Sequence[tuple[int, int]]) -> list[tuple[Text, int]]:
    """An answer as its tokens, each with the text before it."""
    text, steps = tuple(prompt.tokens), []
    for _, token in path:
        steps.append((text, token))
        text = (*text, token)
    return steps


def server_at(rollouts: str, timeout: float | None = None) -> LoRAServer:
    """The server that the setting ``rollouts`` names: ``vllm:URL``, or ``vllm`` for the usual address.

    Raises:
        TrainingError: it names none.
        ProviderError: the address is none.
    """
    kind, _, url = rollouts.partition(":")
    if kind != "vllm":
        raise TrainingError(f"rollouts are made on vllm:URL, such as vllm:http://localhost:8000, not on {rollouts!r}")
    return LoRAServer(url or None, max_retries=RETRIES, timeout=timeout)
