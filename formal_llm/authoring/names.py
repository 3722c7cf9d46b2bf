"""From phrases to names of steps: "the order" is ``order``, "check the stock" ``check_stock``.

Articles and helping verbs go. What is left of a phrase must be short and hold none of the words that say how
sentences are built: where one is left over, the sentence was not understood, and to go on would be to guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

#: The most words of a name.
MOST_WORDS = 6
_ARTICLES = frozenset({"the", "a", "an", "your", "our", "my", "their", "any"})
#: What stands before a name to say which of its uses are meant.
_WHICH = frozenset({"any", "every", "each", "all", "some", "another", "two", "2"})
#: What stands before the name of a step and is not part of it.
_LEADING = re.compile(r"(?:please )?(?:you |we |the agent )?(?:(?:do|perform|carry out|use) )?")
_STEP = re.compile(r"(?:the |a )?(?:step|action|tool|activity) ")
#: Words that sentences are built with; none is part of a name that stands without quotes.
RESERVED = frozenset(
    """
    you we i he she him her second third fourth previous
    after afterwards again alternate always and any are at be before beforehand between both but can cannot directly
    each either else every everything except exactly finally first followed follows forbidden happen happens has
    have if is it last later least may more most must never no nor not nothing occur occurs one only optional
    optionally or other otherwise preceded repeat required requires row same should some than that then there these
    they this those time times together twice unless until when whenever which while who whose will with without
    already although because during however instead neither rarely since so sometimes still therefore though usually
    within yet
    """.split()  # noqa: SIM905
)
#: Verbs whose other forms do not end in "ed".
IRREGULAR = {
    "begun": "begin", "bought": "buy", "brought": "bring", "built": "build", "chosen": "choose", "drawn": "draw",
    "driven": "drive", "drunk": "drink", "eaten": "eat", "flown": "fly", "forgotten": "forget", "given": "give",
    "hidden": "hide", "kept": "keep", "lent": "lend", "made": "make", "paid": "pay", "seen": "see", "sent": "send",
    "shown": "show", "sold": "sell", "spent": "spend", "spoken": "speak", "sung": "sing", "swept": "sweep",
    "taken": "take", "taught": "teach", "thrown": "throw", "told": "tell", "withdrawn": "withdraw", "won": "win",
    "woken": "wake", "written": "write",
}  # fmt: skip
_WORD = re.compile(r"[\w'+/.-]+")
#: A step whose name the author put between quotes.
QUOTED = re.compile(r"[\"`“]([^\"`”“]+)[\"`”]")


class NoName(ValueError):
    """A phrase that is no name of a step."""


def name_of(phrase: str) -> str:
    """The name of the step that a phrase speaks of.

    Raises:
        NoName: the phrase holds words that say how a sentence is built, or too many words, or none.
    """
    text = phrase.strip(" ,:")
    quoted = QUOTED.fullmatch(text)
    if quoted is not None:
        return re.sub(r"\s+", "_", quoted[1].strip())
    text = _STEP.sub("", _LEADING.sub("", text + " ", count=1), count=1).strip()
    found = text.split()
    plural = bool(found) and found[0] in ("all", "two", "2")
    words = [word for word in found[found[:1] != [] and found[0] in _WHICH :] if word not in _ARTICLES]
    if found[-1:] == ["a"]:  # nothing follows the article, so it is the name
        words.append("a")
    if not 0 < len(words) <= MOST_WORDS or words[0] in ("of", "in", "to"):
        raise NoName(phrase)
    for word in words:
        if word in RESERVED or not _WORD.fullmatch(word):
            raise NoName(phrase)
    if plural:
        words[-1] = singular(words[-1])
    return "_".join(words)


def singular(word: str) -> str:
    """A noun in the singular, by the regular rules."""
    if re.search(r"[^aeiou]ies$", word) and len(word) > 4:
        return word[:-3] + "y"
    if re.search(r"(?:s|x|ch|sh)es$", word):
        return word[:-2]
    return word[:-1] if re.search(r"[^suiy']s$", word) else word


def stem(name: str) -> str:
    """What the forms of one name have in common: ``questions`` and ``question``, ``iron`` and ``ironing``."""
    return "_".join(map(_stem, name.split("_")))


def _stem(word: str) -> str:
    word = singular(IRREGULAR.get(word, word))
    word = re.sub(r"(?<=\w{2})ied$", "y", word)
    cut = re.sub(r"(?<=\w{3})(?:ing|ed)$", "", word)
    if cut != word:
        cut = re.sub(r"([^aeiouls])\1$", r"\1", cut)
    cut = re.sub(r"([aeiou]\w*[aeiou])ll$", r"\1l", cut)  # "cancelling" and "cancel"; "install" and "installing" too
    return cut.removesuffix("e") if len(cut) > 3 else cut


def spelled_alike(names: Iterable[str], declared: Iterable[str] = ()) -> Mapping[str, str]:
    """For each name the one spelling that is used for all its forms: the declared one, else the shortest.

    Args:
        names: the names, in order of appearance.
        declared: names that the author listed; no two of them are one.
    """
    listed = dict.fromkeys(declared)
    forms: dict[str, list[str]] = {}
    for name in dict.fromkeys((*listed, *names)):
        forms.setdefault(stem(name), []).append(name)
    found: dict[str, str] = {}
    for alike in forms.values():
        best = next((name for name in alike if name in listed), min(alike, key=len))
        found.update({name: name if name in listed else best for name in alike})
    return found


def alike(names: Iterable[str]) -> list[tuple[str, str]]:
    """Names of which one has all the words of the other, and more: ``rate`` and ``rate_seller``."""
    words = {name: set(stem(name).split("_")) for name in names if "=" not in name}
    return [(short, long) for short in words for long in words if words[short] < words[long]]


def steps_of(phrase: str) -> tuple[tuple[str, ...], ...]:
    """The steps that a phrase lists: all of some, each of which is one or any of several.

    ``"a and b"`` is ``(("a",), ("b",))``: both. ``"a, b or c"`` is ``(("a", "b", "c"),)``: one of them, whichever.

    Raises:
        NoName: there is a part that is no name, or both ``and`` and ``or``.
    """
    text = re.sub(r"^(?:both|either) ", "", phrase.strip(" ,"))
    parts = re.split(r"\s*,\s*(?:and |or )?|\s+(?:and|or)\s+", text)
    joins = set(re.findall(r"(?<=[\s,])(and|or)(?=\s)", text))
    if len(joins) > 1 or (len(parts) > 1 and not joins):
        raise NoName(phrase)
    names = tuple(name_of(part) for part in parts)
    if len(set(names)) < len(names):
        raise NoName(phrase)
    return (names,) if joins == {"or"} else tuple((name,) for name in names)
