"""Verbs and their forms, as far as a reader without a model needs to know them."""

from __future__ import annotations

import re
from importlib import resources

from formal_llm.authored.tables import parse_toml
from formal_llm.authoring.word_forms import IRREGULAR


def read_words(file: str) -> str:
    """Return the text of one of the word files beside this module."""
    return resources.files("formal_llm.authoring").joinpath(file).read_text(encoding="utf-8")


_WORDS = parse_toml(read_words("words.toml"))
#: Verbs commonly used in procedures.
VERBS = frozenset(_WORDS["verbs"].split())
#: Verbs that describe states and name no step.
STATES = frozenset(_WORDS["states"].split())
#: Words that belong to the verb before them: "roll back", "hand over".
PARTICLES = frozenset(_WORDS["particles"].split())


def base_form(form: str) -> str | None:
    """Return the base form of a word that may be a form of a verb; None if it is not."""
    if form in VERBS or form in STATES:
        return form
    for candidate in _base_candidates(form):
        if candidate in VERBS or candidate in STATES:
            return candidate
    front, hyphen, last = form.rpartition("-")
    if hyphen and len(front) > 2 and base_form(last):  # "test-run"
        return f"{front}-{base_form(last)}"
    if re.fullmatch(r"(?:re|un|de|over|pre|mis|out)-?\w+", form):  # "reissued" is issued again
        rest = re.sub(r"^(?:re|un|de|over|pre|mis|out)-?", "", form)
        found = base_form(rest) if len(rest) > 3 else None
        return None if found is None or found in STATES else form[: len(form) - len(rest)] + found
    return None


def _base_candidates(form: str) -> list[str]:
    if form in IRREGULAR:
        return [IRREGULAR[form]]
    for ending in ("ing", "ed"):
        if form.endswith(ending) and len(form) > len(ending) + 1:
            cut = form[: -len(ending)]
            return [cut, cut + "e", re.sub(r"(.)\1$", r"\1", cut), re.sub("i$", "y", cut)]
    if form.endswith("s") and not form.endswith("ss"):
        return [form[:-1], re.sub("es$", "", form), re.sub("ies$", "y", form)]
    return []


def participle_base(word: str) -> str | None:
    """Return the base form of a past participle, guessing an unknown one from its ending; None if it is not one."""
    unchanged = {"put", "cut", "set", "read", "run", "shut", "let", "split", "cast", "hit", "come", "reset", "spread"}
    if word in unchanged or word in IRREGULAR:
        return IRREGULAR.get(word, word)
    found = base_form(word)
    irregular = re.fullmatch(rf"(?:re|un|over|mis)?(?:{'|'.join(IRREGULAR)})", word)
    if irregular or (found is not None and word.endswith("ed") and found != word):
        return found
    front, hyphen, last = word.rpartition("-")
    if hyphen and len(front) > 2 and participle_base(last):
        return f"{front}-{participle_base(last)}"
    if re.fullmatch(r"\w{2,}[^e]ed", word):
        cut = re.search(r"(?:[iuvcsgz]|at|[uiao]r|[dbptgkf]l)ed$", word)
        return word[:-1] if cut else re.sub(r"([^aeiouls])\1$", r"\1", word[:-2])
    return None


def gerund_base(word: str) -> str | None:
    """Return the base form of a known verb's form in "-ing"; else None."""
    return base_form(word) if word.endswith("ing") and base_form(word) != word else None
