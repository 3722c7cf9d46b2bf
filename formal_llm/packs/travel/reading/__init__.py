"""Read queries from text: by rules, without any model, or with a model that fills in a form.

- :mod:`~formal_llm.packs.travel.reading.reader`: by rules.
- :mod:`~formal_llm.packs.travel.reading.reader`: with a model.
"""

from formal_llm.packs.travel.reading.draft import QueryReading
from formal_llm.packs.travel.reading.reader import read_query, read_query_with

__all__ = ["QueryReading", "read_query", "read_query_with"]
