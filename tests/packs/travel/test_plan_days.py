import json

import pytest

from formal_llm.errors import InputError
from formal_llm.packs.travel.plan_days import (
    FIELDS,
    Day,
    Submission,
    has_content,
    read_number,
    read_plan,
    read_submissions,
    to_json,
    to_text,
)

DAY = {
    "days": 1, "current_city": "from A to B", "transportation": "Taxi, from A to B", "breakfast": "-", "lunch": "-",
    "dinner": "Soup, B", "attraction": "-", "accommodation": "Bed, B",
}  # fmt: skip


def test_a_day_is_read_and_written_back():
    (day,) = read_plan([DAY])
    assert day == Day(1, "from A to B", "Taxi, from A to B", dinner="Soup, B", accommodation="Bed, B")
    assert to_json([day]) == [DAY]
    assert read_plan(to_text([day])) == (day,)
    assert day.meals == (("breakfast", "-"), ("lunch", "-"), ("dinner", "Soup, B"))
    assert [has_content(text) for text in ("", "-", "Soup, B")] == [False, False, True]


def test_words_are_kept_as_they_are():
    (day,) = read_plan([{**DAY, "lunch": " Soup,  B ", "dinner": None}])
    assert (day.lunch, day.dinner) == (" Soup,  B ", "")


def test_what_is_lacking_is_told():
    (day,) = read_plan([{"day": "Day 3", "current_city": "B"}])
    assert day.days == 3
    assert day.lacking == ("transportation", "breakfast", "attraction", "lunch", "dinner", "accommodation")
    assert read_plan([{**DAY, "lunch": None}])[0].nulls == ("lunch",)
    first, second = read_plan([{}, DAY])
    assert (first.days, first.lacking, second.lacking) == (1, FIELDS, ())


def test_the_number_of_a_query_counts_from_zero():
    assert read_number({"index": 4, "idx": 9}) == 4
    assert read_number({"idx": 9}) == 8
    assert read_number({"idx": "nine"}) is None


@pytest.mark.parametrize("nothing", [None, [], [{}], {"plan": None}, "null", "[]"])
def test_nothing_is_no_plan(nothing):
    assert read_plan(nothing) == ()


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ("[{", "the plan: this is no JSON"),
        (7, "a plan is a list of days, not int: 7"),
        ({"days": []}, "this is one object, not a list of days"),
        (["Day 1"], "day 1: a day is an object with current_city"),
        ([{"title": "x"}], "day 1: this is no day of a trip: it has 'title'"),
        ([DAY, {**DAY, "lunch": ["Soup"]}], "day 2, lunch: this should be a text, or '-' for nothing, not ['Soup']"),
    ],
)
def test_what_is_no_plan_says_where(plan, said):
    with pytest.raises(InputError, match=r"^the plan") as error:
        read_plan(plan)
    assert said in str(error.value)


def test_submissions_of_all_forms():
    plan = read_plan([DAY])
    line = json.dumps({"idx": 1, "query": "Go\u2028there", "plan": [DAY]}, ensure_ascii=False)
    none = json.dumps({"idx": 2, "query": "Go", "plan": None})
    one = Submission(0, "Go\u2028there", plan)
    assert read_submissions(f"{line}\n{none}\n") == (one, Submission(1, "Go", ()))
    assert read_submissions(f"[{line}, {none}]") == (one, Submission(1, "Go", ()))
    assert read_submissions(line) == (one,)
    assert read_submissions(json.dumps([DAY], indent=1)) == (Submission(None, "", plan),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n", "f: the file is empty"),
        ('{"plan": []}\n{"plan": [}', "f, line 2: this is no JSON"),
        ('[{"days":\n1', "f: this is no JSON"),
    ],
)
def test_broken_files_say_where(text, said):
    with pytest.raises(InputError) as error:
        read_submissions(text, "f")
    assert str(error.value).startswith(said)
