"""Read a query by rules, without any model, or with a model that fills in a form.

Each kind of fact has its own rules: places by the words before them, dates and amounts by their forms, wishes by their
words and negations. Rules mark the text that they have read; clauses without any marked text, and unmarked numbers,
are reported as not understood. Nothing is guessed silently: assumptions about missing facts are reported, too, and
contradictions are errors. What a model fills in is checked like the results of the rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any

from formal_llm.errors import QueryError
from formal_llm.llms.driven import driven
from formal_llm.llms.llm import LLM, answered, attempts
from formal_llm.llms.objects import Writer, generate_object
from formal_llm.llms.question import Question
from formal_llm.llms.schemas import closed
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.query import (
    CUISINES,
    FIELD_WISHES,
    HOUSE_RULES,
    ROOM_TYPES,
    TRANSPORTATION,
    Constraints,
    arrange_wishes,
    dollars,
)
from formal_llm.packs.travel.reading.dates import read_dates
from formal_llm.packs.travel.reading.draft import MOST_DAYS, MOST_PEOPLE, QueryDraft, QueryReading
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
    _read_rest(passage, draft, world)
    return draft.make_reading(text, world)


def _read_rest(passage: Passage, draft: QueryDraft, world: World) -> None:
    """Record the wishes, and what is left over."""
    cities = (draft.dest, *world.cities(draft.dest)) if draft.dest else ()
    read_wishes(passage, draft, world.cuisines, [one.name for city in cities for one in world.attractions(city)])
    draft.not_understood += list(passage.left_over())


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


_NULL = {"type": "null"}


def _or_null(schema: Mapping[str, object], description: str) -> dict[str, object]:
    return {"anyOf": [schema, _NULL], "description": description}


#: The form; facts missing in the text are null.
FORM = closed(
    {
        "org": _or_null({"type": "string"}, "The city where the trip begins and ends, as it is written."),
        "dest": _or_null({"type": "string"}, "The city that is visited; where several are, their state."),
        "days": _or_null({"type": "integer", "minimum": 1, "maximum": MOST_DAYS}, "How many days the trip takes."),
        "first_day": _or_null({"type": "string"}, "The first day, as YYYY-MM-DD."),
        "last_day": _or_null({"type": "string"}, "The last day, as YYYY-MM-DD."),
        "cities": _or_null({"type": "integer", "minimum": 1}, "How many cities are visited, the first not counted."),
        "people": _or_null({"type": "integer", "minimum": 0, "maximum": MOST_PEOPLE}, "How many travel."),
        "budget": _or_null({"type": "number", "minimum": 0}, "The most that all spend together, in dollars."),
        "house_rule": _or_null({"enum": list(HOUSE_RULES)}, "What the bed must allow."),
        "cuisines": {"type": "array", "items": {"type": "string"}, "description": "Cuisines that are wished for."},
        "room_type": _or_null({"enum": list(ROOM_TYPES)}, "The room that is wished for."),
        "transportation": _or_null({"enum": list(TRANSPORTATION)}, "The transport that is ruled out."),
        "not_understood": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Each wish for which this form has no place, as a short English sentence.",
        },
    }
)
_ASKED = """Fill in the form from what a traveller wrote. Copy names as they are written. What is not told is null; \
guess nothing. Today is {today}; a date without a year is the next such day. Cuisines are for example {cuisines}.

