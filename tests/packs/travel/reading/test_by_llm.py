import json
from datetime import date

import pytest

from formal_llm.errors import InvalidAnswer, QueryError
from formal_llm.llms.text_doubles import FunctionTextLLM, ScriptedTextLLM
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.reading import read_query, read_query_with

WORLD = World.shipped()
TEXT = "Quiero ir de Lindhaven a Oriel del 10 al 12 de marzo de 2022, dos personas, 900 dólares, cocina francesa"
FORM = {
    "org": "lindhaven", "dest": "Oriel", "days": None, "first_day": "2022-03-10", "last_day": "2022-03-12",
    "cities": None, "people": 2, "budget": 900, "house_rule": None, "cuisines": ["french", "Japanese"],
    "room_type": None, "transportation": "no flight", "not_understood": ["con piscina"],
}  # fmt: skip


def read(**change: object):
    return read_query_with(FunctionTextLLM(lambda _: json.dumps({**FORM, **change})), TEXT, WORLD)


def test_a_form_becomes_a_query() -> None:
    reading = read()
    english = "From Lindhaven to Oriel, March 10-12, 2022, for 2 people, $900, no flights, French food"
    query, same = reading.query, read_query(english, WORLD).query
    assert (query.org, query.dest, query.dates, query.people, query.budget, query.constraints) == (
        same.org, same.dest, same.dates, same.people, same.budget, same.constraints,
    )  # fmt: skip
    assert query.text == TEXT
    assert reading.not_understood == ("con piscina", "Japanese: no restaurant of this world has it")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"org": "Lindhafen"}, "did you mean Lindhaven"),
        ({"dest": None}, "where the trip goes"),
        ({"days": 4}, "are 3 days, not 4"),
        ({"people": 0}, "0 people cannot travel"),
        ({"first_day": None, "last_day": None}, "how many days"),
    ],
)
def test_what_a_model_filled_in_is_checked(change: dict, told: str) -> None:
    with pytest.raises(QueryError, match=told):
        read(**change)


def test_a_day_that_is_none_is_asked_again() -> None:
    llm = ScriptedTextLLM([json.dumps({**FORM, "first_day": "2022-02-31"}), json.dumps(FORM)])
    assert read_query_with(llm, TEXT, WORLD).query.dates[0] == date(2022, 3, 10)
    with pytest.raises(InvalidAnswer, match="first_day is '2022-02-31'"):
        read(first_day="2022-02-31")


def test_the_model_is_shown_text_and_day() -> None:
    seen = []
    read_query_with(
        FunctionTextLLM(lambda asked: seen.append(asked.prompt) or json.dumps(FORM)), TEXT, WORLD, date(2022, 1, 5)
    )
    assert TEXT in seen[0] and "Today is 2022-01-05" in seen[0]


def test_no_text_asks_nobody() -> None:
    with pytest.raises(QueryError, match="there is no text"):
        read_query_with(ScriptedTextLLM([]), " ", WORLD)
