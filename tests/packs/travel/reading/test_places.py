import pytest

from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.reading.draft import QueryDraft
from formal_llm.packs.travel.reading.passages import Passage
from formal_llm.packs.travel.reading.places import read_kinds, read_places

WORLD = World.shipped()


def read(text: str) -> QueryDraft:
    draft, passage = QueryDraft(), Passage(text)
    read_places(passage, draft, WORLD)
    read_kinds(passage, draft, WORLD)
    return draft


@pytest.mark.parametrize(
    ("text", "org", "dest", "cities"),
    [
        ("from Oriel to Oriel Falls", "Oriel", "Oriel Falls", None),
        ("to Alder, departing from St. Alder", "St. Alder", "Alder", None),
        ("from saint alder to alder", "St. Alder", "Alder", None),
        ("Oriel -> Alder", "Oriel", "Alder", None),
        ("We leave Oriel and explore 2 different cities in Belloro", "Oriel", "Belloro", 2),
        ("three cities of Dunmere, starting at Oriel", "Oriel", "Dunmere", 3),
        ("from Kestrel Bay to Dunmere, the city", "Kestrel Bay", "Dunmere", 1),
        ("I live in Dunmere and want to see Kestrel Bay", "Dunmere", "Kestrel Bay", None),
        ("from Lindhaven to Atlantis", "Lindhaven", "Atlantis", None),
        ("from Oriel, visiting Vallisto and Casa Rima", "Oriel", "Belloro", 2),
        ("from Oriel to Vallisto, and never to Alder", "Oriel", "Vallisto", None),
        ("Vallisto is where we are headed and Oriel is where we live", "Oriel", "Vallisto", None),
        ("Oriel is our home and Vallisto our goal", "Oriel", "Vallisto", None),
        ("Not to Alder but to Vallisto, from Oriel", "Oriel", "Vallisto", None),
        ("we go in March", None, None, None),
    ],
)
def test_where_it_begins_and_where_it_goes(text: str, org: str | None, dest: str | None, cities: int | None) -> None:
    draft = read(text)
    assert (draft.org, draft.dest, draft.cities) == (org, dest, cities)


def test_a_third_city_is_told() -> None:
    assert read("from Oriel to Alder, and see Vallisto").not_understood == ["Vallisto"]
    assert "left to the plan" in read("from Oriel to 2 cities in Belloro such as Vallisto").not_understood[0]


def test_a_name_without_a_capital_is_a_word_where_names_have_one() -> None:
    assert read("From Lindhaven to Oriel under an alder").not_understood == []
