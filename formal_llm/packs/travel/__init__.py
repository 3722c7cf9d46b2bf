"""What the travel pack needs beside its text: the database, the published tools, the reader of wishes.

- :mod:`~formal_llm.packs.travel.query`: what a traveller wants.
- :mod:`~formal_llm.packs.travel.database`: a world of cities, flights, roads, beds, restaurants and sights.
- :mod:`~formal_llm.packs.travel.reading`: a query from sentences, by rules or by a model.
- :mod:`~formal_llm.packs.travel.tools`: the published tools.
- :mod:`~formal_llm.packs.travel.making`, :mod:`~formal_llm.packs.travel.generated`: our own world, random queries.
"""

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.query import Constraints, TravelQuery
from formal_llm.packs.travel.reading import QueryReading, read_query, read_query_with
from formal_llm.packs.travel.tools import ToolSession

__all__ = ["Constraints", "QueryReading", "ToolSession", "TravelQuery", "World", "read_query", "read_query_with"]
