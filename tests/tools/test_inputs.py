"""Inputs from files: inside a folder, within limits, whatever the file says of itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from formal_llm.errors import InputError
from formal_llm.tools import IMAGE, TEXT, read_input
from formal_llm.tools.inputs import resolve_inside
from tests.tools.picture_tools import picture


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "inside"
    (root / "deep").mkdir(parents=True)
    picture().save(root / "a.png")
    (root / "deep" / "b.txt").write_text("Grüße", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "inside2").mkdir()
    (tmp_path / "inside2" / "c.txt").write_text("secret")
    return root


def test_what_is_inside_is_read(folder: Path) -> None:
    assert read_input("a.png", folder).tobytes() == picture().tobytes()
    assert read_input("deep/b.txt", folder) == "Grüße"
    assert read_input(folder / "deep" / ".." / "deep" / "b.txt", folder, TEXT) == "Grüße"
    assert read_input("deep/b.txt", os.path.relpath(folder)) == "Grüße"
    (folder / "link.txt").symlink_to("deep/b.txt")
    assert read_input("link.txt", folder) == "Grüße"


def test_nothing_outside_is_read(folder: Path) -> None:
    (folder / "way_out.txt").symlink_to("../secret.txt")
    (folder / "door").symlink_to("..", target_is_directory=True)
    (folder / "loop.txt").symlink_to("loop.txt")
    for path in (
        "../secret.txt", "deep/../../secret.txt", str(folder.parent / "secret.txt"), "/etc/passwd", "way_out.txt",
        "door/secret.txt", "../inside2/c.txt", "~/secret.txt", "deep", "", "nothing.txt", "loop.txt", "a\0.png",
        "deep/b.txt/x", "x" * 5000,
    ):  # fmt: skip
        with pytest.raises(InputError):
            read_input(path, folder, TEXT)


def test_files_are_bounded(folder: Path) -> None:
    with pytest.raises(InputError, match="more than 3 bytes"):
        read_input("deep/b.txt", folder, max_bytes=3)
    with pytest.raises(InputError, match="more than 30 bytes"):
        read_input("a.png", folder, max_bytes=30)
    with pytest.raises(InputError, match=r"deep/b\.txt cannot be read as PNG"):
        read_input("deep/b.txt", folder, IMAGE)
    with pytest.raises(InputError, match="cannot be read as text"):
        read_input("a.png", folder, TEXT)


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")  # reading it would wait for ever
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("folder", "pipe"):
        with pytest.raises(InputError, match=f"'{name}' in .* is no regular file"):
            resolve_inside(name, tmp_path)
    with pytest.raises(InputError, match="is not inside the folder"):
        resolve_inside("zero", tmp_path)
    with pytest.raises(InputError, match="'zero' in /dev is no regular file"):
        resolve_inside("zero", "/dev")
