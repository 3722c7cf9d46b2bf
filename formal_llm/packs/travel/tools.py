"""The eight published tools of TravelPlanner, with their exact outputs and errors, and ``CostEnquiry``.

A :class:`ToolSession` holds the state of one agent: its notebook and its failures. The tools can be called as
functions (:meth:`ToolSession.toolkit`) or with the text that an agent wrote (:meth:`ToolSession.act`)::

    session = ToolSession(World.shipped())
    session.act("FlightSearch[Lindhaven, Oriel, 2022-03-10]")
    session.act("NotebookWrite[flights to Oriel]")

Errors are part of the output, as published: an agent reads them and tries again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TypeAlias, TypeVar, cast

from formal_llm.authored.files import parse_json
from formal_llm.llms.llm import LLM
from formal_llm.llms.text_request import TextRequest
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.rows import Accommodation, Attraction, Flight, Mode, Money, Restaurant
from formal_llm.packs.travel.tables import ACCOMMODATIONS, ATTRACTIONS, FLIGHTS, RESTAURANTS
from formal_llm.tools.tool import Tool, tool
from formal_llm.tools.toolkit import Toolkit

Cell: TypeAlias = "str | int | float | Decimal | None"


def printed_table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], numbers: Sequence[int] | None = None) -> str:
    """Print a table.

    Args:
        columns: the names of the columns.
        rows: the cells of each row. Columns with only None are left out.
        numbers: the row numbers to print before the rows; None for no row numbers.
    """
    parts: list[list[str]] = []
    lead = "" if numbers is None else " "
    for at, name in enumerate(columns):
        cells = [row[at] for row in rows]
        if rows and all(cell is None for cell in cells):
            continue
        numeric = all(isinstance(cell, int | float | Decimal) for cell in cells)
        texts = _format_numbers(cells) if numeric else [_format_text(cell) for cell in cells]
        # The leading blank of a number is reserved for its sign.
        texts = [text if numeric and text.startswith("-") else lead + text for text in texts]
        # The name of a numeric column has a leading blank for the sign, too.
        header = (" " if numeric else "") + name
        width = max(map(len, [header, *texts]))
        parts.append([text.rjust(width) for text in [header, *texts]])
    if numbers is not None:
        width = max((len(str(number)) for number in numbers), default=0)
        parts.insert(0, [" " * width, *(str(number).ljust(width) for number in numbers)])
    return "\n".join(" ".join(line) for line in zip(*parts, strict=True))


def printed_flights(flights: Sequence[Flight]) -> str:
    """Print the output of FlightSearch."""
    rows = [
        (one.number, one.price, one.departure, one.arrival, one.duration, one.day.isoformat(), one.origin,
         one.destination, one.distance)
        for one in flights
    ]  # fmt: skip
    return printed_table(FLIGHTS.columns, rows)


def printed_accommodations(beds: Sequence[Accommodation]) -> str:
    """Print the output of AccommodationSearch; prices and nights have a decimal, as in the published table."""
    rows = [
        (one.name, float(one.price), one.room_type, " & ".join(one.house_rules), float(one.minimum_nights),
         one.maximum_occupancy, one.rating, one.city)
        for one in beds
    ]  # fmt: skip
    return printed_table(ACCOMMODATIONS.columns, rows)


def printed_restaurants(tables: Sequence[Restaurant], numbers: Sequence[int] | None = None) -> str:
    """Print the output of RestaurantSearch; row numbers are positions in the whole table."""
    rows = [(one.name, one.cost, ", ".join(one.cuisines), one.rating, one.city) for one in tables]
    return printed_table(RESTAURANTS.columns, rows, numbers)


def printed_attractions(sights: Sequence[Attraction]) -> str:
    """Print the output of AttractionSearch."""
    rows = [(one.name, one.latitude, one.longitude, one.address, one.phone, one.website, one.city) for one in sights]
    return printed_table(ATTRACTIONS.columns, rows)


def _format_text(cell: Cell) -> str:
    """Format a text, with line ends and tabs as escapes."""
    if cell is None:
        return "NaN"
    return str(cell).replace("\t", "\\t").replace("\r", "\\r").replace("\n", "\\n")


def _format_numbers(cells: Sequence[Cell]) -> list[str]:
    """Format the numbers of a column: integers unchanged, others with the decimals that the longest needs (max. 6)."""
    if all(isinstance(cell, int) for cell in cells):
        return [str(cell) for cell in cells]
    texts = [f"{cell:.6f}" for cell in cells]
    while all(text.endswith("0") and not text.endswith(".0") for text in texts):
        texts = [text[:-1] for text in texts]
    return texts


R = TypeVar("R", Accommodation, Restaurant)
MOST_CHARACTERS = 20_000
_NO_JSON = "The sub plan can not be parsed into json format, please check."
_ONE_DAY = f"{_NO_JSON} Only one day plan is supported."
_NO_WAY = "The transporation information is not valid, please check."
_WAY = re.compile(r"from\s+(.+?)\s+to\s+([^,]+)(?=[,\s]|$)")
_PLACE = re.compile(r"(.*?),\s*([^,]+)(\(\w[\w\s]*\))?$")
_MEALS = {"breakfast": "breakfase", "lunch": "lunch", "dinner": "dinner"}


def cost_enquiry(world: World, sub_plan: str) -> str:
    """Return the answer of ``CostEnquiry`` for a day of a plan.

    Args:
        world: the database.
        sub_plan: a JSON object, or a Python dictionary, with ``people_number`` and the keys of a day.
    """
    day = _parse_day(sub_plan)
    if day is None:
        return _NO_JSON
    people = day.get("people_number") if isinstance(day, Mapping) else None
    if not isinstance(day, Mapping) or isinstance(people, bool) or not isinstance(people, int) or people < 1:
        return _ONE_DAY if not isinstance(day, Mapping) else "The sub plan has no people_number, please check."
    total, problems = _compute_cost(world, {str(key): value for key, value in day.items()}, people)
    if not problems:
        return f"The cost of your plan is {total} dollars."
    reasons = "".join(f"{number}. {one} \t" for number, one in enumerate(problems, 1))
    return f"Sorry, the cost of your plan is not available because of the following reasons:{reasons}"


def _parse_day(text: str) -> object:
    if len(text) > MOST_CHARACTERS:
        return None
    try:
        return parse_json(text)
    except ValueError:
        pass
    try:
        value: object = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value


def _compute_cost(world: World, day: Mapping[str, object], people: int) -> tuple[Money, list[str]]:
    total: Money = 0
    problems: list[str] = []
    if way := _read_field(day, "transportation"):
        cost = _way_cost(world, way, str(day.get("current_city", "")), people)
        if isinstance(cost, str):
            problems.append(cost)
        else:
            total += cost
    for meal, called in _MEALS.items():
        if found := _read_place(_read_field(day, meal)):
            table = _find_row(world.restaurants(found[1]), found[0])
            if table is None:
                problems.append(f"The {called} information is not valid, please check.")
            else:
                total += table.cost * people
    if found := _read_place(_read_field(day, "accommodation")):
        bed = _find_row(world.accommodations(found[1]), found[0])
        if bed is None:
            problems.append("The accommodation information is not valid, please check.")
        else:
            total += bed.cost_for(people)
    return total, problems


def _read_field(day: Mapping[str, object], key: str) -> str:
    value = day.get(key)
    return value if isinstance(value, str) and value != "-" else ""


def _way_cost(world: World, way: str, current_city: str, people: int) -> Money | str:
    """Return the cost of a way or an error; unknown modes of transport cost nothing, as published."""
    lower = way.lower()
    if "flight number" in lower:
        _, found, rest = way.partition("Flight Number: ")
        flights = world.flights_numbered(rest.split(",")[0]) if found else ()
        return flights[0].price * people if flights else "The filght information is not valid"
    mode: Mode | None = "self-driving" if "self-driving" in lower else "taxi" if "taxi" in lower else None
    if mode is None:
        return 0
    cities = _WAY.search(way) or _WAY.search(current_city)
    if cities is None:
        return f"{_NO_WAY} You have to make sure there are two cities (from A to B) in your transportation plan."
    drive = world.distance(bare_city(cities[1]), bare_city(cities[2]), mode)
    return drive.cost_for(people) if drive is not None else _NO_WAY


def _read_place(text: str) -> tuple[str, str] | None:
    """Return name and city of ``"Name, City"``; None if the text is empty or has no city."""
    found = _PLACE.search(text) if text else None
    return (found[1].strip(), bare_city(found[2].strip()).strip()) if found else None


def _find_row(rows: Sequence[R], name: str) -> R | None:
    return next((row for row in rows if row.name == name), None)


def bare_city(text: str) -> str:
    """Return a city without the text in parentheses after it."""
    found = re.match(r"(.*?)\([^)]*\)", text)
    return found[1] if found else text


#: Writes a plan from the notes of a session and the query.
PlanWriter: TypeAlias = Callable[[str, str], str]
#: The published limits: steps of a run, consecutive failures of a tool, repetitions of an action.
MOST_STEPS, MOST_FAILURES, MOST_REPEATS = 30, 3, 3
_ACTION = re.compile(r"(\w+)\[(.+)\]", re.DOTALL)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_INVALID = (
    "Invalid Action. Valid Actions are  FlightSearch[Departure City, Destination City, Date] / "
    "AccommodationSearch[City] /  RestaurantSearch[City] / NotebookWrite[Short Description] / AttractionSearch[City] / "
    "CitySearch[State] / GoogleDistanceMatrix[Origin, Destination, Mode] and Planner[Query]."
)
_PLAN = """Write a travel plan for the query, day by day, from the notes alone. A day has these lines: Day, Current \
City, Transportation, Breakfast, Attraction, Lunch, Dinner, Accommodation; a place is written as "Name, City", and "-" \
stands for nothing. Attractions end with ";".

