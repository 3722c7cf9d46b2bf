"""Simplified sentences: whatever obliges, allows, forbids or joins becomes one word in capitals."""

from __future__ import annotations

import re
from functools import cache

from formal_llm.authored.tables import parse_toml
from formal_llm.authoring.verbs import read_words

_DIGITS = {word: str(n) for n, word in enumerate("zero one two three four five six seven eight nine ten".split())}  # noqa: SIM905


@cache
def other_words(kind: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the replacements of ``simplifying.toml``: patterns of variants and their common form; cached.

    Args:
        kind: which reader uses them: ``"clauses"`` or ``"forms"``.
    """
    table = parse_toml(read_words("simplifying.toml"))

    def expand_parts(pattern: str) -> str:
        return re.sub(r"(?<!\?P)<([A-Z]+)>", lambda found: expand_parts(table["parts"][found[1]]), pattern)

    return tuple((re.compile(expand_parts(pattern)), replacement) for pattern, replacement in table[kind]["same"])


def simplify(text: str) -> str:
    """Return a sentence in lower case and fewer words, with the words that join its clauses in capitals."""
    text = " ".join(text.split()).rstrip(".!?; ").replace("’", "'").replace(" – ", ", ").replace("—", ", ").lower()
    for pattern, replacement in other_words("clauses"):
        text = pattern.sub(replacement, text)
    for word, digit in _DIGITS.items():
        text = re.sub(
            rf"\b{word} (?=times\b)|(?<=\bat most ){word} |(?<=\bat least ){word} |(?<=\bexactly ){word} ",
            f"{digit} ",
            text,
        )
        text = re.sub(rf"^{word} (?=.+ REQUIRED BEFORE)", f"at least {digit} ", text)
    return re.sub(r" +", " ", text).strip(" ,")
