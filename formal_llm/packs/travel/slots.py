"""What is chosen day by day, once it is settled where one is on which day."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal, NamedTuple

from formal_llm.packs.travel.routes import Shape

MEALS = ("breakfast", "lunch", "dinner")
Kind = Literal["bed", "sight", "breakfast", "lunch", "dinner"]
_DAY: tuple[Kind, ...] = ("breakfast", "sight", "lunch", "dinner")
_EATEN: tuple[Kind, ...] = ("breakfast", "lunch", "dinner")


class Slot(NamedTuple):
    """Something that is chosen for a day.

    Attributes:
        kind: what it is; a bed is for all nights of its stay.
        stay: of which stay, from 0.
        day: for which day, from 0.
        must: whether there has to be something.
    """

    kind: Kind
    stay: int
    day: int
    must: bool = True


@lru_cache(maxsize=1024)
def slots(shape: Shape) -> tuple[Slot, ...]:
    """The slots of a trip: for each stay the bed, then its meals and sights in the order of the days."""
    found = []
    for number, stay in enumerate(shape):
        found.append(Slot("bed", number, stay.arrival))
        found += [Slot(meal, number, stay.arrival, must=False) for meal in _EATEN[3 - stay.before :]]
        for day in range(stay.arrival + 1, stay.leaving):
            found += [Slot(kind, number, day) for kind in _DAY]
        found += [Slot(meal, number, stay.leaving, must=False) for meal in _EATEN[: stay.after]]
    return tuple(found)


@lru_cache(maxsize=4096)
def beginning(shape: Shape, place: int) -> tuple[int, int]:
    """The stay of a slot, and the place of the first slot of that stay."""
    todo = slots(shape)
    stay = todo[place].stay
    return stay, next(number for number, slot in enumerate(todo) if slot.stay == stay)


@lru_cache(maxsize=4096)
def left_of(shape: Shape, place: int) -> tuple[int, int, int]:
    """How many meals have to be chosen from a slot on in its stay, how many more may be; and how many sights."""
    todo = slots(shape)
    left = [slot for slot in todo[place:] if slot.stay == todo[place].stay]
    meals = [slot.must for slot in left if slot.kind in MEALS]
    return sum(meals), len(meals) - sum(meals), sum(slot.kind == "sight" for slot in left)
