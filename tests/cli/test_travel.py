import json
from dataclasses import replace

import pytest

from formal_llm.packs.travel.plan_days import to_json, to_text
from tests.cli.inside import runner
from tests.packs.travel.benchmark.folders import SENTENCES, folder
from tests.packs.travel.trips import trip

WISH = SENTENCES[0]
plan, verify = runner("plan"), runner("verify")


def test_a_trip_is_planned_offline_and_verified(tmp_path):
    days, page = tmp_path / "trip.json", tmp_path / "trip.html"
    code, printed, said = plan("travel", WISH, "--llm", "test:random", "--days-json", str(days), "--page", str(page))
    assert code == 0, said
    assert printed.startswith("From:    Lindhaven\nTo:      Port Serin\nDays:    3, 2022-03-10 to 2022-03-12\n")
    assert "Day 3, Saturday 12 March 2022: from Port Serin to Lindhaven" in printed
    assert "of the budget left" in printed
    assert page.read_text().startswith("<!DOCTYPE html>")
    code, printed, said = verify("travel", str(days), "--query", WISH)
    assert code == 0, said
    assert "final                     passed        passed" in printed


def test_only_the_days_on_standard_output():
    for arguments in (("travel", WISH, "--days-json", "-"), ("--days-json", "-", "--llm=test:random", "travel", WISH)):
        code, printed, _ = plan(*arguments)
        assert (code, len(json.loads(printed))) == (0, 3)


def test_all_trips_worth_a_choice_are_a_page(tmp_path):
    front, page = tmp_path / "front.html", tmp_path / "trip.html"
    code, _, said = plan(
        "travel", f"{WISH} A pool would be nice.", "--prefer", "cheap", "--front", str(front), "--page", str(page)
    )
    assert code == 0, said
    assert "trips that no other surpasses in costs, ratings, travel time and sights: " in said
    assert "trips to choose from" in front.read_text()
    assert "A pool would be nice" in page.read_text().split("<h2>")[0]
    assert "no preference is 'fun'" in plan("travel", WISH, "--prefer", "fun")[2]


def test_what_was_taken_for_granted_is_told():
    code, _, said = plan(
        "travel", "Please plan a trip from Lindhaven to Port Serin from March 10 to March 12.", "--today", "2022-01-01"
    )
    assert code == 0
    assert "taken for granted: one person travels" in said


def test_what_is_not_understood_is_reported_on_the_page_asked_or_an_error(tmp_path):
    page = tmp_path / "trip.html"
    wish = f"{WISH} No flights before 9 am. A pool would be nice."
    code, printed, said = plan("travel", wish, "--llm", "test:random", "--page", str(page), "--today", "2022-01-01")
    assert code == 0
    for place in (printed, page.read_text()):
        assert "no flight between 00:00 and 09:00" in place
        assert "A pool would be nice" in place
    assert "not understood: A pool would be nice" in said
    code, _, said = plan("travel", wish, "--strict")
    assert code == 2
    assert "not understood: A pool would be nice" in said
    code, printed, said = plan("travel", wish, "--llm", "test:random", "--ask", "test:first")
    assert code == 0
    assert "smoking allowed" in printed
    assert "'A pool would be nice' wishes for a bed that allows smoking, as answered" in said


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (WISH.replace("$9,000", "$10"), 1, "without a budget of $10"),
        (WISH.replace("March 10th", "February 31st"), 2, "February"),
        (WISH.replace("for 2 people", "for 0 people"), 2, "0 people"),
        ("Quiero viajar de Lindhaven a Port Serin por tres días con un presupuesto de 900 dólares", 2, "Spanish"),
        (WISH.replace("Port Serin", "Atlantis"), 2, "Atlantis"),
        ("", 2, "there is no text"),
    ],
)
def test_what_cannot_be_planned_says_why(text, code, said):
    found = plan("travel", text, "--llm", "test:random")
    assert found[0] == code
    assert said in found[2]


def test_files_that_are_not_there(tmp_path):
    assert "there is no folder" in plan("travel", WISH, "--page", str(tmp_path / "no" / "x.html"))[2]
    assert plan("travel", WISH, "--database", str(tmp_path / "no"))[0] == 2
    assert "no such file" in plan("travel", WISH, "--reference", str(tmp_path / "no.json"))[2].lower()
    (tmp_path / "x.json").write_text("{")
    assert "this is no JSON" in plan("travel", WISH, "--reference", str(tmp_path / "x.json"))[2]


def test_a_wrong_row_of_the_database_is_named(tmp_path):
    (tmp_path / "clean_restaurant_2022.csv").write_text(
        ",Name,City,Cuisines,Average Cost,Aggregate Rating\n0,Soup,Oriel,Tea,cheap,4.0\n"
    )
    (tmp_path / "citySet_with_states.txt").write_text("Oriel\tCorvale")
    code, _, said = plan("travel", WISH, "--database", str(tmp_path))
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
    code, printed, _ = verify("travel", written(tmp_path, to_json(wrong)), "--query", WISH)
    assert code == 1
    assert "strict: day 2, lunch: 'Nowhere, Oriel' is in Oriel, not in Port Serin (Within Current City)" in printed


def test_the_query_from_a_file(tmp_path):
    days, query, _ = trip("Lindhaven", "Port Serin")
    fields, text = tmp_path / "query.json", tmp_path / "query.txt"
    fields.write_text(json.dumps(query.to_json()))
    text.write_text(WISH)
    for file in (fields, text):
        code, printed, said = verify("travel", written(tmp_path, to_text(days)), "--query", str(file), "--json")
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
    code, _, told = verify("travel", written(tmp_path, plan), *options)
    assert code == 2
    assert said in told


def test_submissions_over_the_cases_of_a_folder(tmp_path):
    data = folder(tmp_path)
    plans = [to_json(trip("Lindhaven", "Port Serin")[0]), to_json(trip("Port Serin", "Oriel")[0])]
    lines = "\n".join(json.dumps({"idx": place, "plan": one}) for place, one in enumerate(plans, 1))
    code, printed, said = verify("travel", written(tmp_path, lines), "--data", str(data))
    assert code == 0, said
    assert "100.0% (2/2) |" in printed
    code, printed, _ = verify("travel", written(tmp_path, lines.splitlines()[0]), "--data", str(data))
    assert code == 1
    assert printed.startswith("1: official: no plan\n1: strict: no plan\n")


def test_other_packs_are_planned_and_verified_as_before():
    assert plan("travels", WISH)[0] == 2
    assert verify("openagi", "nowhere.txt")[0] == 2
