import json

import pytest

from formal_llm.errors import InputError, NotationError
from formal_llm.packs.travel.benchmark.cases import read_cases
from tests.packs.travel.benchmark.folders import SENTENCES, folder


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


def test_a_sentence_alone_means_what_was_written_down_for_it(tmp_path):
    line = {"index": 0, "query": "Please help me plan a trip from St. Petersburg to Rockford spanning 3 days"}
    (tmp_path / "train.jsonl").write_text(json.dumps(line) + "\n" + json.dumps({"index": 1, "query": "Elsewhere"}))
    known, other = read_cases(tmp_path)
    assert known.query.budget == 1700
    assert other.query is None


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
