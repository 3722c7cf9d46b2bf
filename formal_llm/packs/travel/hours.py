"""What days of travel leave time for: the meals and sights before a departure and after an arrival.

Flights have their hours. Who drives leaves after the meals before the departure; on the way home, as late as possible
for an arrival in the evening.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from formal_llm.packs.travel.plan_days import MEALS
from formal_llm.packs.travel.resolved import ResolvedDay
from formal_llm.packs.travel.rows import Drive, Flight

#: The earliest departure that leaves time for the first meals of a day, and the latest arrival for each meal; in hours.
_DEPARTURES, _ARRIVALS = (8.5, 13.5, 19.5), (9.0, 13.5, 20.0)
#: When who drives leaves after so many meals, and when the day of the way home ends.
_LEAVING, _EVENING = (7.0, *_DEPARTURES), 20.0
#: The earliest departure after a visit of a sight, and the latest arrival before one: sights are open from 9 to 18.
_SEEN, _UNSEEN = 13.0, 15.0
#: The parts of a printed duration.
_DURATIONS = (re.compile(r"(\d+)\s*day"), 24), (re.compile(r"(\d+)\s*hour"), 1), (re.compile(r"(\d+)\s*min"), 1 / 60)


def parse_hours(duration: str | None) -> float:
    """Return the hours of ``"2 hours 24 minutes"``; 0 without a duration."""
    return sum(int(found[1]) * size for part, size in _DURATIONS if (found := part.search(duration or "")))


def parse_clock(text: str) -> float:
    """Return the hours since midnight of ``"15:40"``."""
    hours, _, minutes = text.partition(":")
    return int(hours) + int(minutes or 0) / 60


def find_times(row: Flight | Drive, meals: int | None) -> tuple[float, float]:
    """Return the departure and the arrival, in hours since the midnight before the departure.

    A drive begins after a number of meals; ``meals`` is None for the way home.
    """
    hours = parse_hours(row.duration)
    if isinstance(row, Drive):
        leaving = _LEAVING[meals] if meals is not None else min(max(_EVENING - hours, _LEAVING[1]), 16.0)
        return leaving, leaving + hours
    leaving, arrival = parse_clock(row.departure), parse_clock(row.arrival)
    # Local times: the zones of departure and arrival differ by less than half a day.
    days = round((leaving + hours - arrival) / 24) if hours else int(arrival < leaving)
    return leaving, arrival + 24 * days


def count_before(leaving: float) -> tuple[int, int]:
    """Return how many of the first meals of a day, and whether a sight, a departure leaves time for."""
    return sum(leaving >= one for one in _DEPARTURES), int(leaving >= _SEEN)


def count_after(arrival: float) -> tuple[int, int]:
    """Return how many of the last meals of a day, and whether a sight, an arrival leaves time for."""
    return sum(arrival <= one for one in _ARRIVALS), int(arrival <= _UNSEEN)


def find_impossible(days: Sequence[ResolvedDay]) -> Iterator[tuple[int, str]]:
    """Iterate over the meals and sights for which a journey leaves no time, as the day, from 1, and the field."""
    for day in days:
        rows = [] if day.journey is None else [day.journey.drive, *day.journey.flights]
        row = next((one for one in rows if isinstance(one, Drive) or (one is not None and one.day == day.on)), None)
        if row is None:
            continue
        meals = [stop.named.field for stop in day.meals if stop.named.where.city == row.origin]
        here = MEALS.index(meals[-1]) + 1 if meals else 0
        last = day.number == len(days)
        leaving, arrival = find_times(row, None if last else here)
        able = MEALS[: count_before(leaving)[0]], MEALS[3 - count_after(arrival)[0] :]
        for stop in day.meals:
            if stop.named.field not in able[stop.named.where.city != row.origin]:
                yield day.number, stop.named.field
