"""Masks by xgrammar, for contents that are no plan: text, regular expressions, grammars, JSON.

xgrammar is optional (``pip install 'formal-llm[xgrammar]'``). It follows grammars token by token in C++ (Dong et al.
2024, arXiv 2411.15100). What it cannot express is added here: that no marker is inside a content that is not free
text, and that of markers which overlap the first one counts that is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from formal_llm.agents.decoding.contents import (
    Content,
    FreeText,
    Grammar,
    JsonSchema,
    OneOf,
    Regex,
    SegmentPattern,
    Validated,
)
from formal_llm.agents.decoding.masks import Mask, pack_mask
from formal_llm.agents.decoding.token_vocabulary import TokenVocabulary
from formal_llm.errors import AutomatonError, LLMError, MissingDependency

if TYPE_CHECKING:
    import xgrammar


class MarkerDetector:
    """Looks for markers in what a token would add to a text.

    Args:
        what: what may be written, with its markers.

    Attributes:
        longest: the bytes of the longest marker: as much of the end of a text matters.
    """

    def __init__(self, vocabulary: TokenVocabulary, what: SegmentPattern) -> None:
        self.vocabulary = vocabulary
        self._legal = {marker.encode() for marker in what.markers}
        self._markers = [marker.encode() for marker in (*what.markers, *what.never)]
        self.longest = max(map(len, self._markers))
        begun = {marker[:size] for marker in self._markers for size in range(1, len(marker))}
        # Each mask asks these; an expression that is compiled answers in a fraction of a microsecond.
        self._begun = re.compile(rb"(?:%s)\Z" % b"|".join(map(re.escape, begun)) if begun else rb"(?!)")
        self._any = re.compile(b"|".join(map(re.escape, self._markers)))
        #: Tokens in which a whole marker stands, each with its word and bit in a mask.
        inside = [token for token, piece in enumerate(vocabulary.pieces) if self._any.search(piece)]
        self._inside = [(token, token >> 5, token & 31) for token in inside]
        self._beginning: dict[bytes, tuple[int, ...]] = {}

    def find_doubtful_tokens(self, end: bytes, mask: Mask) -> Iterator[int]:
        """The tokens of a mask by which a marker comes up behind a text that ends so."""
        for token, word, bit in self._inside:
            if int(mask[word]) >> bit & 1:
                yield token
        if self._begun.search(end):
            inside = {token for token, _, _ in self._inside}
            for token in self._find_completing_tokens(end) - inside:
                if int(mask[token >> 5]) >> (token & 31) & 1:
                    yield token

    def _find_completing_tokens(self, end: bytes) -> set[int]:
        """The tokens that write the rest of a marker which a text ends with the beginning of."""
        rests = {
            marker[size:]
            for marker in self._markers
            for size in range(1, min(len(marker), len(end) + 1))
            if end.endswith(marker[:size])
        }
        return {token for rest in rests for token in self._find_tokens_beginning(rest)}

    def check_completed_marker(self, end: bytes, token: int) -> bool | None:
        """What a token does behind a text that ends so.

        Returns:
            None where no marker comes up; else whether the first that does may follow the content and ends the token.
        """
        piece = self.vocabulary.pieces[token] if token < len(self.vocabulary.pieces) else b""
        whole = end[-self.longest :] + piece
        if self._any.search(whole) is None:
            return None
        before = len(whole) - len(piece)
        for place in range(before + 1, len(whole) + 1):
            found = [marker for marker in self._markers if whole.endswith(marker, 0, place)]
            if found:
                return place == len(whole) and max(found, key=len) in self._legal
        return None

    def _find_tokens_beginning(self, rest: bytes) -> tuple[int, ...]:
        if rest not in self._beginning:
            self._beginning[rest] = tuple(self.vocabulary.find_tokens_beginning(rest))
        return self._beginning[rest]


#: For each place in a word all bits but that one.
_WITHOUT = [np.array([~(1 << bit) & 0xFFFFFFFF], dtype=np.uint32).view(np.int32)[0] for bit in range(32)]

#: The signs of JSON outside of texts.
_AROUND = frozenset("{}[]:,+-.0123456789eE truefalsn\n\r\t")


class XGrammarMasks:
    """Makes masks from contents and markers, for one vocabulary.

    Args:
        threads: how many threads compile a grammar.

    Raises:
        MissingDependency: xgrammar is not installed.
    """

    def __init__(self, vocabulary: TokenVocabulary, *, threads: int = 1) -> None:
        try:
            import xgrammar
        except ImportError as error:
            raise MissingDependency(
                "masks for text, regular expressions and JSON need xgrammar: pip install 'formal-llm[xgrammar]'"
            ) from error
        self.vocabulary = vocabulary
        info = xgrammar.TokenizerInfo(
            list(vocabulary.pieces),
            xgrammar.VocabType.RAW,
            vocab_size=vocabulary.size,
            stop_token_ids=list(vocabulary.stops),
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=threads)
        self._matcher = xgrammar.GrammarMatcher
        self._compiled: dict[SegmentPattern, tuple[xgrammar.CompiledGrammar, MarkerDetector | None]] = {}
        #: What may ever be allowed: neither special tokens nor numbers that are no token.
        text = [token for token, piece in enumerate(vocabulary.pieces) if piece]
        self.known = pack_mask([*text, *vocabulary.stops], vocabulary.size)
        self.stops = pack_mask(vocabulary.stops, vocabulary.size)
        #: The bits of the last word that are tokens; 0 where all are.
        self.rest = np.int32((1 << vocabulary.size % 32) - 1) if vocabulary.size % 32 else np.int32(0)
        self.ending = frozenset(vocabulary.stops)

    def compile(self, what: SegmentPattern) -> XGrammarMatcher:
        """A matcher at the beginning of a content.

        Raises:
            AutomatonError: the regular expression, the grammar or the schema cannot be read.
        """
        if what not in self._compiled:
            markers = (*what.markers, *what.never)
            # Without a watch where a content keeps clear of markers by itself, and none comes up at its border to what
            # follows.
            watched = can_overlap(markers) or (bool(markers) and not _is_clear_of(what.content, markers))
            tag = {"type": "structural_tag", "format": _build_format(what, () if watched else markers)}
            try:
                grammar = self._compiler.compile_structural_tag(json.dumps(tag))
            except RuntimeError as error:
                raise AutomatonError(f"xgrammar cannot read {what.content!r}: {error}") from error
            self._compiled[what] = grammar, MarkerDetector(self.vocabulary, what) if watched else None
        grammar, watch = self._compiled[what]
        return XGrammarMatcher(self, self._matcher(grammar), watch)


class XGrammarMatcher:
    """Follows one content; see :class:`~formal_llm.agents.decoding.masks.TokenMatcher`.

    :meth:`may_stop`: the content is whole and may be the end, or a marker is written that may follow it. The next state
    begins there, with a matcher of its own.
    """

    def __init__(
        self,
        engine: XGrammarMasks,
        matcher: xgrammar.GrammarMatcher,
        watch: MarkerDetector | None,
        tokens: Iterable[int] = (),
    ) -> None:
        import torch

        self._engine = engine
        self._matcher = matcher
        self._watch = watch
        self._tokens = list(tokens)
        self._bits = torch.empty((1, len(engine.known)), dtype=torch.int32)
        self._mask: Mask = self._bits.numpy()[0]
        self._stopped = bool(matcher.is_terminated())
        self._end = self._find_end()
        self._fill, self._take = matcher.fill_next_token_bitmask, matcher.accept_token

    def mask(self) -> Mask:
        """The tokens that may come next; after the end those that end it.

        Raises:
            LLMError: there is none: the content wants a marker in it.
        """
        engine, mask = self._engine, self._mask
        if self._stopped:
            return engine.stops
        if not self._fill(self._bits):
            np.bitwise_and(mask, engine.known, out=mask)
        elif engine.rest:  # bits behind the last token
            mask[-1] &= engine.rest
        if self._watch is not None:
            self._clear_illegal_tokens(mask)
        return mask

    def accept(self, token: int) -> bool:
        """Take a token; False for one that is not allowed."""
        if self._stopped or not 0 <= token < self._engine.vocabulary.size:
            return False
        if self._watch is not None and not self._is_legal(token):
            return False
        if not self._take(token):
            return False
        self._tokens.append(token)
        if self._watch is not None:
            self._end = self._find_end()
        self._stopped = token in self._engine.ending
        return True

    def rollback(self, count: int) -> None:
        """Take back the last tokens."""
        if not 0 <= count <= len(self._tokens):
            raise ValueError(f"{count} tokens cannot be taken back")
        if count:
            self._matcher.rollback(count)
            del self._tokens[-count:]
            self._stopped = False
            self._end = self._find_end()

    def fork(self) -> XGrammarMatcher:
        """A second one at the same place."""
        return XGrammarMatcher(self._engine, self._matcher.fork(), self._watch, self._tokens)

    def reset(self) -> None:
        """Back to the beginning."""
        self._matcher.reset()
        self._tokens.clear()
        self._end = b""
        self._stopped = False

    def may_stop(self) -> bool:
        """Whether what is written is whole."""
        return bool(self._matcher.is_completed())

    @property
    def stopped(self) -> bool:
        """Whether a token was taken that ends the text."""
        return self._stopped

    @property
    def length(self) -> int:
        """How many tokens were taken, with one that ends the text."""
        return len(self._tokens)

    def ends_with(self, text: bytes) -> bool:
        """Whether what is written ends so."""
        return self._engine.vocabulary.decode_tokens(self._tokens[-len(text) :]).endswith(text)

    def _clear_illegal_tokens(self, mask: Mask) -> None:
        """Take away the tokens by which a marker comes up that may not."""
        assert self._watch is not None
        illegal = [token for token in self._watch.find_doubtful_tokens(self._end, mask) if not self._is_legal(token)]
        for token in illegal:
            mask[token >> 5] &= _WITHOUT[token & 31]
        if illegal and not mask.any():
            raise LLMError("nothing can be written here: the content wants a marker in it, which none may have")

    def _find_end(self) -> bytes:
        """The end of the text, as far as a marker may reach into it."""
        return (
            b"" if self._watch is None else self._engine.vocabulary.decode_tokens(self._tokens[-self._watch.longest :])
        )

    def _is_legal(self, token: int) -> bool:
        """Whether no marker comes up by a token but one that may follow, at its very end."""
        assert self._watch is not None
        found = self._watch.check_completed_marker(self._end, token)
        if found is None:
            return True
        if not found or not self._take(token):
            return False
        whole = bool(self._matcher.is_completed())
        self._matcher.rollback(1)
        return whole


def can_overlap(markers: Iterable[str]) -> bool:
    """Whether a marker, or its end, can be part of another one, or of itself further on."""
    texts = list(markers)
    for one in texts:
        for other in texts:
            if one != other and other in one:
                return True
            if any(one.endswith(other[:size]) for size in range(1, min(len(one), len(other)))):
                return True
    return False


def _is_clear_of(content: Content, markers: Iterable[str]) -> bool:
    """Whether no marker occurs in a content, or xgrammar itself keeps them out."""
    match content:
        case FreeText():
            return True
        case OneOf(texts):
            return not any(marker in text for marker in markers for text in texts)
        case JsonSchema(text):
            # Of texts in JSON it keeps markers out, but where the schema defines how they are written. What stands
            # around texts is made of few signs.
            own = any(name in text for name in ('"pattern"', '"format"', '"patternProperties"'))
            return not own and all(set(marker) - _AROUND and '"' not in marker for marker in markers)
        case Grammar(text):
            # Without classes of characters, what is not in the rules is not in the texts.
            return not any(sign in text for sign in ("[", ".", "\\x", "\\u", "\\U")) and all(
                set(marker) - set(text) for marker in markers
            )
        case _:
            return False


def _build_format(what: SegmentPattern, excluded: Iterable[str]) -> dict[str, Any]:
    """What may be written, as a structural tag."""
    parts = [_build_content_format(what.content, list(excluded))]
    if what.markers:
        following = {"type": "or", "elements": [{"type": "const_string", "value": marker} for marker in what.markers]}
        parts.append({"type": "optional", "content": following} if what.may_end else following)
    return {"type": "sequence", "elements": parts}


def _build_content_format(content: Content, excluded: list[str]) -> dict[str, Any]:
    match content:
        case FreeText(max_tokens):
            return {"type": "any_text", "excludes": excluded, "max_tokens": max_tokens}
        case OneOf(texts):
            return {"type": "or", "elements": [{"type": "const_string", "value": text} for text in texts]}
        case Regex(pattern):
            return {"type": "regex", "pattern": pattern}
        case Grammar(text):
            return {"type": "grammar", "grammar": text}
        case JsonSchema(text):
            return {"type": "json_schema", "json_schema": json.loads(text), "excludes": excluded}
        case Validated(_, schema):
            if schema is None:
                return {"type": "any_text", "excludes": excluded}
            return {"type": "json_schema", "json_schema": dict(schema), "excludes": excluded}
