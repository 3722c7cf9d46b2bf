"""A strict evaluator: a plan that passes can be carried out as written, and satisfies the wishes of its query.

Its checks have the names of the official ones (:mod:`~formal_llm.packs.travel.official`) and the same requirements,
without the gaps: every journey is a flight of that day, a drive or a taxi of the database, between the cities of the
day, in that direction; every place has its full name and is in a city of the day; every attraction is read; the trip
leaves home and has the destination and the days of the query. A plan must be valid for all places of the same name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.plan_days import FIELDS, Day, has_content
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.resolved import (
    Journey,
    ResolvedDay,
    Stop,
    Where,
    bill,
    resolve_plan,
    total_of,
)
from formal_llm.packs.travel.rows import Accommodation, Restaurant
from formal_llm.packs.travel.trip_text import format_money
from formal_llm.packs.travel.verdict import TripFinding, TripVerdict, not_delivered, verdict_of


def strict(plan: Sequence[Day], query: TravelQuery, world: World) -> TripVerdict:
    """Evaluate a plan with the strict evaluator.

    Args:
        plan: the days; no days mean that nothing was delivered.
        query: the query.
        world: the database.
    """
    if not plan:
        return not_delivered("strict", query)
    whole = max((number for number, day in enumerate(plan, 1) if day.lacking != FIELDS), default=0)
    days = resolve_plan(plan[:whole], query, world)  # empty days after the last are none
    checks = _StrictEvaluation(days, query, world)
    findings = [
        *checks.check_sandbox(),
        *checks.check_completeness(),
        *checks.current_city(),
        *checks.check_route(),
        *checks.check_diversity(),
        *checks.check_conflicts(),
        *checks.check_nights(),
        *checks.check_beds(),
        *checks.check_transport(),
        *checks.check_cuisines(),
    ]
    lines = bill(days, query)
    cost = total_of(lines)
    if query.budget is not None and cost > query.budget:
        findings.append(
            TripFinding(
                "Budget", f"the trip costs {format_money(cost)}, and the budget is {format_money(query.budget)}"
            )
        )
    findings += [
        TripFinding("Budget", f"nobody knows what {line.text!r} costs", line.day, line.field)
        for line in lines
        if line.total is None and query.budget is not None
    ]
    return verdict_of("strict", query, findings, cost=cost)


class _StrictEvaluation:
    """The evaluation of one plan."""

    def __init__(self, days: Sequence[ResolvedDay], query: TravelQuery, world: World) -> None:
        self._days = days
        self._query = query
        self._world = world

    # -- common sense --------------------------------------------------------------------------------------------------

    def check_sandbox(self) -> Iterator[TripFinding]:
        """Report journeys and places that are not in the database."""
        check = "Within Sandbox"
        for day in self._days:
            if day.journey is not None:
                for problem in self._no_journey(day.journey, day):
                    yield TripFinding(check, problem, day.number, "transportation")
            for stop in (*day.meals, *day.sights, *([day.bed] if day.bed else [])):
                if not stop.rows:
                    what = stop.named.field if stop.named.field in ("attraction", "accommodation") else "restaurant"
                    yield TripFinding(check, f"there is no {what} {stop.named.text!r}", day.number, stop.named.field)

    @staticmethod
    def _no_journey(journey: Journey, day: ResolvedDay) -> Iterator[str]:
        """Explain why there is no such journey; yield nothing if there is one."""
        if journey.mode is None:
            yield (
                f"{journey.text!r} is no way to travel: it is 'Flight Number: F..., from A to B', "
                "'Self-driving, from A to B' or 'Taxi, from A to B'"
            )
        elif journey.origin is None or journey.destination is None:
            yield f"{journey.text!r} does not say from where to where"
        elif journey.mode != "flight":
            if journey.drive is None:
                yield f"nobody can go by {journey.mode} from {journey.origin.city} to {journey.destination.city}"
        elif not journey.flights:
            yield f"there is no flight {journey.number} from {journey.origin.city} to {journey.destination.city}"
        else:
            flights = [flight for flight in journey.flights if flight.day == day.on]
            if not flights:
                yield f"flight {journey.number} leaves on {journey.flights[0].day}, not on {day.on}"
            for flight in flights:
                for what, time in journey.times:
                    real = flight.departure if what == "departure" else flight.arrival
                    if real.zfill(5) != time:
                        yield f"the {what} of flight {journey.number} is at {real}, not {time}"

    def check_completeness(self) -> Iterator[TripFinding]:
        """Report what is missing, and surplus days."""
        check, query = "Complete Information", self._query
        if len(self._days) != query.days:
            yield TripFinding(check, f"the trip has {len(self._days)} days, not {query.days}")
        for day in self._days:
            if day.day.days != day.number:
                yield TripFinding(
                    check, f"this is day {day.number}, and it is called {day.day.days}", day.number, "days"
                )
            for field in day.day.lacking:
                yield TripFinding(check, "the field is missing", day.number, field)
            if day.number < query.days and day.bed is None:
                yield TripFinding(check, "there is no bed for the night", day.number, "accommodation")
            if day.travels:
                if day.journey is None:
                    yield TripFinding(check, "nothing is said of how to travel", day.number, "transportation")
                continue
            if not day.sights:
                yield TripFinding(check, "there is no attraction", day.number, "attraction")
            for field, text in day.day.meals:
                if not has_content(text):
                    yield TripFinding(check, f"there is no {field}", day.number, field)

    def current_city(self) -> Iterator[TripFinding]:
        """Report places and journeys that are not in the city of their day."""
        check = "Within Current City"
        for day in self._days:
            if day.cities is None:
                continue
            cities = [where.city for where in day.cities]
            for stop in (*day.meals, *day.sights):
                if stop.named.where.city not in cities:
                    city = stop.named.where.city or "no city"
                    problem = f"{stop.named.text!r} is in {city}, not in {_join_with_or(cities)}"
                    yield TripFinding(check, problem, day.number, stop.named.field)
            if day.bed is not None and day.bed.named.where.city != cities[-1]:
                problem = f"{day.bed.named.text!r} is in {day.bed.named.where.city or 'no city'}, not in {cities[-1]}"
                yield TripFinding(check, problem, day.number, "accommodation")
            yield from self._check_journey(day, cities)

    @staticmethod
    def _check_journey(day: ResolvedDay, here: list[str]) -> Iterator[TripFinding]:
        """Report a journey that is not between the cities of its day."""
        journey = day.journey
        if journey is None or journey.origin is None or journey.destination is None:
            return
        way = [journey.origin.city, journey.destination.city]
        if not day.travels:
            problem = f"the day is spent in {here[0]}, and yet the journey is from {way[0]} to {way[1]}"
            yield TripFinding("Within Current City", problem, day.number, "transportation")
        elif way != here:
            problem = f"the day goes from {here[0]} to {here[1]}, and the journey from {way[0]} to {way[1]}"
            yield TripFinding("Within Current City", problem, day.number, "transportation")

    def check_route(self) -> Iterator[TripFinding]:
        """Report errors in the sequence of cities."""
        check, query = "Reasonable City Route", self._query
        here = query.org
        visited: list[str] = []
        for day in self._days:
            if day.cities is None:
                problem = f"{day.day.current_city!r} is neither a city nor 'from A to B'"
                yield TripFinding(check, problem, day.number, "current_city")
                continue
            for where in day.cities:
                yield from self._check_city(where, day.number)
            first, last = day.cities[0].city, day.cities[-1].city
            if first != here:
                yield TripFinding(check, f"the day begins in {first}, and one is in {here}", day.number, "current_city")
            if day.travels and first == last:
                yield TripFinding(check, f"the journey ends where it begins, in {first}", day.number, "current_city")
            if not day.travels and first == query.org:
                yield TripFinding(check, f"the day is spent at home, in {first}", day.number, "current_city")
            here = last
            if last != query.org and (not visited or visited[-1] != last):
                visited.append(last)
            if last == query.org and 1 <= day.number < len(self._days):
                yield TripFinding(check, f"the trip is back in {query.org} before its end", day.number, "current_city")
        if here != query.org:
            yield TripFinding(
                check, f"the trip ends in {here}, not in {query.org}", self._days[-1].number, "current_city"
            )
        yield from self._check_visits(visited)

    def _check_city(self, where: Where, day: int) -> Iterator[TripFinding]:
        world = self._world
        state = world.state_of(where.city)
        if where.city not in world.cities():
            yield TripFinding("Reasonable City Route", f"there is no city {where.city!r}", day, "current_city")
        elif where.state is not None and state is not None and where.state != state:
            problem = f"{where.city} is in {state}, not in {where.state}"
            yield TripFinding("Reasonable City Route", problem, day, "current_city")

    def _check_visits(self, visited: list[str]) -> Iterator[TripFinding]:
        check, query = "Reasonable City Route", self._query
        for city, times in Counter(visited).items():
            if times > 1:
                yield TripFinding(check, f"{city} is left and visited again")
            if not self._is_wanted(city):
                yield TripFinding(check, f"{city} is not {'in ' if query.visiting_city_number > 1 else ''}{query.dest}")
        different = len(set(visited))
        if different != query.visiting_city_number:
            yield TripFinding(check, f"{_count_cities(different)} visited, not {query.visiting_city_number}")

    def _is_wanted(self, city: str) -> bool:
        """Return whether the query allows a city; any city in a world without states."""
        query, world = self._query, self._world
        if query.visiting_city_number == 1 and (city == query.dest or query.dest in world.cities()):
            return city == query.dest
        return not world.states or world.state_of(city) == query.dest

    def check_diversity(self) -> Iterator[TripFinding]:
        """Report repeated restaurants and attractions, however they are spelled."""
        seen: set[tuple[str, str, str]] = set()
        for day in self._days:
            for stop in (*day.meals, *day.sights):
                kind = "Attractions" if stop.named.field == "attraction" else "Restaurants"
                key = (kind, stop.named.name.casefold(), stop.named.where.city)
                if key in seen:
                    problem = f"{stop.named.text!r} comes twice"
                    yield TripFinding(f"Diverse {kind}", problem, day.number, stop.named.field)
                seen.add(key)

    def check_conflicts(self) -> Iterator[TripFinding]:
        """Report modes of transport that exclude each other."""
        modes = {day.journey.mode: day.number for day in self._days if day.journey is not None}
        others = [mode for mode in modes if mode in ("flight", "taxi")]
        if "self-driving" in modes and others:
            problem = f"self-driving does not go with {' and '.join(map(str, others))}: where would the car be?"
            yield TripFinding("Non-conf. Transportation", problem, modes["self-driving"], "transportation")
        if self._days[0].journey is None:
            yield TripFinding(
                "Non-conf. Transportation", "nothing is said of how to leave home", 1, "transportation"
            )  # fmt: skip

    def check_nights(self) -> Iterator[TripFinding]:
        """Report stays that are shorter than the accommodation allows."""
        for _, group in groupby(self._days, key=lambda day: _bed_key(day.bed)):
            stay = list(group)
            for row in _list_beds(stay[0].bed):
                if len(stay) < row.minimum_nights:
                    problem = f"{row.name!r} takes nobody for less than {row.minimum_nights} nights: {len(stay)} here"
                    yield TripFinding("Minimum Nights Stay", problem, stay[0].number, "accommodation")

    # -- wishes --------------------------------------------------------------------------------------------------------

    def check_beds(self) -> Iterator[TripFinding]:
        """Report accommodations that do not satisfy the wishes."""
        rule, kind = self._query.constraints.house_rule, self._query.constraints.room_type
        for day in self._days:
            for row in _list_beds(day.bed):
                if rule is not None and not row.allows(rule):
                    yield TripFinding("Room Rule", f"{row.name!r} forbids {rule}", day.number, "accommodation")
                if kind is not None and not row.is_of(kind):
                    problem = f"{row.name!r} is no {kind} but {row.room_type!r}"
                    yield TripFinding("Room Type", problem, day.number, "accommodation")

    def check_transport(self) -> Iterator[TripFinding]:
        """Report journeys with an excluded mode of transport."""
        unwanted = (self._query.constraints.transportation or "").removeprefix("no ")
        for day in self._days:
            if day.journey is not None and unwanted and day.journey.mode == unwanted:
                problem = f"the wish is {self._query.constraints.transportation}, and this is {day.journey.text!r}"
                yield TripFinding("Transportation", problem, day.number, "transportation")

    def check_cuisines(self) -> Iterator[TripFinding]:
        """Report wanted cuisines that no meal outside the city of departure has."""
        eaten: set[str] = set()
        for day in self._days:
            for stop in day.meals:
                rows = [row for row in stop.rows if isinstance(row, Restaurant)]
                if rows and stop.named.where.city != self._query.org:
                    eaten |= set.intersection(*(set(row.cuisines) for row in rows))
        for cuisine in self._query.constraints.cuisines:
            if cuisine not in eaten:
                yield TripFinding("Cuisine", f"no meal outside {self._query.org} is {cuisine}")


def _list_beds(stop: Stop | None) -> list[Accommodation]:
    return [row for row in stop.rows if isinstance(row, Accommodation)] if stop is not None else []


def _bed_key(stop: Stop | None) -> tuple[str, str] | None:
    return (stop.named.name, stop.named.where.city) if stop is not None else None


def _join_with_or(cities: Sequence[str]) -> str:
    return " or ".join(dict.fromkeys(cities))


def _count_cities(count: int) -> str:
    return f"{count} {'city is' if count == 1 else 'cities are'}"
