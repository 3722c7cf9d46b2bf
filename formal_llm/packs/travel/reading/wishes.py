"""Read wishes from a text: house rules, cuisines, room types and excluded transportation."""

from __future__ import annotations

import re
from collections.abc import Iterable

from formal_llm.packs.travel.query import CUISINES
from formal_llm.packs.travel.reading.draft import QueryDraft
from formal_llm.packs.travel.reading.numbers import COUNT, count_of
from formal_llm.packs.travel.reading.passages import Passage

#: Words that negate a wish.
_NOT = re.compile(
    r"\b(?:no|not|non|never|without|avoid\w*|except|neither|nor|nobody|nothing|none|cannot|can't|can’t|unable|afraid|fear\w*|"
    r"scared|hate\w*|dislike\w*|refus\w*|rather than|instead of|out of the question|skip\w*|allergic|free of|"
    r"impossible|forbid\w*|wo|do|does|did|are|is|would|could|should|must|need|has|have)(?:n't|n’t|nt)?\b",
    re.IGNORECASE,
)
_JOINS = re.compile(r"\b(?:and|but|so|while|because|although|yet)\b(?!\s+(?:no|not|never|without)\b)", re.IGNORECASE)
_PLAIN = re.compile(r"^(?:wo|do|does|did|are|is|would|could|should|must|need|has|have)$", re.IGNORECASE)
_FLY = re.compile(
    r"\b(?:flights?|fly|flying|flown|planes?|airplanes?|aeroplanes?|aircraft|air travel|by air|airlines?)\b",
    re.IGNORECASE,
)
_DRIVE = re.compile(
    r"\b(?:self[\s-]?driv\w+|driv(?:e|es|ing)|car rentals?|rental cars?|rent(?:ing)? (?:a |any )?cars?|own car|"
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
_HOUSE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("smoking", re.compile(r"\bsmok(?:e|es|er|ers|ing)\b", re.IGNORECASE)),
    ("pets", re.compile(r"\b(?:pets?|dogs?|cats?|pupp(?:y|ies)|kittens?)(?:-friendly)?\b", re.IGNORECASE)),
    ("parties", _PARTIES),
    (
        "visitors",
        re.compile(
            r"\bvisitors\b(?!\s*(?:center|centre))|\b(?:guests?|friends?|relatives|family|people|others)\s+(?:\w+\s+){0,4}"
            r"(?:visit(?: us| me)?|come by|come over|drop by|drop in|stop by|pop in)\b|"
            r"\b(?:allow|receive|have|welcome|invite|host)(?:s|ed|ing)?\s+(?:\w+\s+)?(?:visitors|guests over)\b",
            re.IGNORECASE,
        ),
    ),
)
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
    r"\b(?:shared?(?:\s+(?:rooms?|bedrooms?|accommodations?|spaces?))?|sharing|dorms?|dormitor(?:y|ies))\b",
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
    r"(?:preferences?|requirements?|wishes|restrictions?|needs?)\b[^.!?]*|"
    r"\bany\s+(?:accommodation|transport\w*|means|cuisine|food|room)\b(?:\s+is\s+fine)?",
    re.IGNORECASE,
)


def read_wishes(passage: Passage, draft: QueryDraft, cuisines: Iterable[str]) -> None:
    """Record the wishes; those that a query cannot express are recorded as not understood."""
    for found in _NO_WISH.finditer(passage.text):
        passage.mark_spans(found.span())
    _read_transport(passage, draft)
    _read_room(passage, draft)
    _read_house(passage, draft)
    _read_food(passage, draft, cuisines)


def _is_denied(passage: Passage, begin: int, end: int, *, behind: bool = False) -> bool:
    """Return whether a word before a span in its clause negates it; with ``behind``, also a word after it."""
    clause_begin, clause_end = passage.clause_span(begin)
    # "We prefer no flights and like French food": the conjunction separates two wishes.
    before = _JOINS.split(passage.text[clause_begin:begin])[-1]
    parts = [before, *([_JOINS.split(passage.text[end:clause_end])[0]] if behind else [])]
    negative = [word.group() for part in parts for word in _NOT.finditer(part) if not _PLAIN.match(word.group())]
    passage.mark_spans(*[
        (clause_begin + word.start(), clause_begin + word.end())
        for word in _NOT.finditer(passage.text[clause_begin:clause_end])
        if negative and word.group() in negative
    ])  # fmt: skip
    return bool(negative)


