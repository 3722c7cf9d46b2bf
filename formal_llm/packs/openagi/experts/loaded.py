"""A model that was loaded, and the device that it is on."""

from __future__ import annotations

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
