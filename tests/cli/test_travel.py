import json
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import pytest

from formal_llm.llms import resolve
from formal_llm.llms.doubles import TEXTS, FunctionLLM
from formal_llm.packs.travel.plan_days import to_json, to_text
from tests.cli.inside import runner
from tests.packs.travel.benchmark.folders import SENTENCES, folder
from tests.packs.travel.trips import trip

plan, verify = partial(runner("travel"), "plan"), partial(runner("travel"), "verify")
FIELDS = {
    "org": "Lindhaven", "dest": "Port Serin", "days": 3, "people_number": 2, "budget": 9000,
    "date": ["2022-03-10", "2022-03-11", "2022-03-12"],
}  # fmt: skip


def wish(**changed):
    return json.dumps(FIELDS | changed)


WISH = wish()


def test_a_trip_is_planned_offline_and_verified(tmp_path):
    days = tmp_path / "trip.json"
    code, printed, said = plan(WISH, "--llm", "test:random", "--days-json", str(days))
    assert code == 0, said
    assert printed.startswith("From:    Lindhaven\nTo:      Port Serin\nDays:    3, 2022-03-10 to 2022-03-12\n")
    assert "Day 3, Saturday 12 March 2022: from Port Serin to Lindhaven" in printed
    assert "of the budget left" in printed
    code, printed, said = verify(str(days), "--query", WISH)
    assert code == 0, said
    assert "final                     passed        passed" in printed


def test_only_the_days_on_standard_output():
    for arguments in ((WISH, "--days-json", "-"), ("--days-json", "-", "--llm=test:random", WISH)):
        code, printed, _ = plan(*arguments)
        assert (code, len(json.loads(printed))) == (0, 3)


def test_preferences():
    assert plan(WISH, "--prefer", "cheap")[0] == 0
    assert "no preference is 'fun'" in plan(WISH, "--prefer", "fun")[2]


def test_a_sentence_is_filled_into_the_form_by_a_model(monkeypatch):
    form = {
        "org": "Lindhaven", "dest": "Port Serin", "days": None, "first_day": "2022-03-10", "last_day": "2022-03-12",
        "cities": None, "people": None, "budget": None, "house_rule": None, "cuisines": [], "room_type": None,
        "transportation": None, "not_understood": ["A pool would be nice"],
    }  # fmt: skip
    monkeypatch.setattr("formal_llm.cli.travel.answerer", lambda name, *_: nullcontext(
        FunctionLLM(lambda _: json.dumps(form), can=TEXTS) if name == "test:first" else resolve(name)
    ))  # fmt: skip
    command = (SENTENCES[0], "--llm", "builtin", "--reader", "test:first")
    code, printed, said = plan(*command)
    assert code == 0, said
    assert "Unclear: A pool would be nice" in printed
    assert "taken for granted: one person travels" in said
    assert "not understood: A pool would be nice" in said
    code, _, said = plan(*command, "--strict")
    assert code == 2
    assert "not understood: A pool would be nice" in said


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (wish(budget=10), 1, "without a budget of $10"),
        (wish(date=["2022-03-10", "2022-02-31", "2022-03-12"]), 2, "2022-02-31"),
        (wish(people_number=0), 2, "'people_number' should be a whole number of at least 1"),
        (wish(dest=None), 2, "'dest' should be a text"),
        (SENTENCES[0], 2, "QUERY: an LLM reads sentences: name one with --reader, or give fields as JSON"),
        ("{", 2, "QUERY: this is no JSON"),
        ("nowhere.json", 2, "QUERY: there is no file nowhere.json"),
        ("", 2, "QUERY: an LLM reads sentences"),
    ],
)
def test_what_cannot_be_planned_says_why(text, code, said):
    found = plan(text, "--llm", "test:random")
    assert found[0] == code
    assert said in found[2]


def test_files_that_are_not_there(tmp_path):
    assert "there is no folder" in plan(WISH, "--days-json", str(tmp_path / "no" / "x.json"))[2]
    assert plan(WISH, "--database", str(tmp_path / "no"))[0] == 2
    assert "no such file" in plan(WISH, "--reference", str(tmp_path / "no.json"))[2].lower()
    (tmp_path / "x.json").write_text("{")
    assert "this is no JSON" in plan(WISH, "--reference", str(tmp_path / "x.json"))[2]


def test_a_wrong_row_of_the_database_is_named(tmp_path):
    (tmp_path / "clean_restaurant_2022.csv").write_text(
        ",Name,City,Cuisines,Average Cost,Aggregate Rating\n0,Soup,Oriel,Tea,cheap,4.0\n"
    )
    (tmp_path / "citySet_with_states.txt").write_text("Oriel\tCorvale")
    code, _, said = plan(WISH, "--database", str(tmp_path))
    assert code == 2
    assert "clean_restaurant_2022.csv" in said
    assert "cheap" in said


def written(tmp_path, value):
    file = tmp_path / "plan.json"
    file.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(file)


def test_an_invalid_plan_ends_with_1_and_says_where(tmp_path):
    days = trip("Lindhaven", "Port Serin")[0]
    wrong = (days[0], replace(days[1], lunch="Nowhere, Oriel"), days[2])
    code, printed, _ = verify(written(tmp_path, to_json(wrong)), "--query", WISH)
    assert code == 1
    assert "strict: day 2, lunch: 'Nowhere, Oriel' is in Oriel, not in Port Serin (Within Current City)" in printed


def test_the_query_from_a_file(tmp_path):
    days, query, _ = trip("Lindhaven", "Port Serin")
    file = tmp_path / "query.json"
    for text in (json.dumps(query.to_json()), WISH):
        file.write_text(text)
        code, printed, said = verify(written(tmp_path, to_text(days)), "--query", str(file), "--json")
        assert code == 0, said
        assert json.loads(printed)["plans"][0]["verdicts"][1]["final"] is True


@pytest.mark.parametrize(
    ("plan", "options", "said"),
    [
        ("[]", (), "what was wanted? give --query"),
        ("{", ("--query", WISH), "this is no JSON"),
        ("[]", ("--query", "nowhere.json"), "there is no file nowhere.json"),
        ("[]", ("--query", WISH, "--data", "."), "--data brings the queries and the database"),
        ("[]", ("--data", "nowhere"), "there is no such folder"),
    ],
)
def test_wrong_arguments(tmp_path, plan, options, said):
    code, _, told = verify(written(tmp_path, plan), *options)
    assert code == 2
    assert said in told


def test_submissions_over_the_cases_of_a_folder(tmp_path):
    data = folder(tmp_path)
    plans = [to_json(trip("Lindhaven", "Port Serin")[0]), to_json(trip("Port Serin", "Oriel")[0])]
    lines = "\n".join(json.dumps({"idx": place, "plan": one}) for place, one in enumerate(plans, 1))
    code, printed, said = verify(written(tmp_path, lines), "--data", str(data))
    assert code == 0, said
    assert "100.0% (2/2) |" in printed
    code, printed, _ = verify(written(tmp_path, lines.splitlines()[0]), "--data", str(data))
    assert code == 1
    assert printed.startswith("1: official: no plan\n1: strict: no plan\n")


def test_other_packs_are_planned_and_verified_as_before():
    assert plan("travels", WISH)[0] == 2
    assert verify("openagi", "nowhere.txt")[0] == 2
