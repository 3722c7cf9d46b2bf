"""What every expert has in common: a checkpoint, settings, and a model that does many inputs at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from formal_llm.packs.openagi.data.pixels import Pixels, picture_of
from formal_llm.packs.openagi.experts.loading import LoadedModel, ModelSource

if TYPE_CHECKING:
    from PIL import Image


class Expert(ABC):
    """One way to use one kind of model.

    The model itself is not kept here but in a pool, which loads it when it is needed: experts with equal sources share
    it.

    Args:
        source: the checkpoint.
        settings: those of ``defaults`` that shall be others.
        batch: how many inputs go through the model at once.
        generation: settings for ``generate``, for models that write; over those that the checkpoint brings.
    """

    #: The settings, and their values where the TOML file does not say.
    defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    #: The kinds of the inputs and of the output.
    inputs: ClassVar[tuple[str, ...]]
    output: ClassVar[str]
    #: Whether it is a model that writes, so that ``generation`` means something.
    writes: ClassVar[bool] = False

    def __init__(
        self,
        source: ModelSource,
        settings: Mapping[str, Any] | None = None,
        *,
        batch: int = 1,
        generation: Mapping[str, Any] | None = None,
    ) -> None:
        self.source = source
        self.settings = {**self.defaults, **(settings or {})}
        self.batch = batch
        self.generation = dict(generation or {})

    @abstractmethod
    def load(self) -> LoadedModel:
        """The model on the CPU. It depends on the source alone, not on the settings.

        Raises:
            CheckpointError, MissingDependency: it cannot be had.
        """

    @abstractmethod
    def run(self, loaded: LoadedModel, *columns: Sequence[Any]) -> list[Any]:
        """What the model makes of some inputs, at most ``batch``.

        Args:
            loaded: the model, where it shall run.
            *columns: the values of each input, all of one length.
        """


def seen(image: Image.Image) -> Image.Image:
    """The picture as a model sees it: red, green and blue, upright, what is transparent on white."""
    from PIL import Image

    pixels = Pixels.of(image)
    picture = picture_of(pixels.values).convert("RGB")
    if pixels.alpha is not None:
        white = Image.new("RGB", picture.size, "white")
        picture = Image.composite(picture, white, pixels.alpha)
    return picture


def batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    """The items in their order, at most ``size`` at a time."""
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


def alike(rows: Sequence[Mapping[str, Any]], batch: int) -> Iterator[tuple[list[int], dict[str, Any]]]:
    """Tensors of the same shapes as batches, so that nothing has to be padded and no picture changes another's result.

    Args:
        rows: for each input its tensors by name, the first dimension of each being 1.
        batch: the most rows of one batch.

    Yields:
        The places of the rows, and their tensors one below the other.
    """
    import torch

    groups: dict[tuple[tuple[str, Any], ...], list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(tuple((name, tuple(tensor.shape)) for name, tensor in row.items()), []).append(place)
    for places in groups.values():
        for some in batches(places, batch):
            yield list(some), {name: torch.cat([rows[place][name] for place in some]) for name in rows[some[0]]}


def each_alike(
    rows: Sequence[Mapping[str, Any]], batch: int, work: Callable[[dict[str, Any]], Sequence[Any]]
) -> list[Any]:
    """The results of ``work`` on the batches of :func:`alike`, in the order of the rows."""
    results: list[Any] = [None] * len(rows)
    for places, tensors in alike(rows, batch):
        for place, result in zip(places, work(tensors), strict=True):
            results[place] = result
    return results


def on(loaded: LoadedModel, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors where the model is; numbers with a point as the model has them."""
    dtype = loaded.model.dtype
    return {
        name: tensor.to(loaded.device, dtype if tensor.is_floating_point() else None)
        for name, tensor in tensors.items()
    }
