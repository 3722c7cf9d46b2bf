"""Read cities and states from a text, and determine the origin and the destination of the trip."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.query import CUISINES
from formal_llm.packs.travel.reading.dates import MONTH, WEEKDAY_NAME
from formal_llm.packs.travel.reading.draft import QueryDraft
from formal_llm.packs.travel.reading.numbers import COUNT, count_of
from formal_llm.packs.travel.reading.passages import Passage

_OF = r"(?:\s*[:\-–>→?]+)?\s*(?:the\s+)?(?:(?:city|town|state)\s+(?:of|is)\s+)?$"
#: The words before the city where the trip begins.
_FROM = re.compile(
    r"(?:\bfrom|\bdepart(?:s|ing|ure)?|\bleav(?:e|es|ing)|\bstart(?:s|ing)?(?:\s+(?:at|in|point|city))?|"
    r"\b(?:beg[iu]n(?:s|ning)?|commenc(?:es?|ing))(?:\s+(?:at|in))?|\borigin(?:ating)?(?:\s+(?:in|is))?|\bout\s+of|\bbased\s+in|"
    r"\bhome\s+(?:is|in|town\s+is)|\blives?\s+in|\bliving\s+in|\bset(?:ting)?\s+off\s+(?:in|at))" + _OF,
    re.IGNORECASE,
)
#: The words before the destination.
_TO = re.compile(
    r"(?:\bto|\bvisit(?:s|ing)?|\bdestination|\bexplor(?:e|es|ing)|\bsee(?:ing)?|\bdiscover(?:ing)?|\btour(?:ing)?|"
    r"\btowards?|\binto|\bfor|->|→|=>|\bin|\bat|\bthrough|\bacross|\baround|\bof)" + _OF,
    re.IGNORECASE,
)
#: The words behind them: "Graz is where we live".
_FROM_BEHIND, _TO_BEHIND = (
    re.compile(
        rf"\s+is\s+(?:where\s+(?:we|I)(?:\s+(?:all|are|want to|will))*\s+(?:{verbs})|(?:our|my|the)\s+(?:{nouns}))\b",
        re.IGNORECASE,
    )
    for verbs, nouns in (
        ("live|start|begin|leave|depart|come from|set (?:off|out)|from|based", r"home(?: town)?|base|start\w*|origin"),
        ("go|going|head(?:ed|ing)|bound|travel(?:ling)?|fly(?:ing)?|visit|stay", "destination|goal|aim"),
    )
)
_NUMBER = re.compile(
    rf"\b(?P<count>{COUNT}|a|one|both)\s+(?:(?:different|distinct|separate|various|unique|other|solitary|single)\s+)?"
    r"(?:cities|city|towns|town|stops|stop|destinations)\b(?!\s+of\s+departure)",
    re.IGNORECASE,
)
_LISTED = re.compile(r"\s*(?:,|and|&|,\s*and|(?:,|and)?\s*then(?: to)?)\s*", re.IGNORECASE)
_AFTER_STATE = re.compile(r"\s*(?:\(\s*(?:the\s+)?state\s*\)|state\b)", re.IGNORECASE)
_AFTER_CITY = re.compile(r"\s*,?\s*(?:\(\s*(?:the\s+)?(?:city|town)\s*\)|(?:the\s+)?(?:city|town)\b)", re.IGNORECASE)
#: Unknown names in the position of a place.
_NAME = r"(?P<name>[A-Z][\w.'’-]*[\w](?:[ ](?!From|To|For|On|In|And)[A-Z][\w.'’-]*[\w])*)"
_UNKNOWN_FROM = re.compile(r"\b(?:[Ff]rom|[Dd]eparting|[Ll]eaving|[Ss]tarting (?:in|at|from))\s+" + _NAME)
_UNKNOWN_TO = re.compile(r"\b(?:to|visit(?:ing)?|(?:cities|towns|stops|trip|days)\s+in|for|explor(?:e|ing))\s+" + _NAME)
_NO_NAME = re.compile(rf"(?:{MONTH}|{WEEKDAY_NAME}|I|We|My|Our|The|USD?|{'|'.join(CUISINES)})\b", re.IGNORECASE)


@dataclass(frozen=True)
class _Mention:
    name: str
    begin: int
    end: int


def read_places(passage: Passage, draft: QueryDraft, world: World) -> None:
    """Record the origin, the destination and the number of cities."""
    mentions = list(_find_mentions(passage.text, world))
    passage.mark_spans(*[(one.begin, one.end) for one in mentions])
    pairs = zip([None, *mentions], mentions, strict=False)
    mentions = [one for last, one in pairs if last is None or not _is_state_of(passage.text, last, one, world)]
    for found in _NUMBER.finditer(passage.text):
        word = found["count"].casefold()
        count = {"a": 1, "both": 2}.get(word) or count_of(word)
        if draft.cities is None or count > draft.cities:
            draft.cities = count
        passage.mark_spans(found.span())
    for one in mentions:
        if behind := _FROM_BEHIND.match(passage.text, one.end) or _TO_BEHIND.match(passage.text, one.end):
            passage.mark_spans(behind.span())
    named = [one for one in mentions if not re.search(r"(?i)\bnot\s+(?:\w+\s+)?$", passage.text[: one.begin])]
    org, dest = _assign_roles(passage.text, named, world)
    if org is None:
        draft.org = _find_unknown(_UNKNOWN_FROM, passage, mentions)
    else:
        draft.org = org.name
    if dest is None:
        again = [one.name for one in mentions[1:] if one.name == draft.org]
        draft.dest = _find_unknown(_UNKNOWN_TO, passage, mentions) or next(iter(again), None)
    else:
        draft.dest = dest.name
        _take_all(passage.text, mentions, dest, draft, world)
    used = {draft.org, draft.dest}
    for one in mentions:
        # A city of the destination state is a wish that a query cannot express.
        if one.name in used:
            continue
        if world.state_of(one.name) != draft.dest:
            draft.not_understood.append(one.name)
        else:
            draft.not_understood.append(f"{one.name}: which cities of {draft.dest} are visited is left to the plan")


def _is_state_of(text: str, city: _Mention, one: _Mention, world: World) -> bool:
    """Return whether a mention only tells the state of the city before it: "Charlotte in North Carolina"."""
    return world.state_of(city.name) == one.name and bool(re.fullmatch(r",?\s+(?:in\s+)?", text[city.end : one.begin]))


def _take_all(text: str, mentions: list[_Mention], dest: _Mention, draft: QueryDraft, world: World) -> None:
    """Record listed cities, as in "Vallisto and Casa Rima", as that number of cities of their state."""
    state, found, last = world.state_of(dest.name), [dest.name], dest
    for one in mentions[mentions.index(dest) + 1 :]:
        if world.state_of(one.name) != state or one.name in found or not _LISTED.fullmatch(text[last.end : one.begin]):
            break
        found.append(one.name)
        last = one
    if state is not None and len(found) > 1 and draft.org not in found:
        draft.dest, draft.cities = state, max(draft.cities or 0, len(found))


def _assign_roles(text: str, mentions: list[_Mention], world: World) -> tuple[_Mention | None, _Mention | None]:
    """Return the first mention after a word such as "from", and the best after a word such as "to"."""
    origins, destinations, free = [], [], []
    for one in mentions:
        before = text[max(0, one.begin - 60) : one.begin]
        if _FROM.search(before) or _FROM_BEHIND.match(text, one.end):
            origins.append(one)
        elif _TO.search(before) or _TO_BEHIND.match(text, one.end):
            destinations.append(one)
        else:
            free.append(one)
    cities = set(world.cities())
    org = next((one for one in origins if one.name in cities), origins[0] if origins else None)
    rest = [one for one in [*destinations, *free] if org is None or one.name != org.name or one.name in world.states]
    if org is None:
        # "Oriel -> Alder", "Marrowick to Thornquay": the origin comes first, without a preposition.
        org = next((one for one in free if one.name in cities), None)
        if org is None and len(destinations) > 1:
            org = next((one for one in destinations[1:] if one.name in cities), None)
        rest = [one for one in [*destinations, *free] if one is not org]
    several = [one for one in rest if one.name in world.states and _NUMBER.search(text)]
    apart = [one for one in rest if org is None or one.name != org.name]
    dest = next(iter([*several, *apart, *rest]), None)
    return org, dest


def _find_mentions(text: str, world: World) -> Iterator[_Mention]:
    """Find the names of cities and states; of overlapping names, the longest."""
    names, form = _index_names((*world.cities(), *world.states))
    # If the text has capitals at all, names begin with one: then "mobile" is not a city.
    capitals = any(sign.isupper() for sign in text[1:])
    for found in form.finditer(text) if names else ():
        if not capitals or found.group()[0].isupper():
            spelling = found.group()
            yield _Mention(spelling if spelling in names.values() else names[_normalize_name(spelling)], *found.span())


@lru_cache(8)
def _index_names(known: tuple[str, ...]) -> tuple[dict[str, str], re.Pattern[str]]:
    """Return the names by their normalized spellings, and a pattern for all of them."""
    names: dict[str, str] = {}
    for name in known:
        names.setdefault(_normalize_name(name), name)
    alternatives = "|".join(sorted(map(_make_pattern, dict.fromkeys(known)), key=len, reverse=True))
    return names, re.compile(rf"(?<![\w-])(?:{alternatives})(?!\w)", re.IGNORECASE)


def _make_pattern(name: str) -> str:
    """Return a pattern for a name, with or without the full stop of an abbreviation."""
    return re.escape(name).replace(r"\ ", r"\s+").replace(r"St\.", r"(?:St\.?|Saint)")


def _normalize_name(name: str) -> str:
    plain = " ".join(name.casefold().replace(".", "").split())
    return re.sub(r"\bsaint\b", "st", plain)


def _find_unknown(form: re.Pattern[str], passage: Passage, mentions: list[_Mention]) -> str | None:
    """Return an unknown name in the position of a place."""
    for found in form.finditer(passage.text):
        begin, end = found.span("name")
        if not _NO_NAME.match(found["name"]) and all(end <= one.begin or one.end <= begin for one in mentions):
            passage.mark_spans((begin, end))
            return found["name"]
    return None


def read_kinds(passage: Passage, draft: QueryDraft, world: World) -> None:
    """Determine from the text after a name whether a city or the state of the same name is meant."""
    for one in _find_mentions(passage.text, world):
        behind = passage.text[one.end :]
        if found := _AFTER_STATE.match(behind) or _AFTER_CITY.match(behind):
            passage.mark_spans((one.end, one.end + found.end()))
            if one.name == draft.dest and draft.cities is None and "state" not in found.group().casefold():
                draft.cities = 1
