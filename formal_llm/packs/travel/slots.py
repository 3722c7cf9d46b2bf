"""Slots: the choices day by day, once the city of each day is fixed."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

from formal_llm.packs.travel.plan_days import MEALS

Kind = Literal["bed", "sight", "breakfast", "lunch", "dinner"]
#: The choices of a whole day, followed by so many sights that may be seen.
_DAY: tuple[Kind, ...] = ("breakfast", "sight", "lunch", "dinner")
MORE_SIGHTS = 2
_EATEN: tuple[Kind, ...] = ("breakfast", "lunch", "dinner")


class Stay(NamedTuple):
    """A stay in a city.

    Attributes:
        arrival: the day on which it begins, from 0.
        nights: the number of nights; so there are ``nights - 1`` whole days between.
        before, after: the maximum number of meals on the day of arrival, and on that of departure.
        able_before, able_after: the numbers of meals for which the hours of the ways leave time on these days.
        first, last: the numbers of sights for which they leave time on these days.
    """

    arrival: int
    nights: int
    before: int
    after: int
    able_before: int = 3
    able_after: int = 3
    first: int = 1
    last: int = 1

    @property
    def leaving(self) -> int:
        """The day on which it ends."""
        return self.arrival + self.nights

    @property
    def meals(self) -> int:
        """The number of required meals: three on each whole day."""
        return 3 * (self.nights - 1)

    @property
    def more_meals(self) -> int:
        """The maximum number of further meals, on the days of travel."""
        return min(self.before, self.able_before) + min(self.after, self.able_after)


#: The stays of a trip, in order.
Shape = tuple[Stay, ...]


class Slot(NamedTuple):
    """A choice for a day.

    Attributes:
        kind: the kind of the choice; a bed is for all nights of its stay.
        stay: the number of the stay, from 0.
        day: the number of the day, from 0.
        must: whether the choice is required.
        open: whether the ways of the trip leave time for it; if not, nothing can be chosen.
    """

    kind: Kind
    stay: int
    day: int
    must: bool = True
    open: bool = True


@lru_cache(maxsize=1024)
def list_slots(shape: Shape) -> tuple[Slot, ...]:
    """List the slots of a trip: for each stay the bed, then its meals and sights in the order of the days.

    All shapes of the same numbers of days and cities have the same number of slots.
    """
    found = []
    for number, stay in enumerate(shape):
        found.append(Slot("bed", number, stay.arrival))
        found.append(Slot("sight", number, stay.arrival, must=False, open=stay.first > 0))
        able = _EATEN[3 - stay.able_before :]
        found += [Slot(meal, number, stay.arrival, False, meal in able) for meal in _EATEN[3 - stay.before :]]
        for day in range(stay.arrival + 1, stay.leaving):
            found += [Slot(kind, number, day) for kind in _DAY]
            found += [Slot("sight", number, day, must=False)] * MORE_SIGHTS
        able = _EATEN[: stay.able_after]
        found += [Slot(meal, number, stay.leaving, False, meal in able) for meal in _EATEN[: stay.after]]
        found.append(Slot("sight", number, stay.leaving, must=False, open=stay.last > 0))
    return tuple(found)


@lru_cache(maxsize=4096)
def find_beginning(shape: Shape, place: int) -> tuple[int, int]:
    """Return the stay of a slot, and the place of the first slot of that stay."""
    all_slots = list_slots(shape)
    stay = all_slots[place].stay
    return stay, next(number for number, slot in enumerate(all_slots) if slot.stay == stay)


@lru_cache(maxsize=4096)
def left_of(shape: Shape, place: int) -> tuple[int, int, int]:
    """Count the required meals, the optional meals and the required sights from a slot to the end of its stay."""
    all_slots = list_slots(shape)
    remaining = [slot for slot in all_slots[place:] if slot.stay == all_slots[place].stay and slot.open]
    meals = [slot.must for slot in remaining if slot.kind in MEALS]
    return sum(meals), len(meals) - sum(meals), sum(slot.kind == "sight" and slot.must for slot in remaining)
