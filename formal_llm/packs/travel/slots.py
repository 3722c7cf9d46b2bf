"""Slots: the choices day by day, once the city of each day is fixed."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

MEALS = ("breakfast", "lunch", "dinner")
Kind = Literal["bed", "sight", "breakfast", "lunch", "dinner"]
_EATEN: tuple[Kind, ...] = ("breakfast", "lunch", "dinner")


class Stay(NamedTuple):
    """A stay in a city.

    Attributes:
        arrival: the day on which it begins, from 0.
        nights: the number of nights; so there are ``nights - 1`` whole days between.
        before, after: the maximum number of meals on the day of arrival, and on that of departure.
        sights: the number of sights on each whole day.
    """

    arrival: int
    nights: int
    before: int
    after: int
    sights: int = 1

    @property
    def leaving(self) -> int:
        """The day on which it ends."""
        return self.arrival + self.nights


#: The stays of a trip, in order.
Shape = tuple[Stay, ...]


class Slot(NamedTuple):
    """A choice for a day.

    Attributes:
        kind: the kind of the choice; a bed is for all nights of its stay.
        stay: the number of the stay, from 0.
        day: the number of the day, from 0.
        must: whether the choice is required.
    """

    kind: Kind
    stay: int
    day: int
    must: bool = True


@lru_cache(maxsize=1024)
def list_slots(shape: Shape) -> tuple[Slot, ...]:
    """List the slots of a trip: for each stay the bed, then its meals and sights in the order of the days."""
    found = []
    for number, stay in enumerate(shape):
        found.append(Slot("bed", number, stay.arrival))
        found += [Slot(meal, number, stay.arrival, must=False) for meal in _EATEN[3 - stay.before :]]
        for day in range(stay.arrival + 1, stay.leaving):
            found += [Slot("breakfast", number, day), *[Slot("sight", number, day)] * stay.sights]
            found += [Slot("lunch", number, day), Slot("dinner", number, day)]
        found += [Slot(meal, number, stay.leaving, must=False) for meal in _EATEN[: stay.after]]
    return tuple(found)


@lru_cache(maxsize=4096)
def find_beginning(shape: Shape, place: int) -> tuple[int, int]:
    """Return the stay of a slot, and the place of the first slot of that stay."""
    all_slots = list_slots(shape)
    stay = all_slots[place].stay
    return stay, next(number for number, slot in enumerate(all_slots) if slot.stay == stay)


@lru_cache(maxsize=4096)
def left_of(shape: Shape, place: int) -> tuple[int, int, int]:
    """Count the required meals, the optional meals and the sights from a slot to the end of its stay."""
    all_slots = list_slots(shape)
    remaining = [slot for slot in all_slots[place:] if slot.stay == all_slots[place].stay]
    meals = [slot.must for slot in remaining if slot.kind in MEALS]
    return sum(meals), len(meals) - sum(meals), sum(slot.kind == "sight" for slot in remaining)
