"""Scores by models that look at pictures: CLIP score (Task 1 of OpenAGI) and ViT similarity (Task 3).

Checkpoints are a folder on this machine, or the name of one on the hub, and can be replaced by any other of the kind.
Weights are read from safetensors only, since a pickle could run code, and pictures are prepared by the processors that
work with Pillow: torchvision is never needed.
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

#: The checkpoints that are taken where nobody says: those that torchmetrics and the ViT paper's authors name.
CLIP_CHECKPOINT = "openai/clip-vit-large-patch14"
VIT_CHECKPOINT = "google/vit-base-patch16-224"


class NeuralScore(Score):
    """A score by the cosine of what a model makes of two values; a negative cosine counts as 0.

    Args:
        checkpoint: a folder, or a name on the hub; the usual one where left out.
        device: where the model runs, as torch names it. It is loaded when the first values are compared.
        batch_size: how many values the model is given together.
        local_files_only: whether nothing may be downloaded; of a folder nothing ever is.

    Raises:
        ValueError: a batch size below 1.
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
        """What the values depend on, as JSON data."""
        return {"score": self.name, "checkpoint": self.checkpoint}

    def prepare(self) -> None:
        """As :meth:`~formal_llm.packs.openagi.scores.score.Score.prepare`."""
        if self._model is None:
            self._model = self._load()

    def _compare(self, output: Any, expected: Any) -> float:
        return self._compare_many([(output, expected)])[0]

    def _compare_many(self, pairs: Sequence[tuple[Any, Any]]) -> list[float]:
        if not pairs:
            return []
        self.prepare()
        one = self._unique([output for output, _ in pairs], self._of_output)
        other = self._unique([expected for _, expected in pairs], self._of_expected)
        return [float(value) for value in (one * other).sum(dim=-1)]

    def _unique(self, values: Sequence[Any], embed: Callable[[Sequence[Any]], torch.Tensor]) -> torch.Tensor:
        """One vector of length 1 for each value, in order; the same value is given to the model once."""
        import torch

        distinct = list({id(value): value for value in values}.values())
        places = {id(value): place for place, value in enumerate(distinct)}
        batches = [distinct[begin : begin + self.batch_size] for begin in range(0, len(distinct), self.batch_size)]
        with torch.inference_mode():
            vectors = torch.cat([embed(batch).float().cpu() for batch in batches])
        return torch.nn.functional.normalize(vectors, dim=-1)[[places[id(value)] for value in values]]

    def _load(self) -> Any:
        folder = Path(self.checkpoint)
        if not folder.is_dir() and (folder.is_absolute() or self.checkpoint.startswith(".")):
            raise ResourceNotFound(f"checkpoint for {self.name}", self.checkpoint, [])
        try:
            import torch  # noqa: F401  # looked for here, so that the message is ours
            import transformers
        except ImportError as error:
            raise MissingDependency(
                f"{self.name} needs torch and transformers: pip install torch transformers"
            ) from error
        offline = self.local_files_only or folder.is_dir()
        try:
            return self._made(transformers, {"local_files_only": offline})
        except OSError as error:  # not there, no network, no safetensors among the files
            problem = f"cannot be had ({' '.join(str(error).split())})"
            remedy = "name another, or a folder" if offline else "name another, a folder, or download it ahead of time"
            raise CheckpointError(self.name, self.checkpoint, problem, remedy) from error

    @abstractmethod
    def _made(self, transformers: Any, where: dict[str, Any]) -> Any:
        """Load what the score needs."""

    @abstractmethod
    def _of_output(self, values: Sequence[Any]) -> torch.Tensor:
        """Vectors of outputs."""

    @abstractmethod
    def _of_expected(self, values: Sequence[Any]) -> torch.Tensor:
        """Vectors of what was expected."""


class CLIPScore(NeuralScore):
    """CLIP score: the cosine of a picture's and a text's embeddings by CLIP, from 0 to 1.

    Hessel et al. (2021) multiply the cosine by 2.5 (their CLIP-S, which may exceed 1), torchmetrics by 100. Neither is
    done here, so the values are those of the paper's tables: 0.25 to 0.35 for a picture and its caption.
    """

    # Not by torchmetrics: its version 1.9 does not know what models of transformers 5 give, and of a caption that is
    # too long it cuts off the end token, which stands for the whole.

    name = "clip"
    kind = "image"
    against = "text"
    usual = CLIP_CHECKPOINT

    def _made(self, transformers: Any, where: dict[str, Any]) -> Any:
        model = transformers.CLIPModel.from_pretrained(self.checkpoint, use_safetensors=True, **where)
        return (
            model.eval().to(self.device),
            transformers.CLIPImageProcessorPil.from_pretrained(self.checkpoint, **where),
            transformers.AutoTokenizer.from_pretrained(self.checkpoint, **where),
        )

    def _of_output(self, values: Sequence[Image.Image]) -> torch.Tensor:
        model, processor, _ = self._model
        pixels = processor(images=_rgb(values), return_tensors="pt")["pixel_values"].to(self.device)
        return model.get_image_features(pixel_values=pixels).pooler_output

    def _of_expected(self, values: Sequence[str]) -> torch.Tensor:
        model, _, tokenizer = self._model
        longest = int(model.config.text_config.max_position_embeddings)
        tokens = tokenizer(list(values), return_tensors="pt", padding=True, truncation=True, max_length=longest)
        given = {name: tokens[name].to(self.device) for name in ("input_ids", "attention_mask")}
        return model.get_text_features(**given).pooler_output


class ViTSimilarity(NeuralScore):
    """ViT similarity: the cosine of the class tokens that a vision transformer makes of two pictures, from 0 to 1.

    It asks whether the same thing is to be seen, not whether the pixels agree: for those see
    :class:`~formal_llm.packs.openagi.scores.images.SSIM`. The original benchmark's code used a distance in its place.
    """

    name = "vit"
    kind = "image"
    usual = VIT_CHECKPOINT

    def _made(self, transformers: Any, where: dict[str, Any]) -> Any:
        model = transformers.ViTModel.from_pretrained(
            self.checkpoint, use_safetensors=True, add_pooling_layer=False, **where
        )
        return model.eval().to(self.device), transformers.ViTImageProcessorPil.from_pretrained(self.checkpoint, **where)

    def _of_output(self, values: Sequence[Image.Image]) -> torch.Tensor:
        model, processor = self._model
        pixels = processor(images=_rgb(values), return_tensors="pt")["pixel_values"].to(self.device)
        return model(pixel_values=pixels).last_hidden_state[:, 0]

    def _of_expected(self, values: Sequence[Image.Image]) -> torch.Tensor:
        return self._of_output(values)


def _rgb(images: Iterable[Image.Image]) -> list[Image.Image]:
    """Pictures in colours; transparent pixels are seen on white."""
    made = []
    for image in images:
        if "A" in image.getbands() or "transparency" in image.info:
            seen = Image.new("RGBA", image.size, "white")
            seen.alpha_composite(image.convert("RGBA"))
            image = seen
        made.append(image.convert("RGB"))
    return made
