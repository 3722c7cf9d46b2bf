"""Which texts are read in one pass, so that it takes no more than some memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def fitting_tokens(model: PreTrainedModel, on_cpu: int) -> int:
    """How many tokens are best read in one pass: on a CPU few, so that what a layer makes stays in its caches."""
    return on_cpu if model.get_input_embeddings().weight.device.type == "cpu" else 8_192


def by_length(lengths: Sequence[int]) -> list[int]:
    """The numbers of some texts, the shortest first: those of like length together need little padding."""
    return sorted(range(len(lengths)), key=lengths.__getitem__)


def batches(
    order: Iterable[int], lengths: Sequence[int], most: int, rows: Sequence[int] | None = None
) -> Iterator[list[int]]:
    """Texts in batches of at most ``most`` tokens, padding included; a single one may have more.

    Args:
        order: the numbers of the texts, as they come.
        lengths: how many tokens each has.
        most: how many tokens a batch may have.
        rows: how often each is read; once where this is left out.
    """
    batch: list[int] = []
    width = height = 0
    for index in order:
        width, more = max(width, lengths[index]), 1 if rows is None else rows[index]
        if batch and width * (height + more) > most:
            yield batch
            batch, width, height = [], lengths[index], 0
        batch.append(index)
        height += more
    if batch:
        yield batch
