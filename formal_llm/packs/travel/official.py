"""The official evaluator of TravelPlanner, with all its rules and gaps, so that figures are comparable.

Its results are those of the published scripts (OSU-NLP-Group/TravelPlanner, ``evaluation/``) at commit da7c1d4 or
before ed379c4 (:data:`Commit`), including what they overlook:

- an unknown mode of transport ("Drive, from A to B") is free, and so is a flight without its number;
- rules on transport compare capital letters, and before ed379c4 the rule on "parties" looks for a misspelled word;
- text after the last ";" of attractions is not read, so a single attraction without ";" is ignored;
- on a day spent in one city they compare letters, not the city: a meal or an accommodation may be anywhere;
- null counts as an entry of a field, and it is not one of "-" and "";
- the destination of three-day trips, the date of a flight, the direction of a journey, and surplus days are not
  checked; a name counts if it is part of a name.

Where a script stops with an error (an index out of range), the check fails here, and the finding states the reason.
:mod:`~formal_llm.packs.travel.strict` has none of these gaps.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby
from typing import Literal, TypeAlias, TypeVar

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.plan_days import FIELDS, MEALS, Day, has_content
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.rows import SEATS, Accommodation, Attraction, Mode, Money, Restaurant
from formal_llm.packs.travel.verdict import HARD, TripFinding, TripVerdict, not_delivered, verdict_of

#: A commit of the published scripts. Before ed379c4 (2024-04-26) they looked for "parities", and never found parties.
Commit: TypeAlias = Literal["da7c1d4", "before-ed379c4"]
R = TypeVar("R", Accommodation, Restaurant, Attraction)
_FROM_TO = re.compile(r"from\s+(.+?)\s+to\s+([^,]+)(?=[,\s]|$)")
_FLIGHT = re.compile(r"Flight Number: (.*?)(?=,|Flight Number: |\Z)", re.DOTALL)
_PLACE = re.compile(r"(.*?),\s*([^,]+)(\(\w[\w\s]*\))?$")


def from_to(text: str) -> tuple[str, str] | None:
    """Return the cities of ``"from A to B"`` anywhere in a text."""
    found = _FROM_TO.search(text)
    return (found[1], found[2]) if found else None


def strip_parentheses(text: str) -> str:
    """Return a text up to its first closed parenthesis."""
    found = re.search(r"^(.*?)\([^)]*\)", text)
    return found[1] if found else text


def name_city(text: str) -> tuple[str, str]:
    """Return name and city of ``"Name, City"``; two dashes if there are none."""
    found = _PLACE.search(text)
    return (found[1].strip(), strip_parentheses(found[2].strip()).strip()) if found else ("-", "-")


def find_named(rows: Sequence[R], text: str) -> list[R]:
    """Return the rows of a city whose name contains the name in a text."""
    name = name_city(text)[0]
    return [row for row in rows if name in row.name]


def driven_mode(lower: str) -> Mode | None:
    """Return the mode that determines the cost of a way in lower case: self-driving has priority."""
    return "self-driving" if "self-driving" in lower else "taxi" if "taxi" in lower else None


def matched_mode(lower: str) -> str | None:
    """Return the mode that counts for conflicts of a way in lower case: taxi has priority."""
    return next((mode for mode in ("taxi", "self-driving", "flight") if mode in lower), None)


def in_sequence(cities: Sequence[str]) -> bool:
    """Return whether only the first city is repeated, at the end, and each city between occurs twice in a row."""
    runs = [(city, len(list(group))) for city, group in groupby(cities)]
    if len(cities) < 3:
        return False
    before: set[str] = set()
    place = 0
    for city, count in runs:
        if city in before and place not in (0, len(cities) - 1):
            return False
        last = place + count - 1
        if count == 1 and 0 < last < len(cities) - 1:
            return False
        before.add(city)
        place += count
    return True


_BREAKS = "the published script breaks off here"
_NO_DAY = "You don't need to fill in the information for this or later days."


def official(plan: Sequence[Day], query: TravelQuery, world: World, commit: Commit = "da7c1d4") -> TripVerdict:
    """Evaluate a plan with the official evaluator.

    Args:
        plan: the days; no days mean that nothing was delivered.
        query: the query.
        world: the database.
        commit: the commit of the published scripts.
    """
    return replace(_judge_plan(plan, query, world, commit), commit=commit)


def _judge_plan(plan: Sequence[Day], query: TravelQuery, world: World, commit: Commit) -> TripVerdict:
    if not plan:
        return not_delivered("official", query)
    evaluation = _OfficialEvaluation(list(plan)[: query.days], query, world, commit)
    findings = list(evaluation.check_commonsense())
    if any(one.check in ("Within Sandbox", "Complete Information") for one in findings):
        return verdict_of("official", query, findings, not_judged=HARD)
    cost = evaluation.compute_cost()
    if query.budget is not None and cost > query.budget:
        findings.append(TripFinding("Budget", f"the trip costs ${cost:,}, and the budget is ${query.budget:,}"))
    return verdict_of("official", query, [*findings, *evaluation.check_wishes()], cost=cost)


class _OfficialEvaluation:
    """The evaluation of one plan."""

    def __init__(self, days: list[Day], query: TravelQuery, world: World, commit: Commit) -> None:
        self._commit = commit
        self._days = list(enumerate(days, 1))
        self._query = query
        self._world = world

    # -- lookups -------------------------------------------------------------------------------------------------------

    def _find_beds(self, text: str) -> list[Accommodation]:
        return find_named(self._world.accommodations(name_city(text)[1]), text)

    def _find_restaurants(self, text: str) -> list[Restaurant]:
        return find_named(self._world.restaurants(name_city(text)[1]), text)

    def _list_meals(self) -> Iterator[tuple[int, str, str]]:
        for number, day in self._days:
            for field, text in day.meals:
                if has_content(text):
                    yield number, field, text

    def _list_nights(self) -> Iterator[tuple[int, str]]:
        return ((number, day.accommodation) for number, day in self._days if has_content(day.accommodation))

    def _list_journeys(self) -> Iterator[tuple[int, Day, str]]:
        return ((number, day, day.transportation) for number, day in self._days if has_content(day.transportation))

    def _is_known(self, city: str) -> bool:
        world = self._world
        return world.state_of(city) is not None if world.states else city in world.cities()

    # -- common sense --------------------------------------------------------------------------------------------------

    def check_commonsense(self) -> Iterator[TripFinding]:
        """Report everything that violates common sense."""
        checks = (
            self.check_sandbox,
            self.check_completeness,
            self.current_city,
            self.check_route,
            self.check_restaurants,
            self.check_attractions,
            self.check_conflicts,
            self.check_nights,
        )
        return chain.from_iterable(check() for check in checks)

    def check_sandbox(self) -> Iterator[TripFinding]:
        """Report journeys and places that are not in the database."""
        for number, day, text in self._list_journeys():
            problem = self._no_journey(day, text)
            if problem:
                yield TripFinding("Within Sandbox", problem, number, "transportation")
        for number, field, text in self._list_meals():
            if not self._find_restaurants(text):
                yield TripFinding("Within Sandbox", f"there is no restaurant {text!r}", number, field)
        for number, day in self._days:
            if "transportation" in day.lacking:
                yield TripFinding("Within Sandbox", f"{_BREAKS}: the field is missing", number, "transportation")
            for text in day.attraction.split(";")[:-1] if has_content(day.attraction) else ():
                if not find_named(self._world.attractions(name_city(text)[1]), text):
                    yield TripFinding("Within Sandbox", f"there is no attraction {text!r}", number, "attraction")
        for number, text in self._list_nights():
            if not self._find_beds(text):
                yield TripFinding("Within Sandbox", f"there is no accommodation {text!r}", number, "accommodation")

    def _no_journey(self, day: Day, text: str) -> str:
        """Explain why there is no such journey; empty if there is one, or if it is not checked."""
        lower = text.lower()
        cities = from_to(text) or from_to(day.current_city)
        if from_to(text) is None and "current_city" in (*day.lacking, *day.nulls):
            return f"{_BREAKS}: the day has no city"
        if "flight number" in lower:
            found = _FLIGHT.search(text)
            if found is None or cities is None:
                return f"{_BREAKS}: a flight is written 'Flight Number: F..., from A to B, ...'"
            number, (origin, destination) = found[1], map(strip_parentheses, cities)
            rows = self._world.flights_numbered(number)
            exists = any(row.origin == origin and row.destination == destination for row in rows)
            return "" if exists else f"there is no flight {number} from {origin} to {destination}"
        mode = driven_mode(lower)
        if mode is None:
            return ""
        origin, destination = map(strip_parentheses, cities or ("-", "-"))
        exists = self._world.distance(origin, destination, mode) is not None
        return "" if exists else f"nobody can go by {mode} from {origin} to {destination}"

    def check_completeness(self) -> Iterator[TripFinding]:
        """Report what is missing."""
        check, query, filled = "Complete Information", self._query, 0
        filled_in = sum(day.current_city != _NO_DAY for _, day in self._days)
        if filled_in != query.days:
            yield TripFinding(check, f"the trip has {filled_in} days, not {query.days}")
            return
        of_days = self._list_cities()
        visited = {city for _, cities in of_days for city in cities or ()} - {query.org}
        first = of_days[0][1] or ()
        if None in dict(of_days).values():
            yield TripFinding(check, f"{_BREAKS}: it reads no 'from A to B'")
        elif len(visited) != query.visiting_city_number or (len(first) == 2 and first[0] != query.org):
            yield TripFinding(check, f"{len(visited)} cities are visited, not {query.visiting_city_number}")
        for number, day in self._days:
            for field in day.lacking:
                yield TripFinding(check, "the field is missing", number, field)
            city = day.current_city
            needed = {
                "transportation": "from " in city or "to " in city,
                "attraction": "from " not in city and " to " not in city,
                "accommodation": number != query.days,
            } | dict.fromkeys(MEALS, "from " not in city)
            for field, is_needed in needed.items():
                if is_needed and field not in day.nulls and not has_content(getattr(day, field)):
                    yield TripFinding(check, f"there is no {field}", number, field)
            filled += 1 + sum(has_content(getattr(day, field)) for field in FIELDS)
        if filled < 3 * query.days:
            yield TripFinding(check, "more than half of the information is missing")

    def _list_cities(self) -> list[tuple[int, tuple[str, ...] | None]]:
        """Return the cities of each day: one, two on a day of travel, None if they cannot be read."""
        found: list[tuple[int, tuple[str, ...] | None]] = []
        for number, day in self._days:
            cities = from_to(day.current_city) if "from" in day.current_city else (day.current_city,)
            readable = cities is not None and "current_city" not in (*day.lacking, *day.nulls)
            found.append((number, tuple(map(strip_parentheses, cities or ())) if readable else None))
        return found

    def current_city(self) -> Iterator[TripFinding]:
        """Report what is in another city: compared by city names on a day of travel, else letter by letter."""
        check = "Within Current City"
        for (number, day), (_, cities) in zip(self._days, self._list_cities(), strict=True):
            if cities is None:
                yield TripFinding(check, f"{_BREAKS}: it reads no 'from A to B'", number, "current_city")
                continue
            parts = cities if "from" in day.current_city else tuple(cities[0])
            if has_content(day.transportation) and any(part not in day.transportation for part in parts):
                yield TripFinding(check, "the journey is not between the cities of the day", number, "transportation")
            texts = [(field, text) for field, text in day.meals if has_content(text)]
            if has_content(day.attraction):
                texts += [("attraction", text) for text in day.attraction.split(";")[:-1]]
            for field, text in texts:
                if not any(part in text for part in parts):
                    yield TripFinding(check, f"{text!r} is in another city", number, field)
            if has_content(day.accommodation) and (not parts or parts[-1] not in day.accommodation):
                yield TripFinding(check, f"{day.accommodation!r} is in another city", number, "accommodation")

    def check_route(self) -> Iterator[TripFinding]:
        """Report errors in the sequence of cities."""
        check, query = "Reasonable City Route", self._query
        cities_in_order: list[str] = []
        for number, cities in self._list_cities():
            if cities is None:
                yield TripFinding(check, f"{_BREAKS}: it reads no 'from A to B'", number, "current_city")
                return
            if number == 1 and len(cities) == 2 and cities[0] != query.org:
                yield TripFinding(check, f"the trip should begin in {query.org}", number, "current_city")
            cities_in_order += cities
        if cities_in_order[0] != cities_in_order[-1]:
            yield TripFinding(check, f"the trip begins in {cities_in_order[0]} and ends in {cities_in_order[-1]}")
        if not in_sequence(cities_in_order):
            yield TripFinding(check, "a city is left and visited again, or only passed through")
        in_state = query.days > 3 and self._world.states
        for place, city in enumerate(cities_in_order):
            if not self._is_known(city):
                yield TripFinding(check, f"there is no city {city!r}")
            elif in_state and 0 < place < len(cities_in_order) - 1 and self._world.state_of(city) != query.dest:
                yield TripFinding(check, f"{city} is not in {query.dest}")

    def check_restaurants(self) -> Iterator[TripFinding]:
        """Report repeated restaurants."""
        seen: set[str] = set()
        for number, field, text in self._list_meals():
            if text in seen:
                yield TripFinding("Diverse Restaurants", f"{text!r} comes twice", number, field)
            seen.add(text)

    def check_attractions(self) -> Iterator[TripFinding]:
        """Report repeated attractions."""
        seen: set[str] = set()
        for number, day in self._days:
            for text in day.attraction.split(";")[:-1] if has_content(day.attraction) else ():
                if text in seen:
                    yield TripFinding("Diverse Attractions", f"{text!r} comes twice", number, "attraction")
                seen.add(text)

    def check_conflicts(self) -> Iterator[TripFinding]:
        """Report modes of transport that exclude each other."""
        check = "Non-conf. Transportation"
        if not has_content(self._days[0][1].transportation):
            yield TripFinding(check, "nothing is said of how to travel", 1, "transportation")
            return
        modes = {matched_mode(text.lower()) for _, _, text in self._list_journeys()}
        if "self-driving" in modes and modes & {"flight", "taxi"}:
            yield TripFinding(check, "self-driving does not go with flights or taxis")

    def check_nights(self) -> Iterator[TripFinding]:
        """Report stays that are shorter than the accommodation allows."""
        for number, day in self._days:
            if "accommodation" in (*day.lacking, *day.nulls):
                yield TripFinding("Minimum Nights Stay", f"{_BREAKS}: there is no text", number, "accommodation")
        for text, group in groupby(self._days, key=lambda one: one[1].accommodation):
            stay = list(group)
            rows = self._find_beds(text) if has_content(text) else []
            if len(rows) == 1 and len(stay) < rows[0].minimum_nights:
                problem = f"{text!r} takes nobody for less than {rows[0].minimum_nights} nights, and it is {len(stay)}"
                yield TripFinding("Minimum Nights Stay", problem, stay[0][0], "accommodation")

    # -- wishes --------------------------------------------------------------------------------------------------------

    def compute_cost(self) -> Money:
        """Compute the cost of the trip."""
        people = self._query.people
        total: Money = 0
        for _, day, text in self._list_journeys():
            cities, lower = from_to(text) or from_to(day.current_city), text.lower()
            mode = driven_mode(lower)
            if cities is None:
                continue
            if "flight number" in lower:
                flights = [one for found in _FLIGHT.findall(text)[:1] for one in self._world.flights_numbered(found)]
                total += flights[0].price * people if flights else 0
            elif mode is not None:
                drive = self._world.distance(strip_parentheses(cities[0]), strip_parentheses(cities[1]), mode)
                total += drive.cost * math.ceil(people / SEATS[mode]) if drive is not None else 0
        for _, _, text in self._list_meals():
            tables = self._find_restaurants(text)
            total += tables[0].cost * people if tables else 0
        for _, text in self._list_nights():
            beds = self._find_beds(text)
            total += beds[0].cost_for(people) if beds else 0
        return total

    def check_wishes(self) -> Iterator[TripFinding]:
        """Report violated wishes, except the budget."""
        wishes = self._query.constraints
        for number, text in self._list_nights():
            bed = self._find_beds(text)[0]
            unread = "parties" if self._commit == "before-ed379c4" else None
            if wishes.house_rule not in (None, unread) and not bed.allows(wishes.house_rule or ""):
                yield TripFinding("Room Rule", f"{text!r} forbids {wishes.house_rule}", number, "accommodation")
            if wishes.room_type is not None and not bed.is_of(wishes.room_type):
                yield TripFinding("Room Type", f"{text!r} is no {wishes.room_type}", number, "accommodation")
        for number, _, text in self._list_journeys():
            if (wishes.transportation == "no flight" and "Flight" in text) or (
                wishes.transportation == "no self-driving" and "Self-driving" in text
            ):
                yield TripFinding("Transportation", f"the wish is {wishes.transportation}", number, "transportation")
        eaten = self._find_eaten()
        for cuisine in wishes.cuisines:
            if cuisine not in eaten:
                yield TripFinding("Cuisine", f"no meal is {cuisine}")

    def _find_eaten(self) -> set[str]:
        """Return the wanted cuisines that are eaten; a meal in the city of departure skips the rest of its day."""
        eaten: set[str] = set()
        for _, day in self._days:
            for field in MEALS:
                text = getattr(day, field)
                if not has_content(text):
                    continue
                if name_city(text)[1] == self._query.org:
                    break
                rows = self._find_restaurants(text)
                offered = ", ".join(rows[0].cuisines) if rows else ""
                eaten |= {cuisine for cuisine in self._query.constraints.cuisines if cuisine in offered}
        return eaten
