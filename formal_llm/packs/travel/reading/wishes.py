"""Read wishes from a text: house rules, food, rooms, transport, times of day, ratings, sights."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from formal_llm.packs.travel.query import CUISINES, ROOM_TYPES, TripWish, WishKind
from formal_llm.packs.travel.reading.draft import QueryDraft
from formal_llm.packs.travel.reading.numbers import CLOCK, COUNT, count_of, minute_of
from formal_llm.packs.travel.reading.passages import Passage, Stance
from formal_llm.packs.travel.rows import Money

_FLY = re.compile(
    r"\b(?:(?:over)?night[\s-]flights?|red-?eyes?(?: flights?)?|early flights?|"
    r"(?:flights?|fly|flying|flown|planes?|airplanes?|aeroplanes?|aircraft|air travel|by air|airlines?))\b",
    re.IGNORECASE,
)
_DRIVE = re.compile(
    r"\b(?:self[\s-]?driv\w+(?: cars?)?|driv(?:e|es|ing)|car rentals?|rental cars?|rent(?:ing)? (?:a |any )?cars?|own cars?|cars?|"
    r"behind the wheel|driv(?:er|ing)(?:'s|’s|s)? licen[cs]es?|licen[cs]es?)\b",
    re.IGNORECASE,
)
_NO_FOOD_WORD = ("Tea", "Cafe", "Bakery", "Pizza", "Desserts", "Seafood", "Fast Food", "BBQ")
_FOOD = re.compile(
    r"\b(?:cuisines?|foods?|eat\w*|meals?|din(?:e|ner|ners|ing)|lunch\w*|breakfasts?|dish\w*|restaurants?|cooking|tast\w*|"
    r"culinary|foodies?|gastronom\w*|flavou?rs?|kitchens?|palate|crav\w*)\b",
    re.IGNORECASE,
)
_FOOD_NEXT = re.compile(
    r"\s+(?:cuisines?|foods?|dish\w*|restaurants?|cooking|dinners?|meals?|places|fare|lunch\w*)\b", re.IGNORECASE
)
_PARTIES = re.compile(
    r"\bparties\b|"
    r"\b(?:throw\w*|hold\w*|host\w*|hav\w+|giv\w+|mak\w+)\s+(?:(?:a|the|our|some|small|little|big|birthday)\s+)*"
    r"(?:party|celebration)\b|\b(?:birthday|house|bachelor\w*|stag|hen) part(?:y|ies)\b|"
    r"\bpart(?:y|ying) (?:is|at night|in the|must)\b",
    re.IGNORECASE,
)
_HOUSE = {
    "smoking": re.compile(r"\bsmok(?:e|es|er|ers|ing)\b", re.IGNORECASE),
    "pets": re.compile(r"\b(?:pets?|dogs?|cats?|pupp(?:y|ies)|kittens?)(?:-friendly)?\b", re.IGNORECASE),
    "parties": _PARTIES,
    "visitors": re.compile(
        r"\bvisitors?\b(?!\s*(?:center|centre))|\b(?:guests?|friends?|relatives|family|people|others)\s+(?:\w+\s+){0,4}"
        r"(?:visit(?: us| me)?|come by|come over|drop by|drop in|stop by|pop in)\b|"
        r"\b(?:allow|receive|have|welcome|invite|host)(?:s|ed|ing)?\s+(?:\w+\s+)?(?:visitors|guests over)\b",
        re.IGNORECASE,
    ),
}
_CHILDREN = re.compile(
    r"\b(?:children|child|kids?|toddlers?|bab(?:y|ies)|infants?|daughters?|sons?|little ones?)\b", re.IGNORECASE
)
_UNDER = re.compile(
    r"\b(?:under|below|younger than|less than)\s+(?:the age of\s+)?(?P<age>\d{1,2}|ten)\b", re.IGNORECASE
)
_YOUNG = re.compile(
    r"\b(?:(?:child|kid)(?:ren|s)?-friendly|young (?:children|kids)|small (?:children|kids)|toddlers?|"
    r"bab(?:y|ies)|infants?|"
    r"(?:children|kids|child)\s+(?:must|should|need to|have to|are|is|be|being)?\s*"
    r"(?:be\s+)?(?:allowed|welcome|permitted|ok))\b",
    re.IGNORECASE,
)
_AGES = re.compile(rf"\b(?P<age>{COUNT})(?:[\s-]years?[\s-]olds?)?\b", re.IGNORECASE)
_SHARED = re.compile(
    r"\b(?:shared?(?:\s+(?:rooms?|bedrooms?|accommodations?|spaces?))?"
    r"(?: with (?:strangers|others|other people|anyone))?|sharing|dorms?|dormitor(?:y|ies))\b",
    re.IGNORECASE,
)
_ENTIRE = re.compile(
    r"\b(?:(?:entire|whole)\s+(?:rooms?|homes?|houses?|places?|apartments?|flats?|apts?|units?|villas?|"
    r"cottages?|propert\w+)|"
    r"own (?:apartment|flat|house|home)|"
    r"(?:apartment|flat|house|home|place)s?\s+(?:\w+\s+)?(?:to|for) (?:ourselves|myself)|"
    r"(?:apartment|flat|house|home)s? of (?:our|my) own)\b",
    re.IGNORECASE,
)
_PRIVATE = re.compile(
    r"\bprivate\s+(?:bed)?rooms?\b|\brooms?\s*(?:type)?\s*[:=]?\s*private\b|\b(?:own|separate) (?:bed)?rooms?\b|"
    r"\brooms? of (?:my|our) own\b",
    re.IGNORECASE,
)
_NO_WISH = re.compile(
    r"\bno\s+(?:specific|particular|special)\s+(?:\w+\s+)?"
    r"(?:preferences?|requirements?|wishes|restrictions?|needs?|constraints?)\b[^.!?]*|"
    r"\b(?:open to|flexible)\b[^,.!?]*\b(?:any|all|variety|suggestions?)\b[^,.!?]*|"
    r"\bany\s+(?:accommodation|transport\w*|means|cuisine|food|room)\b(?:\s+is\s+fine)?",
    re.IGNORECASE,
)
_MODES = {
    "flight": _FLY, "self-driving": _DRIVE,
    "taxi": re.compile(r"\b(?:taxis?|cabs?)(?: rides?)?\b", re.IGNORECASE),
    "train": re.compile(r"\b(?:trains?|railways?|by rail)\b", re.IGNORECASE),
    "bus": re.compile(r"\b(?:bus(?:es)?|coach(?:es)?)\b", re.IGNORECASE),
}  # fmt: skip
_ROOMS = {"entire room": _ENTIRE, "private room": _PRIVATE, "shared room": _SHARED}
_NO_ROOM = re.compile(r"\s*(?:moments?|interests?|costs?|expenses)", re.IGNORECASE)
_BY = re.compile(r"\b(?:by|via|(?:take|use|using|taking)(?: the| an?)?)\s+$", re.IGNORECASE)
_AND = re.compile(
    r"[\s,]*(?:(?:and|or|nor|&|/)\s*)(?:(?:a|an|the|any|by|to|in|on|our|with|take|use|go|eat|have)\s+)*|\s*,\s*",
    re.IGNORECASE,
)
#: What is not needed is not wanted: "options where we do not need to drive".
_SPARED = re.compile(
    r"\b(?:where|that|which|so)\b[^.;,]*(?:\bnot|n['’]t|\bno)\s+(?:need|have|require|involve)", re.IGNORECASE
)
_ABOUT_US = re.compile(
    r"\b(?:we|I|us|our|my)\b(?!.*\b(?:want|like|prefer|need|require|wish|accept|book|stay))", re.IGNORECASE
)
_OURS = re.compile(r"\b(?:no|without|our|my)\s+(?:any\s+)?$", re.IGNORECASE)
_ALLOWED = re.compile(
    r"\s*(?:must|should|may|are|is|be)?\s*(?:be )?(?:allowed|welcome|permitted|ok\b|okay|fine)", re.IGNORECASE
)
_DIETS = ("vegetarian", "vegan", "halal", "kosher", "gluten-free", "pescatarian")
_EVERY = re.compile(
    r"\b(?:every|each|all)\s+(?:(?:of )?our |the )?(?:meals?|food|restaurants?|time|dish)|\b(?:are|am|is|'re|’re|'m|’m)\s+"
    r"(?:all |both |strict(?:ly)? |an? )*(?:vegetarian|vegan|pescatarian)s?\b(?! (?:food|dish|meal|restaurant))",
    re.IGNORECASE,
)
_FLIGHT_HOURS = re.compile(
    r"^(?:\s+(?:only|that|which|to|leav\w+|depart\w*|tak\w+ off|start\w*|land\w*|arriv\w*|go\w*|are|is|with|times?|any\w*))*\s+(?:"
    rf"(?P<first>before|until|earlier than)\s+(?P<end>{CLOCK})|(?:after|later than|from)\s+(?P<begin>{CLOCK})(?: on)?|"
    rf"between\s+(?P<from>{CLOCK})\s+and\s+(?P<to>{CLOCK})|(?:at|during the|in the|by|over)?\s*(?P<part>night|overnight|"
    r"early morning|morning|afternoon|evening)s?\b)",
    re.IGNORECASE,
)
#: The parts of the day, in minutes.
_PARTS = {
    "night": (1320, 360), "overnight": (1320, 360), "early morning": (0, 480), "morning": (0, 720),
    "afternoon": (720, 1080), "evening": (1080, 1440),
}  # fmt: skip
_DAILY = r"(?:a|per|each|every)\s+(?:\w+\s+)?day\b"
_AT_MOST = rf"(?:no more than|(?:not|n['’]t)\b[^.;!?]{{0,30}}?\bmore than|at most|max(?:imum)?(?: of)?|up to|less than|under)\s+(?P<number>{COUNT})"
_RATED = r"(?P<number>\d(?:\.\d)?)(?:\s*stars?)?(?:\s+(?:or|and)\s+(?:better|more|higher|above|up))?"
_RATED_PLACES = {"res": "restaurant", "sig": "sight", "att": "sight"}
_PLACES = r"(?P<what>hotels?|accommodations?|rooms?|beds?|restaurants?|sights?|attractions?)"
_BY_TIME = rf"[^.;!?]{{0,60}}?\b(?:by|before|(?:no|not) later than)\s+(?P<time>{CLOCK})"
#: Wishes that one pattern finds.
_NUMBERED = tuple(
    (kind, re.compile(form, re.IGNORECASE))
    for kind, form in (
        (WishKind.home_by, rf"\b(?:back|home|return\w*)\b{_BY_TIME}"),
        (WishKind.arrive_by, rf"\b(?:arriv\w*|(?:be|get) there|reach\w*)\b{_BY_TIME}"),
        (
            WishKind.leave_after,
            rf"\b(?:(?:leav\w+|depart\w*|start\w*|set off)\b[^.;!?]{{0,40}}?\b(?:after|not before|no earlier than)|"
            rf"(?:not|never|n['’]t)\s+(?:leave|depart|start|set off)\b[^.;!?]{{0,40}}?\bbefore)\s+(?P<time>{CLOCK})",
        ),
        (
            WishKind.travel_hours,
            rf"\b{_AT_MOST}\s+hours?\b[^.;!?]*?\b(?:travel\w*|driv\w+|road|flying)\b[^.;!?]*?{_DAILY}|"
            rf"\b(?:travel\w*|driv\w+)\b[^.;!?]{{0,20}}?{_AT_MOST.replace('number', 'more')}\s+hours?\s+{_DAILY}",
        ),
        (
            WishKind.sights,
            rf"\b(?:at least|a? ?minimum(?: of)?)\s+(?P<number>{COUNT})\s+(?:\w+\s+)?(?:sights?|attractions?|museums?|places)\s+"
            rf"[^.;!?]*?{_DAILY}",
        ),
        (
            WishKind.rating,
            rf"\b{_PLACES}\s+(?:(?:that are|with|an?|ratings?|rated|of|at least|above)\s+)+{_RATED}|"
            rf"\b(?P<stars>\d)[ -]stars?\s+{_PLACES.replace('what', 'which')}",
        ),
    )
)  # fmt: skip
_QUALIFIED = re.compile(
    r"\d|\b[A-Z]\w+|\b(?:night|morning|evening|afternoon|early|late|long\w*|over|more|than|before|after|until|weekends?|"
    r"first|last|with|without|unless|except|if|when|every|each|only|always|again|daily|often|both)\b"
)


@dataclass
class _Mention:
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
    for found in _NO_WISH.finditer(passage.text):
        passage.mark_spans(found.span())
    _read_numbered(passage, draft)
    _read_sights(passage, draft, sights)
    _read_transport(passage, draft)
    _read_rooms(passage, draft)
    _read_house(passage, draft)
    _read_food(passage, draft, cuisines)


def _find_mentions(
    passage: Passage, form: re.Pattern[str], names: Callable[[re.Match[str]], str | None]
) -> list[_Mention]:
    """Find what a text mentions, and how; members of a list share the stance of those that have one of their own.

    Args:
        passage: the text, whose mentions are marked.
        form: finds them.
        names: returns the name of one; None if it is none.
    """
    mentions: list[_Mention] = []
    for found in form.finditer(passage.text):
        name = names(found) if passage.is_free(*found.span()) else None
        if name is None:
            continue
        one = _Mention(name, *found.span(), passage.find_stance(*found.span()), found.start())
        last = mentions[-1] if mentions else None
        if last and _AND.fullmatch(passage.text[last.end : one.begin]):
            one.group = last.group
            alone = _ALLOWED.match(passage.text[one.end :])
            if last.stance != one.stance == Stance.wanted:
                one.stance = last.stance if alone is None else Stance.unclear
            elif last.stance == Stance.wanted != one.stance:
                for other in mentions:
                    other.stance = one.stance if other.group == one.group else other.stance
        mentions.append(one)
    passage.mark_spans(*[(one.begin, one.end) for one in mentions])
    for one in mentions:
        # "No flights on Sundays": what is excluded is less than what is mentioned.
        behind = passage.text[one.end : passage.clause_span(one.begin)[1]]
        rest = re.split(r"\b(?:and|or|nor|but|so|as|because|since)\b", behind)[0]
        if one.stance == Stance.excluded and (
            _QUALIFIED.search(rest) or not passage.is_plain(one.end, one.end + len(rest))
        ):
            one.stance = Stance.unclear
    return mentions


def _named_form(forms: Mapping[str, re.Pattern[str]]) -> tuple[re.Pattern[str], Callable[[re.Match[str]], str | None]]:
    """Return one pattern for several names, and the name of what it finds."""
    keys = list(forms)
    form = re.compile("|".join(f"(?P<m{at}>{forms[key].pattern})" for at, key in enumerate(keys)), re.IGNORECASE)
    return form, lambda found: keys[int(str(found.lastgroup)[1:])]


def _quote_clause(passage: Passage, begin: int) -> str:
    return passage.text[slice(*passage.clause_span(begin))].strip()


def _add_wish(passage: Passage, draft: QueryDraft, kind: WishKind, one: _Mention, *names: str) -> None:
    draft.wishes.append(TripWish(kind, names or (one.name,), (), _quote_clause(passage, one.begin)))


def _note_rest(passage: Passage, draft: QueryDraft, mention: _Mention) -> None:
    """Record that something is neither asked for nor excluded, or that this is unclear."""
    clause = _quote_clause(passage, mention.begin)
    if mention.stance == Stance.open:
        draft.assumed.append(f"{clause!r} neither asks for {mention.name} nor excludes it")
    else:
        draft.not_understood.append(clause)


def _read_numbered(passage: Passage, draft: QueryDraft) -> None:
    for kind, form in _NUMBERED:
        for found in form.finditer(passage.text):
            if not all(passage.is_free(*found.span(name)) for name, value in found.groupdict().items() if value):
                continue
            words = {name: value for name, value in found.groupdict().items() if value}
            numbers: tuple[Money, ...] = ()
            if "time" in words:
                minute = minute_of(words["time"])
                numbers = () if minute is None else (minute,)
            elif kind == WishKind.rating:
                numbers = (Decimal(words.get("number") or words["stars"]),)
            else:
                numbers = (count_of(words.get("number") or words["more"]),)
            what = (words.get("what") or words.get("which") or "").casefold()[:3]
            names = (_RATED_PLACES.get(what, "bed"),) if what else ()
            if numbers and passage.find_stance(*found.span()) in (Stance.wanted, Stance.only):
                draft.wishes.append(TripWish(kind, names, numbers, found.group()))
            else:
                draft.not_understood.append(_quote_clause(passage, found.start()))
            passage.mark_spans(found.span())


def _read_sights(passage: Passage, draft: QueryDraft, sights: Iterable[str]) -> None:
    names = {name.removeprefix("The ").casefold(): name for name in sights}
    form = re.compile(
        rf"(?<!\w)(?:{'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})(?!\w)", re.IGNORECASE
    )
    kinds = {Stance.wanted: WishKind.visit, Stance.excluded: WishKind.never}
    for one in _find_mentions(passage, form, lambda found: names[found.group().casefold()]) if names else ():
        if one.stance in kinds:
            _add_wish(passage, draft, kinds[one.stance], one)
        else:
            _note_rest(passage, draft, one)


def _read_transport(passage: Passage, draft: QueryDraft) -> None:
    only: list[_Mention] = []
    for one in _find_mentions(passage, *_named_form(_MODES)):
        begin, end = passage.clause_span(one.begin)
        before, licence = passage.text[begin : one.begin], "licen" in passage.text[one.begin : one.end]
        if one.name == "flight" and _read_flight_hours(passage, draft, one, passage.text[one.end : end]):
            continue
        if one.stance == Stance.wanted and (licence or passage.text[one.begin : one.end].casefold() == "fly"):
            one.stance = Stance.open  # to fly somewhere is to travel there
        if one.stance == Stance.excluded or (one.stance == Stance.open and _SPARED.search(before)):
            _add_wish(passage, draft, WishKind.no_mode, one)
        elif one.stance == Stance.only or (one.stance == Stance.wanted and (_BY.search(before) or only)):
            only.append(one)
        else:
            _note_rest(passage, draft, one)
    if only:
        _add_wish(passage, draft, WishKind.only_modes, only[0], *dict.fromkeys(one.name for one in only))


def _read_flight_hours(passage: Passage, draft: QueryDraft, one: _Mention, behind: str) -> bool:
    """Record a wish for the hours of flights; return whether there is one."""
    own = passage.text[one.begin : one.end].casefold()
    found = _FLIGHT_HOURS.match(behind)
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
        draft.wishes.append(TripWish(WishKind.no_flight, (), numbers, _quote_clause(passage, one.begin)))
    else:
        draft.not_understood.append(_quote_clause(passage, one.begin))
    return True


def _read_rooms(passage: Passage, draft: QueryDraft) -> None:
    wanted: dict[int, set[str]] = {}
    banned: set[str] = set()
    mentions = _find_mentions(passage, *_named_form(_ROOMS))
    for one in mentions:
        if one.name == "shared room" and _NO_ROOM.match(passage.text[one.end :]):
            continue
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
        draft.not_understood += [_quote_clause(passage, one.begin) for one in mentions]
    elif mentions and len(accepted) < 3:
        _add_wish(passage, draft, WishKind.rooms, mentions[0], *(one for one in ROOM_TYPES if one in accepted))


def _read_house(passage: Passage, draft: QueryDraft) -> None:
    wishes = _read_children(passage, draft)
    for one in _find_mentions(passage, *_named_form(_HOUSE)):
        before = passage.text[passage.clause_span(one.begin)[0] : one.begin]
        if one.stance == Stance.excluded and _ABOUT_US.search(before):
            one.stance = Stance.open  # who does not smoke may stay where others do
        if one.stance in (Stance.wanted, Stance.only):
            wishes.append((one.begin, one.name))
        elif one.stance == Stance.excluded:
            _add_wish(passage, draft, WishKind.forbids, one)
        else:
            _note_rest(passage, draft, one)
    draft.wishes += [TripWish(WishKind.allows, (name,), (), _quote_clause(passage, at)) for at, name in sorted(wishes)]


def _read_children(passage: Passage, draft: QueryDraft) -> list[tuple[int, str]]:
    """Find the wishes to allow children under ten: children of that age, or statements that they must be allowed."""
    wishes: list[tuple[int, str]] = []
    for found in _CHILDREN.finditer(passage.text):
        if passage.find_stance(*found.span()) == Stance.excluded:
            if not _OURS.search(passage.text[: found.start()]):
                draft.not_understood.append(_quote_clause(passage, found.start()))
            passage.mark_spans(found.span())
            continue
        begin, end = passage.sentence_span(found.start())
        sentence = passage.text[begin:end]
        under, young = _UNDER.search(sentence), _YOUNG.search(sentence)
        passage.mark_spans(*[(begin + one.start(), begin + one.end()) for one in (under, young) if one])
        near = passage.text[found.end() : found.end() + 50]
        ages = [] if under else [int(count_of(one["age"])) for one in _find_ages(passage, found.end(), near)]
        if young or ages or under:
            passage.mark_spans(found.span())
        if (under and count_of(under["age"]) <= 10) or young or any(age < 10 for age in ages):
            wishes.append((found.start(), "children under 10"))
        elif not ages and re.search(r"\b(?:children|child|kids?)\b", found.group(), re.IGNORECASE):
            draft.not_understood.append(
                f"{found.group()}: if one is under 10, write: the bed must allow children under 10"
            )
    return wishes


def _find_ages(passage: Passage, at: int, near: str) -> list[re.Match[str]]:
    """Find the ages right after children: "kids are 4, 6 and 9", "our daughter is 3", "kids aged 5"."""
    lead = re.match(r"\s*(?:\(|,)?\s*(?:are|is|aged|of|ages?)?\s*(?:aged\s*)?(?=\d|[a-z]+\b)", near, re.IGNORECASE)
    if lead is None or not re.match(rf"{COUNT}\b", near[lead.end() :], re.IGNORECASE):
        return []
    found: list[re.Match[str]] = []
    place = lead.end()
    while one := re.compile(rf"(?:\s*(?:,|and|,\s*and|&)\s*)?{_AGES.pattern}", re.IGNORECASE).match(near, place):
        found.append(one)
        passage.mark_spans((at + one.start(), at + one.end()))
        place = one.end()
    return found


def _read_food(passage: Passage, draft: QueryDraft, known: Iterable[str]) -> None:
    world = {name.casefold(): name for name in [*known, *CUISINES]}
    names = {name: name for name in _DIETS} | world
    form = re.compile(
        rf"(?<![\w-])(?:{'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})s?\b", re.IGNORECASE
    )

    def find_name(found: re.Match[str]) -> str | None:
        plain = found.group().casefold()
        name = names.get(plain) or names[plain.removesuffix("s")]
        sentence = passage.text[slice(*passage.sentence_span(found.start()))]
        if _FOOD.search(sentence) or _FOOD_NEXT.match(passage.text[found.end() :]):
            return name
        several = len(form.findall(sentence)) > 1 and name not in _NO_FOOD_WORD
        return name if several or _EVERY.search(sentence) else None

    groups: dict[int, list[str]] = {}
    for one in _find_mentions(passage, form, find_name):
        begin, end = passage.sentence_span(one.begin)
        every = _EVERY.search(passage.text[begin:end])
        passage.mark_spans(
            *[(begin + food.start(), begin + food.end()) for food in _FOOD.finditer(passage.text[begin:end])]
        )
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
