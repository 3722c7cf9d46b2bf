from pathlib import Path

import pytest

from formal_llm.errors import NotationError
from formal_llm.packs.travel.folder import read_cities, read_folder
from tests.packs.travel.given import FOLDER, needs_data


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
