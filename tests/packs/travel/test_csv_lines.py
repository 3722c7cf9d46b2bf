from pathlib import Path

import pytest

from formal_llm.errors import NotationError
from formal_llm.packs.travel.csv_lines import csv_lines
from formal_llm.packs.travel.tables import RESTAURANTS

HEADER = ",Name,City,Cuisines,Average Cost,Aggregate Rating\n"


def write(folder: Path, text: str | bytes) -> Path:
    place = folder / "r.csv"
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    return place


def test_lines_are_numbered_as_in_the_file(tmp_path: Path) -> None:
    place = write(tmp_path, HEADER + '0,"A\nB",C,Tea,3,4\n\n1,D,C,Tea,3,4\n')
    assert [(line, cells["Name"]) for line, cells in csv_lines(place, RESTAURANTS)] == [(2, "A\nB"), (5, "D")]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "the file is empty"),
        (HEADER + "0,A,B\n", "r.csv:2: the line has 3 cells, the header 6"),
        (HEADER + '0,"A,B,Tea,3,4\n', "this is no CSV"),
        ("Name;City\n", "no column"),
        (b"PK\x03\x04\xff\xfe\x00", "no text in UTF-8|no CSV|no column"),
    ],
)
def test_what_is_no_such_table_is_told(tmp_path: Path, text: str | bytes, told: str) -> None:
    with pytest.raises(NotationError, match=told):
        list(csv_lines(write(tmp_path, text), RESTAURANTS))


def test_a_missing_file_and_a_folder_are_told(tmp_path: Path) -> None:
    for place in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(NotationError, match="cannot be read"):
            list(csv_lines(place, RESTAURANTS))


def test_progress_is_told_to_the_end(tmp_path: Path) -> None:
    place = write(tmp_path, HEADER + "0,A,B,Tea,3,4\n" * 50_000)
    told: list[tuple[int, int]] = []
    assert sum(1 for _ in csv_lines(place, RESTAURANTS, lambda done, of: told.append((done, of)))) == 50_000
    size = place.stat().st_size
    assert len(told) == 3 and told[-1] == (size, size) and told == sorted(told)
