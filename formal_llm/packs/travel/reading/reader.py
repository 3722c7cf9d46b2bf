"""Reading a query by rules, without any model.

Each kind of fact has its own rules: places by the words before them, dates and amounts by their forms, wishes by their
words and by what turns them into the contrary. What a rule has read is marked; a clause of which nothing was read, and
any number that was not, is told as not understood. Nothing is guessed in silence: what was not told and is taken for
granted is told too, and a contradiction is an error.
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

#: A longer text is no query.
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
    """What a traveller wants, read by rules from English sentences.

    Args:
        text: the sentences: ``"Please plan a trip from Lindhaven to Oriel for 3 days, ..."``.
        world: its cities, states and cuisines are the names that are known.
        today: where a date has no year, it is that of the next such day after this one; today where left out.

    Returns:
        The query, with what was taken for granted and what was not understood.

    Raises:
        QueryError: something that a trip needs is missing, unknown or contradicts itself; with all that is wrong.
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
    return draft.reading(text, world)


def _check_text(text: str) -> None:
    """Raise where a text cannot be a query in English."""
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
