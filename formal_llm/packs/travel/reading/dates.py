"""Read dates from a text: ``March 16th to March 18th, 2022``, ``the 8th to the 10th of March``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from formal_llm.packs.travel.reading.draft import QueryDraft
from formal_llm.packs.travel.reading.numbers import COUNT, count_of
from formal_llm.packs.travel.reading.passages import Passage

_MONTH_NAMES = """january february march april may june july august september october november december"""
_MONTHS = _MONTH_NAMES.split()
MONTH = r"(?:" + "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in _MONTHS) + r"|sept)\b\.?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?\b\.?"
_TO = r"(?:-|–|—|to|until|till|til|through|thru|and|&|,\s*and|,|up to)"
WEEKDAY_NAME = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_WEEKDAY = rf"(?:{WEEKDAY_NAME},?\s+)?"
_MORE_DAYS = (
    rf"(?:\s*{_TO}\s*{_WEEKDAY}(?:the\s+)?{_DAY}(?![/\d]|\s*(?:people|person|adult|travel|cit|guest|friend))){{0,14}}"
)
_YEAR = r"(?:,?\s*(?:of\s+|in\s+)?(?P<year>(?:19|20)\d\d)\b)?"
_FORMS = (
    re.compile(r"(?<![\d/.])(?P<y>\d{4})(?P<sign>[-/.])(?P<m>\d{1,2})(?P=sign)(?P<d>\d{1,2})(?!\d)"),
    re.compile(r"\b(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4})\b"),
    re.compile(r"\b(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})\b"),
    re.compile(rf"\b(?P<days>{_DAY}{_MORE_DAYS})\s*(?:day\s+)?(?:of\s+)?(?P<month>{MONTH}){_YEAR}", re.IGNORECASE),
    re.compile(rf"\b(?P<month>{MONTH})\s*(?:the\s+)?(?P<days>{_DAY}{_MORE_DAYS}){_YEAR}", re.IGNORECASE),
)
#: A day without its month, after another date: ``from March 10th to the 12th, 2022``, ``back on the 16th``.
_DAY_ALONE = re.compile(rf"\bthe\s+(?P<days>\d{{1,2}}(?:st|nd|rd|th)\b){_YEAR}|\b(?P<also>\d{{1,2}}(?:st|nd|rd|th)\b)")
_ENDS = re.compile(
    r"\b(?:back|return\w*|end(?:s|ing)?|last day|until|till|home|conclud\w+)\b[^.!?\d]{0,25}$", re.IGNORECASE
)
#: The lengths of trips: a form, the days of one, and days besides.
_LENGTHS = (
    (rf"\b(?P<count>{COUNT})[\s-]*(?:full\s+)?days?\b(?!\s+later)", 1, 0),
    (rf"\b(?P<count>{COUNT})[\s-]*(?:nights?|days?\s+later)\b", 1, 1),
    (rf"\b(?:(?P<count>{COUNT}|a)[\s-]?(?:(?:full|whole|entire) )?weeks?|week)\b(?:[\s-]long)?", 7, 0),
    (r"\bfortnight\b", 14, 0),
)
_VAGUE = re.compile(
    rf"\b(around|about|roughly|by|(?:not |no )?(?:before|after|later than|earlier than))\s+(?:the )?(?:{MONTH}\s*)?$",
    re.IGNORECASE,
)
_WEEKEND = re.compile(r"\b(?P<long>long\s+)?weekend\b", re.IGNORECASE)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
#: The text between a weekday and its date.
_BEFORE_DAY = re.compile(rf",?\s+(?:the\s+)?(?:{MONTH}\s*)?", re.IGNORECASE)
_BEHIND_DAY = re.compile(
    rf"(?:st|nd|rd|th)?(?:\s*(?:of\s+)?{MONTH})?(?:,?\s*\d{{4}})?(?:\s*,\s*|\s*\(|\s+)(?:an?\s+)?", re.IGNORECASE
)
#: Dates that count from today; the end of "next Friday to Sunday" counts from its beginning.
_FROM_TODAY = re.compile(
    rf"\b(?P<word>(?:the\s+)?day after tomorrow|tomorrow|today)\b|"
    rf"\b(?P<lead>(?:on|from|starting|leaving|this|next|this coming|coming)\s+)(?P<weekday>{WEEKDAY_NAME})\b"
    rf"(?:\s*(?:-|–|to|until|till|through)\s*(?P<end>{WEEKDAY_NAME})\b)?|"
    rf"\b(?P<on>{WEEKDAY_NAME})(?:\s*(?:-|–|to|until|till)\s*(?P<till>{WEEKDAY_NAME}))?,?\s+(?:of\s+)?next week\b|"
    rf"(?:(?:^|[.!?,;]\s*|leaving |starting |start )in\s+(?P<count>{COUNT}|a)\s+(?P<unit>day|week)s?\b|"
    rf"\b(?P<away>{COUNT}|a)\s+(?P<units>day|week)s?\s+from\s+(?:now|today)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _WrittenDate:
    """A date as written; its year and its month may be elsewhere in the text."""

    day: int
    month: int | None
    year: int | None
    begin: int
    end: int
    text: str


def read_dates(passage: Passage, draft: QueryDraft, today: date) -> None:
    """Record the first day, the last day and the number of days.

    Args:
        passage: the text.
        draft: the draft of the query.
        today: a date without a year is the next such day from this one on.
    """
    dates = sorted(_find_dates(passage), key=lambda one: (one.begin, one.end))
    days = list(_complete_days(dates, draft, today))
    if len(days) == len(dates):
        _check_weekdays(passage, dates, days, draft)
    if dates and (vague := _VAGUE.search(passage.text[: dates[0].begin])):
        draft.assumed.append(f"the trip is on the dates as written, also where there is {vague[1]!r} before them")
    if not dates:
        days = _find_from_today(passage, draft, today)
    if days and not any(role == "dates" for role, _, _ in draft.problems):
        if len(set(days)) > 1:
            draft.first, draft.last = days[0], days[-1]  # more than two days are a list of all days
        elif dates and _ENDS.search(passage.text[: dates[0].begin]):
            draft.last = days[0]
        else:
            draft.first = days[0]
    _read_length(passage, draft)


def _check_weekdays(passage: Passage, dates: list[_WrittenDate], days: list[date], draft: QueryDraft) -> None:
    """Check that a weekday next to a date is the one of the calendar."""
    both = list(zip(dates, days, strict=True))
    for found in re.finditer(rf"\b{WEEKDAY_NAME}\b", passage.text, re.IGNORECASE):
        near = [day for one, day in both if _BEFORE_DAY.fullmatch(passage.text[found.end() : one.begin])]
        near = near or [day for one, day in both if _BEHIND_DAY.fullmatch(passage.text[one.end : found.start()])]
        if near:
            passage.mark_spans(found.span())
        if near and not found.group().casefold().startswith(_WEEKDAYS[near[0].weekday()]):
            problem = f"{near[0]} is a {near[0]:%A}, not a {found.group()}"
            draft.add_problem("dates", problem, "correct the weekday or the date")


def _find_from_today(passage: Passage, draft: QueryDraft, today: date) -> list[date]:
    """Find the dates that count from today; each is recorded as an assumption."""
    found = next(_FROM_TODAY.finditer(passage.text), None)
    if found is None:
        return []
    passage.mark_spans(found.span())
    if found["on"]:
        ahead = _days_to("monday", today) + _WEEKDAYS.index(found["on"][:3].casefold())
    elif found["weekday"]:
        ahead = _days_to(found["weekday"], today)
        if found["lead"].strip().casefold() == "next" and today.weekday() + ahead < 7:
            both = f"{today + timedelta(ahead)} or {today + timedelta(ahead + 7)}"
            draft.add_problem("dates", f"{found.group()!r} may be {both}", "write the date")
    elif found["word"]:
        ahead = {"today": 0, "tomorrow": 1}.get(found["word"].casefold(), 2)
    else:
        count, unit = found["count"] or found["away"], found["unit"] or found["units"]
        ahead = (1 if count == "a" else count_of(count)) * (7 if unit.casefold() == "week" else 1)
    days = [today + timedelta(ahead)]
    if end := found["end"] or found["till"]:
        days.append(days[0] + timedelta(_days_to(end, days[0])))
    draft.assumed.append(f"{found.group().strip(' .,;!?')!r} is {' to '.join(f'{day:%A}, {day}' for day in days)}")
    return days


def _days_to(weekday: str, day: date) -> int:
    """Return the number of days from a day to the next such weekday, at least one."""
    return (_WEEKDAYS.index(weekday[:3].casefold()) - day.weekday() - 1) % 7 + 1


def _read_length(passage: Passage, draft: QueryDraft) -> None:
    """Record the number of days in the text: the number that agrees with the dates. Several others are an error."""
    lengths = _find_lengths(passage)
    wanted = (draft.last - draft.first).days + 1 if draft.first and draft.last else None
    weekends = list(_WEEKEND.finditer(passage.text))
    passage.mark_spans(*[one.span() for one in weekends])
    if weekends and not lengths and not wanted:
        lengths = [(3 if weekends[0]["long"] else 2, *weekends[0].span())]
    fitting = [one for one in lengths if one[0] == wanted]
    if lengths:
        draft.days = (fitting or lengths)[0][0]
    passage.mark_spans(*[(begin, end) for _, begin, end in lengths])
    others = [passage.text[begin:end].strip() for count, begin, end in lengths if count != draft.days]
    if others and fitting:
        draft.not_understood += others
    elif others:
        both = f"{passage.text[slice(*lengths[0][1:])].strip()!r} and {others[0]!r}"
        draft.add_problem("days", f"it is told in two ways how long the trip is: {both}", "say it once: for 3 days")


def _find_dates(passage: Passage) -> Iterator[_WrittenDate]:
    """Find all dates, reading each part of the text once."""
    for number, form in enumerate(_FORMS):
        for found in form.finditer(passage.text):
            if not passage.is_free(*found.span()):
                continue
            passage.mark_spans(found.span())
            begin, end = found.span()
            if "y" in form.groupindex:
                day, month = int(found["d"]), int(found["m"])
                if number == 1 and month > 12 >= day:
                    day, month = month, day  # 16/03/2022
                yield _WrittenDate(day, month, int(found["y"]), begin, end, found.group())
                continue
            month = next(at for at, name in enumerate(_MONTHS, 1) if name.startswith(found["month"][:3].casefold()))
            year = int(found["year"]) if found["year"] else None
            for day_text in re.finditer(r"\d{1,2}", found["days"]):
                place = found.start("days") + day_text.start()
                yield _WrittenDate(
                    int(day_text.group()), month, year, place, place + len(day_text.group()), found.group()
                )
    for found in _DAY_ALONE.finditer(passage.text):
        if passage.is_free(*found.span()) and not re.match(
            r"\s+(?:birthday|anniversary|time|floor|grade)", passage.text[found.end() :]
        ):
            passage.mark_spans(found.span())
            digits = re.search(r"\d{1,2}", found.group())
            assert digits
            year = int(found["year"]) if found["year"] else None
            yield _WrittenDate(int(digits.group()), None, year, found.start(), found.end(), found.group())


def _complete_days(dates: list[_WrittenDate], draft: QueryDraft, today: date) -> Iterator[date]:
    """Complete the dates: missing years and months are inferred from their neighbours."""
    years = [one.year for one in dates if one.year is not None]
    for place, one in enumerate(dates):
        nearest = sorted((abs(place - at), other.month) for at, other in enumerate(dates) if other.month is not None)
        if one.month is None and not nearest:
            continue  # "the 2nd" of something else
        month = one.month if one.month is not None else nearest[0][1]
        assert month is not None
        year = one.year or (years[0] if len(set(years)) == 1 else next((o.year for o in dates[place:] if o.year), None))
        try:
            if year is None:
                year = next(y for y in range(today.year, today.year + 9) if _is_day(y, month, one.day, today))
                assumption = f"the year is {year}"
                if assumption not in draft.assumed:
                    draft.assumed.append(assumption)
            yield date(year, month, one.day)
        except (ValueError, StopIteration):
            name = _MONTHS[month - 1].capitalize() if 1 <= month <= 12 else f"month {month}"
            problem = f"there is no {one.day} {name}" + (f" {year}" if year else "")
            draft.add_problem(
                "dates", f"{problem} ({one.text.strip()!r})", "write a day of the calendar: March 16th, 2022"
            )
            return


def _is_day(year: int, month: int, day: int, today: date) -> bool:
    try:
        return date(year, month, day) >= today
    except ValueError:
        return False


def _find_lengths(passage: Passage) -> list[tuple[int, int, int]]:
    """Find the numbers of days in the text, with their places."""
    found: list[tuple[int, int, int]] = []
    for form, each, besides in _LENGTHS:
        for one in re.finditer(form, passage.text, re.IGNORECASE):
            count = (one.groupdict().get("count") or "a").casefold()
            if passage.is_free(*one.span()):
                found.append((each * (1 if count == "a" else count_of(count)) + besides, *one.span()))
    return sorted(found, key=lambda one: one[1])
