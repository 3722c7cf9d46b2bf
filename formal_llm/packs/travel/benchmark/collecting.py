"""The first of two stages: an agent collects information with the published tools in its notebook.

The agent is one of :mod:`formal_llm.agents`, run once for each leg and once for each city. Its behaviour specifies that
actions are sequential, and its limits determine the searches: for a leg the flights of its day and the drive, for a
city accommodations, restaurants and attractions. The model chooses the city of each leg and the order of the searches;
it can neither stop before the information is complete nor continue forever. A city that cannot be reached, or without
an accommodation that satisfies the wishes, is skipped, and another one is chosen while there are steps left. Each
search is noted immediately, and the planner receives only the notebook.

The published limits apply: 30 steps, three consecutive failures of a tool, the same action three times in a row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from formal_llm import authored
from formal_llm.agents.agent import Agent
from formal_llm.agents.decoding.choosing import ChoosingWriter
from formal_llm.agents.decoding.contents import OneOf
from formal_llm.agents.decoding.writer import Writer
from formal_llm.agents.transcript import Transcript
from formal_llm.automata import Behaviour, Limits
from formal_llm.llms.generation import Generated, Messages
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Answer, Question
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.tools import MOST_STEPS, ToolSession
from formal_llm.tools.tool import Tool, tool
from formal_llm.tools.toolkit import Toolkit

_PLACES = {
    "AccommodationSearch": "Accommodations", "RestaurantSearch": "Restaurants", "AttractionSearch": "Attractions",
}  # fmt: skip
_WAYS = ("FlightSearch", "GoogleDistanceMatrix")
_TOLD = "Collect what is needed to plan this trip, with the tools.\n\n{text}\n\nSo far: {so_far}."


@dataclass(frozen=True)
class Collected:
    """The information that an agent collected.

    Attributes:
        world: the world of its notebook, all that the planner receives.
        steps: the number of actions.
        stopped: why it was stopped; empty if it finished.
        transcripts: the runs, one for each leg and each city.
    """

    world: World
    steps: int
    stopped: str
    transcripts: tuple[Transcript, ...]


def collect(text: str, query: TravelQuery, world: World, llm: LLM) -> Collected:
    """Let an agent collect information for a trip.

    Args:
        text: the text of the query, which the model reads.
        query: its meaning.
        world: the database of the tools.
        llm: the model that chooses.

    Raises:
        LLMError: the request to the model failed.
    """
    search = _LookupSearch(text, query, world, llm)
    while len(search.route) <= query.visiting_city_number and search.may_call(*_WAYS) and search.add_city():
        pass
    return Collected(search.build_world(world), search.steps, search.session.stopped or "", tuple(search.transcripts))


@dataclass(frozen=True)
class _Chooser:
    """A model that only chooses: every text of the agent is one of several options, so it never writes text."""

    llm: LLM

    def choose(self, question: Question) -> Answer:
        return self.llm.choose(question)

    def generate(self, messages: Messages, **options: object) -> Generated:
        raise NotImplementedError(f"no text is written here: {messages!r}, {options}")


def _make_writer(llm: LLM, behaviour: Behaviour, told: str) -> Writer:
    assert isinstance(llm, _Chooser)
    return ChoosingWriter(llm, behaviour, instructions=told)


class _LookupSearch:
    """The state of the searches for a trip.

    Attributes:
        route: the city of departure, and the cities chosen so far.
    """

    def __init__(self, text: str, query: TravelQuery, world: World, llm: LLM) -> None:
        self.query = query
        self.session = ToolSession(world)
        self.route = [query.org]
        self.steps = 0
        self.transcripts: list[Transcript] = []
        self._text, self._llm = text, llm
        self._notes: dict[str, str] = {}
        self._named: str | None = None
        if query.visiting_city_number == 1:
            self._open = [query.dest]
        else:  # the first action needs no question, since only one makes sense
            self._take_step("CitySearch", query.dest)
            self._open = [city for city in world.cities(query.dest) if city != query.org]

    def may_call(self, *tools: str) -> bool:
        """Return whether there are steps left to call these tools, and cities to visit."""
        return self.steps + len(tools) <= MOST_STEPS and bool(self._open)

    def add_city(self) -> bool:
        """Add the next city to the route or exclude one; return whether continuing makes sense."""
        origin, city = self.route[-1], self._run_agent(_WAYS)
        self._open.remove(city)
        if not self._is_reachable(origin, city) and self._open:
            return True
        if len(self.route) == self.query.visiting_city_number:
            if self.steps + len(_WAYS) > MOST_STEPS:
                return False
            self.route.append(city)
            self._run_agent(_WAYS, self.query.org)
            self.route.pop()
            if not self._is_reachable(city, self.query.org) and self._open:
                return True
        if self.steps + len(_PLACES) > MOST_STEPS:
            return False
        self._run_agent(tuple(_PLACES), city)
        if self._has_bed(city) or not self._open:
            self.route.append(city)
        return True

    def _run_agent(self, tools: tuple[str, ...], city: str | None = None) -> str:
        """Let the agent call each of the tools once, for a city or for one that it chooses, and return the city."""
        self._named = city
        uses = dict.fromkeys(tools, 1)
        so_far = f"in {' and '.join(self.route[1:])}" if len(self.route) > 1 else f"at home, in {self.query.org}"
        agent = Agent(
            authored.find("tasks", "travel") / "collect.agent",
            _Chooser(self._llm),
            Toolkit([_make_tool(self, name) for name in tools]),
            examples=(),
            limits=Limits(uses, at_least=uses),
            times=None,
            contents={"Act-Inp": self._list_inputs, "Ans": OneOf("This is enough.")},
            writer=_make_writer,
        )
        self.transcripts.append(agent.run(_TOLD.format(text=self._text, so_far=so_far)))
        assert self._named is not None
        return self._named

    def _list_inputs(self, transcript: Transcript) -> OneOf:
        """Return the allowed inputs of the tool named last."""
        name = next(one.text for one in reversed(transcript.segments) if one.state == "Act").strip()
        if name in _PLACES:
            return OneOf(str(self._named))
        ends = [self._named] if self._named is not None else self._open
        last = self._find_date(len(self.route) - 1) if name == "FlightSearch" else "self-driving"
        return OneOf(*(json.dumps([self.route[-1], end, last], ensure_ascii=False) for end in ends))

    def _find_date(self, leg: int) -> str:
        """Return the date of a leg: two days for each city, up to the end of the trip; the last leg on the last day."""
        dates = self.query.dates
        return (
            dates[-1] if leg == self.query.visiting_city_number else dates[min(2 * leg, len(dates) - 1)]
        ).isoformat()

    def call_tool(self, name: str, arguments: str) -> str:
        """Call a tool and note its output."""
        parts = arguments.split(", ")
        if name in _PLACES:
            title = f"{_PLACES[name]} in {arguments}"
        else:
            if parts[1] in self._open:
                self._named = parts[1]
            how = f" on {parts[2]}" if name == "FlightSearch" else ""
            title = f"{'Flight' if how else 'Self-driving'} from {parts[0]} to {parts[1]}{how}"
        self._notes[title] = self._take_step(name, arguments)
        return self._notes[title]

    def build_world(self, world: World | None = None) -> World:
        """Return the world of the notebook."""
        cities = {state: world.cities(state) for state in world.states} if world is not None else None
        return World.from_reference(self._notes, cities)

    def _is_reachable(self, origin: str, destination: str) -> bool:
        found = self.build_world()
        road = found.road(origin, destination)
        flies = found.flights(origin, destination) and self.query.constraints.transportation != "no flight"
        return bool(flies) or (road is not None and road.usable)

    def _has_bed(self, city: str) -> bool:
        """Return whether a city has an accommodation that satisfies the wishes and the longest possible stay."""
        wishes, query = self.query.constraints, self.query
        nights = query.days - query.visiting_city_number
        return any(
            bed.minimum_nights <= nights
            and (wishes.room_type is None or bed.is_of(wishes.room_type))
            and (wishes.house_rule is None or bed.allows(wishes.house_rule))
            for bed in self.build_world().accommodations(city)
        )

    def _take_step(self, name: str, arguments: str) -> str:
        self.steps += 1
        return self.session.act(f"{name}[{arguments}]")


def _make_tool(search: _LookupSearch, name: str) -> Tool:
    """Create a tool of the session that notes its output."""

    def search_way(origin: str, destination: str, which: str) -> str:
        return search.call_tool(name, f"{origin}, {destination}, {which}")

    def search_city(city: str) -> str:
        return search.call_tool(name, city)

    function = search_city if name in _PLACES else search_way
    function.__doc__ = next(known.description for known in search.session.toolkit() if known.name == name)
    return tool(name, deterministic=False)(function)
