import json

import pytest

from formal_llm.errors import InputError, NotationError
from formal_llm.packs.travel.benchmark.cases import read_cases
from tests.packs.travel.benchmark.folders import SENTENCES, folder
from tests.packs.travel.given import FOLDER, needs_data


def test_cases_with_their_worlds(tmp_path):
    first, second = read_cases(folder(tmp_path))
    assert (first.text, second.index) == (SENTENCES[0], 1)
    assert first.query.dest == "Port Serin"
    assert len(first.annotated) == 3
    assert len(first.collected.restaurants("Port Serin")) == 10
    assert first.collected.restaurants("Oriel") == ()


def test_the_database_holds_more_than_was_collected(tmp_path):
    base = tmp_path / "database"
    base.mkdir()
    (base / "clean_restaurant_2022.csv").write_text(
        ",Name,City,Cuisines,Average Cost,Aggregate Rating\n0,Soup,Oriel,Tea,10,4.0\n"
    )
    (base / "citySet_with_states.txt").write_text("Oriel\tCorvale\nPort Serin\tBelloro\nLindhaven\tArvenia")
    first, second = read_cases(folder(tmp_path))
    assert [one.name for one in first.world.restaurants("Oriel")] == ["Soup"]
    assert first.collected.state_of("Oriel") == "Corvale"
    assert len(second.collected.restaurants("Oriel")) == 10


def test_csv_files_of_the_data_set(tmp_path):
    (tmp_path / "validation.csv").write_text(
        "org,dest,days,visiting_city_number,date,people_number,local_constraint,budget,query,reference_information\n"
        "Ham,York,1,1,\"['2022-03-10']\",2,\"{'house rule': None, 'cuisine': ['Tea']}\",100,Ham to York,{}\n"
    )
    (case,) = read_cases(tmp_path)
    assert (case.query.org, case.query.constraints.cuisines) == ("Ham", ("Tea",))


def test_a_sentence_alone_means_nothing_that_was_written_down_for_another(tmp_path):
    """Whatever its number and its cities: a meaning belongs to one sentence."""
    lines = [
        {"index": 0, "query": "Please help me plan a trip from St. Petersburg to Rockford spanning 3 days."},
        {"index": 3, "query": "Please plan a 3-day trip for 4 people from Boise to New Orleans, with $9,000."},
    ]
    (tmp_path / "validation.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert [case.query for case in read_cases(tmp_path)] == [None, None]


@needs_data
def test_the_given_sentences_mean_what_was_written_down_for_them():
    given = read_cases(FOLDER)
    assert all(case.query is not None and case.query.text == case.text for case in given)
    assert (given[0].query.org, given[0].query.budget) == ("St. Petersburg", 1700)
    for case in given:
        days = [day for day in case.annotated if day.current_city not in ("", "-")]
        assert len(days) == case.query.days
        assert days[0].current_city.startswith(f"from {case.query.org} to ")
        visited = [title for title in case.reference if title.startswith("Attractions in ")]
        assert len(visited) == case.query.visiting_city_number


def test_tables_have_a_fingerprint(tmp_path):
    base = tmp_path / "database"
    base.mkdir()
    folder(tmp_path)
    found = []
    for price in (10, 10, 11):
        (base / "clean_restaurant_2022.csv").write_text(f"Name,City,Cuisines,Average Cost\nSoup,Oriel,Tea,{price}\n")
        found.append(read_cases(tmp_path)[0].fingerprint)
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "it has no train.jsonl"),
        ("[1]", "train.jsonl, line 1: a case is an object with 'query'"),
        ("{\n", "train.jsonl, line 1: this is no JSON"),
        ('\n{"idx": 1}', "train.jsonl, line 2: the case has no 'query'; it has idx"),
        ('{"query": "A to B", "org": "A", "date": []}', "train.jsonl, line 1: "),
        ('{"query": "A", "annotated_plan": 7}', "annotated_plan: a plan is a list of days"),
    ],
)
def test_what_cannot_be_read_says_where(tmp_path, content, said):
    if content is not None:
        (tmp_path / "train.jsonl").write_text(content)
    with pytest.raises(InputError) as error:
        read_cases(tmp_path)
    assert said in str(error.value)


def test_no_folder_and_a_column_that_is_missing(tmp_path):
    with pytest.raises(InputError, match="there is no such folder"):
        read_cases(tmp_path / "nowhere")
    (tmp_path / "database").mkdir()
    (tmp_path / "database" / "clean_restaurant_2022.csv").write_text("Name,City\nSoup,Oriel\n")
    (tmp_path / "train.jsonl").write_text('{"query": "A"}')
    with pytest.raises(NotationError, match="Cuisines"):
        read_cases(tmp_path)
