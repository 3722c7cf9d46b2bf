"""Masks where transformers generates: a logits processor.

``model.generate(..., logits_processor=[MaskedLogits(matcher)])`` writes only what the matcher allows. Rows are known by
the tokens that they begin with, not by their number: beam search reorders rows and gives two of them the same
beginning, assisted generation takes tokens back, and the same processor may serve one text after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from formal_llm.agents.decoding.masks import Mask, TokenMatcher
from formal_llm.errors import LLMError

if TYPE_CHECKING:
    import torch

_Ids = npt.NDArray[np.int64]


class _BeamRow(NamedTuple):
    """A row: its tokens, the matcher after them, and how many of them (with the prompt) it has seen.

    No matcher for a row of probability 0. Behind the token that ends a text, a matcher sees no more.
    """

    ids: _Ids
    matcher: TokenMatcher | None
    taken: int


class MaskedLogits:
    """Gives the tokens that are not allowed a score of minus infinity.

    Where fewer texts are legal than there are beams, beam search fills up with rows of probability 0. They break the
    rules, and stay at probability 0.

    Args:
        matchers: one for each text that is generated at a time, where it begins; one alone serves all of them.
            They stay where they are: each text is followed by forks of them.
        beams: how many rows each text has (``num_beams``).
    """

    def __init__(self, matchers: TokenMatcher | Sequence[TokenMatcher], *, beams: int = 1) -> None:
        self._begins = list(matchers) if isinstance(matchers, Sequence) else [matchers]
        self._beams = beams
        self.reset()

    def reset(self) -> None:
        """Forget what was generated: the next call begins new texts.

        A call whose rows continue none of the texts that were there begins new texts by itself.
        """
        self._prompt = 0
        self._rows: list[_BeamRow] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The scores of the next tokens, masked.

        Args:
            input_ids: the tokens so far, a row for each text or beam.
            scores: for each row a score for each token, also where the model has more than the tokenizer.

        Raises:
            LLMError: somebody wrote a token that the mask forbids; the rows continue none of the texts that were there;
                the number of rows is not that of the matchers, or the model has fewer tokens than they.
            Undecided: of a matcher.
        """
        import torch

        rows: list[_Ids] = list(input_ids.cpu().numpy())
        matchers = self._follow_rows(rows)
        allowed = torch.zeros(scores.shape, dtype=torch.bool)
        for number, matcher in enumerate(matchers):
            if matcher is not None:
                bits = unpack_mask(matcher.mask())
                if len(bits) > scores.shape[-1] and bits[scores.shape[-1] :].any():
                    raise LLMError(
                        f"the model has {scores.shape[-1]:,} tokens, and the vocabulary of the masks has more"
                    )
                width = min(len(bits), scores.shape[-1])
                allowed[number, :width] = torch.from_numpy(bits[:width])
        return scores.masked_fill(~allowed.to(scores.device), -torch.inf)

    def _follow_rows(self, rows: list[_Ids]) -> list[TokenMatcher | None]:
        """The matcher of each row, after its tokens; None for a row of probability 0."""
        beams = self._beams
        before = {(number // beams, row.ids.tobytes()): row for number, row in enumerate(self._rows)}
        found = [
            before.get((number // beams, ids[:-1].tobytes())) or self._find_nearest_row(ids, number // beams)
            for number, ids in enumerate(rows)
        ]
        if all(row is None for row in found):
            self._rows = self._begin_rows(rows)
        elif any(row is None for row in found):
            raise LLMError("some rows go on with what was generated and others do not; reset() begins anew")
        else:
            uses = Counter(id(row) for row in found)
            self._rows = [
                self._advance_row(ids, row, alone=uses[id(row)] == 1)
                for ids, row in zip(rows, found, strict=True)
                if row is not None
            ]
        return [row.matcher for row in self._rows]

    def _begin_rows(self, rows: list[_Ids]) -> list[_BeamRow]:
        texts = len(rows) // self._beams
        if len(rows) % self._beams or len(self._begins) not in (1, texts):
            raise LLMError(
                f"{len(rows)} rows are generated, with {len(self._begins)} matchers and {self._beams} beams each"
            )
        self._prompt = rows[0].size
        begun = []
        for number, ids in enumerate(rows):
            matcher = self._begins[number // self._beams if len(self._begins) > 1 else 0].fork()
            begun.append(_BeamRow(ids, matcher, ids.size))
        return begun

    def _find_nearest_row(self, ids: _Ids, text: int) -> _BeamRow | None:
        """The former row of a text that shares most tokens with a row; None where none shares the prompt."""
        best, most = None, self._prompt - 1
        for row in self._rows[text * self._beams : (text + 1) * self._beams]:
            if row.matcher is not None and (shared := _count_shared_tokens(ids, row.ids)) > most:
                best, most = row, shared
        return best

    def _advance_row(self, ids: _Ids, row: _BeamRow, *, alone: bool) -> _BeamRow:
        """From a former row to one with these tokens; ``alone``: its matcher is needed for no other one."""
        if row.matcher is None:
            return _BeamRow(ids, None, ids.size)
        matcher = row.matcher if alone else row.matcher.fork()
        shared = row.ids.size if ids.size == row.ids.size + 1 else _count_shared_tokens(ids, row.ids)
        matcher.rollback(max(0, row.taken - shared))
        taken = min(row.taken, shared)
        for token in ids[shared:].tolist():
            if matcher.stopped:
                break  # what fills the row up
            if not matcher.accept(token):
                if self._beams > 1:
                    return _BeamRow(ids, None, ids.size)
                raise LLMError(
                    f"the token {token} was written, which the mask forbids: something else chose it after the mask, "
                    "or forbade all that is legal"
                )
            taken += 1
        return _BeamRow(ids, matcher, taken)


def _count_shared_tokens(one: _Ids, other: _Ids) -> int:
    """How many tokens two rows have in common at their beginning."""
    size = min(one.size, other.size)
    differ = np.flatnonzero(one[:size] != other[:size])
    return int(differ[0]) if differ.size else size


def unpack_mask(mask: Mask) -> npt.NDArray[np.bool_]:
    """A mask as truth values, one for each token."""
    return np.unpackbits(mask.view(np.uint8), bitorder="little").view(np.bool_)
