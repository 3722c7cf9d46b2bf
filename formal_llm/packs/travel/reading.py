"""Read a query from text with a model that fills in a form, whose content is checked.

Nothing is guessed silently: assumptions about missing facts are reported, contradictions are errors, and wishes that
the form cannot hold stay in ``not_understood``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from formal_llm.errors import QueryError, did_you_mean
from formal_llm.llms.llm import LLM
from formal_llm.llms.objects import ask_object
from formal_llm.llms.schemas import closed
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.query import (
    CUISINES,
    HOUSE_RULES,
    ROOM_TYPES,
    TRANSPORTATION,
    Constraints,
    TravelQuery,
    dollars,
)
from formal_llm.packs.travel.rows import Money

#: The maximum length of a trip; the data set has at most seven days.
MOST_DAYS = 60
MOST_PEOPLE = 1_000
_NULL = {"type": "null"}


def _or_null(schema: Mapping[str, object], description: str) -> dict[str, object]:
    return {"anyOf": [schema, _NULL], "description": description}


#: The form; facts missing in the text are null.
FORM = closed(
    {
        "org": _or_null({"type": "string"}, "The city where the trip begins and ends, as it is written."),
        "dest": _or_null({"type": "string"}, "The city that is visited; where several are, their state."),
        "days": _or_null({"type": "integer", "minimum": 1, "maximum": MOST_DAYS}, "How many days the trip takes."),
        "first_day": _or_null({"type": "string"}, "The first day, as YYYY-MM-DD."),
        "last_day": _or_null({"type": "string"}, "The last day, as YYYY-MM-DD."),
        "cities": _or_null({"type": "integer", "minimum": 1}, "How many cities are visited, the first not counted."),
        "people": _or_null({"type": "integer", "minimum": 0, "maximum": MOST_PEOPLE}, "How many travel."),
        "budget": _or_null({"type": "number", "minimum": 0}, "The most that all spend together, in dollars."),
        "house_rule": _or_null({"enum": list(HOUSE_RULES)}, "What the bed must allow."),
        "cuisines": {"type": "array", "items": {"type": "string"}, "description": "Cuisines that are wished for."},
        "room_type": _or_null({"enum": list(ROOM_TYPES)}, "The room that is wished for."),
        "transportation": _or_null({"enum": list(TRANSPORTATION)}, "The transport that is ruled out."),
        "not_understood": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Each wish for which this form has no place, as a short English sentence.",
        },
    }
)
_ASKED = """Fill in the form from what a traveller wrote. Copy names as they are written. What is not told is null; \
guess nothing. Today is {today}; a date without a year is the next such day. Cuisines are for example {cuisines}.

