"""Experts that look at pictures and say something: classes, objects, captions, answers.

Pictures are prepared one by one, as the checkpoint's own image processor does it with Pillow, and go through the model
together where they have come out at the same size. So a picture's result does not depend on what else is in the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from formal_llm.packs.openagi.experts.expert import Expert, each_alike, on, seen
from formal_llm.packs.openagi.experts.loading import LoadedModel

if TYPE_CHECKING:
    from PIL import Image


class ImageClassification(Expert):
    """Names the class of a picture (ViT, Dosovitskiy et al. 2021; any ``AutoModelForImageClassification``)."""

    inputs = ("image",)
    output = "text"

    def load(self) -> LoadedModel:
        """The model and its image processor."""
        model = self.source.model("AutoModelForImageClassification")
        return LoadedModel(model, images=self.source.processor("AutoImageProcessor"))

    def run(self, loaded: LoadedModel, *columns: Sequence[Image.Image]) -> list[str]:
        """The name of the most probable class of each picture, as the checkpoint writes it."""

        def work(tensors: dict[str, Any]) -> list[str]:
            best = loaded.model(**on(loaded, tensors)).logits.argmax(-1).tolist()
            return [str(loaded.model.config.id2label[number]) for number in best]

        return each_alike(prepared(loaded, columns[0]), self.batch, work)


class ObjectDetection(Expert):
    """Names the objects in a picture (DETR, Carion et al. 2020; any ``AutoModelForObjectDetection``).

    Settings:
        threshold: how probable an object must be.
    """

    inputs = ("image",)
    output = "text"
    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({"threshold": 0.9})

    def load(self) -> LoadedModel:
        """The model and its image processor."""
        model = self.source.model("AutoModelForObjectDetection")
        return LoadedModel(model, images=self.source.processor("AutoImageProcessor"))

    def run(self, loaded: LoadedModel, *columns: Sequence[Image.Image]) -> list[str]:
        """The names of the objects in each picture, each once, the most probable first: ``"cat, remote"``."""

        def work(tensors: dict[str, Any]) -> list[str]:
            made = loaded.model(**on(loaded, tensors))
            # Kinds of detectors differ in what their scores mean, which their image processors know.
            found = loaded.images.post_process_object_detection(made, threshold=self.settings["threshold"])
            return [self._named(loaded, each["scores"].tolist(), each["labels"].tolist()) for each in found]

        return each_alike(prepared(loaded, columns[0]), self.batch, work)

    def _named(self, loaded: LoadedModel, scores: list[float], classes: list[int]) -> str:
        found = sorted(zip(scores, classes, strict=True), reverse=True)
        names = [str(loaded.model.config.id2label[number]) for _, number in found]
        return ", ".join(dict.fromkeys(names)) or "no objects"


class ImageCaptioning(Expert):
    """Describes a picture in a sentence (ViT-GPT2, BLIP, GIT; any ``AutoModelForImageTextToText`` without a prompt)."""

    inputs = ("image",)
    output = "text"
    writes = True

    def load(self) -> LoadedModel:
        """The model, its image processor and its tokenizer."""
        model = self.source.model("AutoModelForImageTextToText")
        images = self.source.processor("AutoImageProcessor")
        return LoadedModel(model, self.source.processor("AutoTokenizer"), images)

    def run(self, loaded: LoadedModel, *columns: Sequence[Image.Image]) -> list[str]:
        """The caption of each picture."""

        def work(tensors: dict[str, Any]) -> list[str]:
            pictures = on(loaded, {"pixel_values": tensors["pixel_values"]})
            return written(loaded, loaded.model.generate(**pictures, **self.generation))

        return each_alike(prepared(loaded, columns[0]), self.batch, work)


class AnswerByClass(Expert):
    """Answers a question about a picture by the most probable of some thousand answers (ViLT, Kim et al. 2021)."""

    inputs = ("image", "text")
    output = "text"

    def load(self) -> LoadedModel:
        """The model, its image processor and its tokenizer."""
        model = self.source.model("AutoModelForVisualQuestionAnswering")
        images = self.source.processor("AutoImageProcessor")
        return LoadedModel(model, self.source.processor("AutoTokenizer"), images)

    def run(self, loaded: LoadedModel, *columns: Sequence[Any]) -> list[str]:
        """The answer to each question; a question that is too long is cut."""
        import torch

        most = loaded.model.config.max_position_embeddings
        asked = [
            loaded.tokenizer(question, truncation=True, max_length=most, return_tensors="pt") for question in columns[1]
        ]
        rows = [{**picture, **text} for picture, text in zip(prepared(loaded, columns[0]), asked, strict=True)]

        def work(tensors: dict[str, Any]) -> list[str]:
            # ViLT shuffles the patches of a picture, which changes the last digits: let it always be the same way.
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                best = loaded.model(**on(loaded, tensors)).logits.argmax(-1).tolist()
            return [str(loaded.model.config.id2label[number]) for number in best]

        return each_alike(rows, self.batch, work)


class AnswerInWords(Expert):
    """Answers a question about a picture in its own words (GIT, Wang et al. 2022).

    The question is the beginning of the text, and the model goes on.
    """

    inputs = ("image", "text")
    output = "text"
    writes = True

    def load(self) -> LoadedModel:
        """The model, its image processor and its tokenizer."""
        model = self.source.model("AutoModelForImageTextToText")
        images = self.source.processor("AutoImageProcessor")
        return LoadedModel(model, self.source.processor("AutoTokenizer"), images)

    def run(self, loaded: LoadedModel, *columns: Sequence[Any]) -> list[str]:
        """The answer to each question; of a question that is too long the end counts."""
        import torch

        tokenizer = loaded.tokenizer
        begin = [tokenizer.cls_token_id] if tokenizer.cls_token_id is not None else []
        room = loaded.model.config.max_position_embeddings - self.generation.get("max_new_tokens", 20) - len(begin)
        rows = []
        for picture, question in zip(prepared(loaded, columns[0]), columns[1], strict=True):
            ids = begin + tokenizer(question, add_special_tokens=False, verbose=False)["input_ids"][-max(room, 1) :]
            rows.append({"pixel_values": picture["pixel_values"], "input_ids": torch.tensor([ids])})

        def work(tensors: dict[str, Any]) -> list[str]:
            tensors = on(loaded, tensors)
            mask = torch.ones_like(tensors["input_ids"])
            ids = loaded.model.generate(**tensors, attention_mask=mask, **self.generation)
            return written(loaded, ids[:, tensors["input_ids"].shape[1] :])

        return each_alike(rows, self.batch, work)


def prepared(loaded: LoadedModel, images: Sequence[Image.Image]) -> list[dict[str, Any]]:
    """Each picture as the model's image processor gives it: a dictionary of tensors with a first dimension of 1."""
    return [dict(loaded.images(images=seen(image), return_tensors="pt")) for image in images]


def written(loaded: LoadedModel, ids: Any) -> list[str]:
    """Tokens as texts, without those that mean no text."""
    texts: list[str] = loaded.tokenizer.batch_decode(ids, skip_special_tokens=True)
    return [text.strip() for text in texts]
