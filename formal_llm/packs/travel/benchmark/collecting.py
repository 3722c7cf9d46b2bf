"""The first stage of two: an agent collects information with the published tools, and writes it into its notebook.

The agent is one of :mod:`formal_llm.agents`, run once for each leg and once for each city. Its behaviour says that
actions come one after the other, and its limits what is looked up: for a leg the flights of its day and the drive, for
a city beds, restaurants and sights. The model chooses to which city the leg goes, and the order of searches; it can
neither stop before everything is there nor go on for ever. A city that cannot be reached, or that has no bed as it is
wished for, is left out, and another one is chosen as long as there are steps. Each search is noted at once, and nothing
but the notebook is handed to the planner.

The published bounds hold: 30 steps, three failures of a tool in a row, the same action three times in a row.
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
    """What an agent collected.

    Attributes:
        world: the world of its notebook: all that the planner is given.
        steps: how many actions it took.
        stopped: why it was stopped; empty where it came to its end.
        transcripts: the runs, one for each leg and each city.
    """

    world: World
    steps: int
    stopped: str
    transcripts: tuple[Transcript, ...]


def collect(text: str, query: TravelQuery, world: World, llm: LLM) -> Collected:
    """Have an agent collect information for a trip.

    Args:
        text: the query as it was written, which is what the model reads.
        query: what it means.
        world: what the tools look up.
        llm: who chooses.

    Raises:
        LLMError: the model could not be asked.
    """
    search = _LookupSearch(text, query, world, llm)
    while len(search.route) <= query.visiting_city_number and search.may(*_WAYS) and search.add_city():
        pass
    return Collected(search.noted(world), search.steps, search.session.stopped or "", tuple(search.transcripts))


@dataclass(frozen=True)
class _Chooser:
    """A model that is only asked to choose: every text of the agent is one of some, so none is ever written."""

    llm: LLM

    def choose(self, question: Question) -> Answer:
        return self.llm.choose(question)

    def generate(self, messages: Messages, **options: object) -> Generated:
        raise NotImplementedError(f"no text is written here: {messages!r}, {options}")


def _writer(llm: LLM, behaviour: Behaviour, told: str) -> Writer:
    assert isinstance(llm, _Chooser)
    return ChoosingWriter(llm, behaviour, instructions=told)


class _LookupSearch:
    """What has been looked up, and what may be next.

    Attributes:
        route: the city of departure, and the cities that are settled.
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
        else:  # the only action that makes sense at first is no question
            self._act("CitySearch", query.dest)
            self._open = [city for city in world.cities(query.dest) if city != query.org]

    def may(self, *tools: str) -> bool:
        """Whether there are steps left to call these tools, and cities to go to."""
        return self.steps + len(tools) <= MOST_STEPS and bool(self._open)

    def add_city(self) -> bool:
        """Settle the next city, or find out that one is none; whether there is any use in going on."""
        at, city = self.route[-1], self._run(_WAYS)
        self._open.remove(city)
        if not self._reachable(at, city) and self._open:
            return True
        if len(self.route) == self.query.visiting_city_number:
            if self.steps + len(_WAYS) > MOST_STEPS:
                return False
            self.route.append(city)
            self._run(_WAYS, self.query.org)
            self.route.pop()
            if not self._reachable(city, self.query.org) and self._open:
                return True
        if self.steps + len(_PLACES) > MOST_STEPS:
            return False
        self._run(tuple(_PLACES), city)
        if self._sleeps(city) or not self._open:
            self.route.append(city)
        return True

    def _run(self, tools: tuple[str, ...], city: str | None = None) -> str:
        """Have the agent call each of some tools once, for a city or for one that it chooses; that city."""
        self._named = city
        uses = dict.fromkeys(tools, 1)
        so_far = f"in {' and '.join(self.route[1:])}" if len(self.route) > 1 else f"at home, in {self.query.org}"
        agent = Agent(
            authored.find("tasks", "travel") / "collect.agent",
            _Chooser(self._llm),
            Toolkit([_acting(self, name) for name in tools]),
            examples=(),
            limits=Limits(uses, at_least=uses),
            times=None,
            contents={"Act-Inp": self._inputs, "Ans": OneOf("This is enough.")},
            writer=_writer,
        )
        self.transcripts.append(agent.run(_TOLD.format(text=self._text, so_far=so_far)))
        assert self._named is not None
        return self._named

    def _inputs(self, transcript: Transcript) -> OneOf:
        """What the tool that was named last may be asked."""
        name = next(one.text for one in reversed(transcript.segments) if one.state == "Act").strip()
        if name in _PLACES:
            return OneOf(str(self._named))
        ends = [self._named] if self._named is not None else self._open
        last = self._date(len(self.route) - 1) if name == "FlightSearch" else "self-driving"
        return OneOf(*(json.dumps([self.route[-1], end, last], ensure_ascii=False) for end in ends))

    def _date(self, leg: int) -> str:
        """When a leg is travelled: two days for each city, as far as the trip lasts; the last on the last day."""
        dates = self.query.dates
        return (
            dates[-1] if leg == self.query.visiting_city_number else dates[min(2 * leg, len(dates) - 1)]
        ).isoformat()

    def called(self, name: str, arguments: str) -> str:
        """What a tool says."""
        parts = arguments.split(", ")
        if name in _PLACES:
            title = f"{_PLACES[name]} in {arguments}"
        else:
            if parts[1] in self._open:
                self._named = parts[1]
            how = f" on {parts[2]}" if name == "FlightSearch" else ""
            title = f"{'Flight' if how else 'Self-driving'} from {parts[0]} to {parts[1]}{how}"
        self._notes[title] = self._act(name, arguments)
        return self._notes[title]

    def noted(self, world: World | None = None) -> World:
        """The world of the notebook."""
        cities = {state: world.cities(state) for state in world.states} if world is not None else None
        return World.from_reference(self._notes, cities)

    def _reachable(self, origin: str, destination: str) -> bool:
        found = self.noted()
        road = found.road(origin, destination)
        flies = found.flights(origin, destination) and self.query.constraints.transportation != "no flight"
        return bool(flies) or (road is not None and road.usable)

    def _sleeps(self, city: str) -> bool:
        """Whether a city has a bed as it is wished for, and for a stay as long as others leave."""
        wishes, query = self.query.constraints, self.query
        nights = query.days - query.visiting_city_number
        return any(
            bed.minimum_nights <= nights
            and (wishes.room_type is None or bed.is_of(wishes.room_type))
            and (wishes.house_rule is None or bed.allows(wishes.house_rule))
            for bed in self.noted().accommodations(city)
        )

    def _act(self, name: str, arguments: str) -> str:
        self.steps += 1
        return self.session.act(f"{name}[{arguments}]")


def _acting(search: _LookupSearch, name: str) -> Tool:
    """A tool of the session that notes what it finds."""

    def three(origin: str, destination: str, which: str) -> str:
        return search.called(name, f"{origin}, {destination}, {which}")

    def one(city: str) -> str:
        return search.called(name, city)

    function = one if name in _PLACES else three
    function.__doc__ = next(known.description for known in search.session.toolkit() if known.name == name)
    return tool(name, deterministic=False)(function)
