"""The texts of the questions about a trip, as short as possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from formal_llm.automata.models.symbols import Symbol
from formal_llm.packs.travel.candidates import SELF_DRIVING, TAXI, Bed, Candidates, Eatery, TravelOption, format_dollars
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.routes import Routes, nights_of
from formal_llm.packs.travel.rows import Flight
from formal_llm.packs.travel.slots import MORE_SIGHTS, Shape, Slot, list_slots
from formal_llm.packs.travel.trip_text import format_money

#: The name for no meal and no sight.
NOTHING = "-"
#: The maximum number of signs of the traveller's words in a question.
_WORDS = 1000


class TripWords:
    """The texts of questions and options for the trips of a query.

    Args:
        candidates: the candidates of the query.
    """

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._query = candidates.query

    # -- questions ----------------------------------------------------------------------------------------------

    def ask_city(self, cities: Sequence[str], count: int) -> str:
        """Ask for the next city."""
        if not cities:
            return "Which city to visit" + (" first?" if count > 1 else "?")
        return f"Which city to visit after {cities[-1]}?"

    def ask_nights(self, cities: Sequence[str]) -> str:
        """Ask for the distribution of the nights."""
        return f"How many nights in {_join_names(cities)}?"

    def ask_way(self, origin: str, destination: str, day: int, left: int) -> str:
        """Ask for the way of a leg."""
        return f"{self._format_day(day)}: how to get from {origin} to {destination}?{self._format_rest(left)}"

    def ask_slot(self, slot: Slot, city: str, nights: int, left: int, missing: int) -> str:
        """Ask for the choice of a slot."""
        if slot.kind == "bed":
            return f"Where to sleep in {city}, {_format_count(nights, 'night')}?{self._format_rest(left)}"
        if slot.kind == "sight":
            return f"{self._format_day(slot.day)}: what to see in {city}?"
        missing_names = [cuisine for bit, cuisine in enumerate(self._candidates.cuisines) if missing >> bit & 1]
        still = f" Still wanted: {_join_names(missing_names)} food." if missing_names else ""
        return f"{self._format_day(slot.day)}: where to have {slot.kind} in {city}?{self._format_rest(left)}{still}"

    def _format_day(self, day: int) -> str:
        return f"Day {day + 1}"

    def _format_rest(self, left: int) -> str:
        return "" if self._candidates.budget is None else f" {format_dollars(left)} left."

    # -- options ------------------------------------------------------------------------------------------------

    def describe_nights(self, cities: Sequence[str], shape: Shape) -> str:
        """Describe a distribution of the nights."""
        stays = ", ".join(
            f"{_format_count(stay.nights, 'night')} in {city}" for city, stay in zip(cities, shape, strict=True)
        )
        eaten = [f"{stay.after} of 3 meals in {city}" for city, stay in zip(cities, shape[:-1], strict=False)]
        return stays if not eaten or shape[0].before == 1 else f"{stays}; on the day of leaving {_join_names(eaten)}"

    def describe_way(self, way: TravelOption, left: int | None = None) -> str:
        """Describe a way, and what it leaves of the budget."""
        row = way.row
        rest = self._format_left(left, way.cost)
        if isinstance(row, Flight):
            return f"flight {row.number}, {row.departure} to {row.arrival}, {format_dollars(way.cost)}{rest}"
        return f"{way.name.lower()}, {row.duration}, {format_dollars(way.cost)}{rest}"

    def describe_bed(self, bed: Bed, nights: int = 1, left: int | None = None) -> str:
        """Describe a bed, with the cost of a night for all travellers, and what it leaves of the budget."""
        row, rest = bed.row, self._format_left(left, bed.cost * nights)
        kind = f"{row.room_type.lower()} for {row.maximum_occupancy}"
        return f"{row.name.strip()}: {format_dollars(bed.cost)} a night{_format_stars(row.rating)}, {kind}{rest}"

    def describe_eatery(self, eatery: Eatery, left: int | None = None) -> str:
        """Describe a restaurant: a meal for all travellers, its cuisines, what it leaves of the budget."""
        row, rest = eatery.row, self._format_left(left, eatery.cost)
        food = "".join(f", {cuisine}" for cuisine in dict.fromkeys(row.cuisines))
        return f"{row.name.strip()}: {format_dollars(eatery.cost)}{_format_stars(row.rating)}{food}{rest}"

    def describe_sight(self, name: str, away: float | None = None, last: str = "") -> str:
        """Describe a sight, with its distance in kilometres from the last one."""
        called = name.rsplit(", ", 1)[0]
        return called if away is None else f"{called}, {away:.1f} km from {last.rsplit(', ', 1)[0]}"

    def _format_left(self, left: int | None, cost: int) -> str:
        known = left is not None and self._candidates.budget is not None
        return f"; {format_dollars(left - cost)} left" if known and left is not None else ""

    def describe_nothing(self, meal: str) -> str:
        """Describe the choice of no meal."""
        return f"no {meal}"

    # -- the whole trip -----------------------------------------------------------------------------------------

    def make_symbols(self, routes: Routes) -> Iterator[tuple[str, Symbol]]:
        """Iterate over all names that trips may consist of, with their descriptions."""
        yield NOTHING, Symbol("nothing")
        yield from ((nights_of(shape), Symbol()) for shape in routes.shapes)
        for city in map(self._candidates.find_city, routes.cities):
            yield city.name, Symbol(description="a city")
            for bed in city.beds:
                description = f"bed{self.describe_bed(bed).removeprefix(bed.row.name.strip())}"
                yield bed.name, Symbol(description=description, numbers=_list_numbers(bed.cost, bed.row.rating))
            for one in city.eateries.values():
                description = f"restaurant{self.describe_eatery(one).removeprefix(one.row.name.strip())}"
                yield one.name, Symbol(description=description, numbers=_list_numbers(one.cost, one.row.rating))
            for name in city.sights:
                yield name, Symbol(description="sight")
        yield from ((name, Symbol(description="a way")) for name in (SELF_DRIVING, TAXI))
        for way in routes.known_ways():
            yield way.name, Symbol(description=self.describe_way(way), numbers=_list_numbers(way.cost, None))

    def describe_rules(self, routes: Routes) -> str:
        """Describe the words of the automaton."""
        query, count = self._query, routes.count
        lines = [
            f"A trip is {2 * count + 2 + len(list_slots(routes.shapes[0]))} names, a line each, in this order:",
            f"- {_format_count(count, 'city')} to visit, in their order; then how many nights in each, as in "
            f"{nights_of(routes.shapes[0])}",
            f"- {count + 1} ways, one for each leg: from {query.org} to the first city, and in the end back; "
            f"who drives once drives all the way",
            "- for each city: a bed for all its nights; on the day of arrival a sight and dinner; for each whole day "
            f"breakfast, a sight, lunch, dinner and {MORE_SIGHTS} more sights; on the day of leaving breakfast and a "
            "sight; - for no more sights, and for what a day of travel leaves no time for",
            "No restaurant and no sight comes twice.",
        ]
        return "\n".join(lines)


def summarize_query(query: TravelQuery) -> str:
    """Describe a query in one line, after the words of the traveller."""
    wishes = query.constraints
    parts = [
        f"{query.days} days from {query.dates[0].day} {query.dates[0]:%B %Y}" if query.dates else f"{query.days} days",
        _format_count(query.people, "traveller"),
        *([] if query.budget is None else [f"{format_money(query.budget)} for all"]),
        *([wishes.room_type] if wishes.room_type else []),
        *([f"{wishes.house_rule} allowed"] if wishes.house_rule else []),
        *([wishes.transportation] if wishes.transportation else []),
        *([f"{_join_names(wishes.cuisines)} food"] if wishes.cuisines else []),
    ]
    words = " ".join(query.text.split())[:_WORDS]
    return (f"“{words}”\n" if words else "") + f"A trip from {query.org} to {query.dest}: {', '.join(parts)}."


def _list_numbers(cost: int, rating: float | None) -> dict[str, Decimal | float]:
    """Return the numbers by which options can be grouped and ordered."""
    return {"cost": Decimal(cost) / 100, **({} if rating is None else {"rating": rating})}


def _format_stars(rating: float | None) -> str:
    return f", {rating:g} stars" if rating else ""


def _join_names(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


_PLURALS = {"city": "cities"}


def _format_count(number: int, what: str) -> str:
    return f"{number} {what if number == 1 else _PLURALS.get(what, f'{what}s')}"
