"""Experts that look at pictures and say something: classes, objects, captions, answers.

Pictures are prepared one by one, as the checkpoint's own image processor does it with Pillow, and go through the model
together where they have come out at the same size. So a picture's result does not depend on what else is in the batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from formal_llm.packs.openagi.experts.expert import Expert, Tensors, each_row, likeliest, seen
from formal_llm.packs.openagi.experts.loaded import LoadedModel

if TYPE_CHECKING:
    import torch
    from PIL import Image


class ImageClassification(Expert):
    """Names the class of a picture (ViT, Dosovitskiy et al. 2021; any ``AutoModelForImageClassification``)."""

    inputs = ("image",)
    output = "text"
    auto = "AutoModelForImageClassification"

    def run(self, loaded: LoadedModel, *columns: Sequence[Image.Image]) -> list[str]:
        """The name of the most probable class of each picture, as the checkpoint writes it."""

        def work(tensors: Tensors) -> list[str]:
            return likeliest(loaded, loaded.model(**tensors).logits)

        return each_row(loaded, prepared(loaded, columns[0]), self.batch, work)


class ObjectDetection(Expert):
    """Names the objects in a picture (DETR, Carion et al. 2020; any ``AutoModelForObjectDetection``).

    Settings:
        threshold: how probable an object must be.
    """

    inputs = ("image",)
    output = "text"
    auto = "AutoModelForObjectDetection"
    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({"threshold": 0.9})

    def run(self, loaded: LoadedModel, *columns: Sequence[Image.Image]) -> list[str]:
        """The names of the objects in each picture, each once, the most probable first: ``"cat, remote"``."""

        def work(tensors: Tensors) -> list[str]:
            made = loaded.model(**tensors)
            # Kinds of detectors differ in what their scores mean, which their image processors know.
            found = loaded.images.post_process_object_detection(made, threshold=self.settings["threshold"])
            return [self._named(loaded, each["scores"].tolist(), each["labels"].tolist()) for each in found]

        return each_row(loaded, prepared(loaded, columns[0]), self.batch, work)

    def _named(self, loaded: LoadedModel, scores: list[float], classes: list[int]) -> str:
        found = sorted(zip(scores, classes, strict=True), reverse=True)
        names = [str(loaded.model.config.id2label[number]) for _, number in found]
        return ", ".join(dict.fromkeys(names)) or "no objects"


class ImageCaptioning(Expert):
    """Describes a picture in a sentence (ViT-GPT2, BLIP, GIT; any ``AutoModelForImageTextToText`` without a prompt)."""

    inputs = ("image",)
    output = "text"
    auto = "AutoModelForImageTextToText"
    writes = True

    def run(self, loaded: LoadedModel, *columns: Sequence[Image.Image]) -> list[str]:
        """The caption of each picture."""

        def work(tensors: Tensors) -> list[str]:
            ids = loaded.model.generate(pixel_values=tensors["pixel_values"], **self.generation)
            return written(loaded, ids)

        return each_row(loaded, prepared(loaded, columns[0]), self.batch, work)


class PictureQuestion(Expert):
    """Answers a question about a picture."""

    inputs = ("image", "text")
    output = "text"

    def run(self, loaded: LoadedModel, *columns: Sequence[Any]) -> list[str]:
        """The answer to each question; what a question that is too long loses, the kind of model says."""
        pictures, questions = columns
        rows = [
            {**picture, **self.asked(loaded, question)}
            for picture, question in zip(prepared(loaded, pictures), questions, strict=True)
        ]
        return each_row(loaded, rows, self.batch, lambda tensors: self.answers(loaded, tensors))

    @abstractmethod
    def asked(self, loaded: LoadedModel, question: str) -> Tensors:
        """The tensors of a question."""

    @abstractmethod
    def answers(self, loaded: LoadedModel, tensors: Tensors) -> list[str]:
        """The answers to pictures and questions together, given their tensors where the model is."""


class AnswerByClass(PictureQuestion):
    """Answers a question about a picture by the most probable of some thousand answers (ViLT, Kim et al. 2021)."""

    auto = "AutoModelForVisualQuestionAnswering"

    def asked(self, loaded: LoadedModel, question: str) -> Tensors:
        """The beginning of the question, as much as the model can read."""
        most = loaded.model.config.max_position_embeddings
        return dict(loaded.tokenizer(question, truncation=True, max_length=most, return_tensors="pt"))

    def answers(self, loaded: LoadedModel, tensors: Tensors) -> list[str]:
        """The most probable answers."""
        import torch

        # ViLT shuffles the patches of a picture, which changes the last digits: let it always be the same way.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return likeliest(loaded, loaded.model(**tensors).logits)


class AnswerInWords(PictureQuestion):
    """Answers a question about a picture in its own words (GIT, Wang et al. 2022).

    The question is the beginning of the text, and the model goes on.
    """

    writes = True
    auto = "AutoModelForImageTextToText"

    def asked(self, loaded: LoadedModel, question: str) -> Tensors:
        """The end of the question, as much as leaves room for an answer."""
        import torch

        tokenizer = loaded.tokenizer
        begin = [tokenizer.cls_token_id] if tokenizer.cls_token_id is not None else []
        room = loaded.model.config.max_position_embeddings - self.generation.get("max_new_tokens", 20) - len(begin)
        ids = begin + tokenizer(question, add_special_tokens=False, verbose=False)["input_ids"][-max(room, 1) :]
        return {"input_ids": torch.tensor([ids])}

    def answers(self, loaded: LoadedModel, tensors: Tensors) -> list[str]:
        """What the model writes after the questions."""
        import torch

        ids, pixels = tensors["input_ids"], tensors["pixel_values"]
        mask = torch.ones_like(ids)
        made = loaded.model.generate(pixel_values=pixels, input_ids=ids, attention_mask=mask, **self.generation)
        return written(loaded, made[:, ids.shape[1] :])


def prepared(loaded: LoadedModel, images: Sequence[Image.Image]) -> list[Tensors]:
    """Each picture as the model's image processor gives it: a dictionary of tensors with a first dimension of 1."""
    return [dict(loaded.images(images=seen(image), return_tensors="pt")) for image in images]


def written(loaded: LoadedModel, ids: torch.Tensor) -> list[str]:
    """Tokens as texts, without those that mean no text."""
    texts: list[str] = loaded.tokenizer.batch_decode(ids, skip_special_tokens=True)
    return [text.strip() for text in texts]
