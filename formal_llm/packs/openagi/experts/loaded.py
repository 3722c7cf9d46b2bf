"""A model that was loaded, the device that it is on, and when it may work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from formal_llm.errors import MissingDependency

if TYPE_CHECKING:
    import torch


@dataclass
class LoadedModel:
    """A model that was loaded, with what it needs beside it.

    Attributes:
        model: the model: of transformers, a pipeline of diffusers, or a Restormer.
        tokenizer, images: its tokenizer and image processor, where it has them.
        device: where the model is, as torch names it.
        more: what else an expert wants to keep with it.
    """

    model: Any
    tokenizer: Any = None
    images: Any = None
    device: str = "cpu"
    more: dict[str, torch.Tensor] = field(default_factory=dict)

    def move(self, device: str) -> None:
        """Bring the model to a device; what it leaves is free for others."""
        self.model.to(device)
        left, self.device = self.device, device
        if left.startswith("cuda"):
            import torch

            torch.cuda.empty_cache()

    @property
    def bytes(self) -> int:
        """What the weights take."""
        inside = getattr(self.model, "components", None)  # of a pipeline
        modules = list(inside.values()) if isinstance(inside, dict) else [self.model]
        numbers = {
            number.data_ptr(): number.nbytes
            for module in modules
            if hasattr(module, "parameters")
            for number in (*module.parameters(), *module.buffers())
        }
        return sum(numbers.values())


def pick_device(device: str | None) -> str:
    """The device that is meant, or the best there is: a GPU that torch can use, else the CPU.

    Raises:
        MissingDependency: torch is not installed.
    """
    if device:
        return device
    try:
        import torch
    except ImportError as error:
        raise MissingDependency("experts need torch: pip install 'formal-llm[experts]'") from error
    return "cuda" if torch.cuda.is_available() else "cpu"


class Gate:
    """Lets models work side by side, and a model be loaded only while none works.

    transformers and torch keep in the whole process what belongs to one loading: which type numbers have, whether
    weights are drawn. Two loadings at once leave weights out, and a model at work meanwhile may get numbers of another
    type.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._working, self._waiting, self._loading = 0, 0, False

    @contextmanager
    def working(self) -> Iterator[None]:
        """Wait until nothing is loaded or waits to be."""
        with self._changed:
            self._changed.wait_for(lambda: not self._loading and not self._waiting)
            self._working += 1
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Wait until nothing works and nothing else is loaded."""
        with self._changed:
            self._waiting += 1
            try:
                self._changed.wait_for(lambda: not self._loading and not self._working)
                self._loading = True
            finally:
                self._waiting -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._loading = False
                self._changed.notify_all()


#: One for the whole process.
GATE = Gate()
