"""Read a query by rules, without any model.

Each kind of fact has its own rules: places by the words before them, dates and amounts by their forms, wishes by their
words and negations. Rules mark the text that they have read; clauses without any marked text, and unmarked numbers,
are reported as not understood. Nothing is guessed silently: assumptions about missing facts are reported, too, and
contradictions are errors.
"""

from __future__ import annotations

import re
from datetime import date

from formal_llm.errors import QueryError
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.reading.dates import read_dates
from formal_llm.packs.travel.reading.draft import QueryDraft, QueryReading
from formal_llm.packs.travel.reading.passages import Passage
from formal_llm.packs.travel.reading.people import read_budget, read_people
from formal_llm.packs.travel.reading.places import read_kinds, read_places
from formal_llm.packs.travel.reading.wishes import read_wishes

#: The maximum length of a text.
MOST_CHARACTERS = 5_000
_COMMON = {
    "English": "the to for from and of a in with is we i my our us trip days please budget people between would",
    "Spanish": "el la los las de para por con una un y desde hasta días dias viaje quiero presupuesto personas ciudad",
    "French": "le les des du pour avec une un et depuis jusqu voyage jours je nous notre personnes ville dans au",
    "German": "der die das und für fuer von nach mit eine ein ich wir unser reise tage personen vom bis zum im",
    "Italian": "il lo gli di per con una un e da viaggio giorni voglio persone città nel dal al che budget",
    "Portuguese": "o os as de para com uma um e desde até viagem dias quero orçamento pessoas cidade em no na",
}


def read_query(text: str, world: World, today: date | None = None) -> QueryReading:
    """Read a query from English sentences by rules.

    Args:
        text: the sentences: ``"Please plan a trip from Lindhaven to Oriel for 3 days, ..."``.
        world: its cities, states and cuisines are the known names.
        today: a date without a year is the next such day from this one on; by default today.

    Returns:
        The query, with the assumptions and the parts that were not understood.

    Raises:
        QueryError: a required fact is missing, unknown or contradictory; the error lists all problems.
    """
    _check_text(text)
    passage, draft = Passage(text), QueryDraft()
    read_places(passage, draft, world)
    read_dates(passage, draft, today or date.today())
    read_kinds(passage, draft, world)
    read_people(passage, draft)
    read_budget(passage, draft)
    read_wishes(passage, draft, world.cuisines)
    draft.not_understood += list(passage.left_over())
    return draft.make_reading(text, world)


def _check_text(text: str) -> None:
    """Check that a text can be a query in English, and raise ``QueryError`` otherwise."""
    if not text.strip():
        raise QueryError(text, [("text", "there is no text", "write what is wanted: a trip from CITY to CITY ...")])
    if len(text) > MOST_CHARACTERS:
        raise QueryError(text, [("text", f"it has more than {MOST_CHARACTERS:,} characters", "say it in fewer words")])
    words = re.findall(r"[^\W\d_]+", text.casefold())
    counts = {name: sum(word in common.split() for word in words) for name, common in _COMMON.items()}
    best = max(counts, key=lambda name: (counts[name], name == "English"))
    letters = sum(sign.isalpha() for sign in text)
    foreign = sum(sign.isalpha() and not sign.isascii() for sign in text)
    if foreign > letters / 2:
        best = "another language"
    if best != "English" and (best == "another language" or counts[best] >= counts["English"] + 3):
        raise QueryError(
            text,
            [("text", f"this looks like {best}; the rules read English", "write it in English, or let a model read")],
        )
