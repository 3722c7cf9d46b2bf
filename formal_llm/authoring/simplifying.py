"""A sentence in fewer words: what obliges, allows, forbids and joins is one word in capitals, however it is written."""

from __future__ import annotations

import re
from functools import cache

from formal_llm.authored.tables import parse_toml
from formal_llm.authoring.verbs import read_words

_DIGITS = {word: str(n) for n, word in enumerate("zero one two three four five six seven eight nine ten".split())}  # noqa: SIM905


@cache
def other_words(kind: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    """What is written and the one way in which it is read, of ``simplifying.toml``; made when it is first needed.

    Args:
        kind: who reads it: ``"clauses"`` or ``"forms"``.
    """
    table = parse_toml(read_words("simplifying.toml"))

    def expand_parts(pattern: str) -> str:
        return re.sub(r"(?<!\?P)<([A-Z]+)>", lambda found: expand_parts(table["parts"][found[1]]), pattern)

    return tuple((re.compile(expand_parts(pattern)), same) for pattern, same in table[kind]["same"])


def simplify(text: str) -> str:
    """A sentence in lower case and fewer words, with what joins its clauses in capitals."""
    text = " ".join(text.split()).rstrip(".!?; ").replace("’", "'").replace(" – ", ", ").replace("—", ", ").lower()
    for pattern, same in other_words("clauses"):
        text = pattern.sub(same, text)
    for word, digit in _DIGITS.items():
        text = re.sub(
            rf"\b{word} (?=times\b)|(?<=\bat most ){word} |(?<=\bat least ){word} |(?<=\bexactly ){word} ",
            f"{digit} ",
            text,
        )
        text = re.sub(rf"^{word} (?=.+ REQUIRED BEFORE)", f"at least {digit} ", text)
    return re.sub(r" +", " ", text).strip(" ,")