Notes:
{notes}

Query: {query}

Plan:"""


class _Illegal(Exception):
    """An action that a tool refuses; its text is the message for the agent."""


class ToolSession:
    """The tools of one agent, over a world that may be shared. Calls must be sequential.

    Args:
        world: the database.
        write_plan: writes the plan for ``Planner`` from notes and query; :func:`plan_writer` creates one from a model.
            Without it there is no ``Planner``.

    Attributes:
        notebook: the notes: ``(description, text)``.
        answer: the output of ``Planner``.
        stopped: why the run is over, in words; None while it continues.
    """

    def __init__(self, world: World, write_plan: PlanWriter | None = None) -> None:
        self.world = world
        self.notebook: list[tuple[str, str]] = []
        self.answer: str | None = None
        self.stopped: str | None = None
        self._write_plan = write_plan
        self._current: str | None = None
        self._failures: dict[str, int] = {}
        self._actions: list[str] = []
        self._steps = 0

    # -- the tools -----------------------------------------------------------------------------------------------------

    def flight_search(self, origin: str, destination: str, day: str) -> str:
        """Flights from a city to another on a day, as YYYY-MM-DD."""
        return self._run_search("FlightSearch", lambda: self._search_flights(origin, destination, day))

    def distance_matrix(self, origin: str, destination: str, mode: str) -> str:
        """Duration, distance and cost from a city to another by self-driving or taxi."""
        return self._run_search("GoogleDistanceMatrix", lambda: self._search_way(origin, destination, mode))

    def accommodation_search(self, city: str) -> str:
        """Accommodations in a city."""
        # The published tool has "attraction" here, too.
        found = self.world.accommodations
        none = "There is no attraction in this city."
        return self._run_search(
            "AccommodationSearch", lambda: self._search_city(city, lambda: printed_accommodations(found(city)), none)
        )

    def restaurant_search(self, city: str) -> str:
        """Restaurants in a city."""
        none = "There is no restaurant in this city."
        numbers, found = self.world.restaurant_numbers, self.world.restaurants
        return self._run_search(
            "RestaurantSearch",
            lambda: self._search_city(city, lambda: printed_restaurants(found(city), numbers(city)), none),
        )

    def attraction_search(self, city: str) -> str:
        """Attractions in a city."""
        found = self.world.attractions
        none = "There is no attraction in this city."
        return self._run_search(
            "AttractionSearch", lambda: self._search_city(city, lambda: printed_attractions(found(city)), none)
        )

    def city_search(self, state: str) -> str:
        """The cities of a state."""
        cities = self.world.cities(state)
        if state not in self.world.states:
            return self._count_failure("CitySearch", "Invalid State")
        self._failures.clear()
        return str(list(cities))  # a note contains the last table, never this list

    def notebook_write(self, description: str) -> str:
        """Write what the last search found into the notebook, under a short description."""
        self.notebook.append((description, str(self._current)))
        self._failures.clear()
        return f"The information has been recorded in Notebook, and its index is {len(self.notebook) - 1}."

    def planner(self, query: str) -> str:
        """Write the plan from what is in the notebook; this ends the run."""
        if self._write_plan is None:
            return self._count_failure("Planner", "There is no planner in this session.")
        self.answer = self._write_plan(self.notes(), query)
        self.stopped = "the plan is written"
        return self.answer

    def cost_enquiry(self, sub_plan: str) -> str:
        """What one day of a plan costs: a JSON object with people_number and the keys of a day."""
        return cost_enquiry(self.world, sub_plan)

    def notes(self) -> str:
        """Return the notebook as the planner reads it."""
        entries = [
            {"index": at, "Short Description": about, "Content": text} for at, (about, text) in enumerate(self.notebook)
        ]
        return str(entries)

    # -- for agents ----------------------------------------------------------------------------------------------------

    def toolkit(self, *, with_costs: bool = False) -> Toolkit:
        """Return the tools under their published names.

        Args:
            with_costs: whether to include ``CostEnquiry``, which the published planners have and the agents lack.
        """
        # The next note contains the last search, so executors must not share, cache or reorder calls.
        tools = [tool(name)(function) for name, function in self._list_functions().items()]
        if with_costs:
            tools.append(tool("CostEnquiry")(self.cost_enquiry))
        return Toolkit(cast("list[Tool]", tools))

    def act(self, action: str) -> str:
        """Carry out an action, such as ``FlightSearch[Lindhaven, Oriel, 2022-03-10]``, and return its output.

        The run is over (:attr:`stopped`) after 30 steps, at the next call of a tool after three consecutive failures,
        and when the same action is written three times in a row.
        """
        if self.stopped is not None:
            return f"The run is over: {self.stopped}."
        self._steps += 1
        if self._actions and self._actions[-1] != action:
            self._actions.clear()
        self._actions.append(action)
        found = _ACTION.fullmatch(action.strip())
        name = found[1] if found and found[1] in self._list_functions() else "invalidAction"
        if len(self._actions) == MOST_REPEATS:
            self.stopped = f"the same action was repeated {MOST_REPEATS} times"
        elif self._failures.get(name, 0) >= MOST_FAILURES:
            self.stopped = f"{name} failed {MOST_FAILURES} times"
        if self.stopped is not None:
            return f"The run is over: {self.stopped}."
        output = self._call_tool(name, found[2] if found else "")
        if self._steps >= MOST_STEPS and self.stopped is None:
            self.stopped = f"{MOST_STEPS} steps were taken"
        return output

    def _call_tool(self, name: str, argument: str) -> str:
        if name == "invalidAction":
            return self._count_failure(name, _INVALID)
        function = self._list_functions()[name]
        if name not in _THREE:
            return function(argument)
        parts = argument.split(", ")
        if len(parts) < 3:
            return self._count_failure(name, f"Illegal {_CALLED.get(name, name)}. Please try again.")
        return function(*parts[:3])

    def _list_functions(self) -> dict[str, Callable[..., str]]:
        found: dict[str, Callable[..., str]] = {
            "FlightSearch": self.flight_search,
            "GoogleDistanceMatrix": self.distance_matrix,
            "AccommodationSearch": self.accommodation_search,
            "RestaurantSearch": self.restaurant_search,
            "AttractionSearch": self.attraction_search,
            "CitySearch": self.city_search,
            "NotebookWrite": self.notebook_write,
        }
        return found | ({"Planner": self.planner} if self._write_plan is not None else {})

    def _run_search(self, name: str, search: Callable[[], str]) -> str:
        """Run a search and keep its result for a note; return the result or the error."""
        try:
            self._current = search()
        except _Illegal as illegal:
            return self._count_failure(name, str(illegal))
        self._failures.clear()
        return self._current

    def _count_failure(self, name: str, message: str) -> str:
        self._failures[name] = self._failures.get(name, 0) + 1
        return message

    def _search_flights(self, origin: str, destination: str, day: str) -> str:
        if not _DAY.fullmatch(day):
            raise _Illegal(f"'{day}' is not in the format YYYY-MM-DD")
        self._check_city(origin)
        self._check_city(destination)
        try:
            found = self.world.flights(origin, destination, date.fromisoformat(day))
        except ValueError:  # no such date
            found = ()
        return printed_flights(found) if found else f"There is no flight from {origin} to {destination} on {day}."

    def _search_way(self, origin: str, destination: str, mode: str) -> str:
        origin, destination = bare_city(origin), bare_city(destination)
        road = self.world.road(origin, destination)
        if road is None:
            return f"{mode}, from {origin} to {destination}, no valid information."
        if not road.usable:
            return "No valid information."
        known: Mode | None = "self-driving" if "driving" in mode else "taxi" if mode == "taxi" else None
        drive = self.world.distance(origin, destination, known) if known else None
        cost = drive.cost if drive is not None else None
        details = f"duration: {road.duration}, distance: {road.distance}, cost: {cost}"
        return f"{mode}, from {origin} to {destination}, {details}"

    def _search_city(self, city: str, printed: Callable[[], str], none: str) -> str:
        self._check_city(city)
        table = printed()
        return table if "\n" in table else none

    def _check_city(self, city: str) -> None:
        if city not in self.world.cities():
            raise _Illegal(f"{city} is not valid city in {list(self.world.cities())}.")


def plan_writer(llm: LLM, max_tokens: int = 4096) -> PlanWriter:
    """Create a function for ``Planner`` that lets a model write the plan from the notes."""

    def generate_plan(notes: str, query: str) -> str:
        return llm.ask(TextRequest(_PLAN.format(notes=notes, query=query), max_tokens=max_tokens)).text

    return generate_plan


#: The tools with several arguments, separated by commas, and their names in the published errors.
_THREE = ("FlightSearch", "GoogleDistanceMatrix")
_CALLED = {"FlightSearch": "Flight Search"}
