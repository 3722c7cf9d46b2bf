"""The code of the travel pack: the database, the published tools, the reader of queries.

- :mod:`~formal_llm.packs.travel.query`: queries.
- :mod:`~formal_llm.packs.travel.database`: worlds of cities, flights, roads, accommodations, restaurants, attractions.
- :mod:`~formal_llm.packs.travel.reading`: reads queries from sentences, by rules or with a model.
- :mod:`~formal_llm.packs.travel.tools`: the published tools.
- :mod:`~formal_llm.packs.travel.making`, :mod:`~formal_llm.packs.travel.generated`: an invented world, random queries.
"""

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.query import Constraints, TravelQuery
from formal_llm.packs.travel.reading import QueryReading, read_query, read_query_with
from formal_llm.packs.travel.tools import ToolSession

__all__ = ["Constraints", "QueryReading", "ToolSession", "TravelQuery", "World", "read_query", "read_query_with"]
