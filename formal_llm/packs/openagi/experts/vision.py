"""Experts that describe pictures: classes, objects, captions, answers.

Pictures are prepared one by one by the checkpoint's image processor with Pillow, and the model processes those of the
same prepared size together. So the result of a picture does not depend on the rest of the batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from formal_llm.packs.openagi.experts.expert import Expert, Tensors, convert_to_rgb, each_row, name_likeliest
from formal_llm.packs.openagi.experts.loaded import LoadedModel

if TYPE_CHECKING:
    import torch


class PictureExpert(Expert):
    """Describes a picture in words."""

    inputs: ClassVar[tuple[str, ...]] = ("image",)

    def run_batch(self, loaded: LoadedModel, *columns: Sequence[Any]) -> list[str]:
        """Describe each picture."""
        return each_row(
            loaded, self.prepare_rows(loaded, *columns), self.batch, lambda tensors: self.describe_rows(loaded, tensors)
        )

    def prepare_rows(self, loaded: LoadedModel, *columns: Sequence[Any]) -> list[Tensors]:
        """Prepare each picture with the model's image processor: tensors with a first dimension of 1."""
        return [dict(loaded.images(images=convert_to_rgb(image), return_tensors="pt")) for image in columns[0]]

    @abstractmethod
    def describe_rows(self, loaded: LoadedModel, tensors: Tensors) -> list[str]:
        """Describe several inputs together, given their tensors on the device of the model."""


class ImageClassification(PictureExpert):
    """Names the class of a picture (ViT, Dosovitskiy et al. 2021; any ``AutoModelForImageClassification``)."""

    auto = "AutoModelForImageClassification"

    def describe_rows(self, loaded: LoadedModel, tensors: Tensors) -> list[str]:
        """Return the name of the most probable class of each picture, as the checkpoint spells it."""
        return name_likeliest(loaded, loaded.model(**tensors).logits)


class ObjectDetection(PictureExpert):
    """Names the objects in a picture (DETR, Carion et al. 2020; any ``AutoModelForObjectDetection``).

    Settings:
        threshold: the minimum probability of an object.
    """

    auto = "AutoModelForObjectDetection"
    defaults = MappingProxyType({"threshold": 0.9})

    def describe_rows(self, loaded: LoadedModel, tensors: Tensors) -> list[str]:
        """Return the names of the objects in each picture, each once, the most probable first: ``"cat, remote"``."""
        outputs = loaded.model(**tensors)
        # The meaning of the scores depends on the kind of detector; the image processor interprets them.
        found = loaded.images.post_process_object_detection(outputs, threshold=self.settings["threshold"])
        return [self._list_names(loaded, each["scores"].tolist(), each["labels"].tolist()) for each in found]

    def _list_names(self, loaded: LoadedModel, scores: list[float], classes: list[int]) -> str:
        found = sorted(zip(scores, classes, strict=True), reverse=True)
        names = [str(loaded.model.config.id2label[number]) for _, number in found]
        return ", ".join(dict.fromkeys(names)) or "no objects"


class ImageCaptioning(PictureExpert):
    """Describes a picture in a sentence (ViT-GPT2, BLIP, GIT; any ``AutoModelForImageTextToText`` without a prompt)."""

    auto = "AutoModelForImageTextToText"
    writes = True

    def describe_rows(self, loaded: LoadedModel, tensors: Tensors) -> list[str]:
        """Write the caption of each picture."""
        return decode_texts(loaded, loaded.model.generate(pixel_values=tensors["pixel_values"], **self.generation))


class PictureQuestion(PictureExpert):
    """Answers a question about a picture; the kind of model determines how a long question is cut."""

    inputs = ("image", "text")

    def prepare_rows(self, loaded: LoadedModel, *columns: Sequence[Any]) -> list[Tensors]:
        """Prepare the tensors of each picture and its question."""
        pictures = super().prepare_rows(loaded, columns[0])
        return [
            {**one, **self.tokenize_question(loaded, question)}
            for one, question in zip(pictures, columns[1], strict=True)
        ]

    @abstractmethod
    def tokenize_question(self, loaded: LoadedModel, question: str) -> Tensors:
        """Return the tensors of a question."""


class AnswerByClass(PictureQuestion):
    """Answers a question about a picture by the most probable of several thousand answers (ViLT, Kim et al. 2021)."""

    auto = "AutoModelForVisualQuestionAnswering"

    def tokenize_question(self, loaded: LoadedModel, question: str) -> Tensors:
        """Return the beginning of the question, as much as the model can read."""
        most = loaded.model.config.max_position_embeddings
        return dict(loaded.tokenizer(question, truncation=True, max_length=most, return_tensors="pt"))

    def describe_rows(self, loaded: LoadedModel, tensors: Tensors) -> list[str]:
        """Return the most probable answers."""
        import torch

        # ViLT shuffles the patches of a picture, which changes the last digits; a fixed seed makes that reproducible.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return name_likeliest(loaded, loaded.model(**tensors).logits)


class AnswerInWords(PictureQuestion):
    """Answers a question about a picture in its own words (GIT, Wang et al. 2022).

    The question is the beginning of the text, which the model continues.
    """

    writes = True
    auto = "AutoModelForImageTextToText"

    def tokenize_question(self, loaded: LoadedModel, question: str) -> Tensors:
        """Return the end of the question, as much as leaves room for an answer."""
        import torch

        tokenizer = loaded.tokenizer
        begin = [tokenizer.cls_token_id] if tokenizer.cls_token_id is not None else []
        room = loaded.model.config.max_position_embeddings - self.generation.get("max_new_tokens", 20) - len(begin)
        ids = begin + tokenizer(question, add_special_tokens=False, verbose=False)["input_ids"][-max(room, 1) :]
        return {"input_ids": torch.tensor([ids])}

    def describe_rows(self, loaded: LoadedModel, tensors: Tensors) -> list[str]:
        """Return the texts that the model writes after the questions."""
        import torch

        ids, pixels = tensors["input_ids"], tensors["pixel_values"]
        mask = torch.ones_like(ids)
        generated = loaded.model.generate(pixel_values=pixels, input_ids=ids, attention_mask=mask, **self.generation)
        return decode_texts(loaded, generated[:, ids.shape[1] :])


def decode_texts(loaded: LoadedModel, ids: torch.Tensor) -> list[str]:
    """Decode tokens to texts, without special tokens."""
    return [text.strip() for text in loaded.tokenizer.batch_decode(ids, skip_special_tokens=True)]
