"""Scores by vision models: CLIP score (Task 1 of OpenAGI) and ViT similarity (Task 3).

A checkpoint is a local folder or the name of one on the hub, and can be replaced by any other of its kind. Weights are
read from safetensors only, since a pickle could run code, and images are prepared by the processors that work with
Pillow: torchvision is never needed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

from formal_llm.errors import CheckpointError, MissingDependency, ResourceNotFound
from formal_llm.packs.openagi.scores.score import Score

if TYPE_CHECKING:
    import torch

#: The default checkpoints: those that torchmetrics and the ViT paper's authors name.
CLIP_CHECKPOINT = "openai/clip-vit-large-patch14"
VIT_CHECKPOINT = "google/vit-base-patch16-224"


class NeuralScore(Score):
    """A score by the cosine of a model's embeddings of two values; a negative cosine counts as 0.

    Args:
        checkpoint: a folder, or a name on the hub; by default the usual one.
        device: the device of the model, as torch names it. It is loaded when the first values are compared.
        batch_size: the number of values that the model processes together.
        local_files_only: whether downloads are forbidden; for a folder nothing is ever downloaded.

    Raises:
        ValueError: the batch size is below 1.
    """

    usual: str

    def __init__(
        self,
        checkpoint: str | None = None,
        device: str = "cpu",
        *,
        batch_size: int = 16,
        local_files_only: bool = False,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size counts from 1, not {batch_size}")
        self.checkpoint = checkpoint or self.usual
        self.device = device
        self.batch_size = batch_size
        self.local_files_only = local_files_only
        self._model: Any = None

    @property
    def identity(self) -> dict[str, object]:
        """The factors that determine the values, as JSON data."""
        return {"score": self.name, "checkpoint": self.checkpoint}

    def prepare(self) -> None:
        """Do the same as :meth:`~formal_llm.packs.openagi.scores.score.Score.prepare`."""
        if self._model is None:
            self._model = self._load_model()

    def _compare_pair(self, output: Any, expected: Any) -> float:
        return self._compare_many([(output, expected)])[0]

    def _compare_many(self, pairs: Sequence[tuple[Any, Any]]) -> list[float]:
        if not pairs:
            return []
        self.prepare()
        one = self._embed_unique([output for output, _ in pairs], self._of_output)
        other = self._embed_unique([expected for _, expected in pairs], self._of_expected)
        return [float(value) for value in (one * other).sum(dim=-1)]

    def _embed_unique(self, values: Sequence[Any], embed: Callable[[Sequence[Any]], torch.Tensor]) -> torch.Tensor:
        """Return one vector of length 1 for each value, in order; the model processes each object once."""
        import torch

        distinct = list({id(value): value for value in values}.values())
        places = {id(value): place for place, value in enumerate(distinct)}
        batches = [distinct[begin : begin + self.batch_size] for begin in range(0, len(distinct), self.batch_size)]
        with torch.inference_mode():
            vectors = torch.cat([embed(batch).float().cpu() for batch in batches])
        return torch.nn.functional.normalize(vectors, dim=-1)[[places[id(value)] for value in values]]

    def _load_model(self) -> Any:
        folder = Path(self.checkpoint)
        if not folder.is_dir() and (folder.is_absolute() or self.checkpoint.startswith(".")):
            raise ResourceNotFound(f"checkpoint for {self.name}", self.checkpoint, [])
        try:
            import torch  # noqa: F401  # imported here to raise our own error
            import transformers
        except ImportError as error:
            raise MissingDependency(
                f"{self.name} needs torch and transformers: pip install torch transformers"
            ) from error
        offline = self.local_files_only or folder.is_dir()
        try:
            return self._load_parts(transformers, {"local_files_only": offline})
        except OSError as error:  # no such checkpoint, no network, no safetensors in it
            problem = f"cannot be had ({' '.join(str(error).split())})"
            remedy = "name another, or a folder" if offline else "name another, a folder, or download it ahead of time"
            raise CheckpointError(self.name, self.checkpoint, problem, remedy) from error

    @abstractmethod
    def _load_parts(self, transformers: Any, where: dict[str, Any]) -> Any:
        """Load the models and processors that the score needs."""

    @abstractmethod
    def _of_output(self, values: Sequence[Any]) -> torch.Tensor:
        """Return the vectors of outputs."""

    @abstractmethod
    def _of_expected(self, values: Sequence[Any]) -> torch.Tensor:
        """Return the vectors of expected values."""


class CLIPScore(NeuralScore):
    """CLIP score: the cosine of the CLIP embeddings of an image and a text, from 0 to 1.

    Hessel et al. (2021) multiply the cosine by 2.5 (their CLIP-S, which may exceed 1), torchmetrics by 100. This class
    does neither, so the values match the paper's tables: 0.25 to 0.35 for an image and its caption.
    """

    # Not by torchmetrics: its version 1.9 cannot handle the outputs of transformers 5, and cuts off the end token of a
    # caption that is too long, although that token represents the whole caption.

    name = "clip"
    kind = "image"
    against = "text"
    usual = CLIP_CHECKPOINT

    def _load_parts(self, transformers: Any, where: dict[str, Any]) -> Any:
        model = transformers.CLIPModel.from_pretrained(self.checkpoint, use_safetensors=True, **where)
        return (
            model.eval().to(self.device),
            transformers.CLIPImageProcessorPil.from_pretrained(self.checkpoint, **where),
            transformers.AutoTokenizer.from_pretrained(self.checkpoint, **where),
        )

    def _of_output(self, values: Sequence[Image.Image]) -> torch.Tensor:
        model, processor, _ = self._model
        pixels = processor(images=_convert_to_rgb(values), return_tensors="pt")["pixel_values"].to(self.device)
        return model.get_image_features(pixel_values=pixels).pooler_output

    def _of_expected(self, values: Sequence[str]) -> torch.Tensor:
        model, _, tokenizer = self._model
        longest = int(model.config.text_config.max_position_embeddings)
        tokens = tokenizer(list(values), return_tensors="pt", padding=True, truncation=True, max_length=longest)
        batch = {name: tokens[name].to(self.device) for name in ("input_ids", "attention_mask")}
        return model.get_text_features(**batch).pooler_output


class ViTSimilarity(NeuralScore):
    """ViT similarity: the cosine of a vision transformer's class tokens for two images, from 0 to 1.

    It measures whether the images show the same thing, not whether their pixels agree: for the latter see
    :class:`~formal_llm.packs.openagi.scores.images.SSIM`. The original benchmark's code used a distance instead.
    """

    name = "vit"
    kind = "image"
    usual = VIT_CHECKPOINT

    def _load_parts(self, transformers: Any, where: dict[str, Any]) -> Any:
        model = transformers.ViTModel.from_pretrained(
            self.checkpoint, use_safetensors=True, add_pooling_layer=False, **where
        )
        return model.eval().to(self.device), transformers.ViTImageProcessorPil.from_pretrained(self.checkpoint, **where)

    def _of_output(self, values: Sequence[Image.Image]) -> torch.Tensor:
        model, processor = self._model
        pixels = processor(images=_convert_to_rgb(values), return_tensors="pt")["pixel_values"].to(self.device)
        return model(pixel_values=pixels).last_hidden_state[:, 0]

    def _of_expected(self, values: Sequence[Image.Image]) -> torch.Tensor:
        return self._of_output(values)


def _convert_to_rgb(images: Iterable[Image.Image]) -> list[Image.Image]:
    """Convert images to RGB; transparent pixels are composited on white."""
    converted = []
    for image in images:
        if "A" in image.getbands() or "transparency" in image.info:
            opaque = Image.new("RGBA", image.size, "white")
            opaque.alpha_composite(image.convert("RGBA"))
            image = opaque
        converted.append(image.convert("RGB"))
    return converted