What the traveller wrote:
{text}"""


@dataclass(frozen=True)
class QueryReading:
    """A query as understood.

    Attributes:
        query: the query.
        assumed: the assumptions about missing facts, such as ``"one person travels"``.
    """

    query: TravelQuery
    assumed: tuple[str, ...] = ()

    @property
    def not_understood(self) -> tuple[str, ...]:
        """The wishes that the form cannot hold, which no plan considers."""
        return self.query.not_understood


def read_query_with(llm: LLM, text: str, world: World, today: date | None = None) -> QueryReading:
    """Read a query with a model, in any language that it understands.

    Args:
        llm: a model that writes objects or text.
        text: the traveller's text.
        world: its cities, states and cuisines are the known names.
        today: the date from which the years of incomplete dates are inferred; by default today.

    Returns:
        The query, with the assumptions and the parts that were not understood.

    Raises:
        QueryError: a required fact is missing, unknown or contradictory; the error lists all problems.
        InvalidAnswer: the model did not fill in the form, twice.
        WritesNoText: the model does not write text.
    """
    if not text.strip():
        raise QueryError(text, [("text", "there is no text", "write what is wanted: a trip from CITY to CITY ...")])
    prompt = _ASKED.format(today=today or date.today(), cuisines=", ".join(CUISINES), text=text)
    fields: Mapping[str, Any] = ask_object(llm, prompt, FORM, max_tokens=1024, check=_check_days).value
    known = {name.casefold(): name for name in [*world.cuisines, *CUISINES]}
    wanted = fields["cuisines"]
    draft = _QueryDraft(
        org=_match_name(fields["org"], world.cities()),
        dest=_match_name(fields["dest"], [*world.cities(), *world.states]),
        days=fields["days"],
        first=_read_day(fields["first_day"]),
        last=_read_day(fields["last_day"]),
        cities=fields["cities"],
        people=fields["people"],
        budget=None if fields["budget"] is None else dollars(fields["budget"]),
        constraints=Constraints(
            fields["house_rule"],
            tuple(dict.fromkeys(known[one.casefold()] for one in wanted if one.casefold() in known)),
            fields["room_type"],
            fields["transportation"],
        ),
        not_understood=[
            *fields["not_understood"],
            *(f"{one}: no restaurant of this world has it" for one in wanted if one.casefold() not in known),
        ],
    )
    return draft.make_reading(text, world)


def _check_days(made: Mapping[str, object]) -> str | None:
    """Return the error in the days, for the model; None if there is none."""
    for name in ("first_day", "last_day"):
        try:
            _read_day(made[name])
        except ValueError:
            return f"{name} is {made[name]!r}, which is no day of the calendar as YYYY-MM-DD"
    return None


def _match_name(value: object, known: Sequence[str]) -> str | None:
    """Return a name in the spelling of the world if only the letter case differs."""
    if value is None:
        return None
    plain = str(value).strip()
    return next((name for name in known if name.casefold() == plain.casefold()), plain)


def _read_day(value: object) -> date | None:
    return None if value is None else date.fromisoformat(str(value))


@dataclass
class _QueryDraft:
    """The facts in a form; None if not in the text.

    Attributes:
        org, dest: the origin, a city; the destination, a city or a state.
        days: the number of days.
        first, last: the first and the last day.
        cities: the number of cities.
        people: the number of travellers.
        budget: the dollars for all.
        constraints: the wishes.
        problems: the problems: the part of the text, the problem, a suggestion.
        assumed, not_understood: as in :class:`QueryReading`.
    """

    org: str | None = None
    dest: str | None = None
    days: int | None = None
    first: date | None = None
    last: date | None = None
    cities: int | None = None
    people: int | None = None
    budget: Money | None = None
    constraints: Constraints = field(default_factory=Constraints)
    problems: list[tuple[str, str, str | None]] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    not_understood: list[str] = field(default_factory=list)

    def add_problem(self, part: str, problem: str, way_out: str | None = None) -> None:
        """Record a problem with a part of the text."""
        self.problems.append((part, problem, way_out))

    def make_reading(self, text: str, world: World) -> QueryReading:
        """Return the query if it is complete and consistent.

        Raises:
            QueryError: something is missing or wrong; the error lists all problems.
        """
        self._check_places(world)
        self._check_dates()
        self._check_cities(world)
        if self.people is None:
            self.people = 1
            self.assumed.append("one person travels")
        elif not 1 <= self.people <= MOST_PEOPLE:
            self.add_problem("", f"{self.people} people cannot travel", "say how many travel: for 2 people")
        if self.problems:
            raise QueryError(text, self.problems)
        if self.budget is None:
            self.assumed.append("money does not matter, since no budget is told")
        assert self.org and self.dest and self.days and self.cities and self.first
        days = tuple(self.first + timedelta(day) for day in range(self.days))
        query = TravelQuery(
            self.org, self.dest, self.days, self.cities, days, self.people, self.budget, self.constraints,
            text, tuple(dict.fromkeys(filter(None, self.not_understood))),
        )  # fmt: skip
        return QueryReading(query, tuple(dict.fromkeys(self.assumed)))

    def _list_states(self, world: World) -> tuple[str, ...]:
        """Return the states; reference information names none, so that several cities are in an unknown one."""
        days = (self.last - self.first).days + 1 if self.first and self.last else self.days or 0
        several = (self.cities or 0) > 1 or (self.dest not in world.cities() and days > 3)
        return (self.dest,) if self.dest and several and not world.states else world.states

    def _check_places(self, world: World) -> None:
        cities, states = world.cities(), self._list_states(world)
        if self.org is None:
            self.add_problem("org", "it is not told in which city the trip begins", "write: from CITY")
        elif self.org not in cities:
            self._report_unknown("org", self.org, cities, states)
        if self.dest is None:
            self.add_problem("dest", "it is not told where the trip goes", "write: to CITY, or: 2 cities in STATE")
        elif self.dest not in cities and self.dest not in states:
            self._report_unknown("dest", self.dest, [*cities, *states], ())
        elif self.dest == self.org and self.dest not in states:
            self.add_problem("dest", f"the trip begins and ends in {self.org}", "write where it goes: to CITY")

    def _report_unknown(self, role: str, name: str, known: Sequence[str], states: Sequence[str]) -> None:
        if name in states:
            self.add_problem(role, f"{name} is a state; the trip begins in a city", "name the city: from CITY")
            return
        near = did_you_mean(name, known)
        way_out = f"did you mean {near}?" if near else f"there are: {', '.join(known[:12])} ..."
        self.add_problem(role, f"no city {name!r} is known", way_out)

    def _check_dates(self) -> None:
        """Check that first day, last day and number of days agree, and infer missing ones from the others."""
        if any(role == "dates" for role, _, _ in self.problems):
            return
        if self.first and self.last:
            count = (self.last - self.first).days + 1
            if count < 1:
                self.add_problem("dates", f"the trip ends on {self.last}, before it begins on {self.first}")
            elif self.days is not None and self.days != count:
                self.add_problem(
                    "dates", f"from {self.first} to {self.last} are {count} days, not {self.days}",
                    "correct the dates or the number of days",
                )  # fmt: skip
            else:
                self.days = count
        elif self.days is None:
            self.add_problem("dates", "it is not told how many days the trip takes", "write: for 3 days")
        elif self.first is None and self.last is None:
            self.add_problem(
                "dates", "it is not told when the trip begins", "write: from March 16th to March 18th, 2022"
            )
        elif self.first is None and self.last is not None:
            self.first = self.last - timedelta(self.days - 1)
        if self.days is not None and not 1 <= self.days <= MOST_DAYS:
            self.add_problem("days", f"a trip of {self.days} days cannot be planned", f"at most {MOST_DAYS} days")

    def _check_cities(self, world: World) -> None:
        """Check that the number of cities fits the destination, and infer it if it is missing."""
        if self.dest is None or self.days is None:
            return
        is_state, is_city = self.dest in self._list_states(world), self.dest in world.cities()
        if self.cities is None:
            # As in the data set: a city for three days, two cities of a state for five, three for seven.
            self.cities = 1 if is_city and (not is_state or self.days <= 3) else max(1, (self.days - 1) // 2)
            if self.cities > 1:
                self.assumed.append(f"{self.cities} cities are visited in {self.days} days")
        elif self.cities > 1 and is_city and not is_state:
            self.add_problem(
                "dest", f"{self.cities} cities are to be visited, and {self.dest} is one city",
                f"name their state: {self.cities} cities in {world.state_of(self.dest) or 'STATE'}",
            )  # fmt: skip
        available = len([city for city in world.cities(self.dest) if city != self.org])
        if self.cities > 1 and self.dest in world.states and self.cities > available:
            self.add_problem("cities", f"{self.cities} cities are to be visited, and {self.dest} has {available}")
        elif not 1 <= self.cities <= max(self.days, 1):
            self.add_problem("cities", f"{self.cities} cities cannot be visited in {self.days} days")
