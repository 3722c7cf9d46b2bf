"""What every expert has in common: a checkpoint, settings, and a model that does many inputs at once."""

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

#: Tensors by the names under which a model takes them.
Tensors: TypeAlias = "dict[str, torch.Tensor]"
Item = TypeVar("Item")
Made = TypeVar("Made")


class Expert(ABC):
    """One way to use one kind of model, which a pool loads when it is needed: experts with equal sources share it.

    Args:
        source: the checkpoint.
        settings: those of ``defaults`` that shall be others.
        batch: how many inputs go through the model at once.
        generation: settings for ``generate``, for models that write; over those that the checkpoint brings.
    """

    #: The settings, and their values where the TOML file does not say.
    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    #: The kinds of the inputs and of the output.
    inputs: ClassVar[tuple[str, ...]] = ("text",)
    output: ClassVar[str] = "text"
    #: Whether it is a model that writes, so that ``generation`` means something.
    writes: ClassVar[bool] = False
    #: The class of transformers that reads the model.
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

    def load(self) -> LoadedModel:
        """The model on the CPU, with the tokenizer and image processor that it needs; the settings change nothing.

        Raises:
            CheckpointError, MissingDependency: it cannot be had.
        """
        return LoadedModel(
            self.source.model(self.auto),
            self.source.tokenizer() if self.writes or "text" in self.inputs else None,
            self.source.image_processor() if "image" in self.inputs else None,
        )

    @abstractmethod
    def run(self, loaded: LoadedModel, *columns: Sequence[Any]) -> Sequence[Image.Image | str]:
        """What the model makes of some inputs, at most ``batch``.

        Args:
            loaded: the model, where it shall run.
            *columns: the values of each input, all of one length; an expert says of which class its own are.
        """


def seen(image: Image.Image) -> Image.Image:
    """The picture as a model sees it: red, green and blue, upright, what is transparent on white."""
    pixels = Pixels.of(image)
    picture = picture_of(pixels.values).convert("RGB")
    if pixels.alpha is None:
        return picture
    return Image.composite(picture, Image.new("RGB", picture.size, "white"), pixels.alpha)


def batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    """The items in their order, at most ``size`` at a time."""
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def each_alike(kinds: Sequence[Hashable], batch: int, work: Callable[[Sequence[int]], Sequence[Made]]) -> list[Made]:
    """The results of work on batches of inputs of one kind each, in the order of the inputs.

    So nothing has to be padded, and no input changes the result of another.

    Args:
        kinds: for each input what it must share with the others of its batch, as its size.
        batch: the most inputs of one batch.
        work: what is made of the inputs at some places.
    """
    results: dict[int, Made] = {}
    for kind in dict.fromkeys(kinds):
        for some in batches([place for place, other in enumerate(kinds) if other == kind], batch):
            results.update(zip(some, work(some), strict=True))
    return [results[place] for place in range(len(kinds))]


def each_row(
    loaded: LoadedModel, rows: Sequence[Tensors], batch: int, work: Callable[[Tensors], Sequence[Made]]
) -> list[Made]:
    """The results of work on rows of tensors, at most ``batch`` of the same shapes together, one below the other.

    A row has the tensors of one input by name, the first dimension of each being 1. They are brought to where the model
    is, numbers with a point to the type that it has them in.
    """
    import torch

    def together(places: Sequence[int]) -> Sequence[Made]:
        tensors = {name: torch.cat([rows[place][name] for place in places]) for name in rows[places[0]]}
        dtype = loaded.model.dtype
        return work({n: t.to(loaded.device, dtype if t.is_floating_point() else None) for n, t in tensors.items()})

    shapes = [tuple((name, tuple(tensor.shape)) for name, tensor in row.items()) for row in rows]
    return each_alike(shapes, batch, together)


def likeliest(loaded: LoadedModel, logits: torch.Tensor) -> list[str]:
    """The name of the most probable class in each row of what a classifier gave."""
    return [str(loaded.model.config.id2label[number]) for number in logits.argmax(-1).tolist()]
