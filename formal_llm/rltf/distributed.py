"""Several processes, one model: each has whole groups of samples, and the gradients are summed.

What a process computes depends on the update and the task alone, not on how many processes there are, so one and two
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

#: How long a process waits for the others, which may be judging plans or the held-out tasks. Of one that has died
#: torchrun tells at once.
_PATIENCE = timedelta(days=7)


@dataclass(frozen=True)
class Processes:
    """The processes of a run.

    Attributes:
        rank: the number of this one, from 0.
        size: how many there are.
    """

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this process writes the log and the checkpoints."""
        return self.rank == 0

    def own(self, items: Sequence[T]) -> list[T]:
        """The items that are this process's."""
        return list(items[self.rank :: self.size])

    def gather(self, mine: dict[K, T]) -> dict[K, T]:
        """What all processes have, together; the keys of each are its own."""
        if self.size == 1:
            return mine
        import torch.distributed as dist

        parts: list[dict[K, T]] = [{} for _ in range(self.size)]
        dist.all_gather_object(parts, mine)
        return {key: value for part in parts for key, value in part.items()}

    def sum_gradients(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Replace each gradient by its sum over the processes; what has none in any process has none then, too.

        (For an optimizer with momentum no gradient and a gradient of 0 are not the same.)
        """
        if self.size == 1:
            return
        import torch
        import torch.distributed as dist

        there = self.gather({self.rank: [parameter.grad is not None for parameter in parameters]})
        for number, parameter in enumerate(parameters):
            if not any(has[number] for has in there.values()):
                continue
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)

    def wait(self) -> None:
        """Until all processes are here."""
        if self.size > 1:
            import torch.distributed as dist

            dist.barrier()


@contextmanager
def world(processes: int | None = None) -> Iterator[Processes]:
    """The processes that ``torchrun`` started; this one alone where it did not.

    Args:
        processes: how many there must be; None: as many as there are.

    Raises:
        TrainingError: there are others than expected. (``accelerate launch --cpu --num_processes 2`` starts one.)
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
    # With a GPU both: what is not on it (a model on the CPU, all that is no tensor) goes by gloo.
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo", timeout=_PATIENCE)
    try:
        if dist.get_world_size() != size:
            raise TrainingError(f"the process group has {dist.get_world_size()} processes, not {size}")
        yield Processes(rank, size)
        dist.barrier()  # a process that leaves early makes the others abort
    finally:
        dist.destroy_process_group()
