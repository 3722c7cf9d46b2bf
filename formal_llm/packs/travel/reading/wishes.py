"""Read wishes from a text: house rules, food, rooms, transport, times of day, ratings, sights."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import cache

from formal_llm.packs.travel.query import CUISINES, ROOM_TYPES, TripWish, WishKind
from formal_llm.packs.travel.reading.draft import QueryDraft
from formal_llm.packs.travel.reading.numbers import COUNT, count_of, minute_of
from formal_llm.packs.travel.reading.passages import Passage, Stance, read_forms
from formal_llm.packs.travel.rows import Money

_FORMS, _NUMBERED = read_forms("wishes"), read_forms("numbered")
_NO_FOOD_WORD = ("Tea", "Cafe", "Bakery", "Pizza", "Desserts", "Seafood", "Fast Food", "BBQ")
_DIETS = ("vegetarian", "vegan", "halal", "kosher", "gluten-free", "pescatarian")
#: The parts of the day, in minutes.
_PARTS = {
    "night": (1320, 360), "overnight": (1320, 360), "early morning": (0, 480), "morning": (0, 720),
    "afternoon": (720, 1080), "evening": (1080, 1440),
}  # fmt: skip
#: The wishes that a mention expresses without a word such as "want".
_BY_DEFAULT = (WishKind.rooms, WishKind.some_meal, WishKind.visit)
#: The wishes for one day of the trip, and which.
_ON_DAYS = {WishKind.leave_after: "first", WishKind.arrive_by: "first", WishKind.home_by: "last"}
_DAY_NAME = re.compile(
    r"\b(first|second|third|last|next|every|each)\s+(?:\w+\s+)?(?:day|morning)\b|\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b",
    re.IGNORECASE,
)
_RATED_PLACES = {"res": "restaurant", "sig": "sight", "att": "sight"}


@dataclass
class _Topic:
    """Something that a text mentions; ``group`` has the number of the mention with which it is listed."""

    name: str
    begin: int
    end: int
    stance: Stance
    group: int


def read_wishes(passage: Passage, draft: QueryDraft, cuisines: Iterable[str], sights: Iterable[str] = ()) -> None:
    """Record the wishes; those that cannot be read safely are recorded as not understood.

    Args:
        passage: the text.
        draft: the draft of the query.
        cuisines: the cuisines of the world.
        sights: the names of the sights that may be visited.
    """
    for name in ("no_wish", "echo"):
        passage.mark_spans(*[found.span() for found in _FORMS[name].finditer(passage.text)])
    _read_numbered(passage, draft)
    _read_sights(passage, draft, sights)
    _read_transport(passage, draft)
    _read_rooms(passage, draft)
    _read_house(passage, draft)
    _read_food(passage, draft, cuisines)
    for wish in list(draft.wishes):  # "We are past the age for parties": an unknown word may mean the opposite
        begin = passage.text.find(wish.text)
        doubtful = _FORMS["states"].search(wish.text) and not passage.is_plain(begin, begin + len(wish.text))
        if doubtful and (wish.kind in _BY_DEFAULT or wish.names[:1] in (("smoking",), ("parties",), ("pets",))):
            draft.wishes.remove(wish)
            draft.not_understood.append(wish.text)


def _find_mentions(
    passage: Passage, form: re.Pattern[str], names: Callable[[re.Match[str]], str | None]
) -> list[_Topic]:
    """Find what a text mentions, and how; members of a list share the stance of those that have one of their own.

    Args:
        passage: the text, whose mentions are marked.
        form: finds them.
        names: returns the name of one; None if it is none.
    """
    mentions: list[_Topic] = []
    for found in form.finditer(passage.text):
        name = names(found) if passage.is_free(*found.span()) else None
        if name is None:
            continue
        one = _Topic(name, *found.span(), passage.find_stance(*found.span()), found.start())
        last = mentions[-1] if mentions else None
        if (
            last
            and last.stance in (Stance.excluded, Stance.open)
            and _FORMS["but_not"].search(passage.text[last.end : one.begin])
        ):
            one.stance = Stance.wanted  # "We can skip the Park, but not the Mill"
        if last and _FORMS["and"].fullmatch(passage.text[last.end : one.begin]):
            one.group = last.group
            alone = _FORMS["allowed"].match(passage.text[one.end :])
            if last.stance != one.stance == Stance.wanted:
                one.stance = last.stance if alone is None else Stance.unclear
            elif last.stance == Stance.wanted != one.stance:
                for other in mentions:
                    other.stance = one.stance if other.group == one.group else other.stance
        mentions.append(one)
    passage.mark_spans(*[(one.begin, one.end) for one in mentions])
    _settle_stances(passage, mentions)
    return mentions


def _settle_stances(passage: Passage, mentions: list[_Topic]) -> None:
    """Correct the stance of mentions by what is said elsewhere about them."""
    for one in mentions:
        # "No flights on Sundays": what is excluded is less than what is mentioned.
        behind = passage.text[one.end : passage.clause_span(one.begin)[1]]
        rest = re.split(r"\b(?:and|or|nor|but|so|as|because|since)\b", behind)[0]
        partly = _FORMS["qualified"].search(rest) or not passage.is_plain(one.end, one.end + len(rest))
        if (one.stance == Stance.excluded and partly) or (one.stance == Stance.only and _FORMS["timed"].search(rest)):
            one.stance = Stance.unclear
    for one in mentions:
        # "I like Chinese food, but she does not, so leave it out".
        behind = passage.text[one.end : passage.sentence_span(one.begin)[1]]
        later = list(_FORMS["refused"].finditer(behind)) if one.stance in (Stance.wanted, Stance.open) else []
        if later:
            one.stance = Stance.excluded if one is mentions[-1] and any(found[1] for found in later) else Stance.unclear
            passage.mark_spans(*[(one.end + found.start(), one.end + found.end()) for found in later])
    for place, one in enumerate(mentions):  # "I fear flying, but book a plane": the text contradicts itself
        for two in mentions[:place]:
            timed = any(_FORMS["hours"].match(passage.text[each.begin :]) for each in (one, two))
            apart = one.name == two.name and (one.stance == Stance.excluded) != (two.stance == Stance.excluded)
            if apart and not timed and _FORMS["contrast"].search(passage.text[two.end : one.begin]):
                one.stance = two.stance = Stance.unclear


@cache
def _named_form(table: str) -> tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]]:
    """Return one pattern for the forms in a table of ``words.toml``, and the name of what it finds."""
    forms = read_forms(table)
    form = re.compile("|".join(f"({one.pattern})" for one in forms.values()), re.IGNORECASE)
    return form, lambda found: list(forms)[(found.lastindex or 1) - 1]


def _make_form(names: Iterable[str], ending: str) -> re.Pattern[str]:
    """Return a pattern for names, the longest first."""
    longest = sorted(map(re.escape, names), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(longest)}){ending}(?!\w)", re.IGNORECASE)


def _add_wish(passage: Passage, draft: QueryDraft, kind: WishKind, one: _Topic, *names: str) -> None:
    draft.wishes.append(TripWish(kind, names or (one.name,), (), passage.quote_clause(one.begin)))


def _match_behind(passage: Passage, one: _Topic, form: str) -> re.Match[str] | None:
    """Match and mark what is written right behind a mention."""
    found = _FORMS[form].match(passage.text[one.end :])
    if found:
        passage.mark_spans((one.end, one.end + found.end()))
    return found


def _make_dated(passage: Passage, kind: WishKind, one: _Topic, behind: re.Match[str] | None) -> TripWish:
    """Create a wish for a meal or a day."""
    words = behind.groupdict() if behind else {}
    numbers = (count_of(words["number"]),) if words.get("number") else ()
    meal = (str(words["meal"]).casefold(),) if words.get("meal") else ()
    return TripWish(kind, (one.name, *meal), numbers, passage.quote_clause(one.begin))


def _note_rest(passage: Passage, draft: QueryDraft, mention: _Topic) -> None:
    """Record that something is neither asked for nor excluded, or that this is unclear."""
    clause = passage.quote_clause(mention.begin)
    if mention.stance == Stance.open:
        draft.assumed.append(f"{clause!r} neither asks for {mention.name} nor excludes it")
    else:
        draft.not_understood.append(clause)


def _read_numbered(passage: Passage, draft: QueryDraft) -> None:
    for kind, form in _NUMBERED.items():
        for found in form.finditer(passage.text):
            if not all(passage.is_free(*found.span(name)) for name, value in found.groupdict().items() if value):
                continue
            words = {name: value for name, value in found.groupdict().items() if value}
            value = words.get("number") or words.get("more") or words.get("stars") or ""
            number: Money | None = Decimal(value) if kind == WishKind.rating else count_of(value or "0")
            if "time" in words:
                number = minute_of(words["time"])
            what = (words.get("what") or words.get("which") or "").casefold()[:3]
            names = (_RATED_PLACES.get(what, "bed"),) if what else ()
            on_day = _ON_DAYS.get(WishKind(kind))
            other_day = on_day is not None and _names_other_day(passage, found.start(), draft, on_day)
            numbers = () if number is None or not words else (number,)
            if (
                number is not None
                and not other_day
                and passage.find_stance(*found.span()) in (Stance.wanted, Stance.only)
            ):
                draft.wishes.append(TripWish(WishKind(kind), names, numbers, found.group()))
            else:
                draft.not_understood.append(passage.quote_clause(found.start()))
            passage.mark_spans(found.span())


def _names_other_day(passage: Passage, place: int, draft: QueryDraft, ordinal: str) -> bool:
    """Return whether a sentence names a day that is not the first one, or the last one."""
    day = draft.first
    if day and ordinal == "last":
        day = draft.last or (day + timedelta((draft.days or 1) - 1))
    expected = (ordinal, f"{day:%A}".casefold() if day else "")
    named = _DAY_NAME.finditer(passage.text, *passage.sentence_span(place))
    return any((found[1] or found.group()).casefold() not in expected for found in named)


def _read_sights(passage: Passage, draft: QueryDraft, sights: Iterable[str]) -> None:
    names = {name.removeprefix("The ").casefold(): name for name in sights}
    form = _make_form(names, "")
    kinds = {Stance.wanted: WishKind.visit, Stance.excluded: WishKind.never}
    for one in _find_mentions(passage, form, lambda found: names[found.group().casefold()]) if names else ():
        behind = _match_behind(passage, one, "on_day") if one.stance == Stance.wanted else None
        if one.stance in kinds:
            draft.wishes.append(_make_dated(passage, kinds[one.stance], one, behind))
        else:
            _note_rest(passage, draft, one)


def _read_transport(passage: Passage, draft: QueryDraft) -> None:
    only: list[_Topic] = []
    flown: list[str] = []
    for one in _find_mentions(passage, *_named_form("modes")):
        begin, end = passage.clause_span(one.begin)
        before, licence = passage.text[begin : one.begin], "licen" in passage.text[one.begin : one.end]
        if one.name == "flight" and _read_flight_hours(passage, draft, one, passage.text[one.end : end]):
            continue
        plain = passage.text[one.begin : one.end].casefold() == "fly"  # "I fly to Oriel" is no wish
        if one.stance == Stance.wanted and (licence or plain) and not _FORMS["asks"].search(before):
            one.stance = Stance.open
            flown = [one.name] if plain else flown
        if _FORMS["rather"].search(passage.text[begin:end]):
            one.stance = Stance.unclear  # a preference is no ban
        if one.stance == Stance.excluded or (one.stance == Stance.open and _FORMS["spared"].search(before)):
            _add_wish(passage, draft, WishKind.no_mode, one)
        elif one.stance == Stance.only or (one.stance == Stance.wanted and (_FORMS["by"].search(before) or only)):
            only.append(one)
        else:
            _note_rest(passage, draft, one)
    if only:
        names = dict.fromkeys([*flown, *(one.name for one in only)])
        _add_wish(passage, draft, WishKind.only_modes, only[0], *names)


def _read_flight_hours(passage: Passage, draft: QueryDraft, one: _Topic, behind: str) -> bool:
    """Record a wish for the hours of flights; return whether there is one."""
    own = passage.text[one.begin : one.end].casefold()
    found = _FORMS["flight_hours"].match(behind)
    part = "early morning" if own.startswith("early") else "night" if re.match("night|over|red", own) else ""
    if found is None and not part:
        return False
    words = found.groupdict() if found else {}
    part = part or str(words["part"] or "").casefold()
    times = [words.get(name) for name in (("from", "to") if words.get("from") else ("begin", "end"))]
    ends = [edge if time is None else minute_of(time) for time, edge in zip(times, (0, 1440), strict=True)]
    hours = _PARTS[part] if part else tuple(ends)
    if found:
        passage.mark_spans((one.end, one.end + found.end()))
    stance = passage.find_stance(one.begin, one.end)  # what "at night" restricts is no longer unclear
    if stance in (Stance.wanted, Stance.only) and None not in hours:  # none in the other hours
        hours, stance = ((hours[1] or 0) % 1440, hours[0] or 1440), Stance.excluded
    numbers = tuple(minute for minute in hours if minute is not None)
    if stance == Stance.excluded and len(numbers) == 2:
        draft.wishes.append(TripWish(WishKind.no_flight, (), numbers, passage.quote_clause(one.begin)))
    else:
        draft.not_understood.append(passage.quote_clause(one.begin))
    return True


def _read_rooms(passage: Passage, draft: QueryDraft) -> None:
    wanted: dict[int, set[str]] = {}
    banned: set[str] = set()
    mentions = _find_mentions(passage, *_named_form("rooms"))
    for one in mentions:
        if one.name == "shared room" and _FORMS["no_room"].match(passage.text[one.end :]):
            continue
        if _FORMS["share"].match(passage.text[one.begin :]):
            one.stance = Stance.unclear  # to share a room with each other is no shared room
        if one.stance in (Stance.wanted, Stance.only):
            wanted.setdefault(one.group, set()).add(one.name)
        elif one.stance == Stance.excluded:
            banned.add(one.name)
        else:
            _note_rest(passage, draft, one)
    different = [kinds for at, kinds in enumerate(wanted.values()) if kinds not in list(wanted.values())[:at]]
    accepted = set.intersection(*different) if different else set(ROOM_TYPES[:3])
    accepted -= banned
    if not accepted:
        draft.not_understood += [passage.quote_clause(one.begin) for one in mentions]
    elif mentions and len(accepted) < 3:
        _add_wish(passage, draft, WishKind.rooms, mentions[0], *(one for one in ROOM_TYPES if one in accepted))


def _read_house(passage: Passage, draft: QueryDraft) -> None:
    wishes = _read_children(passage, draft)
    for one in _find_mentions(passage, *_named_form("house")):
        before = passage.text[passage.clause_span(one.begin)[0] : one.begin]
        if one.stance == Stance.excluded and _FORMS["about_us"].search(before):
            one.stance = Stance.open  # who does not smoke may stay where others do
        if one.stance in (Stance.wanted, Stance.only):
            wishes.append((one.begin, one.name))
        elif one.stance == Stance.excluded:
            _add_wish(passage, draft, WishKind.forbids, one)
        else:
            _note_rest(passage, draft, one)
    draft.wishes += [TripWish(WishKind.allows, (name,), (), passage.quote_clause(at)) for at, name in sorted(wishes)]


def _read_children(passage: Passage, draft: QueryDraft) -> list[tuple[int, str]]:
    """Find the wishes to allow children under ten: children of that age, or statements that they must be allowed."""
    wishes: list[tuple[int, str]] = []
    for found in _FORMS["children"].finditer(passage.text):
        if passage.find_stance(*found.span()) == Stance.excluded:
            if not _FORMS["ours"].search(passage.text[: found.start()]):
                draft.not_understood.append(passage.quote_clause(found.start()))
            passage.mark_spans(found.span())
            continue
        begin, end = passage.sentence_span(found.start())
        sentence = passage.text[begin:end]
        under, young = _FORMS["under"].search(sentence), _FORMS["young"].search(sentence)
        passage.mark_spans(*[(begin + one.start(), begin + one.end()) for one in (under, young) if one])
        ages = [] if under else _read_ages(passage, found.end())
        if young or ages or under:
            passage.mark_spans(found.span())
        if (under and count_of(under["age"]) <= 10) or young or any(age < 10 for age in ages):
            wishes.append((found.start(), "children under 10"))
        elif not ages and re.search(r"\b(?:children|child|kids?)\b", found.group(), re.IGNORECASE):
            draft.not_understood.append(
                f"{found.group()}: if one is under 10, write: the bed must allow children under 10"
            )
    return wishes


def _read_ages(passage: Passage, at: int) -> list[int]:
    """Read the ages right after children: "kids are 4, 6 and 9", "our daughter is 3", "kids aged 5"."""
    found = _FORMS["ages"].match(passage.text, at, at + 50)
    if found is None:
        return []
    passage.mark_spans(found.span())
    return [count_of(age) for age in re.findall(rf"\b{COUNT}\b", found["ages"], re.IGNORECASE)]


def _read_days(passage: Passage, draft: QueryDraft, mentions: list[_Topic], known: Container[str]) -> list[_Topic]:
    """Record the wishes for food on a day or on each day, and return the other mentions."""
    wanted = [one for one in mentions if one.stance == Stance.wanted and one.name.casefold() in known]
    dated = {one.group: days for one in wanted if (days := _match_behind(passage, one, "some_days"))}
    for one in wanted:
        if one.group in dated and sum(other.group == one.group for other in mentions) == 1:
            draft.wishes.append(_make_dated(passage, WishKind.day_meal, one, dated[one.group]))
        elif one.group in dated:  # each of them, or one of them?
            draft.not_understood.append(passage.quote_clause(one.begin))
    return [one for one in mentions if one.group not in dated or one not in wanted]


def _read_food(passage: Passage, draft: QueryDraft, known: Iterable[str]) -> None:
    world = {name.casefold(): name for name in [*known, *CUISINES]}
    names = {name: name for name in _DIETS} | world
    form = _make_form(names, "s?")

    def find_name(found: re.Match[str]) -> str | None:
        plain = found.group().casefold()
        name = names.get(plain) or names[plain.removesuffix("s")]
        sentence = passage.text[slice(*passage.sentence_span(found.start()))]
        if _FORMS["food"].search(sentence) or _FORMS["food_next"].match(passage.text[found.end() :]):
            return name
        several = len(form.findall(sentence)) > 1 and name not in _NO_FOOD_WORD
        return name if several or _FORMS["every"].search(sentence) else None

    groups: dict[int, list[str]] = {}
    for one in _read_days(passage, draft, _find_mentions(passage, form, find_name), world):
        begin, end = passage.sentence_span(one.begin)
        every = _FORMS["every"].search(passage.text[begin:end])
        passage.mark_spans(
            *[(begin + food.start(), begin + food.end()) for food in _FORMS["food"].finditer(passage.text[begin:end])]
        )
        not_only = one.stance == Stance.open and _FORMS["not_only"].search(passage.text[begin : one.begin])
        one.stance = Stance.wanted if not_only else one.stance
        partly = _FORMS["sometimes"].search(passage.text[one.end : end])
        if partly and one.stance in (Stance.only, Stance.wanted):
            draft.not_understood.append(passage.quote_clause(one.begin))
        if partly and one.stance == Stance.only:
            continue
        if one.stance == Stance.only or (every and one.stance == Stance.wanted):
            groups.setdefault(one.group, []).append(one.name)
        elif one.stance == Stance.excluded:
            _add_wish(passage, draft, WishKind.no_meal, one)
        elif one.stance == Stance.wanted and one.name.casefold() in world:
            _add_wish(passage, draft, WishKind.some_meal, one)
        elif one.stance == Stance.wanted:
            draft.not_understood.append(f"{one.name}: no restaurant of this world has it")
        else:
            _note_rest(passage, draft, one)
    draft.wishes += [TripWish(WishKind.every_meal, tuple(group)) for group in groups.values()]
    for found in re.finditer(
        r"\b(?P<name>[A-Z][a-z]+(?:ese|an|ish|i|ch))\s+(?:cuisine|food|dishes|restaurants?)\b", passage.text
    ):
        if found["name"].casefold() not in names:
            draft.not_understood.append(f"{found.group()}: no restaurant of this world has it")
            passage.mark_spans(found.span())
