"""Files of lines: one writer, and a line is whole or not there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import pytest

from formal_llm.errors import ResultsError
from formal_llm.planning.drivers.json_lines import open_exclusively, replace_exclusively, write_atomically, write_line


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    first = open_exclusively(path, busy="taken")
    with pytest.raises(ResultsError, match=r"lines\.jsonl: taken"):
        open_exclusively(path, busy="taken")
    first.close()
    open_exclusively(path, busy="taken").close()
    with pytest.raises(ResultsError, match="the log cannot be written"):
        open_exclusively(tmp_path, what="log", busy="taken")


def test_a_file_that_is_replaced_while_it_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened, and then the one who had it puts another one in its place and lets go: the other one is opened."""
    from formal_llm.planning.drivers import json_lines

    path = tmp_path / "lines.jsonl"
    first = open_exclusively(path, busy="taken")
    write_line(first, path, {"a": 1}, "a line")
    real, second = json_lines._lock_file, []

    def lock(file: FileIO) -> None:
        monkeypatch.setattr(json_lines, "_lock_file", real)
        second.append(replace_exclusively(first, path, [b"new\n"], busy="taken"))
        second[0].close()
        real(file)

    monkeypatch.setattr(json_lines, "_lock_file", lock)
    with open_exclusively(path, busy="taken") as opened:
        write_line(opened, path, {"b": 2}, "a line")
    assert path.read_bytes() == b'new\n{"b": 2}\n'


def test_a_file_is_replaced_by_who_has_it(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    (tmp_path / "lines.jsonl.new").write_text("left by somebody who was killed, and longer")
    first = open_exclusively(path, busy="taken")
    second = replace_exclusively(first, path, [b"1\n", b"2\n"], busy="taken")
    assert first.closed
    with pytest.raises(ResultsError, match="taken"):
        open_exclusively(path, busy="taken")
    write_line(second, path, {}, "a line")
    path.unlink()
    with pytest.raises(ResultsError, match="replaced, moved or deleted"):
        replace_exclusively(second, path, [b"3\n"], busy="taken")
    with pytest.raises(ResultsError, match="replaced, moved or deleted"):
        write_line(second, path, {}, "a line")
    second.close()
    assert not path.exists()


def test_lines_are_appended_and_odd_texts_kept(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    rows = [{"text": "ä\n"}, {"text": "half \ud800"}]
    for row in rows:
        file = open_exclusively(path, busy="taken")
        write_line(file, path, row, "a line")
        file.close()
    assert [json.loads(line) for line in path.read_bytes().splitlines()] == rows


def test_a_line_that_does_not_fit_is_taken_back(tmp_path: Path) -> None:
    class Small(FileIO):
        """A file on a disk with room for a few more bytes."""

        def write(self, data: bytes) -> int:  # type: ignore[override]
            return super().write(data[:5])

    path = tmp_path / "lines.jsonl"
    path.write_bytes(b'{"a": 1}\n')
    with Small(str(path), "ab+") as file, pytest.raises(ResultsError, match="the line of task 3 could not be written"):
        write_line(file, path, {"a": 2}, "the line of task 3")
    assert path.read_bytes() == b'{"a": 1}\n'


def test_numbers_that_json_has_not(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    with open_exclusively(path, busy="taken") as file, pytest.raises(ValueError, match="not JSON compliant"):
        write_line(file, path, {"a": float("nan")}, "a line", allow_nan=False)
    assert path.read_bytes() == b""


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_takes_the_place_of_the_one_before(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a.txt"
    write_atomically(path, [b"one"], durable=durable)
    write_atomically(path, [b"two", b"three"], durable=durable)
    assert path.read_bytes() == b"twothree"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_what_fails_on_the_way_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield b"half"
        raise KeyError("the rest")

    path = tmp_path / "a.txt"
    write_atomically(path, [b"one"])
    with pytest.raises(KeyError):
        write_atomically(path, parts())
    assert path.read_bytes() == b"one"


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_what_is_no_plain_file_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(ResultsError, match=r"this is a (pipe|folder|device)"):
        open_exclusively(path, busy="busy")
