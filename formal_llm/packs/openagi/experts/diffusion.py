"""Experts that generate pictures: from a text, or from a picture and an instruction.

Diffusion starts from noise. The noise is derived from the input, so that an input always gives the same picture, alone
or in a batch.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from PIL import Image

from formal_llm.packs.openagi.data.pixels import Pixels
from formal_llm.packs.openagi.experts.expert import Expert, convert_to_rgb, each_alike
from formal_llm.packs.openagi.experts.loaded import LoadedModel

if TYPE_CHECKING:
    import torch
    from diffusers.pipelines.stable_diffusion import StableDiffusionPipelineOutput

#: The pipelines of Stable Diffusion accept pictures whose sides are multiples of this.
_MULTIPLE = 8


class Drawing(Expert):
    """Draws with a pipeline of diffusers, including the safety checker of the checkpoint, if any."""

    output = "image"
    #: The name of the pipeline class.
    pipeline: ClassVar[str]

    def load_model(self) -> LoadedModel:
        """Load the pipeline."""
        return LoadedModel(self.source.load_pipeline(self.pipeline))


class TextToImage(Drawing):
    """Draws a picture from a text (Stable Diffusion, Rombach et al. 2022).

    Settings:
        steps: the number of denoising steps.
        guidance: how closely to follow the text.
        width, height: the size in pixels; 0 for that of the checkpoint.
        seed: the seed of the noise; another one gives other pictures.
    """

    pipeline = "StableDiffusionPipeline"
    defaults = MappingProxyType({"steps": 50, "guidance": 7.5, "width": 0, "height": 0, "seed": 0})

    def run_batch(self, loaded: LoadedModel, *columns: Sequence[str]) -> list[Image.Image]:
        """Draw a picture for each text; of a long text only the beginning (77 tokens) counts."""
        texts, settings = list(columns[0]), self.settings
        drawn = loaded.model(
            texts, num_inference_steps=settings["steps"], guidance_scale=settings["guidance"],
            width=settings["width"] or None, height=settings["height"] or None,
            generator=[seed_generator(text.encode(), settings["seed"]) for text in texts],
        )  # fmt: skip
        return get_allowed_pictures(drawn)


class PictureEditing(Drawing):
    """Changes a picture by an instruction (InstructPix2Pix, Brooks et al. 2023).

    Settings:
        instruction: the instruction for every picture.
        steps: the number of denoising steps.
        guidance: how closely to follow the instruction.
        image_guidance: how closely to follow the picture.
        side: the longer side, in pixels, at which the model works; the result has the size of the picture.
        keep_luminance: whether to take only the colours from the model's output, and the luminance of each pixel from
            the picture.
        seed: the seed of the noise; another one gives other pictures.
    """

    inputs = ("image",)
    pipeline = "StableDiffusionInstructPix2PixPipeline"
    defaults = MappingProxyType(
        {"instruction": "", "steps": 20, "guidance": 7.5, "image_guidance": 1.5,
         "side": 512, "keep_luminance": False, "seed": 0}
    )  # fmt: skip

    def run_batch(self, loaded: LoadedModel, *columns: Sequence[Image.Image]) -> list[Image.Image]:
        """Edit each picture, keeping its size."""
        small = [self._shrink_picture(convert_to_rgb(image)) for image in columns[0]]

        def draw_pictures(places: Sequence[int]) -> list[Image.Image]:
            drawn = loaded.model(
                [self.settings["instruction"]] * len(places),
                image=[small[place] for place in places],
                num_inference_steps=self.settings["steps"],
                guidance_scale=self.settings["guidance"],
                image_guidance_scale=self.settings["image_guidance"],
                generator=[seed_generator(small[place].tobytes(), self.settings["seed"]) for place in places],
            )
            return get_allowed_pictures(drawn)

        drawn = each_alike([picture.size for picture in small], self.batch, draw_pictures)
        return [self._fit_to_picture(image, picture) for image, picture in zip(columns[0], drawn, strict=True)]

    def _shrink_picture(self, image: Image.Image) -> Image.Image:
        """Resize a picture to the size at which the model works."""
        factor = min(self.settings["side"] / max(image.size), 1.0)
        width, height = (max(round(side * factor / _MULTIPLE), 1) * _MULTIPLE for side in image.size)
        return image.resize((width, height), Image.Resampling.LANCZOS)

    def _fit_to_picture(self, image: Image.Image, drawn: Image.Image) -> Image.Image:
        """Give an output the size of the picture, its transparency, and if requested its luminance."""
        pixels = Pixels.from_image(image)
        height, width = pixels.values.shape[:2]
        drawn = drawn.convert("RGB").resize((width, height), Image.Resampling.BICUBIC)
        if self.settings["keep_luminance"]:
            luminance = convert_to_rgb(image).convert("L")
            drawn = Image.merge("YCbCr", (luminance, *drawn.convert("YCbCr").split()[1:])).convert("RGB")
        if pixels.alpha is not None:
            drawn.putalpha(pixels.alpha)
        return drawn


def seed_generator(about: bytes, seed: int) -> torch.Generator:
    """Create the source of noise for one input: on the CPU, so that it is the same for every device."""
    import torch

    return torch.Generator("cpu").manual_seed(zlib.crc32(about, seed & 0xFFFFFFFF))


def get_allowed_pictures(drawn: StableDiffusionPipelineOutput) -> list[Image.Image]:
    """Return the pictures in the output of a pipeline.

    Raises:
        ValueError: the safety checker of the checkpoint refused one, which would be all black.
    """
    if any(getattr(drawn, "nsfw_content_detected", None) or ()):
        raise ValueError("the safety checker of the checkpoint refused what was drawn")
    return list(drawn.images)
