"""Read queries from text: by rules, without any model, or with a model that fills in a form."""

from formal_llm.packs.travel.reading.draft import QueryReading
from formal_llm.packs.travel.reading.reader import ask_about, read_query, read_query_with

__all__ = ["QueryReading", "ask_about", "read_query", "read_query_with"]
