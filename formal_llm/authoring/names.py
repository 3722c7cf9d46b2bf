"""Names of steps from phrases: "the order" is ``order``, "check the stock" ``check_stock``.

Articles and helping verbs are dropped. The rest must be short and contain none of the words that structure
sentences: if one remains, the sentence was not understood, and continuing would mean guessing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import permutations

from formal_llm.authoring.word_forms import are_related_words, singularize_noun, spelling_key, stem_name

#: The maximum number of words of a name.
MOST_WORDS = 6
_SMALL = frozenset("of to for from in on at by with and or it its".split())  # noqa: SIM905
#: Pairs of such words that make two names opposites: ``switch_on`` and ``switch_off``.
_OPPOSITES = ({"on", "off"}, {"in", "out"}, {"up", "down"})
_ARTICLES = frozenset({"the", "a", "an", "your", "our", "my", "their", "any"})
#: Words before a name that specify which of its occurrences are meant.
_WHICH = frozenset({"any", "every", "each", "all", "some", "another", "two", "2"})
#: Words before the name of a step that are not part of it.
_LEADING = re.compile(r"(?:please )?(?:you |we |the agent )?(?:(?:do|perform|carry out|use) (?=\w))?")
_STEP = re.compile(r"^(?:the |a )?(?:step|action|activity) (?=\w)")
#: Words that structure sentences; none is part of an unquoted name.
RESERVED = frozenset(
    """
    you we i he she him her second third fourth previous
    after afterwards again alternate always and any are be before beforehand between both but can cannot directly
    each either else every everything except exactly finally first followed follows forbidden happen happens has
    have if is it last later least may more most must never no nor not nothing occur occurs one only optional
    optionally or other otherwise preceded required requires row same should some than that then there these
    they this those time times together twice unless until when whenever which while who whose will with without
    already although because during however instead neither rarely since so sometimes still therefore though usually
    within yet per own itself till upon prior shall could would might intervening
    unread nobody none sure certain ensure straight immediately next starts begins ends separate separately
    """.split()  # noqa: SIM905
)
#: Words in "-ly" that are not adverbs.
_NOUNS = frozenset(
    (  # noqa: SIM905
        "apply assembly anomaly comply daily early family fly italy july monthly multiply only polly rally"
        " reply resupply supply tally weekly yearly"
    ).split()
)
_WORD = re.compile(r"[\w'+/.-]+")
#: A step whose name the author quoted.
QUOTED = re.compile(r"[\"`“]([^\"`”“]+)[\"`”]")

#: The words that may be part of a question but not of a step.
_IN_QUESTIONS = {"is", "are", "has", "have", "more", "less", "than", "not", "no", "at", "least", "most", "last", "it"}


class NoName(ValueError):
    """Raised for a phrase that is not the name of a step."""


class Unclear(NoName):
    """Raised for a phrase or sentence that its author can clarify; the message is the reason it cannot be read."""


class RefusedSentence(Unclear):
    """Raised for a sentence that no other reader may read either, since it would have to guess or omit something."""


def name_of(phrase: str) -> str:
    """Return the name of the step in a phrase.

    Raises:
        NoName: the phrase contains words that structure sentences, too many words, or none.
    """
    text = phrase.strip(" ,:")
    quoted = QUOTED.fullmatch(text)
    if quoted is not None:
        return re.sub(r"\s+", "_", quoted[1].strip())
    text = _STEP.sub("", _LEADING.sub("", text + " ", count=1), count=1).strip()
    all_words = text.split()
    plural = bool(all_words) and all_words[0] in ("all", "two", "2")
    words = [word for word in all_words[all_words[:1] != [] and all_words[0] in _WHICH :] if word not in _ARTICLES]
    if all_words[-1:] == ["a"]:  # nothing follows the article, so it is the name
        words.append("a")
    if not 0 < len(words) <= MOST_WORDS or words[0] in ("of", "in", "to"):
        raise NoName(phrase)
    for number, word in enumerate(words):
        if word == "last" and 0 < number < len(words) - 1:
            continue  # "give the last dose"
        if word in RESERVED or word.isdigit() or not _WORD.fullmatch(word):
            raise NoName(phrase)
    adverb = next((word for word in words if re.fullmatch(r"\w{3,}ly", word) and word not in _NOUNS), None)
    if adverb is not None:
        raise Unclear(f"{adverb!r} is left over; leave it out, or put the whole name of the step in quotes")
    if re.search(r"\b(?:at|in) (?:end|beginning|start|last|once)$", " ".join(words)):
        raise NoName(phrase)
    if plural:
        words[-1] = singularize_noun(words[-1])
    if words in (["step"], ["steps"], ["thing"], ["anything"], ["action"]):
        raise NoName(phrase)
    return "_".join(words)


def spelled_alike(names: Iterable[str], declared: Iterable[str] = ()) -> Mapping[str, str]:
    """Map each name to the spelling that is used for all its forms: the declared one, else the shortest.

    Args:
        names: the names, in order of appearance.
        declared: names that the author listed, all of them different.
    """
    listed = dict.fromkeys(declared)
    forms: dict[str, list[str]] = {}
    for name in dict.fromkeys((*listed, *names)):
        forms.setdefault(spelling_key(name), []).append(name)
    spellings: dict[str, str] = {}
    for alike in forms.values():
        best = next((name for name in alike if name in listed), min(alike, key=len))
        spellings.update({name: name if name in listed else best for name in alike})
    return spellings


def find_similar(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of names of which one has all the words of the other in any form: ``rate`` and ``rate_seller``."""
    words = {
        name: [word for word in stem_name(name).split("_") if word not in _SMALL] for name in names if "=" not in name
    }
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for short, long in permutations(words, 2):
        of_other = words[long]
        if (
            len(words[short]) <= len(of_other)
            and all(any(are_related_words(a, b) for b in of_other) for a in words[short])
            and set(short.split("_")) ^ set(long.split("_")) not in _OPPOSITES
        ):
            pairs.setdefault(frozenset((short, long)), (short, long))
    return list(pairs.values())


def question_of(text: str) -> str:
    """Return the name of the question in a condition: "the order is large" is ``order_is_large``."""
    quoted = QUOTED.fullmatch(text.strip())
    if quoted is not None:
        return name_of(text)
    words = [word for word in re.sub(r"[?,]", " ", text).split() if word not in ("the", "a", "an")]
    if not 0 < len(words) <= 10 or any(word in RESERVED - _IN_QUESTIONS for word in words):
        raise NoName(text)
    if not all(re.fullmatch(r"[\w'+/.-]+", word) for word in words):
        raise NoName(text)
    return "_".join(words)
