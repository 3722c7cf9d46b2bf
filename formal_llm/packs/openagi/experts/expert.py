"""The base class of experts: a checkpoint, settings, and a model that processes inputs in batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar

from PIL import Image

from formal_llm.packs.openagi.data.pixels import Pixels, picture_of
from formal_llm.packs.openagi.experts.loaded import LoadedModel
from formal_llm.packs.openagi.experts.loading import ModelSource

if TYPE_CHECKING:
    import torch

#: Tensors by the names of a model's arguments.
Tensors: TypeAlias = "dict[str, torch.Tensor]"
Item = TypeVar("Item")
Made = TypeVar("Made")


class Expert(ABC):
    """One way to use one kind of model, which a pool loads when needed; experts with equal sources share it.

    Args:
        settings: the settings that differ from ``defaults``.
        batch: how many inputs the model processes at once.
        generation: settings for ``generate``, for models that write; they override those of the checkpoint.
    """

    #: The settings with their default values.
    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    #: The kinds of the inputs and of the output.
    inputs: ClassVar[tuple[str, ...]] = ("text",)
    output: ClassVar[str] = "text"
    #: Whether the model writes, so that ``generation`` applies.
    writes: ClassVar[bool] = False
    #: The class of transformers that loads the model.
    auto: ClassVar[str] = ""

    def __init__(
        self,
        source: ModelSource,
        settings: Mapping[str, object] | None = None,
        *,
        batch: int = 1,
        generation: Mapping[str, object] | None = None,
    ) -> None:
        self.source = source
        self.settings: dict[str, Any] = {**self.defaults, **(settings or {})}
        self.batch = batch
        self.generation: dict[str, Any] = dict(generation or {})

    def load_model(self) -> LoadedModel:
        """Load the model on the CPU, with the tokenizer and image processor that it needs, whatever the settings.

        Raises:
            CheckpointError, MissingDependency: it cannot be loaded.
        """
        return LoadedModel(
            self.source.load_model(self.auto),
            self.source.load_tokenizer() if self.writes or "text" in self.inputs else None,
            self.source.image_processor() if "image" in self.inputs else None,
        )

    @abstractmethod
    def run_batch(self, loaded: LoadedModel, *columns: Sequence[Any]) -> Sequence[Image.Image | str]:
        """Run the model on some inputs, at most ``batch``, and return its outputs.

        Args:
            loaded: the model, on its device.
            *columns: the values of each input, all of one length; each expert annotates the classes of its own inputs.
        """


def convert_to_rgb(image: Image.Image) -> Image.Image:
    """Convert a picture to what a model sees: red, green and blue, upright, transparent pixels on white."""
    pixels = Pixels.from_image(image)
    picture = picture_of(pixels.values).convert("RGB")
    if pixels.alpha is None:
        return picture
    return Image.composite(picture, Image.new("RGB", picture.size, "white"), pixels.alpha)


def split_batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """Yield the items in order, at most ``size`` at a time."""
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def each_alike(kinds: Sequence[Hashable], batch: int, work: Callable[[Sequence[int]], Sequence[Made]]) -> list[Made]:
    """Process inputs in batches of one kind each, and return the results in the order of the inputs.

    This requires no padding, and no input changes the result of another.

    Args:
        kinds: for each input, the property that the inputs of its batch must share, such as the size.
        batch: the maximum number of inputs in a batch.
        work: processes the inputs at some places.
    """
    results: dict[int, Made] = {}
    for kind in dict.fromkeys(kinds):
        for some in split_batches([place for place, other in enumerate(kinds) if other == kind], batch):
            results.update(zip(some, work(some), strict=True))
    return [results[place] for place in range(len(kinds))]


def each_row(
    loaded: LoadedModel, rows: Sequence[Tensors], batch: int, work: Callable[[Tensors], Sequence[Made]]
) -> list[Made]:
    """Process rows of tensors, concatenating at most ``batch`` rows of the same shapes.

    A row holds the tensors of one input by name, each with a first dimension of 1. They are moved to the device of the
    model, floating-point numbers in its type.
    """
    import torch

    def run_rows(places: Sequence[int]) -> Sequence[Made]:
        tensors = {name: torch.cat([rows[place][name] for place in places]) for name in rows[places[0]]}
        dtype = loaded.model.dtype
        return work({n: t.to(loaded.device, dtype if t.is_floating_point() else None) for n, t in tensors.items()})

    shapes = [tuple((name, tuple(tensor.shape)) for name, tensor in row.items()) for row in rows]
    return each_alike(shapes, batch, run_rows)


def name_likeliest(loaded: LoadedModel, logits: torch.Tensor) -> list[str]:
    """Return the name of the most probable class in each row of a classifier's logits."""
    return [str(loaded.model.config.id2label[number]) for number in logits.argmax(-1).tolist()]
