from datetime import date

import pytest

from formal_llm.packs.travel.reading.dates import read_dates
from formal_llm.packs.travel.reading.draft import QueryDraft
from formal_llm.packs.travel.reading.passages import Passage


def read(text: str) -> QueryDraft:
    draft = QueryDraft()
    read_dates(Passage(text), draft, date(2022, 1, 1))
    return draft


@pytest.mark.parametrize(
    "text",
    [
        "from March 16th to March 18th, 2022", "from the 16th to the 18th of March, 2022", "16-18 March 2022",
        "16.03.2022 - 18.03.2022", "3/16/2022-3/18/2022", "2022/03/16-2022/03/18",

        "March 16-18, 2022", "2022-03-16 to 2022-03-18", "03/16/2022 - 03/18/2022", "16/03/2022 to 18/03/2022",
        "March 16, 17 and 18, 2022", "16.-18. March 2022", "from March 16th until the 18th, 2022",
        "Wednesday 16 March 2022 till Friday 18 March 2022", "16 mar 2022 - 18 mar 2022",
        "Mar. 16 through Mar. 18, 2022",
        "between the 16th of March and the 18th of March 2022", "starting March 16, 2022 and back on the 18th",
    ],
)  # fmt: skip
def test_ways_to_write_two_days(text: str) -> None:
    draft = read(text)
    assert (draft.first, draft.last) == (date(2022, 3, 16), date(2022, 3, 18)) and not draft.problems


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("for 3 days", 3),
        ("a five-day trip", 5),
        ("a week-long tour", 7),
        ("for a week", 7),
        ("two nights", 3),
        ("two weeks", 14),
    ],
)
def test_ways_to_write_a_length(text: str, days: int) -> None:
    assert read(text).days == days


def test_the_length_that_fits_the_days_counts() -> None:
    draft = read("Ten days is too long, so 3 days from March 16 to March 18, 2022")
    assert draft.days == 3


@pytest.mark.parametrize(("text", "problem"), [
    ("from January 30th to February 30th, 2022", "there is no 30 February 2022"),
    ("from January 32nd to February 3rd, 2022", "there is no 32 January 2022"),
    ("2022-13-01 to 2022-13-03", "there is no 1 month 13 2022"),
    ("2022-12-32 to 2022-12-33", "there is no 32 December 2022"),
])  # fmt: skip
def test_a_day_that_does_not_exist(text: str, problem: str) -> None:
    assert [one[1].split(" (")[0] for one in read(text).problems] == [problem]


def test_a_month_is_no_day() -> None:
    assert read("the 2nd of them, may I say").first is None
