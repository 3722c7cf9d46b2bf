"""What the tokens of a model stand for, as bytes.

A token of byte-level BPE (GPT-2, LLaMA 3, Qwen) is any bytes, also a part of a character. A piece of SentencePiece is
characters, with a mark for a blank, and beside the pieces there may be one token for each byte (LLaMA 2, Gemma). Models
often have more logits than their tokenizer has tokens: what is above stands for nothing.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from formal_llm.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

#: The mark for a blank in pieces of SentencePiece.
_BLANK = "\u2581"


class TokenVocabulary:
    """The tokens of a model.

    Args:
        pieces: for each token its bytes; empty for one that stands for no text (special and unused tokens).
        stops: the tokens that end a text.
        size: how many logits the model gives, where these are more.

    Attributes:
        pieces: as given.
        stops: as given; none of them is text.
        size: how many tokens a mask is over.

    Raises:
        ValueError: there are fewer logits than tokens, or a stop that is no token.
    """

    def __init__(self, pieces: Sequence[bytes], stops: Collection[int], size: int | None = None) -> None:
        self.stops = tuple(sorted(set(stops)))
        self.size = len(pieces) if size is None else size
        if self.size < len(pieces):
            raise ValueError(f"the tokenizer has {len(pieces):,} tokens and the model knows {self.size:,}")
        if any(not 0 <= stop < self.size for stop in self.stops):
            raise ValueError(f"a token that ends a text is none of the {self.size:,} tokens: {self.stops}")
        ending = set(self.stops)
        self.pieces = tuple(b"" if token in ending else piece for token, piece in enumerate(pieces))
        order = sorted((piece, token) for token, piece in enumerate(self.pieces) if piece)
        self._sorted = [piece for piece, _ in order]
        self._tokens = [token for _, token in order]

    @classmethod
    def from_tokenizer(
        cls, tokenizer: PreTrainedTokenizerBase, size: int | None = None, stops: Iterable[int] = ()
    ) -> TokenVocabulary:
        """The vocabulary of a tokenizer of transformers.

        Args:
            tokenizer: byte-level BPE, or SentencePiece with or without bytes.
            size: how many logits the model gives (``model.get_output_embeddings().weight.shape[0]``).
            stops: tokens that end a text, beside the tokenizer's own end token.

        Raises:
            ModelError: the texts of its tokens cannot be determined.
        """
        ending = {*stops, *([] if tokenizer.eos_token_id is None else [int(tokenizer.eos_token_id)])}
        return cls(_read_token_bytes(tokenizer), ending, max(len(tokenizer), size or 0))

    def decode_tokens(self, tokens: Iterable[int]) -> bytes:
        """What tokens stand for, one after the other; those that end a text stand for nothing."""
        return b"".join(self.pieces[token] if token < len(self.pieces) else b"" for token in tokens)

    @property
    def full_range(self) -> tuple[int, int]:
        """The range of all tokens with a text, in the order of their bytes."""
        return 0, len(self._sorted)

    def narrow_range(self, within: tuple[int, int], beginning: bytes) -> tuple[int, int]:
        """Of a range of tokens those that begin so; the range may be empty."""
        low = bisect_left(self._sorted, beginning, *within)
        after = _find_prefix_successor(beginning)
        return low, within[1] if after is None else bisect_left(self._sorted, after, low, within[1])

    def find_tokens_beginning(self, beginning: bytes) -> list[int]:
        """The tokens that begin so."""
        return self._tokens[slice(*self.narrow_range(self.full_range, beginning))]


def _find_prefix_successor(beginning: bytes) -> bytes | None:
    """The least bytes after all those that begin so; None where there are none."""
    kept = beginning.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _is_whole_text(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


def _read_token_bytes(tokenizer: PreTrainedTokenizerBase) -> list[bytes]:
    """The bytes of each token; none for special tokens and for numbers that are no token."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    # A tokenizer without a fast one beside it is SentencePiece's own.
    decoder = json.dumps(json.loads(backend.to_str()).get("decoder")) if backend is not None else _BLANK
    byte_level, byte_pieces = '"ByteLevel"' in decoder, '"ByteFallback"' in decoder or backend is None
    if not byte_level and '"Metaspace"' not in decoder and _BLANK not in decoder and "\\u2581" not in decoder:
        raise ModelError(
            "it cannot be determined what the tokens of this tokenizer stand for (it is neither byte-level BPE nor "
            "SentencePiece); give TokenVocabulary(pieces, stops)"
        )
    names = tokenizer.convert_ids_to_tokens(list(range(len(tokenizer))))
    added = {int(number): token for number, token in tokenizer.added_tokens_decoder.items()}
    special = {int(number) for number in tokenizer.all_special_ids}
    special |= {number for number, token in added.items() if token.special}
    found: list[bytes] = []
    for number, name in enumerate(names):
        if name is None or number in special:
            found.append(b"")
        elif number in added:
            found.append(str(added[number]).encode())
        else:
            found.append(_decode_byte_token(name) if byte_level else _decode_piece_token(name, byte_pieces))
    return found


@lru_cache(maxsize=1)
def _build_byte_table() -> dict[str, int]:
    """GPT-2's table: bytes that can be printed stand for themselves, the others for characters from 256 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(256 + place): byte for place, byte in enumerate(others)}


def _decode_byte_token(name: str) -> bytes:
    table = _build_byte_table()
    # As the decoder does: a token with a character from outside the table is that text itself.
    return bytes(table[letter] for letter in name) if all(letter in table for letter in name) else name.encode()


def _decode_piece_token(name: str, byte_pieces: bool) -> bytes:
    if byte_pieces and len(name) == 6 and name.startswith("<0x") and name.endswith(">"):
        return bytes([int(name[3:5], 16)])
    return name.replace(_BLANK, " ").encode()
