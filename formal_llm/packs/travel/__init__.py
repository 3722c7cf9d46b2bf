"""What the travel pack needs beside its text: the database, the published tools, the reader of wishes.

- :mod:`~formal_llm.packs.travel.query`: what a traveller wants.
- :mod:`~formal_llm.packs.travel.database`: a world of cities, flights, roads, beds, restaurants and sights.
"""