What the traveller wrote:
{text}"""


def read_query_with(llm: Writer, text: str, world: World, today: date | None = None) -> QueryReading:
    """Read a query with a model, in any language that it understands.

    Args:
        llm: a model that writes objects or text.
        text: the traveller's text.
        world: its cities, states and cuisines are the known names.
        today: the date from which the years of incomplete dates are inferred; by default today.

    Returns:
        The query, with the assumptions and the parts that were not understood.

    Raises:
        QueryError: a required fact is missing, unknown or contradictory; the error lists all problems.
        InvalidAnswer: the model did not fill in the form, twice.
        WritesNoText: the model does not write text.
    """
    if not text.strip():
        raise QueryError(text, [("text", "there is no text", "write what is wanted: a trip from CITY to CITY ...")])
    prompt = _ASKED.format(today=today or date.today(), cuisines=", ".join(CUISINES), text=text)
    fields: Mapping[str, Any] = generate_object(llm, prompt, FORM, max_tokens=1024, check=_check_days).value
    draft = QueryDraft(
        org=_match_name(fields["org"], world.cities()),
        dest=_match_name(fields["dest"], [*world.cities(), *world.states]),
        days=fields["days"],
        first=_read_day(fields["first_day"]),
        last=_read_day(fields["last_day"]),
        cities=fields["cities"],
        people=fields["people"],
        budget=None if fields["budget"] is None else dollars(fields["budget"]),
    )
    known = {name.casefold(): name for name in [*world.cuisines, *CUISINES]}
    wanted = fields["cuisines"]
    fixed = Constraints(
        fields["house_rule"], tuple(known[one.casefold()] for one in wanted if one.casefold() in known),
        fields["room_type"], fields["transportation"],
    )  # fmt: skip
    draft.wishes = list(fixed.to_wishes())
    for sentence in fields["not_understood"]:
        _read_rest(Passage(sentence), draft, world)
    draft.not_understood += [
        f"{one}: no restaurant of this world has it" for one in wanted if one.casefold() not in known
    ]
    return draft.make_reading(text, world)


def ask_about(reading: QueryReading, llm: LLM, second: QueryReading | None = None) -> QueryReading:
    """Ask numbered questions about what was not understood, and about the differences between two readings.

    Args:
        reading: a reading.
        llm: who answers: a model, or a person.
        second: a reading of the same text by somebody else.

    Returns:
        The reading as answered. What is left out stays in ``not_understood``.

    Raises:
        InvalidAnswer, LLMError: no question was answered, or the model could not be asked.
    """
    query, assumed = reading.query, list(reading.assumed)

    def choose(asked: str, options: Sequence[str]) -> int:
        prompt = f"A traveller wrote: {query.text}\n{asked}"
        return driven(attempts(Question(prompt, options, task=query.text)), partial(answered, llm)).number - 1

    wishes = [*query.constraints.to_wishes(), *query.wishes]
    if second is not None:
        for names in _COMPARED:
            mine, other = ([getattr(one, name) for name in names] for one in (query, second.query))
            if mine != other:
                options = [", ".join(map(_format_value, values)) for values in (mine, other)]
                if choose(f"Two readers differ. Which is meant ({names[0]})?", options):
                    query = replace(query, **dict(zip(names, other, strict=True)))
        others = [*second.query.constraints.to_wishes(), *second.query.wishes]
        for wish in [one for one in [*wishes, *others] if (one in wishes) != (one in others)]:
            kept = not choose(f"Two readers differ. Is this wished for: {wish}?", ("yes", "no"))
            wishes = [*[one for one in wishes if one != wish], *([wish] if kept else [])]
    left = []
    for part in query.not_understood:
        offered = [wish for wish in FIELD_WISHES if wish not in wishes]
        number = choose(f"What does {part!r} wish for?", [*map(str, offered), "nothing of this: leave it out"])
        if number == len(offered):
            left.append(part)
        else:
            wishes.append(offered[number])
            assumed.append(f"{part!r} wishes for {offered[number]}, as answered")
    constraints, further = arrange_wishes(wishes)
    query = replace(query, constraints=constraints, wishes=further, not_understood=tuple(left))
    return QueryReading(query, tuple(assumed))


#: The fields that are compared together.
_COMPARED = (("org",), ("dest", "visiting_city_number"), ("days", "dates"), ("people",), ("budget",))


def _format_value(value: object) -> str:
    return f"{value[0]} to {value[-1]}" if isinstance(value, tuple) else str(value)


def _check_days(made: Mapping[str, object]) -> str | None:
    """Return the error in the days, for the model; None if there is none."""
    for name in ("first_day", "last_day"):
        try:
            _read_day(made[name])
        except ValueError:
            return f"{name} is {made[name]!r}, which is no day of the calendar as YYYY-MM-DD"
    return None


def _match_name(value: object, known: Sequence[str]) -> str | None:
    """Return a name in the spelling of the world if only the letter case differs."""
    if value is None:
        return None
    plain = str(value).strip()
    return next((name for name in known if name.casefold() == plain.casefold()), plain)


def _read_day(value: object) -> date | None:
    return None if value is None else date.fromisoformat(str(value))
