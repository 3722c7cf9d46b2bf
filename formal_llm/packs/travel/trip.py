"""An automaton whose words are the trips that satisfy all wishes and the budget of a query.

A word names the cities in order, the distribution of the nights, a way for each leg, and then day by day beds, meals
and sights. The cost of the cheapest completion of each configuration is known to the cent
(:meth:`Trip.find_least_cost`). So every option that is offered can be completed, and every option that can be completed
is offered.

Two things are left out, because no query needs them to have a trip: changing beds within a stay (the cheapest of the
beds would do for all of it), and meals at home.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import NamedTuple, cast

from formal_llm.automata import Transition
from formal_llm.automata.models.automaton import make_fingerprint
from formal_llm.automata.models.symbols import Symbol
from formal_llm.packs.travel.candidates import RATING, SELF_DRIVING, Candidates, City, Preference, TravelOption
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.meals import NEVER, Costs, nothing, together_at
from formal_llm.packs.travel.plan_days import MEALS
from formal_llm.packs.travel.query import TravelQuery
from formal_llm.packs.travel.routes import Routes, cities_of, limit_stays, nights_of
from formal_llm.packs.travel.slots import Shape, Slot, find_beginning, list_slots
from formal_llm.packs.travel.telling import NOTHING, TripWords


class Chosen(NamedTuple):
    """A configuration: the choices so far.

    Attributes:
        cities: the cities, in order.
        shape: the distribution of the days over the cities; None if not yet chosen.
        ways: the names of the ways, leg by leg.
        picks: the names chosen for the slots; :data:`NOTHING` for no meal.
        spent: the cost of all choices, in cents.
        missing: the cuisines not covered yet, one bit each.
    """

    cities: tuple[str, ...] = ()
    shape: Shape | None = None
    ways: tuple[str, ...] = ()
    picks: tuple[str, ...] = ()
    spent: int = 0
    missing: int = 0


class Trip:
    """An automaton whose words are the trips that satisfy a query.

    Args:
        query: the query.
        world: the database.
        every_meal: whether days of travel may have all three meals, instead of only a dinner after the arrival and a
            breakfast before the departure. :meth:`from_query` decides that.
        sensible: whether meals and sights on days of travel need time before the departure and after the arrival
            (:mod:`~formal_llm.packs.travel.hours`). :meth:`from_query` decides that, too.
        cities: the cities that may be visited; by default all that the query allows.
        prefer: what comes first among the options.

    Attributes:
        candidates, routes: the components of trips.
        most: the maximum cost of a trip, in cents.

    Raises:
        InputError: the query is invalid: there are no travellers, or too few days.
    """

    #: Counters around a trip would lead to dead ends.
    refuses_limits = "limits on a trip could lead to dead ends; write what is wanted into the query"

    def __init__(
        self, query: TravelQuery, world: World, *, every_meal: bool = False, sensible: bool = False,
        cities: Iterable[str] | None = None, prefer: Preference = RATING,
    ) -> None:  # fmt: skip
        self.query = query
        self.world = world
        self.every_meal = every_meal
        #: The cities that may be visited; None for all that the query allows.
        self.allowed = None if cities is None else tuple(cities)
        self.candidates = Candidates(query, world, prefer)
        known = cities_of(query, world)
        allowed = known if self.allowed is None else [city for city in known if city in self.allowed]
        count = query.visiting_city_number
        self.routes = Routes(self.candidates, allowed, count, every_meal=every_meal, sensible=sensible)
        self.most = NEVER - 1 if self.candidates.budget is None else self.candidates.budget
        self._words = TripWords(self.candidates)
        self._possible: dict[Chosen, bool] = {}
        self._rests: dict[tuple[tuple[str, ...], Shape], Costs] = {}
        self._settled: dict[Chosen, list[tuple[int, Shape]]] = {}

    @classmethod
    def from_query(cls, query: TravelQuery, world: World, prefer: Preference = RATING) -> Trip:
        """Create the automaton of a query.

        Days of travel have all meals only if there is no trip otherwise, and more meals than their hours leave time
        for only if there is still none.
        """
        for every_meal in (False, True):
            trip = cls(query, world, every_meal=every_meal, sensible=True, prefer=prefer)
            if trip.to_end(trip.start()) is not None:
                return trip
        return cls(query, world, every_meal=True, prefer=prefer)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(
            Trip, every_meal=self.every_meal, sensible=self.routes.sensible, cities=self.allowed,
            prefer=self.candidates.prefer,
        ), (self.query, self.world)  # fmt: skip

    def restrict_to(self, cities: tuple[str, ...]) -> Trip:
        """Return the automaton of the same trips through some cities only."""
        make, given = cast("tuple[partial[Trip], tuple[TravelQuery, World]]", self.__reduce__())
        return make(*given, cities=cities)

    # -- the Automaton protocol ---------------------------------------------------------------------------------

    def start(self) -> Chosen:
        """Return the configuration without any choice."""
        return Chosen(missing=self.candidates.wanted)

    def accepting(self, configuration: Chosen) -> bool:
        """Return whether all choices are made, all wishes satisfied, and the budget is kept."""
        shape, done = configuration.shape, len(configuration.picks)
        whole = shape is not None and done == len(list_slots(shape))
        return whole and self.find_least_cost(configuration) <= self.most

    def moves(self, configuration: Chosen) -> list[Transition]:
        """List the options for the next choice, the best first, without checking the budget for the rest."""
        question, options = self._list_options(configuration)
        state = f"choice {len(configuration.cities) + len(configuration.ways) + len(configuration.picks)}"
        return [Transition(state, name, None, state, text=text, question=question) for name, text in options]

    def _list_options(self, configuration: Chosen) -> tuple[str, Iterable[tuple[str, str]]]:
        """Return the next question and its options: names with their texts."""
        cities, shape, ways, picks, spent, missing = configuration
        words, budget_left = self._words, self.most - spent
        if len(cities) < self.routes.count:
            remaining = self.routes.list_next(cities)
            return words.ask_city(cities, self.routes.count), ((city, city) for city in remaining)
        if shape is None:
            shapes = self.routes.shapes
            return words.ask_nights(cities), ((nights_of(one), words.describe_nights(cities, one)) for one in shapes)
        if len(ways) <= len(cities):
            leg = self.find_leg(cities, shape, len(ways))
            fit = (way for way in self.routes.list_ways(*leg) if not ways or way.driven == (ways[0] == SELF_DRIVING))
            return words.ask_way(*leg, budget_left), ((way.name, words.describe_way(way, budget_left)) for way in fit)
        to_choose = list_slots(self._settle_ways(configuration)[0][1])
        if len(picks) == len(to_choose):
            return "", ()
        slot = to_choose[len(picks)]
        city, stay = self.candidates.find_city(cities[slot.stay]), shape[slot.stay]
        return words.ask_slot(slot, city.name, stay.nights, budget_left, missing), self._list_picks(
            configuration, slot, city
        )

    def _list_picks(self, configuration: Chosen, slot: Slot, city: City) -> Iterator[tuple[str, str]]:
        _, shape, _, picks, spent, missing = configuration
        assert shape is not None
        words, left = self._words, self.most - spent
        if slot.kind == "bed":
            nights = shape[slot.stay].nights
            yield from ((bed.name, words.describe_bed(bed, nights, left)) for bed in city.beds if bed.nights <= nights)
            return
        eaten, seen = _collect_used(shape, picks, find_beginning(shape, len(picks))[1])
        if slot.open and slot.kind == "sight":
            today = (name for one, name in zip(list_slots(shape), picks, strict=False) if one[:3] == slot[:3])
            last = [NOTHING, *today][-1]
            yield from ((name, words.describe_sight(name, away, last)) for name, away in city.list_sights(last, seen))
        elif slot.open:
            tried = {cuisine for name in eaten for cuisine in city.eateries[name].row.cuisines}
            found = [one for one in city.eateries.values() if one.name not in eaten]
            # Restaurants with missing cuisines come first, then preferred ones, for a change those of other cuisines.
            found.sort(key=lambda one: (-(one.offers & missing).bit_count(), self.candidates.rate_meal(one, tried)))
            yield from ((one.name, words.describe_eatery(one, left)) for one in found)
        if not slot.must or not slot.open:
            yield NOTHING, words.describe_nothing(slot.kind)

    def step(self, configuration: Chosen, move: Transition) -> Chosen:
        """Return the configuration after a move."""
        assert move.read is not None
        return self.apply_choice(configuration, move.read)

    def apply_choice(self, configuration: Chosen, name: str) -> Chosen:
        """Return the configuration after the choice of a name."""
        cities, shape, ways, picks, spent, missing = configuration
        if len(cities) < self.routes.count:
            return configuration._replace(cities=(*cities, name))
        if shape is None:
            return configuration._replace(shape=next(one for one in self.routes.shapes if nights_of(one) == name))
        if len(ways) <= len(cities):
            way = self.find_way(*self.find_leg(cities, shape, len(ways)), name)
            return configuration._replace(ways=(*ways, name), spent=spent + way.cost)
        slot = list_slots(shape)[len(picks)]
        city = self.candidates.find_city(cities[slot.stay])
        if slot.kind == "bed":
            spent += city.beds_by_name[name].cost * shape[slot.stay].nights
        elif slot.kind in MEALS:
            eatery = city.eateries.get(name)
            if eatery is not None:
                spent, missing = spent + eatery.cost, missing & ~eatery.offers
        return Chosen(cities, shape, ways, (*picks, name), spent, missing)

    def find_leg(self, cities: tuple[str, ...], shape: Shape, number: int) -> tuple[str, str, int]:
        """Return the origin, the destination and the day of a leg."""
        round_trip = (self.query.org, *cities, self.query.org)
        day = shape[number].arrival if number < len(shape) else shape[-1].leaving
        return round_trip[number], round_trip[number + 1], day

    def find_way(self, origin: str, destination: str, day: int, name: str) -> TravelOption:
        """Return the way with a name."""
        return next(way for way in self.routes.list_ways(origin, destination, day) if way.name == name)

    # -- completions --------------------------------------------------------------------------------------------

    def to_end(self, configuration: Chosen) -> int | None:
        """Return the number of choices of a completion, which all completions share; None if there is none."""
        if not self._can_be_paid(configuration):
            return None
        cities, shape, ways, picks, *_ = configuration
        count = self.routes.count
        to_choose = list_slots(shape if shape is not None else self.routes.shapes[0])
        return count - len(cities) + (shape is None) + count + 1 - len(ways) + len(to_choose) - len(picks)

    def _can_be_paid(self, configuration: Chosen) -> bool:
        cities, shape, ways, *_ = configuration
        if ways:
            return self.find_least_cost(configuration) <= self.most
        key = Chosen(cities, shape)
        possible = self._possible.get(key)
        if possible is None:
            possible = self._possible[key] = (
                self.routes.find_least_cost(cities, shape, most=self.most, some=True) < NEVER
            )
        return possible

    def find_least_cost(self, configuration: Chosen) -> int:
        """Return the minimum cost of a trip that begins like this, in cents; :data:`NEVER` if there is none.

        The budget is ignored. For each choice of the remaining ways, with one kind of transport, that no other
        undercuts, the cost is the sum of exact parts: the cheapest bed for each stay, and the cheapest meals that cover
        the missing ones (:class:`~formal_llm.packs.travel.meals.Kitchen`), each cuisine in the stay where that is
        cheapest. See :mod:`~formal_llm.packs.travel.routes` for the proof.
        """
        cities, shape, ways, picks, spent, missing = configuration
        if shape is None or not ways:
            return self.routes.find_least_cost(cities, shape, most=NEVER - 1, some=False)
        least, settled = NEVER, self._settle_ways(configuration)
        number, begin = len(cities), len(picks)
        if settled and begin < len(list_slots(settled[0][1])):
            number, begin = find_beginning(settled[0][1], len(picks))
        for legs, one in settled:
            after, meals = number, nothing(self.candidates.wanted)
            if begin < len(picks):  # the bed of the stay is chosen
                meals = self.routes.find_meal_costs(cities[number], one[number], picks[begin:], missing)
                after += 1
            cost = together_at(meals, self._find_rest_costs(cities[after:], one[after:]), missing)
            least = min(least, spent + legs + cost)
        return least

    def _settle_ways(self, configuration: Chosen) -> list[tuple[int, Shape]]:
        """Return for each undominated choice of the remaining ways their cost, and the stays with what is possible."""
        cities, shape, ways, *_ = configuration
        key = Chosen(cities, shape, ways)
        found = self._settled.get(key)
        if found is None:
            assert shape is not None
            found = [(0, shape)]
            for number in range(len(cities) + 1):
                origin, destination, day = self.find_leg(cities, shape, number)
                if number < len(ways):
                    way = self.find_way(origin, destination, day, ways[number])
                    options = [(0, self.routes.find_able(way, shape, number))]
                else:
                    driven = ways[0] == SELF_DRIVING
                    legs = self.routes.find_legs(origin, destination, shape, number, driven=driven)
                    options = [(leg.cost, leg.able) for leg in legs]
                found = [(cost + more, limit_stays(one, number, able)) for cost, one in found for more, able in options]
            self._settled[key] = found
        return found

    def _find_rest_costs(self, cities: tuple[str, ...], shape: Shape) -> Costs:
        found = self._rests.get((cities, shape))
        if found is None:
            found = self._rests[cities, shape] = self.routes.find_rest_costs(cities, shape)
        return found

    def find_cheapest(self) -> tuple[str, ...] | None:
        """Return the word of a cheapest trip regardless of the budget; None if no trip satisfies the other wishes."""
        now = self.start()
        word: tuple[str, ...] = ()
        least = self.find_least_cost(now)
        if least >= NEVER:
            return None
        while len(word) < self.length:
            names = (name for name, _ in self._list_options(now)[1])
            name = next(name for name in names if self.find_least_cost(self.apply_choice(now, name)) == least)
            now, word = self.apply_choice(now, name), (*word, name)
        return word

    @property
    def length(self) -> int:
        """The number of choices of a trip."""
        return 2 * self.routes.count + 2 + len(list_slots(self.routes.shapes[0]))

    # -- texts --------------------------------------------------------------------------------------------------

    @cached_property
    def symbols(self) -> Mapping[str, Symbol]:
        """The names that trips consist of, with their descriptions."""
        return dict(self._words.make_symbols(self.routes))

    @property
    def terminals(self) -> Mapping[str, Symbol]:
        """The names that trips consist of, with their descriptions; the same as :attr:`symbols`."""
        return self.symbols

    def label(self, name: str) -> str:
        """Return the text for a name."""
        symbol = self.symbols.get(name)
        return symbol.label if symbol is not None and symbol.label else name

    @cached_property
    def fingerprint(self) -> str:
        """A short name shared by equal automata."""
        cities = (
            (one.name, one.beds, one.eateries, one.sights) for one in map(self.candidates.find_city, self.routes.cities)
        )
        settings = self.every_meal, self.routes.sensible, self.candidates.prefer
        return make_fingerprint([self.query.to_json(), settings, *cities])

    def follow_word(self, word: Iterable[str]) -> Chosen | None:
        """Return the configuration that a word leads to; None if a name in it is not among the options."""
        now = self.start()
        for name in word:
            if all(name != option for option, _ in self._list_options(now)[1]):
                return None
            now = self.apply_choice(now, name)
        return now

    def accepts(self, word: Iterable[str]) -> bool:
        """Return whether a word is a complete trip."""
        found = self.follow_word(word)
        return found is not None and self.accepting(found)

    def __str__(self) -> str:
        return self._words.describe_rules(self.routes)


def _collect_used(shape: Shape, picks: tuple[str, ...], begin: int) -> tuple[set[str], set[str]]:
    """Return the restaurants and the sights chosen since the beginning of a stay."""
    eaten: set[str] = set()
    seen: set[str] = set()
    for slot, name in zip(list_slots(shape)[begin + 1 :], picks[begin + 1 :], strict=False):
        (seen if slot.kind == "sight" else eaten).add(name)
    return eaten - {NOTHING}, seen - {NOTHING}
