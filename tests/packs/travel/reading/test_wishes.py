import pytest

from formal_llm.packs.travel.reading.draft import QueryDraft
from formal_llm.packs.travel.reading.passages import Passage
from formal_llm.packs.travel.reading.wishes import read_wishes


def read(text: str) -> QueryDraft:
    draft = QueryDraft()
    read_wishes(Passage(text), draft, ["Tea", "Pizza", "French"])
    return draft


@pytest.mark.parametrize(
    ("text", "house", "room", "transport"),
    [
        ("pet-friendly rooms only", "pets", None, None),
        ("We have a dog.", "pets", None, None),
        ("We do not smoke.", None, None, None),
        ("It must allow smoking", "smoking", None, None),
        ("a party of five", None, None, None),
        ("we will throw a small party", "parties", None, None),
        ("our kids are 4 and 12", "children under 10", None, None),
        ("our kids are 12 and 14", None, None, None),
        ("children under the age of 10", "children under 10", None, None),
        ("two adults, no children", None, None, None),
        ("friends want to visit us", "visitors", None, None),
        ("entire rooms to ourselves", None, "entire room", None),
        ("no shared rooms", None, "not shared room", None),
        ("shared rooms will do", None, "shared room", None),
        ("a private room", None, "private room", None),
        ("I hate flying", None, None, "no flight"),
        ("we won't take any flights", None, None, "no flight"),
        ("nobody can drive", None, None, "no self-driving"),
        ("non-self-driving transportation and private rooms", None, "private room", "no self-driving"),
        ("we'd like to fly", None, None, None),
        ("no specific preferences about house rules, cuisine or flights", None, None, None),
        ("No flights and entire rooms", None, "entire room", "no flight"),
    ],
)
def test_wishes(text: str, house: str | None, room: str | None, transport: str | None) -> None:
    draft = read(text)
    assert (draft.house_rule, draft.room_type, draft.transportation) == (house, room, transport)


@pytest.mark.parametrize(
    ("text", "cuisines"),
    [
        ("We love French and Indian food", ("French", "Indian")),
        ("American friends come along", ()),
        ("no Chinese food", ()),
        ("French food but nothing Chinese", ("French",)),
        ("we drink a lot of tea", ()),
        ("we would eat pizza", ("Pizza",)),
        ("Mexican restaurants", ("Mexican",)),
    ],
)
def test_cuisines(text: str, cuisines: tuple[str, ...]) -> None:
    assert read(text).cuisines == cuisines


def test_the_contrary_of_a_wish_is_told() -> None:
    assert read("We do not want Chinese food").not_understood == ["We do not want Chinese food"]
    assert read("we want to fly").not_understood == ["we want to fly"]
