"""Plan the cases of TravelPlanner and record the results: an interrupted run can be resumed.

Modes: ``sole``: the planner has the reference information of its query. ``two-stage``: first an agent collects
information with the published tools (:mod:`~formal_llm.packs.travel.benchmark.run`); the planner has only that.

The query comes by its fields, or a model reads it from its sentence; then the plan is still judged by the true meaning.
So a plan can be valid for the query as read and fail: the share of correctly read queries is reported separately.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from formal_llm import authored
from formal_llm.agents.agent import Agent
from formal_llm.agents.decoding.chatting import ChattingWriter
from formal_llm.agents.decoding.contents import OneOf
from formal_llm.agents.transcript import Transcript
from formal_llm.automata import Limits
from formal_llm.errors import InputError, InvalidAnswer, NoValidPlan, QueryError, WritingError
from formal_llm.llms.llm import LLM
from formal_llm.llms.question import Question
from formal_llm.llms.wrappers import Steps, Wrapper
from formal_llm.packs.travel.benchmark.cases import TravelCase
from formal_llm.packs.travel.benchmark.judged import JudgedPlan, judge_plan
from formal_llm.packs.travel.benchmark.records import Mode, TravelRecord, TravelRecords
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.official import Commit
from formal_llm.packs.travel.plan_days import read_plan, to_json
from formal_llm.packs.travel.planning import plan_trip
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.tools import MOST_STEPS, ToolSession
from formal_llm.planning.drivers.planner import Search
from formal_llm.tools.tool import Tool, tool
from formal_llm.tools.toolkit import Toolkit

_PLACES = {
    "AccommodationSearch": "Accommodations", "RestaurantSearch": "Restaurants", "AttractionSearch": "Attractions",
}  # fmt: skip
_WAYS = ("FlightSearch", "GoogleDistanceMatrix")
_PROMPT = "Collect what is needed to plan this trip, with the tools.\n\n{text}\n\nSo far: {so_far}."


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
            self._llm,
            Toolkit([_make_tool(self, name) for name in tools]),
            examples=(),
            limits=Limits(uses, at_least=uses),
            times=None,
            contents={"Act-Inp": self._list_inputs, "Ans": OneOf("This is enough.")},
            writer=lambda llm, behaviour, instructions: ChattingWriter(llm, behaviour, instructions=instructions),
        )
        self.transcripts.append(agent.run(_PROMPT.format(text=self._text, so_far=so_far)))
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
    return tool(name)(function)


#: Reads the sentence of a query for a world.
Reader: TypeAlias = Callable[[str, World], TravelQuery]


class Counted(Wrapper):
    """An LLM with counted prompts.

    Attributes:
        characters: the characters of all prompts so far.
        longest: the characters of the longest prompt.
        requests: the number of prompts.
    """

    characters = longest = requests = 0

    def around(self, request: Question) -> Steps:
        """Count a request and forward it."""
        texts = [message.content for message in request.messages] if request.kind != "choose" else [request.prompt]
        size = sum(map(len, texts))
        self.characters += size
        self.longest = max(self.longest, size)
        self.requests += 1
        return (yield request)  # type: ignore[no-any-return]


_NO_FIELDS = "the case has only a sentence", "give its fields (org, dest, days, date, ...), or let a model read it"


def _understand(case: TravelCase, reader: Reader | None) -> TravelQuery:
    """Return the query of a case: read from its sentence, or without a reader by its fields."""
    if reader is not None:
        return reader(case.text, case.world)
    if case.query is None:
        raise QueryError(case.text, [("text", *_NO_FIELDS)])
    return case.query


def same_meaning(one: TravelQuery, other: TravelQuery) -> bool:
    """Return whether two queries are equivalent; the order of cuisines is irrelevant."""

    def normalize_query(query: TravelQuery) -> TravelQuery:
        cuisines = tuple(sorted(query.constraints.cuisines))
        return replace(query, text="", constraints=replace(query.constraints, cuisines=cuisines))

    return normalize_query(one) == normalize_query(other)


def run_case(
    case: TravelCase, llm: LLM, *, called: str, mode: Mode = "sole", search: Search = "greedy",
    reader: Reader | None = None,
) -> TravelRecord:  # fmt: skip
    """Plan a case.

    Args:
        case: the case.
        llm: the model that answers.
        called: the name of the model in the record.
        mode: the information available to the planner.
        search: the search strategy.
        reader: reads the sentence; without one the query comes by its fields.

    Raises:
        LLMError: the request to the model failed, so the case should not be recorded; not for an illegal answer.
    """
    counted = Counted(llm)
    record = TravelRecord(
        llm=called, mode=mode, search=search, index=case.index, case=case.fingerprint, read=None,
        plan=[], error="", questions=0, requests=0, characters=0, steps=0, seconds=0.0,
    )  # fmt: skip
    start = time.process_time()
    try:
        query = _understand(case, reader)
        if reader is not None and case.query is not None:
            record["read"] = same_meaning(query, case.query)
        if mode == "sole":
            world = case.collected if case.reference is not None else case.world
        else:
            collected = collect(case.text, query, case.world, counted)
            world, record["steps"] = collected.world, collected.steps
        trip = plan_trip(query, world, counted, search=search)
        record["plan"], record["questions"] = to_json(trip.days), trip.plan.usage.questions
    except QueryError as error:
        record["read"], record["error"] = None if reader is None else False, f"not read: {error}"
    except (NoValidPlan, InputError, InvalidAnswer, WritingError) as error:
        record["error"] = f"{'no trip' if isinstance(error, NoValidPlan | InputError) else 'bad answer'}: {error}"
    record["seconds"] = round(time.process_time() - start, 4)
    record["characters"], record["requests"] = counted.characters, counted.requests
    return record


def judge(
    record: TravelRecord, case: TravelCase, reader: Reader | None = None, commit: Commit = "da7c1d4"
) -> JudgedPlan:
    """Evaluate the plan of a record with both evaluators by the true meaning of the query.

    If that is unknown, the query as read is used; if it cannot be read either, nothing was delivered.
    """
    try:
        query = case.query if case.query is not None else _understand(case, reader)
    except QueryError:
        query = TravelQuery("", "", 0, 0, (), text=case.text)
    return judge_plan(read_plan(record["plan"]), query, case.world, case.index, commit)


def run_cases(
    cases: Sequence[TravelCase],
    llm: LLM,
    records: TravelRecords,
    *,
    called: str,
    mode: Mode = "sole",
    search: Search = "greedy",
    reader: Reader | None = None,
    on_record: Callable[[TravelRecord], None] | None = None,
) -> list[TravelRecord]:
    """Plan all cases without a record sequentially, and return the records of all cases.

    Args:
        cases: the cases.
        llm: the model that answers.
        records: the records of the benchmark.
        called: the name of the model in the records.
        mode: the information available to the planner.
        search: the search strategy.
        reader: reads the sentences; without one queries come by their fields.
        on_record: called with each record, including existing ones.

    Raises:
        RecordError: a record is of another case with the same number, or of other tables.
    """
    records.check_cases(cases)
    found = []
    for case in cases:
        record = records.lines.get((called, mode, search, case.index))
        if record is None:
            record = run_case(case, llm, called=called, mode=mode, search=search, reader=reader)
            records.add_record(record)
        found.append(record)
        if on_record is not None:
            on_record(record)
    return found


def failures(records: Iterable[TravelRecord]) -> list[str]:
    """List the reasons why there is no plan, one line for each case without a plan."""
    return [f"case {one['index']}: {one['error']}" for one in records if one["error"]]
