"""Experts that draw: a picture from a text, a picture from a picture and an instruction.

Diffusion starts from noise. The noise is told from the input, so that an input always gives the same picture, alone or
among others.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from PIL import Image

from formal_llm.packs.openagi.data.pixels import Pixels
from formal_llm.packs.openagi.experts.expert import Expert, each_alike, seen
from formal_llm.packs.openagi.experts.loaded import LoadedModel

if TYPE_CHECKING:
    import torch
    from diffusers.pipelines.stable_diffusion import StableDiffusionPipelineOutput

#: The sides of a picture that the pipelines of Stable Diffusion accept are multiples of this.
_MULTIPLE = 8


class Drawing(Expert):
    """Draws with a pipeline of diffusers, which brings the safety checker that the checkpoint has."""

    output = "image"
    #: The class of the pipeline.
    pipeline: ClassVar[str]

    def load(self) -> LoadedModel:
        """The pipeline."""
        return LoadedModel(self.source.pipeline(self.pipeline))


class TextToImage(Drawing):
    """Draws what a text says (Stable Diffusion, Rombach et al. 2022).

    Settings:
        steps: in how many the noise is taken away.
        guidance: how closely the text is followed.
        width, height: the size in pixels; 0 for that of the checkpoint.
        seed: another one gives other pictures.
    """

    pipeline = "StableDiffusionPipeline"
    defaults = MappingProxyType({"steps": 50, "guidance": 7.5, "width": 0, "height": 0, "seed": 0})

    def run(self, loaded: LoadedModel, *columns: Sequence[str]) -> list[Image.Image]:
        """A picture for each text; of a long text the beginning counts (77 tokens)."""
        texts, said = list(columns[0]), self.settings
        drawn = loaded.model(
            texts, num_inference_steps=said["steps"], guidance_scale=said["guidance"],
            width=said["width"] or None, height=said["height"] or None,
            generator=[noise(text.encode(), said["seed"]) for text in texts],
        )  # fmt: skip
        return allowed(drawn)


class PictureEditing(Drawing):
    """Changes a picture as an instruction says (InstructPix2Pix, Brooks et al. 2023).

    Settings:
        instruction: what is done to every picture.
        steps: how many steps the noise is taken away in.
        guidance: how closely the instruction is followed.
        image_guidance: how closely the picture is.
        side: the longer side, in pixels, at which the model works; the result has the size of the picture.
        keep_luminance: whether only the colours are taken from what the model draws, and how bright each pixel looks
            from the picture.
        seed: another one gives other pictures.
    """

    inputs = ("image",)
    pipeline = "StableDiffusionInstructPix2PixPipeline"
    defaults = MappingProxyType(
        {"instruction": "", "steps": 20, "guidance": 7.5, "image_guidance": 1.5,
         "side": 512, "keep_luminance": False, "seed": 0}
    )  # fmt: skip

    def run(self, loaded: LoadedModel, *columns: Sequence[Image.Image]) -> list[Image.Image]:
        """Each picture, changed; of the size that it had."""
        small = [self._small(seen(image)) for image in columns[0]]

        def together(places: Sequence[int]) -> list[Image.Image]:
            drawn = loaded.model(
                [self.settings["instruction"]] * len(places),
                image=[small[place] for place in places],
                num_inference_steps=self.settings["steps"],
                guidance_scale=self.settings["guidance"],
                image_guidance_scale=self.settings["image_guidance"],
                generator=[noise(small[place].tobytes(), self.settings["seed"]) for place in places],
            )
            return allowed(drawn)

        drawn = each_alike([picture.size for picture in small], self.batch, together)
        return [self._like(image, picture) for image, picture in zip(columns[0], drawn, strict=True)]

    def _small(self, image: Image.Image) -> Image.Image:
        """The picture at the size at which the model works."""
        factor = min(self.settings["side"] / max(image.size), 1.0)
        width, height = (max(round(side * factor / _MULTIPLE), 1) * _MULTIPLE for side in image.size)
        return image.resize((width, height), Image.Resampling.LANCZOS)

    def _like(self, image: Image.Image, drawn: Image.Image) -> Image.Image:
        """What was drawn, in the size of the picture and with its transparency, and perhaps its luminance."""
        pixels = Pixels.of(image)
        height, width = pixels.values.shape[:2]
        drawn = drawn.convert("RGB").resize((width, height), Image.Resampling.BICUBIC)
        if self.settings["keep_luminance"]:
            luminance = seen(image).convert("L")
            drawn = Image.merge("YCbCr", (luminance, *drawn.convert("YCbCr").split()[1:])).convert("RGB")
        if pixels.alpha is not None:
            drawn.putalpha(pixels.alpha)
        return drawn


def noise(about: bytes, seed: int) -> torch.Generator:
    """Where the noise for one input comes from: on the CPU, so that every device draws the same."""
    import torch

    return torch.Generator("cpu").manual_seed(zlib.crc32(about, seed & 0xFFFFFFFF))


def allowed(drawn: StableDiffusionPipelineOutput) -> list[Image.Image]:
    """The pictures that a pipeline drew.

    Raises:
        ValueError: the safety checker of the checkpoint refused one: it would be all black.
    """
    if any(getattr(drawn, "nsfw_content_detected", None) or ()):
        raise ValueError("the safety checker of the checkpoint refused what was drawn")
    return list(drawn.images)
