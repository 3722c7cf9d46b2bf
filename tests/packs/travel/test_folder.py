import pickle
import sqlite3
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formal_llm.errors import InputError, NotationError
from formal_llm.packs.travel import folder as module
from formal_llm.packs.travel.database import World
from formal_llm.packs.travel.flights import FlightList
from formal_llm.packs.travel.folder import FILES, FlightFile, build_flights, flight_file, read_cities, read_folder
from formal_llm.packs.travel.rows import Flight
from tests.packs.travel.given import FOLDER, needs_data
from tests.packs.travel.made import write_folder
from tests.packs.travel.worlds import CITIES, days, flights


def write(root: Path, name: str, text: str) -> Path:
    place = root / name
    place.parent.mkdir(exist_ok=True)
    place.write_text(text, encoding="utf-8")
    return place


@needs_data
def test_the_published_tables_have_the_rows_that_the_published_tools_use() -> None:
    found = read_folder(FOLDER / "database")
    assert len(found.accommodations) == 4_285  # of 5,047: what lacks a value is left out, and told
    assert sum("clean_accommodations" in one.source and not one.kept for one in found.problems) == 762
    assert (len(found.restaurants), len(found.attractions)) == (9_551, 5_302)
    assert sum(map(len, found.cities.values())) == 312
    told = [one for one in found.problems if "distance.csv" in one.source]
    assert told and all("is there twice" in one.problem and one.line > 1 for one in told)


def test_files_may_lie_anywhere_in_the_folder(tmp_path: Path) -> None:
    write(tmp_path, "distance.csv", "origin,destination,duration,distance\nA,B,1 hour 2 mins,98.6 km\nB,A,,\n")
    write(tmp_path, "other/clean_restaurant_2022.csv", "Name,City,Cuisines,Average Cost\nX,A,Tea,3\n")
    found = read_folder(tmp_path)
    assert [road.kilometres for road in found.roads] == [98.6, None]
    assert found.restaurants[0].rating is None and not found.problems and not len(found.flights)


def test_a_road_that_is_there_twice_is_told_where_it_differs(tmp_path: Path) -> None:
    lines = "origin,destination,duration,distance\nA,B,1 hour,90 km\nA,B,1 hour,90 km\nA,B,2 hours,95 km\n"
    write(tmp_path, "distance.csv", lines)
    found = read_folder(tmp_path)
    assert [road.distance for road in found.roads] == ["90 km"]
    assert [one.line for one in found.problems] == [4] and "95 km" in found.problems[0].problem


def test_a_name_that_is_there_twice_is_told_and_kept(tmp_path: Path) -> None:
    write(
        tmp_path,
        "clean_restaurant_2022.csv",
        'Name,City,Cuisines,Average Cost\nX,A,Tea,3\nX,B,Tea,3\nX,A,Tea,9\n"Y ",A,Tea,3\n',
    )
    found = read_folder(tmp_path)
    assert [one.cost for one in found.restaurants] == [3, 3, 9, 3]
    assert [(one.line, one.kept) for one in found.problems] == [(4, True), (5, True)]
    assert str(found.problems[0]).endswith("'X' in A is in line 2, too: a plan that names it means that one; kept")


@pytest.mark.parametrize("name", ["none", "empty"])
def test_a_folder_without_tables_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotationError, match=r"no such folder|none of the published tables"):
        read_folder(tmp_path / name)


def test_a_wrong_line_of_cities_is_told(tmp_path: Path) -> None:
    place = write(tmp_path, "citySet_with_states.txt", "A\tX\n\nB X\n")
    with pytest.raises(NotationError, match=r"txt:3: a line should have a city and its state"):
        read_cities(place)


def table(folder: Path, rows: list[Flight]) -> Path:
    write_folder(World(rows), folder)
    return folder / FILES["flights"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(rows=st.lists(flights, max_size=12), day=days)
def test_a_file_answers_as_a_list_does(tmp_path: Path, rows: list[Flight], day: date) -> None:
    place = tmp_path / "flights.sqlite"
    build_flights(table(tmp_path, rows), place)
    file, memory = FlightFile(place), FlightList(rows)
    assert (
        list(file) == list(memory) and len(file) == len(memory) and set(file.list_cities()) == set(memory.list_cities())
    )
    for origin in CITIES:
        for destination in CITIES:
            for when in (day, None):
                assert file.find_between(origin, destination, when) == memory.find_between(origin, destination, when)
    assert all(file.find_numbered(f"F{n}") == memory.find_numbered(f"F{n}") for n in range(1, 10))


def rows(count: int) -> list[Flight]:
    first = date(2022, 3, 1)
    return [Flight(f"F{n}", "A", "B", first + timedelta(n % 5), "5:00", "6:00", n) for n in range(count)]


def test_it_is_made_once_and_again_when_the_table_changes(tmp_path: Path) -> None:
    source, told = table(tmp_path, rows(3)), []
    first = flight_file(source, tmp_path / "cache", lambda done, of: told.append(done == of))
    assert told == [True]
    again = flight_file(source, tmp_path / "cache", lambda done, of: told.append(done == of))
    assert told == [True] and again.path == first.path
    table(tmp_path, rows(4))
    assert len(flight_file(source, tmp_path / "cache")) == 4
    assert not list((tmp_path / "cache").glob("*.part"))


def test_a_large_table_goes_into_a_file_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table(tmp_path, rows(5))
    monkeypatch.setattr("formal_llm.packs.travel.folder.MOST_IN_MEMORY", 10)
    world = World.from_folder(tmp_path, cache=tmp_path / "cache")
    assert [flight.number for flight in world.flights("A", "B", date(2022, 3, 1))] == ["F0"]
    assert list((tmp_path / "cache").glob("flights-*.sqlite"))


def test_lines_that_are_left_out_are_told_by_a_file_that_was_made_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_PROBLEMS", 2)
    monkeypatch.setattr(module, "_BATCH", 2)
    source = table(tmp_path, rows(7))
    text = source.read_text().replace("5:00", "", 5)
    source.write_text(text)
    for _ in range(2):
        file = flight_file(source, tmp_path / "cache")
        told = [str(one) for one in file.list_problems()]
        assert len(file) == 2 and len(told) == 3
        assert "csv:2, column 'DepTime': there is no value; left out" in told[0] and "3 more lines" in told[2]


def test_a_wrong_value_leaves_nothing_behind(tmp_path: Path) -> None:
    source = table(tmp_path, rows(3))
    source.write_text(source.read_text().replace("F2,2,", "F2,two,"))
    with pytest.raises(NotationError, match=r"csv:4: column 'Price' should be a number, not 'two'"):
        flight_file(source, tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())


def test_it_can_be_pickled(tmp_path: Path) -> None:
    file = flight_file(table(tmp_path, rows(2)), tmp_path / "cache")
    assert list(pickle.loads(pickle.dumps(file))) == list(file)


def test_another_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no database")
    with pytest.raises(InputError, match="no database file of flights"):
        FlightFile(tmp_path / "x")
    connection = sqlite3.connect(tmp_path / "y")
    connection.execute("CREATE TABLE meta (name, value)")
    connection.close()
    with pytest.raises(InputError, match="another version"):
        FlightFile(tmp_path / "y")


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(InputError, match="cannot be written"):
        flight_file(table(tmp_path, rows(2)), tmp_path / "cache")
