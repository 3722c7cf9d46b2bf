"""The first stage of two: an agent collects information with the published tools, and writes it into its notebook.

The agent is one of :mod:`formal_llm.agents`: its behaviour says that actions come one after the other, and its limits
how many searches a trip needs: a bed, restaurants and sights for each city, and for each leg the flights of its day and
the drive. So the model chooses which cities are visited and in which order it looks things up; it can neither stop
before a plan is possible to write nor go on for ever. Each search is noted at once, and nothing but the notebook is
handed to the planner.

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
from formal_llm.packs.travel.tools import ToolSession
from formal_llm.tools.tool import Tool, tool
from formal_llm.tools.toolkit import Toolkit

_PLACES = {
    "AccommodationSearch": "Accommodations", "RestaurantSearch": "Restaurants", "AttractionSearch": "Attractions",
}  # fmt: skip
_MODES = ("self-driving", "taxi")
_TOLD = "Collect what is needed to plan this trip, with the tools.\n\n{text}"


@dataclass(frozen=True)
class Collected:
    """What an agent collected.

    Attributes:
        world: the world of its notebook: all that the planner is given.
        steps: how many actions it took.
        stopped: why it was stopped; empty where it came to its end.
        transcript: the run.
    """

    world: World
    steps: int
    stopped: str
    transcript: Transcript


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
    search = _Search(query, world)
    legs, cities = query.visiting_city_number + 1, query.visiting_city_number
    uses = dict.fromkeys(_PLACES, cities) | {
        "FlightSearch": legs, "GoogleDistanceMatrix": 2 * legs,
    }  # fmt: skip
    agent = Agent(
        authored.find("tasks", "travel") / "collect.agent",
        _Chooser(llm),
        search.toolkit,
        examples=(),
        limits=Limits(uses, at_least=uses),
        times=None,
        contents={"Act-Inp": search.inputs, "Ans": OneOf("This is enough.")},
        writer=_writer,
    )
    transcript = agent.run(_TOLD.format(text=text))
    return Collected(search.noted(world), search.steps, search.session.stopped or "", transcript)


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


class _Search:
    """One run: what has been looked up, and what may be next."""

    def __init__(self, query: TravelQuery, world: World) -> None:
        self.query = query
        self.session = ToolSession(world)
        self.notes: list[dict[str, str]] = []
        self.steps = 0
        self._calls: dict[str, int] = {}
        self._order: list[str] = []
        if query.visiting_city_number == 1:
            self._open = [query.dest]
        else:  # the only action that makes sense at first is no question
            self._act("CitySearch", query.dest)
            self._open = [city for city in world.cities(query.dest) if city != query.org]

    def toolkit(self) -> Toolkit:
        """The tools, each of which notes what it finds."""
        return Toolkit([_acting(self, name) for name in (*_PLACES, "FlightSearch", "GoogleDistanceMatrix")])

    def inputs(self, transcript: Transcript) -> OneOf:
        """What the tool that was named last may be asked."""
        name = next(one.text for one in reversed(transcript.segments) if one.state == "Act").strip()
        done = self._calls.get(name, 0)
        if name in _PLACES:
            return OneOf(*self._cities(done))
        leg, day = (done, self.query.dates[min(2 * done, len(self.query.dates) - 1)])
        if name == "GoogleDistanceMatrix":
            leg = done // 2
        begins = self._cities(leg - 1) if leg else [self.query.org]
        ends = self._cities(leg) if leg < self.query.visiting_city_number else [self.query.org]
        # Where the city before is open, too, it is settled by the first that is named.
        pairs = [(begin, end) for begin in begins for end in ends if begin != end]
        last = day.isoformat() if name == "FlightSearch" else _MODES[done % 2]
        return OneOf(*(json.dumps([begin, end, last], ensure_ascii=False) for begin, end in pairs))

    def called(self, name: str, arguments: str) -> str:
        """What a tool says."""
        done = self._calls.get(name, 0)
        self._calls[name] = done + 1
        parts = arguments.split(", ")
        for city in parts[:1] if name in _PLACES else parts[:2]:
            if city in self._open and city not in self._order:
                self._order.append(city)
        if name in _PLACES:
            title = f"{_PLACES[name]} in {arguments}"
        elif name == "FlightSearch":
            title = f"Flight from {parts[0]} to {parts[1]} on {parts[2]}"
        else:
            title = f"{parts[2].capitalize()} from {parts[0]} to {parts[1]}"
        said = self._act(name, arguments)
        self.notes.append({"Description": title, "Content": said})
        return said

    def noted(self, world: World) -> World:
        """The world of the notebook."""
        return World.from_reference(self.notes, {state: world.cities(state) for state in world.states})

    def _act(self, name: str, arguments: str) -> str:
        self.steps += 1
        return self.session.act(f"{name}[{arguments}]")

    def _cities(self, place: int) -> list[str]:
        """The city at a place of the route: the one that was named, else those that are left."""
        if place < len(self._order):
            return [self._order[place]]
        return [city for city in self._open if city not in self._order]


def _acting(search: _Search, name: str) -> Tool:
    """A tool of the session that notes what it finds."""

    def three(origin: str, destination: str, which: str) -> str:
        return search.called(name, f"{origin}, {destination}, {which}")

    def one(city: str) -> str:
        return search.called(name, city)

    function = one if name in _PLACES else three
    function.__doc__ = next(known.description for known in search.session.toolkit() if known.name == name)
    return tool(name, deterministic=False)(function)
