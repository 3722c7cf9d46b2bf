"""Batches that find their size: when memory runs out, a pass is made again with half as much in it.

What worked is kept, so memory runs out a few times at the beginning of a run and then no more. What is computed stays
the same but for the last bits, which depend on what is computed together.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

#: The tokens below which no pass is cut: the model itself is too large then.
_FEWEST = 64


def out_of_memory(error: BaseException) -> bool:
    """Whether an error reports that memory ran out, on a GPU or on the CPU."""
    import torch

    on_cpu = "DefaultCPUAllocator" in str(error)  # a plain RuntimeError, other than on a GPU
    return on_cpu or isinstance(error, (MemoryError, torch.OutOfMemoryError))


def fitted(work: Callable[[], T], smaller: Callable[[], str]) -> T:
    """What a piece of work comes to, made anew with less in it as long as memory runs out.

    Args:
        work: may run out of memory; what it has changed by then must not matter.
        smaller: halves what is in it, and returns how much there is now; an empty text: it cannot be less.
    """
    while True:
        try:
            return work()
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error) or not (now := smaller()):
                raise
        # Only here: as long as the error is being handled, its frames hold what filled the memory.
        _freed()
        logging.getLogger("formal_llm").warning("memory ran out; going on with %s", now)


def fewer_tokens(scorer: object) -> str:
    """Have a scorer read half as many tokens in a pass, and forget what it keeps of earlier ones."""
    tokens = getattr(scorer, "batch_tokens", None)
    if not isinstance(tokens, int) or tokens <= _FEWEST:
        return ""
    scorer.batch_tokens = tokens // 2  # type: ignore[attr-defined]  # it has some, as was just seen
    scorer.forget()  # type: ignore[attr-defined]
    return f"{tokens // 2:,} tokens in a pass"


def _freed() -> None:
    """Release memory that is no longer needed."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
