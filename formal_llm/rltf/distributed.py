"""Several processes with one model: each processes whole groups of samples, and the gradients are summed.

The results of a process depend on the update and the task alone, not on the number of processes, so one and two
processes give the same weights up to rounding. Launched with ``torchrun``.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from formal_llm.errors import TrainingError

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

#: The time a process waits for the others, which may be judging plans or the held-out tasks. torchrun reports a
#: process that has died immediately.
_PATIENCE = timedelta(days=7)


@dataclass(frozen=True)
class Processes:
    """The processes of a run.

    Attributes:
        rank: the number of this process, from 0.
    """

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes the log and the checkpoints."""
        return self.rank == 0

    def own(self, items: Sequence[T]) -> list[T]:
        """Return the items that belong to this process."""
        return list(items[self.rank :: self.size])

    def gather(self, mine: dict[K, T]) -> dict[K, T]:
        """Merge the items of all processes; the keys of different processes are distinct."""
        if self.size == 1:
            return mine
        import torch.distributed as dist

        parts: list[dict[K, T]] = [{} for _ in range(self.size)]
        dist.all_gather_object(parts, mine)
        return {key: value for part in parts for key, value in part.items()}

    def sum_gradients(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Replace each gradient by its sum over the processes; a parameter without gradient in all of them gets none.

        (For an optimizer with momentum, no gradient and a gradient of 0 are different.)
        """
        if self.size == 1:
            return
        import torch
        import torch.distributed as dist

        has_gradient = self.gather({self.rank: [parameter.grad is not None for parameter in parameters]})
        for number, parameter in enumerate(parameters):
            if not any(has[number] for has in has_gradient.values()):
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)

    def wait(self) -> None:
        """Wait until all processes are here."""
        if self.size > 1:
            import torch.distributed as dist

            dist.barrier()


@contextmanager
def world(processes: int | None = None) -> Iterator[Processes]:
    """Provide the processes that ``torchrun`` started, or this one alone if it was not used.

    Args:
        processes: the required number of processes; None: any number.

    Raises:
        TrainingError: the number is not as required. (``accelerate launch --cpu --num_processes 2`` starts one.)
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if processes is not None and size != processes:
        raise TrainingError(
            f"{size} process{'es' if size > 1 else ''} under way, not {processes}; start them with "
            f"torchrun --nproc-per-node {processes} -m formal_llm train ..."
        )
    if size == 1:
        yield Processes()
        return
    import torch
    import torch.distributed as dist

    rank = int(os.environ["RANK"])
    on_gpu = torch.cuda.is_available()
    if on_gpu and (local := int(os.environ.get("LOCAL_RANK", "0"))) < torch.cuda.device_count():
        torch.cuda.set_device(local)
    # With a GPU both: what is not on it (a model on the CPU, objects that are not tensors) uses gloo.
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo", timeout=_PATIENCE)
    try:
        if dist.get_world_size() != size:
            raise TrainingError(f"the process group has {dist.get_world_size()} processes, not {size}")
        yield Processes(rank, size)
        dist.barrier()  # a process that leaves early makes the others abort
    finally:
        dist.destroy_process_group()
