"""The probabilities of options, computed from the token probabilities of a model that wrote the number of one.

For each written token a server lists the most probable alternatives with their log-probabilities. Where the number of
an answer begins, the alternatives are other numbers, and their shares are the probabilities of the options. The rules,
which return nothing in case of doubt:

- A token counts for the option whose number it completes. White space before and after, and the end of the JSON object,
  make no difference: variants of one number add up.
- A token after which the number may continue ("1" if there is an option 12) is resolved by the next token if it is the
  one that was written. If it is not, its continuation is unknown: no probabilities. The number does not continue if
  every longer number with this beginning ("10", "11", "12") is listed as a token of its own: a tokenizer that has these
  tokens writes those numbers with them.
- Tokens that are no options (white space alone, words, quotation marks) are left out, and the rest is scaled to 1. This
  is what a constrained decoder does, and many servers report the probabilities from before the constraint.
- Only the most probable tokens are listed. An option that is not among them gets 0 if all tokens that are not listed
  have together at most a thousandth (:data:`NEGLIGIBLE`) of what the listed options have. Otherwise: no probabilities.
- The written token must be one that counts. It does not if the answer is "02": no probabilities.
- A value that is no log-probability (not a number, above 0), or a list that sums to more than 1: no probabilities.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

#: The share of an option that is not listed, relative to those that are, up to which it counts as 0.
NEGLIGIBLE = 0.001
#: The number of alternatives to request: the maximum that servers return.
MOST_ALTERNATIVES = 20
#: How much a probability, or a sum of probabilities, may exceed 1 by rounding.
_ROUNDING = 0.01

_DIGITS = re.compile(r"[0-9]*")
#: How servers write the token that ends a text, if they list it: ``</s>``, ``<|im_end|>``; or as an empty text.
_END = re.compile(r"(?:<[^<>\s]+>)?")


class Token(NamedTuple):
    """A written token.

    Attributes:
        alternatives: the texts that were possible there with their log-probabilities, including the token itself.
    """

    text: str
    alternatives: tuple[tuple[str, float], ...]


def read_tokens(entries: object) -> list[Token] | None:
    """Read the tokens from plain data in the form of OpenAI's chat completions; None if the form is different.

    Args:
        entries: dictionaries with ``token``, ``logprob`` and ``top_logprobs`` (dictionaries of the same form).
    """
    if not isinstance(entries, list) or not entries:
        return None
    tokens = []
    for entry in entries:
        top = entry.get("top_logprobs") if isinstance(entry, dict) else None
        listed = [_read_pair(one) for one in top] if isinstance(top, list) else []
        written = _read_pair(entry)
        if written is None or None in listed:
            return None
        # A dictionary, since some servers list a token twice.
        pairs = dict.fromkeys(pair for pair in listed if pair is not None)
        # The written token is among them, unless it is not one of the most probable.
        if all(text != written[0] for text, _ in pairs):
            pairs[written] = None
        tokens.append(Token(written[0], tuple(pairs)))
    return tokens


def _read_pair(entry: object) -> tuple[str, float] | None:
    text, logprob = (entry.get("token"), entry.get("logprob")) if isinstance(entry, dict) else (None, None)
    if not isinstance(text, str) or isinstance(logprob, bool) or not isinstance(logprob, (int, float)):
        return None
    try:
        return text, float(logprob)
    except OverflowError:
        return None


def option_probabilities(tokens: Sequence[Token], count: int, text: str) -> dict[int, float] | None:
    """Compute the probabilities of the options 1 to ``count``, after an answer that chose one of them.

    Args:
        tokens: the written tokens, in order; they may include thoughts before the answer.
        count: the number of options.
        text: the answer: its only digits are those of the number.

    Returns:
        The probability of each option; None if the probabilities cannot be determined.
    """
    number = re.search("[0-9]+", text)
    place = (
        None if number is None else _find_place(tokens, text.strip(), number.start() - (len(text) - len(text.lstrip())))
    )
    if number is None or place is None:
        return None
    index, within = place
    lead = "".join(tokens[index].text[:within].split())
    after = "".join(text[number.end() :].split())
    shares = _Shares(tokens, [str(option) for option in range(1, count + 1)], after).from_token(index, lead, "")
    total = math.fsum(shares.values()) if shares else 0.0
    if shares is None or not 0 < total < math.inf:
        return None
    return {option: shares.get(str(option), 0.0) / total for option in range(1, count + 1)}


def _find_place(tokens: Sequence[Token], text: str, offset: int) -> tuple[int, int] | None:
    """Return the token that contains the character of ``text`` at ``offset``, and the position in the token."""
    begins = [0, *accumulate(len(token.text) for token in tokens)]
    written = "".join(token.text for token in tokens)
    # The last two tokens may end the text, and are then no part of it.
    for end in begins[:-4:-1]:
        kept = written[:end].rstrip()
        if kept.endswith(text):
            position = len(kept) - len(text) + offset
            index = bisect_right(begins, position) - 1
            return index, position - begins[index]
    return None


@dataclass(frozen=True)
class _Shares:
    """The shares of numbers, from the alternatives to the written tokens, one after the other."""

    tokens: Sequence[Token]
    numbers: list[str]
    after: str

    def from_token(self, index: int, lead: str, done: str) -> dict[str, float] | None:
        """Return the shares of the numbers that begin with ``done``, from the alternatives of one token.

        ``lead`` are its characters before the number, without white space; ``done`` the digits in earlier tokens.
        """
        if index >= len(self.tokens):
            return None
        token = self.tokens[index]
        found = _read_probabilities(token.alternatives)
        if found is None:
            return None
        shares: dict[str, float] = {}
        written, written_share, listed, explained = "", 0.0, 0.0, False
        read = [(text, probability, *self.read(text, lead, done)) for text, probability in found]
        whole = {done + digits for _, _, digits, _ in read if digits}
        for text, probability, digits, ended in read:
            listed += probability
            if digits is None:
                continue
            number = done + digits
            # A model that has just continued the number token by token has shown that it does so.
            goes_on = text == token.text and self.next_is_digit(index)
            counts = number in self.numbers and (ended or (self.longer(number) <= whole and not goes_on))
            explained = explained or (text == token.text and (counts or bool(digits and self.longer(number))))
            if counts:
                shares[number] = shares.get(number, 0.0) + probability
            elif digits and not ended and self.longer(number):
                if text == token.text:
                    written, written_share = number, written_share + probability
                elif probability > 0:
                    return None
        # The number is written in a form that is not supported here, such as 02; or the end of the text, which is
        # not always listed in a recognisable form.
        if not explained or (done in self.numbers and not self.after and done not in shares):
            return None
        covered = set(shares)
        total = math.fsum(shares.values()) + written_share
        if written:
            if not self._add_longer(shares, index + 1, written, written_share):
                return None
            covered |= {number for number in self.numbers if number.startswith(written)}
        missing = any(number.startswith(done) and number not in covered for number in self.numbers)
        return None if missing and 1.0 - listed > NEGLIGIBLE * total else shares

    def _add_longer(self, shares: dict[str, float], index: int, written: str, share: float) -> bool:
        """Add what the next token makes of a number that was written so far; whether that is known."""
        further = self.from_token(index, "", written)
        scale = math.fsum(further.values()) if further else 0.0
        if further is None or not scale > 0:
            return False
        for longer, part in further.items():
            shares[longer] = shares.get(longer, 0.0) + share * part / scale
        return True

    def next_is_digit(self, index: int) -> bool:
        """Return whether the token after the one at ``index`` begins with a digit."""
        return index + 1 < len(self.tokens) and self.tokens[index + 1].text[:1] in tuple("0123456789")

    def longer(self, number: str) -> set[str]:
        """Return the options whose number is longer and begins with ``number``."""
        return {other for other in self.numbers if other != number and other.startswith(number)}

    def read(self, text: str, lead: str, done: str) -> tuple[str | None, bool]:
        """Return the digits that a token adds (None if it is no option), and whether it also ends the number."""
        rest = text
        for character in lead:
            rest = rest.lstrip()
            if not rest.startswith(character):
                return None, False
            rest = rest[1:]
        if not done:
            rest = rest.lstrip()
        digits = _DIGITS.match(rest).group()  # type: ignore[union-attr]  # the pattern matches every text
        tail = rest[len(digits) :]
        if not digits and not done:
            return None, False
        # After the number comes the rest of the answer, white space, or the token that ends every text.
        ended = "".join(tail.split())
        if not tail:
            return (digits, False) if digits else ("", not self.after)
        if self.after.startswith(ended) if self.after else (not ended or (not digits and _END.fullmatch(tail))):
            return digits, True
        return None, False


def _read_probabilities(alternatives: Iterable[tuple[str, float]]) -> list[tuple[str, float]] | None:
    """Replace the logarithms of the alternatives by probabilities; None if they cannot be logarithms of any."""
    found = []
    for text, logprob in alternatives:
        if math.isnan(logprob) or logprob > _ROUNDING:
            return None
        found.append((text, math.exp(min(logprob, 0.0))))
    return found if found and math.fsum(share for _, share in found) <= 1 + _ROUNDING else None
