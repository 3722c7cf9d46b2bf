"""Texts that are held to a grammar or a schema while a local model writes them, by llguidance.

llguidance follows the grammar token by token (an Earley parser over a lexer, https://github.com/guidance-ai/llguidance);
here its answer becomes a mask on the scores of the next token.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING

from formal_llm.errors import LLMError, MissingDependency, ModelError
from formal_llm.llms.schemas import Schema

if TYPE_CHECKING:
    import torch
    from llguidance import LLMatcher
    from transformers import PreTrainedTokenizerBase


class TokenMask:
    """Forbids each token that no text of a grammar goes on with: a logits processor of transformers for one text.

    The token that ends a text is allowed exactly where the text is whole.
    """

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher
        self._read: int | None = None

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return the scores of the next token, minus infinity for a forbidden one.

        Args:
            ids: the tokens so far, in one row; those of the first call are not part of the text.
            scores: the scores of the next token, in one row.

        Raises:
            LLMError: the grammar became too large to follow, the model has no token that goes on with the text, or
                something else chose a token that was forbidden.
        """
        import numpy as np
        import torch

        self._matcher.consume_tokens(ids[0, self._read :].tolist() if self._read is not None else [])
        self._read = ids.shape[1]
        bits = np.unpackbits(np.frombuffer(self._matcher.compute_bitmask(), np.uint8), bitorder="little")
        if self._matcher.is_stopped() and not self._matcher.is_accepting():  # it would let the text end anywhere
            problem = self._matcher.get_error().partition("\n<state>")[0]
            raise LLMError(
                f"the text cannot be held to its grammar; perhaps no token of the model spells what follows: {problem}"
            )
        allowed = torch.from_numpy(bits[: scores.shape[1]].astype(np.bool_)).to(scores.device)
        return scores.masked_fill(~allowed, -torch.inf)


class TokenGrammars:
    """Makes token masks for one vocabulary.

    Args:
        tokenizer: the model's tokenizer.
        size: the number of scores that the model gives; it may exceed the tokenizer's tokens.
        ends: the tokens that end a text.

    Raises:
        MissingDependency: llguidance is not installed.
        ModelError: no token ends a text, or the texts of the tokens are not known.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerBase, size: int, ends: Collection[int]) -> None:
        try:
            from llguidance import LLTokenizer
        except ImportError as error:
            raise MissingDependency(
                "a local model is held to a grammar or a schema by llguidance: pip install 'formal-llm[local]'"
            ) from error
        if not ends:
            raise ModelError("no token of this model ends a text: neither its tokenizer nor its settings name one")
        backend = getattr(tokenizer, "backend_tokenizer", None)
        try:
            if backend is None:
                raise ValueError("it has no fast tokenizer")
            described = json.loads(backend.to_str()) | {"truncation": None, "padding": None}
            if (described.get("decoder") or {}).get("type") == "Metaspace":  # which llguidance does not know (T5)
                blank = {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}
                described["decoder"] = {"type": "Sequence", "decoders": [blank, {"type": "ByteFallback"}]}
            self._tokens = LLTokenizer(json.dumps(described), n_vocab=size, eos_token=sorted(ends))
        except ValueError as error:
            raise ModelError(f"what the tokens of this model stand for is not known: {error}") from error

    def hold_to_lark(self, grammar: str) -> TokenMask:
        """Return the mask of the texts of a grammar in Lark's notation (its start symbol is ``start``).

        Raises:
            ValueError: the grammar cannot be read.
        """
        from llguidance import LLMatcher

        return self._hold_to(LLMatcher.grammar_from_lark(grammar))

    def hold_to_schema(self, schema: Schema) -> TokenMask:
        """Return the mask of the JSON texts of a schema, on one line: a small model that may write blanks never ends.

        Raises:
            ValueError: the schema cannot be read.
        """
        from llguidance import LLMatcher

        plain = json.dumps(schema)
        return self._hold_to(LLMatcher.grammar_from_json_schema(plain, overrides={"whitespace_flexible": False}))

    def _hold_to(self, grammar: str) -> TokenMask:
        from llguidance import LLMatcher

        matcher = LLMatcher(self._tokens, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(f"the grammar cannot be read: {matcher.get_error()}")
        return TokenMask(matcher)
