"""Kinds: what is accepted, how it is told apart, written, read and shown; none of it with pickle."""

from __future__ import annotations

import base64
import copy
import hashlib
import os
import pickle
import re
import struct
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from formal_llm.errors import InputError
from formal_llm.tools import IMAGE, TEXT, Kind, Value, kind_named, read_input, register, tool
from formal_llm.tools import kinds as module
from formal_llm.tools.kinds import kind_for, kind_of, resolve_inside
from tests.tools.picture_tools import picture

SAMPLES = {TEXT: "grüße", IMAGE: picture()}


@dataclass(frozen=True)
class Table:
    """A kind of a pack's own."""

    cells: tuple[int, ...]


TABLE = Kind(
    "table",
    Table,
    dump=lambda table: struct.pack(f">{len(table.cells)}i", *table.cells),
    load=lambda data: Table(struct.unpack(f">{len(data) // 4}i", data)),
)


class Calls:
    """Nothing that pydantic reads."""


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> Kind:
    monkeypatch.setattr(module, "_kinds", dict(module._kinds))
    return register(TABLE)


@given(st.text())
def test_texts_come_back(text: str) -> None:
    assert TEXT.load(TEXT.dump(text)) == text
    assert TEXT.key(text) == TEXT.key(TEXT.load(TEXT.dump(text)))


@pytest.mark.parametrize("mode", ["1", "L", "P", "PA", "LA", "RGB", "RGBA", "CMYK", "YCbCr"])
def test_images_come_back(mode: str) -> None:
    image = IMAGE.accept(picture().convert("L").convert(mode) if mode == "LA" else Image.new(mode, (5, 3)))
    again = IMAGE.load(IMAGE.dump(image))
    assert image.mode in ("L", "RGB", "RGBA")
    assert (again.mode, again.size, again.tobytes()) == (image.mode, image.size, image.tobytes())
    assert IMAGE.key(again) == IMAGE.key(image)


def test_content_keys_tell_values_apart() -> None:
    pictures = [Image.new("L", (2, 3)), Image.new("L", (3, 2)), Image.new("L", (6, 1)), Image.new("L", (2, 3), 1)]
    pictures += [Image.new("RGB", (2, 1)), Image.new("RGB", (1, 2))]
    keys = {IMAGE.key(image) for image in pictures} | {TEXT.key(text) for text in ("", "a", "A", "a ")}
    assert len(keys) == 10
    # The same in every process and on every day: caches depend on it.
    assert TEXT.key("a") == hashlib.sha256(b"text\0a").hexdigest()


def test_what_is_not_accepted() -> None:
    for kind, value, words in (
        (TEXT, 3, "class int"),
        (TEXT, "\ud800", "surrogates"),
        (TEXT, "x" * 2_000_001, "characters"),
        (IMAGE, "x", "class str"),
        (IMAGE, Image.new("F", (2, 2)), "mode F"),
        (IMAGE, Image.new("I", (2, 2)), "mode I"),
        (IMAGE, Image.new("L", (0, 5)), "0 x 5 pixels"),
    ):
        with pytest.raises(InputError, match=words):
            kind.accept(value)


def test_a_kind_of_ones_own(table: Kind) -> None:
    @tool
    def doubled(cells: Table) -> Table:
        return Table(cells.cells * 2)

    assert str(doubled) == "doubled(table) -> table"
    value = Value(table, Table((1, 2)))
    assert Value(table, payload=value.dump(), key=value.key).get() == Table((1, 2))
    assert kind_of(Table(())) == table == kind_named("table") == kind_for("Table") == kind_for(Table)
    assert table.weigh(Table((1,))) == 4
    assert table.to_html(Table((1,))) == "<pre>Table(cells=(1,))</pre>"
    with pytest.raises(ValueError, match="already"):
        register(Kind("table", bytes, bytes, bytes))
    with pytest.raises(ValueError, match="already"):
        register(Kind("more", Table, bytes, bytes))
    register(table)
    with pytest.raises(ValueError, match=r"there are image, text, .*table"):
        kind_named("sound")
    with pytest.raises(ValueError, match="no kind"):
        kind_for(Calls)
    with pytest.raises(InputError, match="of no kind"):
        kind_of(Calls())


def test_hints_of_images() -> None:
    assert {kind_for(hint) for hint in (Image.Image, "Image.Image", "Image", "PIL.Image.Image", "image")} == {IMAGE}
    assert kind_for("str") == kind_for(str) == TEXT


def test_shown_values_are_escaped_and_small() -> None:
    shown = TEXT.to_html("<script>alert('x')</script> & " + "y" * 10_000)
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
    assert len(shown) < 5_000
    (data,) = re.findall(r'src="data:image/png;base64,([^"]+)"', IMAGE.to_html(Image.new("RGB", (3000, 1000))))
    small = IMAGE.load(base64.b64decode(data))
    assert small.size == (320, 107)


def test_kinds_travel() -> None:
    for kind in (TEXT, IMAGE):
        again = pickle.loads(pickle.dumps(kind))
        assert again == kind
        assert again.dump(kind.load(kind.dump(SAMPLES[kind]))) == kind.dump(SAMPLES[kind])
    assert len({TEXT, IMAGE, pickle.loads(pickle.dumps(TEXT))}) == 2


def test_reading_what_was_written() -> None:
    for kind, value in SAMPLES.items():
        assert kind.key(kind.read(kind.dump(value))) == kind.key(value)
    with pytest.raises(InputError, match="no readable text: 'utf-8' codec"):
        TEXT.read(b"\xff")
    with pytest.raises(InputError, match="the image cannot be read as PNG"):
        IMAGE.read(b"x")
    with pytest.raises(InputError, match="no acceptable text: it has 2,000,001 characters"):
        TEXT.read(b"x" * 2_000_001)


def test_values_decode_once_and_lend_copies() -> None:
    value = Value(IMAGE, picture())
    lent = value.copy()
    lent.paste(0, (0, 0, 16, 16))
    assert value.get().tobytes() == picture().tobytes()
    stored = Value(IMAGE, payload=value.dump(), key=value.key)
    assert stored.size < value.size
    assert stored.get() is stored.get()
    assert stored.get().tobytes() == picture().tobytes()


def test_values_are_equal_by_content() -> None:
    assert Value(IMAGE, picture()) == Value(IMAGE, picture()) != Value(IMAGE, picture(1))
    assert Value(TEXT, "a") != "a"
    assert len({Value(TEXT, "a"), Value(TEXT, "a"), Value(TEXT, "b")}) == 2


def test_values_travel_as_their_bytes() -> None:
    for value in (Value(TEXT, "grüße"), Value(IMAGE, picture())):
        for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
            assert again == value
            assert again.dump() == value.dump()
            assert again.kind.key(again.get()) == value.key


def test_bytes_that_are_no_value() -> None:
    value = Value(TEXT, key="k", payload=b"\xff")
    with pytest.raises(InputError, match="no readable text"):
        value.get()
    assert value.dump() == b"\xff"
    assert repr(value) == "<Value text k>"


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
