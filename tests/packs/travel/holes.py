"""The holes of the official evaluator of TravelPlanner: valid plans made wrong in ways that it does not see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.plan_days import Day, has_content
from formal_llm.packs.travel.query import TravelQuery


class Trip(NamedTuple):
    """A plan with its query and its world."""

    plan: tuple[Day, ...]
    query: TravelQuery
    world: World

    def day(self, number: int, **fields: str | int) -> Trip:
        """The trip with fields of a day, from 1, changed."""
        days = list(self.plan)
        days[number - 1] = replace(days[number - 1], **fields)  # type: ignore[arg-type]
        return self._replace(plan=tuple(days))

    def wishing(self, **wishes: str) -> Trip:
        """The trip with wishes of its query changed."""
        constraints = replace(self.query.constraints, **wishes)  # type: ignore[arg-type]
        return self._replace(query=replace(self.query, constraints=constraints))


@dataclass(frozen=True)
class Hole:
    """A way to make a valid plan wrong.

    Attributes:
        name: what is wrong.
        check: the check that should fail.
        tries: the wrong plans that it makes of a valid one, as many as one cares to try; none where it does not apply.
    """

    name: str
    check: str
    tries: Callable[[Trip], Iterator[Trip]]


# -- journeys ----------------------------------------------------------------------------------------------------------


def _way(day: Day) -> str:
    return day.transportation[day.transportation.index("from ") :].split(",")[0]


def _travel_days(trip: Trip) -> Iterator[tuple[int, Day]]:
    return ((number, day) for number, day in enumerate(trip.plan, 1) if has_content(day.transportation))


def _by(trip: Trip, mode: str) -> bool:
    return any(day.transportation.startswith(mode) for day in trip.plan)


def _every_journey(trip: Trip, how: str) -> Trip:
    for number, day in _travel_days(trip):
        trip = trip.day(number, transportation=f"{how}, {_way(day)}")
    return trip


def _drive(trip: Trip) -> Iterator[Trip]:
    yield _every_journey(trip, "Drive")


def _flight_without_number(trip: Trip) -> Iterator[Trip]:
    yield _every_journey(trip.wishing(transportation="no flight"), "by flight")


def _lower_case(trip: Trip) -> Iterator[Trip]:
    if _by(trip, "Self-driving"):
        yield _every_journey(trip.wishing(transportation="no self-driving"), "self-driving")


def _disguised(trip: Trip) -> Iterator[Trip]:
    if _by(trip, "Flight") and trip.query.constraints.transportation is None:
        for number, day in _travel_days(trip):
            if day.transportation.startswith("Taxi"):
                yield trip.day(number, transportation=f"Self-driving as if by taxi, {_way(day)}")


def _backwards(trip: Trip) -> Iterator[Trip]:
    for number, day in _travel_days(trip):
        origin, destination = _way(day).removeprefix("from ").split(" to ")
        if not day.transportation.startswith("Flight"):
            mode = day.transportation.split(",")[0]
            yield trip.day(number, transportation=f"{mode}, from {destination} to {origin}")


def _another_date(trip: Trip) -> Iterator[Trip]:
    if _by(trip, "Flight"):
        dates = tuple(day + timedelta(1) for day in trip.query.dates)
        yield trip._replace(query=replace(trip.query, dates=dates))


def _another_time(trip: Trip) -> Iterator[Trip]:
    for number, day in _travel_days(trip):
        if "Departure Time" in day.transportation:
            yield trip.day(number, transportation=f"{day.transportation.split(', Dep')[0]}, Departure Time: 03:33")


def _excursion(trip: Trip) -> Iterator[Trip]:
    for number, day in _full_days(trip):
        elsewhere = next(city for city in trip.world.cities() if city not in str(trip.plan))
        yield trip.day(number, transportation=f"Drive, from {day.current_city} to {elsewhere}")


def _going_nowhere(trip: Trip) -> Iterator[Trip]:
    for number, day in _full_days(trip):
        way = f"from {day.current_city} to {day.current_city}"
        yield trip.day(
            number, current_city=way, transportation=f"Drive, {way}", breakfast="-", lunch="-", dinner="-",
            attraction="-",
        )  # fmt: skip


# -- places ------------------------------------------------------------------------------------------------------------


def _full_days(trip: Trip) -> Iterator[tuple[int, Day]]:
    return ((number, day) for number, day in enumerate(trip.plan, 1) if not day.current_city.startswith("from"))


def _bare(city: str) -> str:
    return city.split("(")[0]


def _city(place: str) -> str:
    return _bare(place.rpartition(", ")[2])


def _other_cities(trip: Trip) -> Iterator[str]:
    return (city for city in trip.world.cities() if city not in str(trip.plan))


def _unread_attraction(trip: Trip) -> Iterator[Trip]:
    for number, day in _full_days(trip):
        yield trip.day(number, attraction=f"The Museum of What Is Not, {_bare(day.current_city)}")


def _lunch_elsewhere(trip: Trip) -> Iterator[Trip]:
    for number, _ in _full_days(trip):
        for city in _other_cities(trip):
            for place in sorted(trip.world.restaurants(city), key=lambda one: one.cost)[:1]:
                yield trip.day(number, lunch=f"{place.name}, {city}")


def _bed_elsewhere(trip: Trip) -> Iterator[Trip]:
    for number, _ in _full_days(trip):
        for city in _other_cities(trip):
            beds = [bed for bed in trip.world.accommodations(city) if bed.minimum_nights == 1]
            for bed in sorted(beds, key=lambda one: one.price)[:1]:
                yield trip.day(number, accommodation=f"{bed.name}, {city}")


def _part_of_a_name(trip: Trip) -> Iterator[Trip]:
    for number, day in enumerate(trip.plan, 1):
        for field, text in day.meals:
            if has_content(text):
                name, _, city = text.rpartition(", ")
                for length in (1, 2, 3):
                    yield trip.day(number, **{field: f"{name[:length]}, {city}"})


def _no_name(trip: Trip) -> Iterator[Trip]:
    for number, day in enumerate(trip.plan, 1):
        for field, text in day.meals:
            if has_content(text):
                yield trip.day(number, **{field: f", {text.rpartition(', ')[2]}"})


def _same_meal(trip: Trip) -> Iterator[Trip]:
    for number, day in _full_days(trip):
        yield trip.day(number, dinner=day.lunch.replace(", ", ",  "))


def _same_sight(trip: Trip) -> Iterator[Trip]:
    for number, day in _full_days(trip):
        first = day.attraction.split(";")[0]
        yield trip.day(number, attraction=f"{first}; {first};")


def _bed_named_in_part(trip: Trip) -> Iterator[Trip]:
    """A bed that wants a longer stay, named so that two beds are meant: then nobody looks at the nights."""
    for city in {_bare(day.current_city) for _, day in _full_days(trip)}:
        nights = [number for number, day in enumerate(trip.plan, 1) if _city(day.accommodation) == city]
        beds = trip.world.accommodations(city)
        for bed in beds:
            part = bed.name[:2].strip(" ,")
            if bed.minimum_nights > len(nights) and sum(part in one.name for one in beds) > 1:
                changed = trip
                for number in nights:
                    changed = changed.day(number, accommodation=f"{part}, {city}")
                yield changed


# -- the trip ----------------------------------------------------------------------------------------------------------


def _another_destination(trip: Trip) -> Iterator[Trip]:
    if trip.query.days == 3:
        other = next(city for city in _other_cities(trip) if city != trip.query.dest)
        yield trip._replace(query=replace(trip.query, dest=other))


def _never_at_home(trip: Trip) -> Iterator[Trip]:
    """Three full days in the destination, and no journey to it or back."""
    if trip.query.days != 3:
        return
    middle = trip.plan[1]
    city = middle.current_city
    spare = [f"{one.name}, {city}" for one in sorted(trip.world.restaurants(city), key=lambda one: one.cost)]
    spare = [name for name in spare if name not in str(middle)]
    sights = [f"{one.name}, {city};" for one in trip.world.attractions(city)]
    if len(spare) < 6 or len(sights) < 2:
        return
    for number, meals, sight in ((1, spare[:3], sights[0]), (3, spare[3:6], sights[1])):
        trip = trip.day(
            number, current_city=city, transportation=f"We are there: {city}" if number == 1 else "-",
            breakfast=meals[0], lunch=meals[1], dinner=meals[2], attraction=sight,
        )  # fmt: skip
    yield trip.day(2, attraction="-" if middle.attraction == "-" else _without(middle.attraction, sights[:2], sights))


def _without(said_: str, taken: list[str], sights: list[str]) -> str:
    left = [one for one in said_.split(";") if one and f"{one};" not in taken]
    return f"{left[0]};" if left else sights[2]


def _more_days(trip: Trip) -> Iterator[Trip]:
    yield trip._replace(plan=(*trip.plan, Day(len(trip.plan) + 1, "Atlantis", dinner="Nowhere, Atlantis")))


def _misnumbered(trip: Trip) -> Iterator[Trip]:
    yield trip.day(2, days=7)


def _wrong_state(trip: Trip) -> Iterator[Trip]:
    for number, day in _full_days(trip):
        yield trip.day(number, current_city=f"{_bare(day.current_city)}(Nowhere)")


HOLES = (
    Hole('"Drive, from A to B" is free', "Within Sandbox", _drive),
    Hole("a flight without number is free and no flight", "Within Sandbox", _flight_without_number),
    Hole("self-driving in lower case against the wish", "Transportation", _lower_case),
    Hole("self-driving beside a flight, with the word taxi in it", "Within Sandbox", _disguised),
    Hole("a journey the other way round", "Within Current City", _backwards),
    Hole("a flight of another date", "Within Sandbox", _another_date),
    Hole("a flight at another time", "Within Sandbox", _another_time),
    Hole("an excursion to another city", "Within Sandbox", _excursion),
    Hole('a day "from A to A" needs no meals', "Reasonable City Route", _going_nowhere),
    Hole('an invented attraction without a last ";"', "Within Sandbox", _unread_attraction),
    Hole("lunch in another city", "Within Current City", _lunch_elsewhere),
    Hole("a bed in another city", "Within Current City", _bed_elsewhere),
    Hole("a part of a name", "Within Sandbox", _part_of_a_name),
    Hole("no name at all", "Within Sandbox", _no_name),
    Hole("a restaurant twice, with another blank", "Diverse Restaurants", _same_meal),
    Hole("an attraction twice, with another blank", "Diverse Attractions", _same_sight),
    Hole("minimum nights of a name that means two beds", "Within Sandbox", _bed_named_in_part),
    Hole("another destination of three days", "Reasonable City Route", _another_destination),
    Hole("never at home", "Reasonable City Route", _never_at_home),
    Hole("days beyond the last", "Complete Information", _more_days),
    Hole("days with wrong numbers", "Complete Information", _misnumbered),
    Hole("a city in a wrong state", "Reasonable City Route", _wrong_state),
)
