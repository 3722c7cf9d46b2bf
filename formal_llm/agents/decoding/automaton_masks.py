"""Masks by our own automata: a whole plan is decoded in one completion, within all limits.

A mask allows a token exactly where some text of the language begins with what is written and the bytes of the token.
The token may end inside a label, or begin in one terminal and end in another. Since the automaton looks ahead, limits
and sums included, what is written can always be completed. Grammars for token masks know no limits: one that says
"each tool once" has as many rules as there are sets of tools.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from formal_llm.agents.decoding.masks import Mask, pack_mask
from formal_llm.agents.decoding.plan_texts import PlanTexts, TextState
from formal_llm.agents.decoding.token_vocabulary import TokenVocabulary
from formal_llm.errors import ModelError, Undecided

#: How many masks are kept, those used last: a few hundred bytes each, since few tokens may come in a plan.
_MASKS = 50_000
#: A mask without the words in which no token is: where the others are, and what they are.
_Words: TypeAlias = tuple[npt.NDArray[np.intp], Mask]


class AutomatonMasks:
    """Makes masks from the words of a language, for one vocabulary."""

    def __init__(self, vocabulary: TokenVocabulary) -> None:
        self.vocabulary = vocabulary
        self._stops = pack_mask(vocabulary.stops, vocabulary.size)
        self._masks: dict[PlanTexts, OrderedDict[TextState, _Words]] = {}

    def compile(self, what: PlanTexts) -> AutomatonMatcher:
        """A matcher at the beginning of a plan's text.

        Raises:
            ModelError: the tokens cannot spell the texts of the plan.
        """
        if what not in self._masks:
            missing = self.vocabulary.find_unspelled_characters(what.list_characters())
            if missing:
                raise ModelError(
                    f"the tokens of this model cannot spell {missing!r}, which plans are written with; give other texts"
                )
            self._masks[what] = OrderedDict()
        return AutomatonMatcher(self, what, (what.start,))

    def get_mask_words(self, texts: PlanTexts, state: TextState) -> _Words:
        """The mask at a place of a text, as those of its words in which there are tokens."""
        kept = self._masks[texts]
        mask = kept.get(state)
        if mask is None:
            bits: dict[int, int] = {}
            for token in self.find_allowed_tokens(state):
                bits[token >> 5] = bits.get(token >> 5, 0) | 1 << (token & 31)
            mask = np.array([*bits], dtype=np.intp), np.array([*bits.values()], dtype=np.uint32).view(np.int32)
            kept[state] = mask
            if len(kept) > _MASKS:
                kept.popitem(last=False)
        else:
            kept.move_to_end(state)
        return mask

    @property
    def stops(self) -> Mask:
        """The mask where a text has ended."""
        return self._stops

    def find_allowed_tokens(self, state: TextState) -> list[int]:
        """The tokens that may come at a place of a text, those that end it included.

        Raises:
            Undecided: nothing may, because a budget of states ran out.
        """
        vocabulary = self.vocabulary
        found = list(vocabulary.stops) if state.may_stop else []
        todo = [(state, b"", vocabulary.full_range)]
        while todo:
            here, piece, within = todo.pop()
            for byte in here.possible_bytes:
                longer = piece + bytes((byte,))
                range_ = vocabulary.narrow_range(within, longer)
                if range_[0] == range_[1] or (after := here.follow_byte(byte, keep=False)) is None:
                    continue
                same = list(vocabulary.iter_exact_tokens(range_, longer))
                found += same
                if range_[1] - range_[0] > len(same):
                    todo.append((after, longer, (range_[0] + len(same), range_[1])))
        if not found and not state.complete:
            raise Undecided("whether the plan goes on was not found out within the budget of states; raise max_states")
        return found


class AutomatonMatcher:
    """Follows the text of one plan; see :class:`~formal_llm.agents.decoding.masks.TokenMatcher`."""

    def __init__(self, engine: AutomatonMasks, texts: PlanTexts, states: tuple[TextState, ...]) -> None:
        self._engine = engine
        self._texts = texts
        self._states = list(states)
        self._stopped = False
        self._mask: Mask = np.zeros_like(engine.stops)
        self._filled: npt.NDArray[np.intp] = np.empty(0, dtype=np.intp)

    def mask(self) -> Mask:
        """The tokens that may come next; after the end of the text those that end it."""
        if self._stopped:
            return self._engine.stops
        # One array for all masks, from which the last one is taken out: to make another takes longer than all else.
        self._mask[self._filled] = 0
        self._filled, words = self._engine.get_mask_words(self._texts, self._states[-1])
        self._mask[self._filled] = words
        return self._mask

    def accept(self, token: int) -> bool:
        """Take a token; False for one that is not allowed."""
        vocabulary, here = self._engine.vocabulary, self._states[-1]
        if self._stopped:
            return False
        if token in vocabulary.stops:
            self._stopped = here.may_stop
            return self._stopped
        piece = vocabulary.pieces[token] if 0 <= token < len(vocabulary.pieces) else b""
        after = here.follow_text(piece) if piece else None
        if after is None:
            return False
        self._states.append(after)
        return True

    def rollback(self, count: int) -> None:
        """Take back the last tokens."""
        if not 0 <= count < len(self._states) + self._stopped:
            raise ValueError(f"{count} tokens cannot be taken back")
        if count and self._stopped:
            self._stopped = False
            count -= 1
        if count:
            del self._states[-count:]

    def fork(self) -> AutomatonMatcher:
        """A second one at the same place."""
        twin = AutomatonMatcher(self._engine, self._texts, tuple(self._states))
        twin._stopped = self._stopped
        return twin

    def reset(self) -> None:
        """Back to the beginning."""
        del self._states[1:]
        self._stopped = False

    def may_stop(self) -> bool:
        """Whether what is written is a whole plan."""
        return self._states[-1].may_stop

    @property
    def stopped(self) -> bool:
        """Whether a token was taken that ends the text."""
        return self._stopped
