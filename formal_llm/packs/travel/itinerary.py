"""Convert a word of a trip to days in the published format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from formal_llm.packs.travel.candidates import TravelOption
from formal_llm.packs.travel.plan_days import NOTHING, Day
from formal_llm.packs.travel.rows import Flight
from formal_llm.packs.travel.slots import MEALS, list_slots
from formal_llm.packs.travel.trip import Trip


def days_of(trip: Trip, word: Iterable[str]) -> tuple[Day, ...]:
    """Convert a word of a trip to days.

    Args:
        trip: the automaton of the trips.
        word: the chosen names.

    Raises:
        ValueError: it is not a word of the automaton.
    """
    chosen = trip.follow_word(word)
    if chosen is None or chosen.shape is None or not trip.accepting(chosen):
        raise ValueError("this is no word of the trip: its names are not those that can be chosen, or some are missing")
    cities, shape = chosen.cities, chosen.shape
    fields: list[dict[str, str]] = [{} for _ in trip.query.dates]
    for city, stay in zip(cities, shape, strict=True):
        for day in range(stay.arrival, stay.leaving):
            fields[day]["current_city"] = city
    for number, name in enumerate(chosen.ways):
        origin, destination, day = trip.find_leg(cities, shape, number)
        fields[day]["current_city"] = f"from {origin} to {destination}"
        fields[day]["transportation"] = way_text(trip.find_way(origin, destination, day, name))
    for slot, name in zip(list_slots(shape), chosen.picks, strict=True):
        if slot.kind == "bed":
            for day in range(shape[slot.stay].arrival, shape[slot.stay].leaving):
                fields[day]["accommodation"] = name
        elif slot.kind in MEALS:
            fields[slot.day][slot.kind] = name
        else:
            fields[slot.day]["attraction"] = f"{name};"
    return tuple(replace(Day(number, NOTHING), **one) for number, one in enumerate(fields, 1))  # type: ignore[arg-type]


def way_text(way: TravelOption) -> str:
    """Write a way in the published format."""
    row = way.row
    places = f"{way.name}, from {row.origin} to {row.destination}"
    if isinstance(row, Flight):
        return f"{places}, Departure Time: {row.departure}, Arrival Time: {row.arrival}"
    return f"{places}, duration: {row.duration}, distance: {row.distance}, cost: {row.cost}"
