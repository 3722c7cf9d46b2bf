"""Reading files that somebody named: nothing hangs, nothing is passed over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import formal_llm
from formal_llm.authored.files import check_plain, lines_of, open_file, parse_json, read_bytes, read_lines, read_text
from formal_llm.errors import NotationError


def test_a_plain_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"\xef\xbb\xbfS -> a\r\n")
    assert read_bytes(file).endswith(b"S -> a\r\n")
    assert read_text(file) == "S -> a\r\n"
    with open_file(file) as opened:
        assert len(opened.readlines()) == 1
    check_plain(file)
    check_plain(tmp_path / "not there yet")


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe", "folder", "/dev/zero", "/dev/tty", "/dev/null"])
def test_what_is_no_plain_file_is_refused_and_not_waited_for(kind: str, tmp_path: Path) -> None:
    place = tmp_path / "place"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "link to a pipe":
        os.mkfifo(tmp_path / "pipe")
        place.symlink_to(tmp_path / "pipe")
    elif kind == "folder":
        place.mkdir()
    else:
        place = Path(kind)
    for read in (open_file, read_bytes, check_plain):
        with pytest.raises(OSError) as caught:
            read(place)
        assert caught.value.strerror
    with pytest.raises(NotationError, match="cannot be read") as told:
        read_text(place)
    assert str(place) in str(told.value)


def test_what_is_too_large_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"1234")
    assert read_bytes(file, most=4) == b"1234"
    with pytest.raises(OSError, match="more than 3 bytes"):
        read_bytes(file, most=3)
    with pytest.raises(NotationError, match="more than 3 bytes"):
        read_text(file, most=3)


@given(st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), min_size=1))
def test_only_line_ends_part_lines(lines: list[str]) -> None:
    for end in ("\n", "\r\n", "\r"):
        assert lines_of(end.join(lines) + end) == lines
        if lines[-1]:
            assert lines_of(end.join(lines)) == lines


def test_lines_are_read_one_at_a_time_as_the_text_has_them(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    for text in ("a\r\nb\rc\n\nd", "\ufeffä\u2028b\x0c\n", "", "\n"):
        file.write_bytes(text.encode())
        assert list(read_lines(file)) == (lines_of(read_text(file)) if text else [])
    for broken, said in ((b"a\n\xffb", "byte 2 cannot be read"), (b"a\n\0", "zero byte")):
        file.write_bytes(broken)
        with pytest.raises(NotationError, match=said):
            list(read_lines(file))
    with pytest.raises(NotationError, match="there is no such file"):
        next(read_lines(tmp_path / "none"))


def test_json() -> None:
    assert parse_json('{"a": [1, {"b": null}]}', once=True) == {"a": [1, {"b": None}]}
    assert parse_json('{"a": 1, "a": 2}') == {"a": 2}
    with pytest.raises(ValueError, match="'a' is there twice"):
        parse_json('{"b": [{"a": 1, "a": 2}]}', once=True)
    for deep in ("[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000):
        with pytest.raises(ValueError, match="nested too deeply"):
            parse_json(deep)
    with pytest.raises(ValueError, match="line 1"):
        parse_json("{")


def test_everything_that_people_write_is_read_here() -> None:
    """TOML is read against a shape, and texts are parted at line ends only: there is one place for each."""
    root = Path(formal_llm.__file__).parent
    texts = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    assert [name for name, text in texts.items() if "import tomllib" in text] == ["authored/tables.py"]
    # Parted to be shown on one line, or bytes, whose method knows line ends alone.
    shown = {
        "pictures/picture.py", "automata/drawing.py", "llms/local/loading.py",
        "planning/plans/steps.py",
    }  # fmt: skip
    in_bytes = {"llms/hosted/batches.py", "planning/drivers/results.py", "packs/openagi/benchmark/records.py"}
    assert {name for name, text in texts.items() if "splitlines()" in text} <= shown | in_bytes
