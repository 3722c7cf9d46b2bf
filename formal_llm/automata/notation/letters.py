"""The compact notation of papers, ``T → BI|DT|EIT|FTT``, in which a letter is a symbol."""

from __future__ import annotations

import re
import unicodedata

from formal_llm.automata.models.cfg import CFG, EMPTY_WORDS
from formal_llm.automata.models.symbols import Production
from formal_llm.automata.notation.cfg import ARROW, check_grammar_text
from formal_llm.automata.notation.source import SourceText

_LETTER = re.compile(r"[^\W\d_][0-9'′]*|ε")


def read_letters(text: str, start: str = "") -> CFG:
    """Read a grammar such as ``T → BI|DT``: each letter, with the digits and primes after it, is a symbol."""
    # Subscript digits become digits: B₁ and B1 are the same symbol.
    source = SourceText(unicodedata.normalize("NFKC", text).replace("′", "'"), None)
    productions = []
    for rule in re.finditer(r"[^\n;]+", source.text):
        if not rule[0].strip():
            continue
        arrows = list(ARROW.finditer(rule[0]))
        if len(arrows) != 1:
            at = arrows[1].start() if arrows else len(rule[0]) - len(rule[0].lstrip())
            source.fail_at("a second arrow" if arrows else "the arrow is missing", source.place_of(rule.start() + at))
        arrow = arrows[0]
        head = _split_letters(source, rule.start(), rule[0][: arrow.start()])
        if len(head) != 1 or head[0] in EMPTY_WORDS:
            source.fail_at("one symbol must stand before the arrow", source.place_of(rule.start()))
        at = rule.start() + arrow.end()
        for alternative in rule[0][arrow.end() :].split("|"):
            body = [name for name in _split_letters(source, at, alternative) if name not in EMPTY_WORDS]
            productions.append(Production(head[0], tuple(body)))
            at += len(alternative) + 1
    if not productions:
        source.fail_at("the grammar is empty", None, suggestion="write at least one rule, such as: S → aS | b")
    cfg = CFG(productions, start, order="prefix")
    check_grammar_text(cfg, source)
    return cfg


def _split_letters(source: SourceText, at: int, text: str) -> list[str]:
    """Return the symbols of one side of a rule, which begins at offset ``at`` of the source."""
    symbols = _LETTER.findall(text)
    invalid = re.search(r"\S+", _LETTER.sub(lambda match: " " * len(match[0]), text))
    if invalid:
        source.fail_at(f"{invalid[0]!r} is no symbol: letters with digits are", source.place_of(at + invalid.start()))
    if not symbols:
        source.fail_at("an empty side of a rule", source.place_of(at), suggestion="write ε for the empty word")
    return symbols
