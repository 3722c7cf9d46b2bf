"""From phrases to names of steps: "the order" is ``order``, "check the stock" ``check_stock``.

Articles and helping verbs go. What is left of a phrase must be short and hold none of the words that say how
sentences are built: where one is left over, the sentence was not understood, and to go on would be to guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import permutations

from formal_llm.automata.languages.spelling import are_related_words, singularize_noun, spelling_key, stem_name

#: The most words of a name.
MOST_WORDS = 6
_SMALL = frozenset("of to for from in on at by with and or it its".split())  # noqa: SIM905
_ARTICLES = frozenset({"the", "a", "an", "your", "our", "my", "their", "any"})
#: What stands before a name to say which of its uses are meant.
_WHICH = frozenset({"any", "every", "each", "all", "some", "another", "two", "2"})
#: What stands before the name of a step and is not part of it.
_LEADING = re.compile(r"(?:please )?(?:you |we |the agent )?(?:(?:do|perform|carry out|use) (?=\w))?")
_STEP = re.compile(r"^(?:the |a )?(?:step|action|activity) (?=\w)")
#: Words that sentences are built with; none is part of a name that stands without quotes.
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
#: Words in "-ly" that are no adverbs.
_NOUNS = frozenset(
    (  # noqa: SIM905
        "apply assembly anomaly comply daily early family fly italy july monthly multiply only polly rally"
        " reply resupply supply tally weekly yearly"
    ).split()
)
_WORD = re.compile(r"[\w'+/.-]+")
#: A step whose name the author put between quotes.
QUOTED = re.compile(r"[\"`“]([^\"`”“]+)[\"`”]")

#: The words that a question may hold though a step may not.
_IN_QUESTIONS = {"is", "are", "has", "have", "more", "less", "than", "not", "no", "at", "least", "most", "last", "it"}


class NoName(ValueError):
    """A phrase that is no name of a step."""


class Unclear(NoName):
    """A phrase or a sentence that is not read for a reason that its author can act upon; the message gives it."""


class RefusedSentence(Unclear):
    """A sentence that no other reader may read either, as it would have to guess or to leave something out."""


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
    """For each name the one spelling that is used for all its forms: the declared one, else the shortest.

    Args:
        names: the names, in order of appearance.
        declared: names that the author listed; no two of them are one.
    """
    listed = dict.fromkeys(declared)
    forms: dict[str, list[str]] = {}
    for name in dict.fromkeys((*listed, *names)):
        forms.setdefault(spelling_key(name), []).append(name)
    found: dict[str, str] = {}
    for alike in forms.values():
        best = next((name for name in alike if name in listed), min(alike, key=len))
        found.update({name: name if name in listed else best for name in alike})
    return found


def find_similar(names: Iterable[str]) -> list[tuple[str, str]]:
    """Names of which one has all the words of the other or forms of them: ``rate`` and ``rate_seller``."""
    words = {
        name: [word for word in stem_name(name).split("_") if word not in _SMALL] for name in names if "=" not in name
    }
    found: dict[frozenset[str], tuple[str, str]] = {}
    for short, long in permutations(words, 2):
        of_other = words[long]
        if len(words[short]) <= len(of_other) and all(
            any(are_related_words(a, b) for b in of_other) for a in words[short]
        ):
            found.setdefault(frozenset((short, long)), (short, long))
    return list(found.values())


def question_of(text: str) -> str:
    """The name of the question that a condition asks: "the order is large" is ``order_is_large``."""
    quoted = QUOTED.fullmatch(text.strip())
    if quoted is not None:
        return name_of(text)
    words = [word for word in re.sub(r"[?,]", " ", text).split() if word not in ("the", "a", "an")]
    if not 0 < len(words) <= 10 or any(word in RESERVED - _IN_QUESTIONS for word in words):
        raise NoName(text)
    if not all(re.fullmatch(r"[\w'+/.-]+", word) for word in words):
        raise NoName(text)
    return "_".join(words)
