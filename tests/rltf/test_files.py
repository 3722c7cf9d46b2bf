"""Files that are there whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from formal_llm.rltf.files import write_whole


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_takes_the_place_of_the_one_before(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, [b"one"], durable=durable)
    write_whole(path, [b"two", b"three"], durable=durable)
    assert path.read_bytes() == b"twothree"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_what_fails_on_the_way_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield b"half"
        raise KeyError("the rest")

    path = tmp_path / "a.txt"
    write_whole(path, [b"one"])
    with pytest.raises(KeyError):
        write_whole(path, parts())
    assert path.read_bytes() == b"one"
