"""A loaded model, its device, and the gate that determines when it may run."""

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
    """A loaded model with its tokenizer and image processor.

    Attributes:
        model: a model of transformers, or a pipeline of diffusers.
        tokenizer, images: the tokenizer and the image processor, if it has them.
        device: the device of the model, as torch names it.
        more: additional tensors that an expert keeps with it.
    """

    model: Any
    tokenizer: Any = None
    images: Any = None
    device: str = "cpu"
    more: dict[str, torch.Tensor] = field(default_factory=dict)

    def move_model(self, device: str) -> None:
        """Move the model to a device and release the memory of the previous one."""
        self.model.to(device)
        previous, self.device = self.device, device
        if previous.startswith("cuda"):
            import torch

            torch.cuda.empty_cache()

    @property
    def bytes(self) -> int:
        """The size of the weights."""
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
    """Return the specified device, or the best available one: a GPU that torch can use, else the CPU.

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
    """A lock that lets models run concurrently, but lets a model be loaded only while none runs.

    transformers and torch keep the state of loading a model in global variables: the number type, whether weights are
    initialized. Loading two models at once leaves weights out, and a model that runs meanwhile may get numbers of
    another type.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._working, self._waiting, self._loading = 0, 0, False

    @contextmanager
    def wait_to_work(self) -> Iterator[None]:
        """Run a model in the context: wait until no model is being loaded or waits to be loaded."""
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
    def wait_to_load(self) -> Iterator[None]:
        """Load a model in the context: wait until no model runs and no other is being loaded."""
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


#: The gate of the whole process.
GATE = Gate()