def _read_transport(passage: Passage, draft: QueryDraft) -> None:
    wishes = []
    for wish, form in (("no flight", _FLY), ("no self-driving", _DRIVE)):
        for found in form.finditer(passage.text):
            if not passage.is_free(*found.span()):
                continue
            if _is_denied(passage, *found.span(), behind=True):
                wishes.append(wish)
            else:
                draft.not_understood.append(passage.text[slice(*passage.clause_span(found.start()))].strip())
            passage.mark_spans(found.span())
    _only_one(draft, "transportation", wishes)


def _read_room(passage: Passage, draft: QueryDraft) -> None:
    wishes = []
    for wish, form in (("entire room", _ENTIRE), ("private room", _PRIVATE), ("shared room", _SHARED)):
        for found in form.finditer(passage.text):
            if not passage.is_free(*found.span()):
                continue
            passage.mark_spans(found.span())
            clause_begin, clause_end = passage.clause_span(found.start())
            if wish == "shared room" and re.match(
                r"\s*(?:moments?|interests?|costs?|expenses)", passage.text[found.end() : clause_end]
            ):
                continue
            denied = _is_denied(passage, *found.span(), behind=wish == "shared room")
            if denied and wish != "shared room":
                draft.not_understood.append(passage.text[clause_begin:clause_end].strip())
            else:
                wishes.append("not shared room" if denied else wish)
    _only_one(draft, "room_type", wishes)


def _read_house(passage: Passage, draft: QueryDraft) -> None:
    found: list[tuple[int, str]] = []
    for wish, form in _HOUSE:
        for one in form.finditer(passage.text):
            if not passage.is_free(*one.span()):
                continue
            passage.mark_spans(one.span())
            if _is_denied(passage, *one.span()):
                draft.not_understood.append(passage.text[slice(*passage.clause_span(one.start()))].strip())
            else:
                found.append((one.start(), wish))
    found += _read_children(passage, draft)
    _only_one(draft, "house_rule", [wish for _, wish in sorted(found)])


def _read_children(passage: Passage, draft: QueryDraft) -> list[tuple[int, str]]:
    """Find the wishes to allow children under ten: children of that age, or statements that they must be allowed."""
    wishes: list[tuple[int, str]] = []
    for found in _CHILDREN.finditer(passage.text):
        if re.search(r"\b(?:no|without)\s+(?:any\s+)?$", passage.text[: found.start()], re.IGNORECASE):
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
    names = {name.casefold(): name for name in [*known, *CUISINES]}
    form = re.compile(
        rf"(?<![\w-])(?:{'|'.join(sorted(map(re.escape, names), key=len, reverse=True))})\b", re.IGNORECASE
    )
    wanted: list[str] = []
    sentences: set[tuple[int, int]] = set()
    for found in form.finditer(passage.text):
        if not passage.is_free(*found.span()):
            continue
        name = names[found.group().casefold()]
        sentence = passage.text[slice(*passage.sentence_span(found.start()))]
        about_food = _FOOD.search(sentence) or _FOOD_NEXT.match(passage.text[found.end() :])
        if not about_food and name in _NO_FOOD_WORD:
            continue
        if not about_food and len(form.findall(sentence)) < 2:
            continue
        passage.mark_spans(found.span())
        sentences.add(passage.sentence_span(found.start()))
        if _is_denied(passage, *found.span()):
            draft.not_understood.append(passage.text[slice(*passage.clause_span(found.start()))].strip())
        elif name not in wanted:
            wanted.append(name)
    draft.cuisines = tuple(wanted)
    for begin, end in sentences:
        passage.mark_spans(
            *[(begin + a, begin + b) for a, b in (one.span() for one in _FOOD.finditer(passage.text[begin:end]))]
        )
    for found in re.finditer(
        r"\b(?P<name>[A-Z][a-z]+(?:ese|an|ish|i|ch))\s+(?:cuisine|food|dishes|restaurants?)\b", passage.text
    ):
        if found["name"] not in wanted and found["name"].casefold() not in names:
            draft.not_understood.append(f"{found.group()}: no restaurant of this world has it")
            passage.mark_spans(found.span())


def _only_one(draft: QueryDraft, name: str, wishes: list[str]) -> None:
    """Record the first wish of a kind, since a query has one of each, and the others as not understood."""
    different = list(dict.fromkeys(wishes))
    if different:
        setattr(draft, name, different[0])
        draft.not_understood += [
            f"{wish} (besides {different[0]}: a query holds one such wish)" for wish in different[1:]
        ]
