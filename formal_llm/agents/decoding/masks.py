"""Token masks: which tokens a model may write next.

A model that runs here gives a number for each token; a mask takes away those that continue no legal text. What
makes the masks is a :class:`MaskEngine`: one asks our own automata
(:class:`~formal_llm.agents.decoding.automaton_masks.AutomatonMasks`), another one xgrammar
(:class:`~formal_llm.agents.decoding.xgrammar_masks.XGrammarMasks`).

A mask is an array of 32-bit words, the form that xgrammar, vLLM and others use: token ``i`` is allowed where bit
``i % 32`` of word ``i // 32`` is set.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

#: The allowed tokens, one bit each.
Mask: TypeAlias = npt.NDArray[np.int32]

T = TypeVar("T", contravariant=True)


class TokenMatcher(Protocol):
    """Follows one text, token by token."""

    def mask(self) -> Mask:
        """The tokens that may come next. It is to be read before the next call, and not to be written to.

        A token that ends the text is among them exactly where :meth:`may_stop`; after it there is no other.

        Raises:
            Undecided: whether a text can continue was not found out within the budget of states, and nothing is known
                to.
        """
        ...

    def accept(self, token: int) -> bool:
        """Take a token. False, and nothing changes, for one that is not allowed."""
        ...

    def rollback(self, count: int) -> None:
        """Take back the last tokens.

        Raises:
            ValueError: there are fewer.
        """
        ...

    def fork(self) -> TokenMatcher:
        """A second one at the same place: each goes its own way from here."""
        ...

    def reset(self) -> None:
        """Back to the beginning of the text."""
        ...

    def may_stop(self) -> bool:
        """Whether the text is whole as it is."""
        ...

    @property
    def stopped(self) -> bool:
        """Whether a token was taken that ends the text."""
        ...


class MaskEngine(Protocol[T]):
    """Makes masks for one vocabulary, from what may be written."""

    def compile(self, what: T) -> TokenMatcher:
        """A matcher at the beginning of a text. What it costs to make is spent once for the same ``what``."""
        ...


def pack_mask(tokens: Iterable[int], size: int) -> Mask:
    """Tokens as a mask over a vocabulary of ``size`` tokens."""
    bits = np.zeros(-(-size // 32) * 32, dtype=np.uint8)
    bits[list(tokens)] = 1
    return np.packbits(bits, bitorder="little").view("<i4")


def list_mask_tokens(mask: Mask) -> list[int]:
    """The tokens of a mask, in order."""
    allowed: list[int] = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
    return allowed
