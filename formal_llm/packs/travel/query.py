"""What a traveller wants: from where to where, when, with how many, for how much, and under which wishes.

The fields are those of TravelPlanner (Xie et al. 2024, arXiv 2402.01622), so that its queries need no translation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal

from formal_llm.packs.travel.rows import Money

#: What a house can forbid, in the words of a query: a wish for one of them leaves out beds that forbid it.
HOUSE_RULES = ("smoking", "parties", "children under 10", "visitors", "pets")
ROOM_TYPES = ("entire room", "private room", "shared room", "not shared room")
TRANSPORTATION = ("no flight", "no self-driving")
#: The cuisines that published queries ask for.
CUISINES = ("Chinese", "American", "Italian", "Mexican", "Indian", "Mediterranean", "French")


@dataclass(frozen=True)
class Constraints:
    """The wishes of a query, each in the words of the data set; what is None or empty is not wished for.

    Attributes:
        house_rule: what the bed must allow: one of :data:`HOUSE_RULES`.
        cuisines: cuisines to be eaten at least once, outside the city of departure.
        room_type: one of :data:`ROOM_TYPES`.
        transportation: one of :data:`TRANSPORTATION`.
    """

    house_rule: str | None = None
    cuisines: tuple[str, ...] = ()
    room_type: str | None = None
    transportation: str | None = None

    def to_json(self) -> dict[str, object]:
        """The keys of the data set."""
        return {
            "house rule": self.house_rule,
            "cuisine": list(self.cuisines) or None,
            "room type": self.room_type,
            "transportation": self.transportation,
        }


@dataclass(frozen=True)
class TravelQuery:
    """One trip that is wanted.

    Attributes:
        org: the city where it begins and ends.
        dest: where it goes: a city if one is visited, else the state whose cities are.
        days: how many days it takes, both journeys included.
        visiting_city_number: how many cities are visited.
        dates: the day of each day, in order; ``len(dates) == days``.
        people: how many travel.
        budget: the most that all of them may spend together, in dollars; None for no bound.
        constraints: the wishes.
        text: the query as it was written.
    """

    org: str
    dest: str
    days: int
    visiting_city_number: int
    dates: tuple[date, ...]
    people: int = 1
    budget: Money | None = None
    constraints: Constraints = field(default_factory=Constraints)
    text: str = ""

    def to_json(self) -> dict[str, object]:
        """The keys of the data set; :func:`query_of` reads them back."""
        budget = int(self.budget) if self.budget is not None and self.budget == int(self.budget) else self.budget
        return {
            "org": self.org,
            "dest": self.dest,
            "days": self.days,
            "visiting_city_number": self.visiting_city_number,
            "date": [day.isoformat() for day in self.dates],
            "people_number": self.people,
            "budget": float(budget) if isinstance(budget, Decimal) else budget,
            "local_constraint": self.constraints.to_json(),
            "query": self.text,
        }


def query_of(fields: Mapping[str, object]) -> TravelQuery:
    """The query that the fields of the data set give (``org``, ``date``, ``people_number``, ``local_constraint`` ...)."""
    raise NotImplementedError(fields)
