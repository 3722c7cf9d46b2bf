"""The code of the travel pack: the database, the published tools, trips, their evaluators.

- :mod:`~formal_llm.packs.travel.query`: queries.
- :mod:`~formal_llm.packs.travel.database`: worlds of cities, flights, roads, accommodations, restaurants, attractions.
- :mod:`~formal_llm.packs.travel.reading`: reads queries from sentences with a model.
- :mod:`~formal_llm.packs.travel.tools`: the published tools.
"""

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.query import Constraints, TravelQuery
from formal_llm.packs.travel.reading import QueryReading, read_query_with
from formal_llm.packs.travel.tools import ToolSession

__all__ = ["Constraints", "QueryReading", "ToolSession", "TravelQuery", "World", "read_query_with"]
