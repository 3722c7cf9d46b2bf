import pytest

from formal_llm.packs.travel.query import Constraints, arrange_wishes
from formal_llm.packs.travel.reading.draft import QueryDraft
from formal_llm.packs.travel.reading.passages import Passage
from formal_llm.packs.travel.reading.wishes import read_wishes


def read(text: str) -> QueryDraft:
    draft = QueryDraft()
    read_wishes(Passage(text), draft, ["Tea", "Pizza", "French"], ["The Museum", "Old Mill"])
    return draft


def fields(text: str) -> Constraints:
    return arrange_wishes(read(text).wishes)[0]


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
        ("we want shared rooms", None, "shared room", None),
        ("shared rooms will do", None, "shared room", None),
        ("rooms not shared with strangers", None, "not shared room", None),
        ("An entire home is not necessary", None, None, None),
        ("either a private room or an entire home", None, "not shared room", None),
        ("We want neither a shared room nor a dorm", None, "not shared room", None),
        ("We do not insist on a private room", None, None, None),
        ("a hotel that does not forbid pets", "pets", None, None),
        ("Pets need not be allowed", None, None, None),
        ("Our cat stays at home", None, None, None),
        ("We would not mind flying", None, None, None),
        ("There is no need to avoid planes", None, None, None),
        ("Please avoid, if possible, flights", None, None, "no flight"),
        ("I do not think that we want to fly", None, None, "no flight"),
        ("My husband does not hate flying", None, None, None),
        ("We could fly if it is cheap", None, None, None),
        ("No flights on Sundays", None, None, None),
        ("We do not need to rent a car", None, None, None),
        ("options where we do not need to drive", None, None, "no self-driving"),
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
    found = fields(text)
    assert (found.house_rule, found.room_type, found.transportation) == (house, room, transport)


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
    assert fields(text).cuisines == cuisines


@pytest.mark.parametrize(
    ("text", "wishes"),
    [
        ("no flights and no taxis", ["no flight", "no taxi"]),
        ("We do not want to fly, drive or take a taxi", ["no flight", "no self-driving", "no taxi"]),
        ("We travel by train or bus", ["only train or bus"]),
        ("Anything but a plane is fine", ["no flight"]),
        ("Avoid flights at night", ["no flight between 22:00 and 06:00"]),
        ("No red-eyes", ["no flight between 22:00 and 06:00"]),
        ("No flights before 9 am", ["no flight between 00:00 and 09:00"]),
        ("Flights after 10:30 only", ["no flight between 00:00 and 10:30"]),
        ("Flights only between 9 am and 5 pm", ["no flight between 17:00 and 09:00"]),
        ("Be back by 6 pm", ["home by 18:00"]),
        ("Indian food every day", ["Indian food each day"]),
        ("We want Indian food for dinner on day 2", ["Indian food for dinner on day 2"]),
        ("We want a free evening on day 2", ["a free evening on day 2"]),
        ("A free evening", ["a free evening"]),
        ("We arrive before noon", ["arriving by 12:00"]),
        ("Leave after 10 in the morning", ["leaving after 10:00"]),
        ("Do not leave before 8 am", ["leaving after 08:00"]),
        ("no more than four hours of travel a day", ["at most 4 hours of travel a day"]),
        ("at least two sights a day", ["at least 2 sights a day"]),
        ("hotels rated 4 or better", ["a rating of at least 4 for each bed"]),
        ("4-star restaurants", ["a rating of at least 4 for each restaurant"]),
        ("a smoke-free hotel", ["a bed that forbids smoking"]),
        ("no pets in the house", ["a bed that forbids pets"]),
        ("We have no pets", []),
        ("Our dogs stay with a friend", []),
        ("We can skip the Old Mill, but not the Museum", ["a visit to The Museum"]),
        ("We eat only vegetarian", ["vegetarian food at every meal"]),
        ("We are vegans", ["vegan food at every meal"]),
        ("We do not want to eat anything but Indian food", ["Indian food at every meal"]),
        ("We do not want Chinese food", ["no Chinese food"]),
        ("We have had enough of French food", ["no French food"]),
        ("We would not object to Indian food", []),
        ("Indian is out, French food is in", ["French food", "no Indian food"]),
        ("We want to see the Museum, but not the Old Mill", ["a visit to The Museum", "no visit to Old Mill"]),
        ("We do not want to miss the Old Mill", ["a visit to Old Mill"]),
        ("We fly there and take the train back", ["only flight or train"]),
        ("We allow no parties", ["a bed that forbids parties"]),
        ("We want no private room", ["a bed in: entire room or shared room"]),
        ("It is only the bus that we can't stand", ["no bus"]),
        ("He likes Indian food, but I cannot eat it, so skip it", ["no Indian food"]),
        ("Do not leave out the Old Mill", ["a visit to Old Mill"]),
        ("We have stopped smoking", []),
        ("Do not put us where others smoke", ["a bed that forbids smoking"]),
        ("We do not want only Indian food", ["Indian food"]),
        ("We would never say no to a flight", []),
        ("My husband would not mind a shared room and neither would I", []),
        ("Arrive by half past six in the evening", ["arriving by 18:30"]),
        (
            "Nothing in the air between ten at night and six in the morning",
            ["no flight between 22:00 and 06:00"],
        ),
    ],
)
def test_wishes_without_a_field(text: str, wishes: list[str]) -> None:
    draft = read(text)
    assert sorted(map(str, draft.wishes)) == sorted(wishes)
    assert draft.not_understood == []


@pytest.mark.parametrize(
    "text",
    [
        "we want to fly", "No flights longer than three hours", "be back by 6", "We do not want Indian food every day",
        "We'd take the train only if there is no bus", "Only direct flights", "Children are not welcome",
        "private rooms, entire homes and yet shared rooms", "vegan food",
        "Is smoking allowed?", "We two can share a room", "We'd fly only in an emergency", "No more than two taxis",
        "Indian food only for dinner", "We would rather take the train than fly", "No budget airlines",
        "I am scared of flying, but book a plane", "We have seen the Old Mill already", "Only one of us drives",
        "He loves French food, I don't", "French food gives him trouble",
        "We only take taxis at night", "A shared room is too loud", "On the last day leave after 10 am",
        "A private room? Not necessary.", "Trains: yes. Flights: no", "No flights on the way home",
        "Parties are the last thing we need",
    ],
)  # fmt: skip
def test_what_is_unclear_is_not_guessed(text: str) -> None:
    draft = read(text)
    assert draft.wishes == [] and draft.not_understood


def test_what_is_neither_wanted_nor_excluded_is_assumed() -> None:
    assert read("We would not mind flying").assumed == [
        "'We would not mind flying' neither asks for flight nor excludes it"
    ]
