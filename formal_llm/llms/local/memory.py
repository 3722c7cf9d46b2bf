"""Batches that find their size: if memory runs out, a pass is repeated with half the batch.

The reduced size is kept, so memory runs out a few times at the beginning of a run and then no more. The results stay
the same except for the last bits, which depend on what is computed together.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: The minimum number of tokens in a pass: if memory does not suffice for it, the model itself is too large.
_FEWEST = 64


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory ran out, on a GPU or on the CPU."""
    import torch

    on_cpu = "DefaultCPUAllocator" in str(error)  # a plain RuntimeError, unlike on a GPU
    return on_cpu or isinstance(error, (MemoryError, torch.OutOfMemoryError))


def fitted(work: Callable[[], T], smaller: Callable[[], str]) -> T:
    """Return the result of some work, repeating it with a smaller size as long as memory runs out.

    Args:
        work: the work, which may run out of memory; a partial execution must have no effect.
        smaller: halves the size and describes the new one; returns an empty text if it cannot be reduced.
    """
    while True:
        try:
            return work()
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error) or not (now := smaller()):
                raise
        # Only here, since the frames of the error hold the memory while the error is being handled.
        _free_memory()
        logging.getLogger("formal_llm").warning("memory ran out; going on with %s", now)


def fewer_tokens(scorer: object) -> str:
    """Halve the number of tokens that a scorer reads in a pass, and clear its caches."""
    tokens = getattr(scorer, "batch_tokens", None)
    if not isinstance(tokens, int) or tokens <= _FEWEST:
        return ""
    scorer.batch_tokens = tokens // 2  # type: ignore[attr-defined]  # the attribute exists, as was just checked
    scorer.forget()  # type: ignore[attr-defined]
    return f"{tokens // 2:,} tokens in a pass"


def _free_memory() -> None:
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
