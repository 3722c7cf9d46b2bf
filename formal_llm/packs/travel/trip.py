"""A trip as an automaton: its words are trips that keep every wish and the budget.

A word names the cities in their order, how the nights are spread, a way for each leg, and then day by day beds, meals
and sights. Each configuration knows what its cheapest completion costs, to the cent (:meth:`Trip.least`). So what is
offered can always be finished, and all that can be finished is offered.

Two things are left out, since they make no trip possible that is not possible without them: to change beds in the
middle of a stay (the cheapest of its beds would do for all of it), and meals at home.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from formal_llm.automata import Transition
from formal_llm.automata.models.automaton import make_fingerprint
from formal_llm.automata.models.symbols import Symbol
from formal_llm.packs.travel.candidates import SELF_DRIVING, Candidates, City, TravelOption
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.meals import NEVER, Costs, together_at
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.routes import Routes, Shape, cities_of, nights_of
from formal_llm.packs.travel.slots import MEALS, Slot, beginning, left_of, slots
from formal_llm.packs.travel.telling import NOTHING, TripWords


class Chosen(NamedTuple):
    """A configuration: what has been chosen so far.

    Attributes:
        cities: the cities, in their order.
        shape: how the days are spread over them; None while that is open.
        ways: the names of the ways, leg by leg.
        picks: what was chosen for the slots, by its name; :data:`NOTHING` where nothing is eaten.
        spent: what all that costs, in cents.
        missing: the wanted cuisines that are not covered yet, a bit for each.
    """

    cities: tuple[str, ...] = ()
    shape: Shape | None = None
    ways: tuple[str, ...] = ()
    picks: tuple[str, ...] = ()
    spent: int = 0
    missing: int = 0


class Trip:
    """The trips that a traveller wants, as an automaton.

    Args:
        query: what is wanted.
        world: what there is.
        every_meal: whether all three meals may be eaten on days of travel; else there is only a dinner where one
            arrives, and a breakfast where one leaves. :meth:`of` decides that.
        cities: the cities that may be visited, where these are not all that the query allows.

    Attributes:
        candidates, routes: what trips are made of.
        most: the most that a trip may cost, in cents.

    Raises:
        InputError: the query is none: nobody travels, or for too few days.
    """

    def __init__(
        self, query: TravelQuery, world: World, *, every_meal: bool = False, cities: Iterable[str] | None = None
    ) -> None:
        self.query = query
        self.world = world
        self.every_meal = every_meal
        self.candidates = Candidates(query, world)
        known = cities_of(query, world)
        open_ = known if cities is None else [city for city in known if city in cities]
        self.routes = Routes(self.candidates, open_, query.visiting_city_number, every_meal=every_meal)
        self.most = NEVER - 1 if self.candidates.budget is None else self.candidates.budget
        self._telling = TripWords(self.candidates)
        self._possible: dict[Chosen, bool] = {}
        self._rests: dict[tuple[tuple[str, ...], Shape], Costs] = {}

    @classmethod
    def of(cls, query: TravelQuery, world: World) -> Trip:
        """The trips of a query: with a dinner and a breakfast on days of travel, or where none is like that, any."""
        trip = cls(query, world)
        return trip if trip.to_end(trip.start()) is not None else cls(query, world, every_meal=True)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (self.query, self.world, self.every_meal, self.routes.cities)

    # -- the Automaton protocol ---------------------------------------------------------------------------------

    def start(self) -> Chosen:
        """Nothing is chosen yet."""
        return Chosen(missing=self.candidates.wanted)

    def accepting(self, configuration: Chosen) -> bool:
        """Whether everything is chosen, all cuisines are covered, and the budget is kept."""
        shape, done = configuration.shape, len(configuration.picks)
        whole = shape is not None and done == len(slots(shape))
        return whole and not configuration.missing and configuration.spent <= self.most

    def moves(self, configuration: Chosen) -> list[Transition]:
        """What can be chosen next, the best first; whether the rest can still be paid for is not looked at."""
        asked, options = self._options(configuration)
        place = f"choice {len(configuration.cities) + len(configuration.ways) + len(configuration.picks)}"
        return [Transition(place, name, None, place, text=text, question=asked) for name, text in options]

    def _options(self, configuration: Chosen) -> tuple[str, Iterable[tuple[str, str]]]:
        """What is asked, and what can be chosen: names, each with its text."""
        cities, shape, ways, picks, spent, missing = configuration
        telling, left = self._telling, self.most - spent
        if len(cities) < self.routes.count:
            open_ = (city for city in self.routes.by_cost if city not in cities)
            return telling.ask_city(cities, self.routes.count), ((city, city) for city in open_)
        if shape is None:
            shapes = self.routes.shapes
            return telling.ask_nights(cities), ((nights_of(one), telling.nights(cities, one)) for one in shapes)
        if len(ways) <= len(cities):
            leg = self.leg(cities, shape, len(ways))
            fit = (way for way in self.routes.ways(*leg) if not ways or way.driven == (ways[0] == SELF_DRIVING))
            return telling.ask_way(*leg, left), ((way.name, telling.way(way)) for way in fit)
        todo = slots(shape)
        if len(picks) == len(todo):
            return "", ()
        slot = todo[len(picks)]
        city, stay = self.candidates.city(cities[slot.stay]), shape[slot.stay]
        return telling.ask(slot, city.name, stay.nights, left, missing), self._picks(configuration, slot, city)

    def _picks(self, configuration: Chosen, slot: Slot, city: City) -> Iterator[tuple[str, str]]:
        _, shape, _, picks, _, missing = configuration
        assert shape is not None
        if slot.kind == "bed":
            nights = shape[slot.stay].nights
            yield from ((bed.name, self._telling.bed(bed)) for bed in city.beds if bed.nights <= nights)
            return
        eaten, seen = _used(shape, picks, beginning(shape, len(picks))[1])
        if slot.kind == "sight":
            yield from ((name, self._telling.sight(name)) for name in city.sights if name not in seen)
        else:
            found = [one for one in city.eateries.values() if one.name not in eaten]
            if missing:  # what is still wanted comes first
                found.sort(key=lambda one: -(one.offers & missing).bit_count())
            yield from ((one.name, self._telling.eatery(one)) for one in found)
            if not slot.must:
                yield NOTHING, self._telling.nothing(slot.kind)

    def step(self, configuration: Chosen, move: Transition) -> Chosen:
        """The configuration after a choice."""
        assert move.read is not None
        return self.after(configuration, move.read)

    def after(self, configuration: Chosen, name: str) -> Chosen:
        """The configuration after the choice of a name."""
        cities, shape, ways, picks, spent, missing = configuration
        if len(cities) < self.routes.count:
            return configuration._replace(cities=(*cities, name))
        if shape is None:
            return configuration._replace(shape=next(one for one in self.routes.shapes if nights_of(one) == name))
        if len(ways) <= len(cities):
            way = self.way(*self.leg(cities, shape, len(ways)), name)
            return configuration._replace(ways=(*ways, name), spent=spent + way.cost)
        slot = slots(shape)[len(picks)]
        city = self.candidates.city(cities[slot.stay])
        if slot.kind == "bed":
            spent += city.beds_by_name[name].cost * shape[slot.stay].nights
        elif slot.kind in MEALS and name != NOTHING:
            eatery = city.eateries[name]
            spent, missing = spent + eatery.cost, missing & ~eatery.offers
        return Chosen(cities, shape, ways, (*picks, name), spent, missing)

    def leg(self, cities: tuple[str, ...], shape: Shape, number: int) -> tuple[str, str, int]:
        """From where to where a leg goes, and on which day."""
        round_trip = (self.query.org, *cities, self.query.org)
        day = shape[number].arrival if number < len(shape) else shape[-1].leaving
        return round_trip[number], round_trip[number + 1], day

    def way(self, origin: str, destination: str, day: int, name: str) -> TravelOption:
        """The way of that name."""
        return next(way for way in self.routes.ways(origin, destination, day) if way.name == name)

    # -- what can be completed ----------------------------------------------------------------------------------

    def to_end(self, configuration: Chosen) -> int | None:
        """The choices of a completion, which are as many for all of them; None where nothing completes it."""
        if not self._can_be_paid(configuration):
            return None
        cities, shape, ways, picks, *_ = configuration
        count = self.routes.count
        # Each whole day has three meals and a sight.
        todo = slots(shape if shape is not None else self.routes.shapes[0])
        return count - len(cities) + (shape is None) + count + 1 - len(ways) + len(todo) - len(picks)

    def _can_be_paid(self, configuration: Chosen) -> bool:
        cities, shape, ways, *_ = configuration
        if ways:
            return self.least(configuration) <= self.most
        key = Chosen(cities, shape)
        found = self._possible.get(key)
        if found is None:
            found = self._possible[key] = self.routes.least(cities, shape, most=self.most, some=True) < NEVER
        return found

    def least(self, configuration: Chosen) -> int:
        """What a trip costs at least that begins like this, in cents; :data:`NEVER` where there is none.

        The budget plays no part. The sum of three exact parts: the cheapest way for each leg that is left, in one kind
        of transport; the cheapest bed for each stay; and the cheapest meals that cover the cuisines that are missing
        (:class:`~formal_llm.packs.travel.meals.Kitchen`), each missing cuisine in the stay where that is cheapest.
        """
        cities, shape, ways, picks, spent, missing = configuration
        if shape is None or not ways:
            return self.routes.least(cities, shape, most=NEVER - 1, some=False)
        driven = ways[0] == SELF_DRIVING
        for number in range(len(ways), len(cities) + 1):
            spent += self.routes.leg(*self.leg(cities, shape, number), driven=driven)
        if len(picks) == len(slots(shape)):
            return spent if not missing else NEVER
        stay, begin = beginning(shape, len(picks))
        if begin == len(picks):  # the bed of the stay is still open
            return min(NEVER, spent + int(self._rest(cities[stay:], shape[stay:])[missing]))
        must, may, sights = left_of(shape, len(picks))
        city = self.candidates.city(cities[stay])
        eaten, seen = _used(shape, picks, begin)
        if sights > len(city.sights) - len(seen):
            return NEVER
        here = city.kitchen.least({city.place[name] for name in eaten}, must, may, missing)
        return min(NEVER, spent + together_at(here, self._rest(cities[stay + 1 :], shape[stay + 1 :]), missing))

    def _rest(self, cities: tuple[str, ...], shape: Shape) -> Costs:
        found = self._rests.get((cities, shape))
        if found is None:
            found = self._rests[cities, shape] = self.routes.rest(cities, shape)
        return found

    def cheapest(self) -> tuple[str, ...] | None:
        """The word of a cheapest trip, whatever the budget; None where no trip keeps the other wishes."""
        now = self.start()
        word: tuple[str, ...] = ()
        least = self.least(now)
        if least >= NEVER:
            return None
        while len(word) < self.length:
            names = (name for name, _ in self._options(now)[1])
            name = next(name for name in names if self.least(self.after(now, name)) == least)
            now, word = self.after(now, name), (*word, name)
        return word

    @property
    def length(self) -> int:
        """How many choices a trip has."""
        return 2 * self.routes.count + 2 + len(slots(self.routes.shapes[0]))

    # -- what people read ---------------------------------------------------------------------------------------

    @cached_property
    def symbols(self) -> Mapping[str, Symbol]:
        """What is known of the names that a trip is made of."""
        return dict(self._telling.symbols(self.routes))

    @property
    def terminals(self) -> Mapping[str, Symbol]:
        """The names that a trip is made of."""
        return self.symbols

    def label(self, name: str) -> str:
        """The text for a name."""
        symbol = self.symbols.get(name)
        return symbol.label if symbol is not None and symbol.label else name

    @cached_property
    def fingerprint(self) -> str:
        """A short name that equal automata share."""
        there = (
            (one.name, one.beds, one.eateries, one.sights) for one in map(self.candidates.city, self.routes.cities)
        )
        return make_fingerprint([self.query.to_json(), self.every_meal, *there])

    def chosen(self, word: Iterable[str]) -> Chosen | None:
        """The configuration that a word leads to; None where it breaks off a trip."""
        now = self.start()
        for name in word:
            if all(name != option for option, _ in self._options(now)[1]):
                return None
            now = self.after(now, name)
        return now

    def accepts(self, word: Iterable[str]) -> bool:
        """Whether the word is one of its words."""
        found = self.chosen(word)
        return found is not None and self.accepting(found)

    def __str__(self) -> str:
        return self._telling.rules(self.routes)


def _used(shape: Shape, picks: tuple[str, ...], begin: int) -> tuple[set[str], set[str]]:
    """The restaurants and the sights that were chosen since the beginning of a stay."""
    eaten: set[str] = set()
    seen: set[str] = set()
    for slot, name in zip(slots(shape)[begin + 1 :], picks[begin + 1 :], strict=False):
        (seen if slot.kind == "sight" else eaten).add(name)
    eaten.discard(NOTHING)
    return eaten, seen


def _rebuilt(query: TravelQuery, world: World, every_meal: bool, cities: tuple[str, ...]) -> Trip:
    return Trip(query, world, every_meal=every_meal, cities=cities)
