"""Spellings of one name: ``roll_back``, ``rollback`` and ``rolling back`` denote one step.

Names differ only in spelling if they have the same :func:`spelling_key`: readers of sentences take them for one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_FORMS = """
    begin:begun,began bring:brought build:built buy:bought catch:caught choose:chosen,chose come:came do:done,did
    draw:drawn,drew drink:drunk,drank drive:driven,drove eat:eaten,ate fall:fallen,fell feed:fed fight:fought
    find:found fly:flown,flew forget:forgotten,forgot freeze:frozen,froze get:got,gotten give:given,gave
    go:gone,went hang:hung hear:heard hide:hidden,hid hold:held keep:kept lay:laid lead:led leave:left lend:lent
    lose:lost make:made meet:met pay:paid ring:rung,rang rise:risen,rose run:ran sell:sold send:sent shine:shone
    show:shown sing:sung sink:sunk sit:sat speak:spoken,spoke spend:spent steal:stolen,stole stick:stuck sweep:swept
    swim:swum,swam take:taken,took teach:taught tear:torn tell:told throw:thrown,threw understand:understood
    wake:woken,woke wear:worn win:won wind:wound withdraw:withdrawn,withdrew write:written,wrote bind:bound dig:dug
    light:lit shoot:shot sew:sewn mow:mown saw:sawn see:seen
"""
#: Forms of verbs that do not end in "ed", each with its infinitive.
IRREGULAR: Mapping[str, str] = {
    form: verb for verb, forms in (line.split(":") for line in _FORMS.split()) for form in forms.split(",")
}
#: Light verbs, which add no meaning: to run a check is the check.
_LIGHT = re.compile(r"(?:do|perform|execut|conduct|carry_out|mak|run)_(?=.)")


def singularize_noun(word: str) -> str:
    """Return the singular of a noun, by the regular rules."""
    if re.search(r"[^aeiou]ies$", word) and len(word) > 4:
        return word[:-3] + "y"
    if re.search(r"(?:s|x|ch|sh)es$", word):
        return word[:-2]
    return word[:-1] if re.search(r"[^suiy']s$", word) else word


def stem_name(name: str) -> str:
    """Return the common stem of the forms of a name: ``questions`` and ``question``, ``iron`` and ``ironing``."""
    return "_".join(map(_stem_word, name.split("_")))


def _stem_word(word: str) -> str:
    word = singularize_noun(IRREGULAR.get(word, word))
    word = re.sub(r"(?<=\w{2})ied$", "y", word)
    cut = re.sub(r"(?<=\w{3})(?:ing|ed)$", "", word)
    if cut != word:
        cut = cut + "e" if word.endswith("eed") else cut  # "agreed"
        cut = re.sub(r"([^aeiouls])\1$", r"\1", cut)
    cut = re.sub(r"([aeiou]\w*[aeiou])ll$", r"\1l", cut)  # "cancelling" and "cancel"; "install" and "installing" too
    return cut.removesuffix("e") if len(cut) > 3 else cut


def spelling_key(name: str) -> str:
    """Return the common key of names that differ only in spacing, case, number or inflection."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|[\s-]+", "_", name.strip()).casefold()
    return _LIGHT.sub("", stem_name(words), count=1).replace("_", "")


def are_related_words(one: str, other: str) -> bool:
    """Return whether two words may be forms of one word: ``approve`` and ``approval`` are related."""
    same = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one == other or (same >= 4 and same >= 0.6 * min(len(one), len(other)))
