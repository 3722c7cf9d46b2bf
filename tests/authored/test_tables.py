"""What may stand in a table, and where in the file stands what may not."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formal_llm.authored.tables import (
    SCALAR,
    AlternativeShape,
    Items,
    Keys,
    NamedEntries,
    Shape,
    TableProblem,
    TomlFile,
    line_of,
    parse_toml,
    problems,
    read_toml,
)  # fmt: skip
from formal_llm.errors import NotationError

GROUP = Keys({"name": str, "slots": Items(str), "share": float}, needed=("name",))
SHAPE = Keys(
    {
        "title": str,
        "facts": NamedEntries(SCALAR),
        "groups": Items(GROUP),
        "limits": Keys({"at_most": NamedEntries(AlternativeShape((int,), ("*",)))}),
        "slots": NamedEntries(AlternativeShape((Items(str), Keys({"subsets": Items(str)})))),
    },
    needed=("title",),
)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('title = "T"\n\n# [[group]]\n[[group]]\nname = "a"\n', 4, ["unknown key: group", "did you mean groups?"]),
        ('title = """\nnmae = 1\n"""\n[[groups]]\nname = "a"\n\nnmae = "b"', 7, ["groups 1: nmae", "mean name?"]),
        ('title = "T"\n[[groups]]\nname = "a"\n[[groups]]\nname = "b"\nx = [\n 1,\n]', 6, ["groups 2: x", "expected"]),
        ('title = "T"\n[[groups]]\nslots = []\n', 2, ["the key 'name' is missing in groups 1"]),
        ('title = "T"\ngroups = [\n  {name = "a"},\n  {name = "b", slot = []},\n]', 4, ["did you mean slots?"]),
        ('title = "T"\n[limits]\nat_most = {a = "*", b = "x"}', 3, ["at_most, b is a whole number or '*', not 'x'"]),
        ('title = "T"\n[limits.at_most]\na = true', 3, ["a is a whole number or '*', not True"]),
        ('title = "T"\n[limits.at_mots]\na = 1', 2, ["did you mean at_most?"]),
        ('title = "T"\nslots.a = {subset = ["x"]}', 2, ["did you mean subsets?"]),
        ('title = "T"\nslots.a = 3', 2, ["slots, a is a list or a table, not 3"]),
        ('title = "T"\n[facts]\na = [1]', 3, ["facts, a is a text or", "not a list"]),
        ("title = 3", 1, ["title is a text, not 3"]),
        ("", None, ["the key 'title' is missing"]),
        ('title = "T"\r\n\r\nfcats = {}\r\n', 3, ["did you mean facts?"]),
        ("title = ", 1, ["this is not TOML"]),
        ('title = "T"\ntitle = "U"', 2, ["this is not TOML", "overwrite"]),
        ("title = " + "[" * 50_000, None, ["nested too deeply"]),
        ("a." * 5_000 + "b = 1", 1, ["unknown key: a"]),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, line: int | None, said: list[str], tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_bytes(text.encode())
    with pytest.raises(NotationError) as caught:
        read_toml(file, SHAPE)
    assert caught.value.line == line
    assert caught.value.file == str(file)
    for part in said:
        assert part in str(caught.value)
    assert len(str(caught.value)) < 1_000, "of a long line only what stands around the place is shown"


def test_a_table_with_its_shape_is_read(tmp_path: Path) -> None:
    file = tmp_path / "t.toml"
    file.write_text('\ufefftitle = "T"\n[facts]\na = 1\nb = 2.5\n[[groups]]\nname = "g"\nshare = 1\n', encoding="utf-8")
    data = read_toml(file, SHAPE)
    assert data == {"title": "T", "facts": {"a": 1, "b": 2.5}, "groups": [{"name": "g", "share": 1}]}
    assert TomlFile.read(file, object).data == data
    with pytest.raises(NotationError, match="no such file"):
        read_toml(tmp_path / "none.toml", SHAPE)


def test_every_problem_is_found() -> None:
    data = {"titel": 1, "groups": [{"nmae": 1}, 3], "facts": {"a": {}}}
    paths = [found.path for found in problems(data, SHAPE)]
    assert paths == [("titel",), (), ("groups", 0, "nmae"), ("groups", 0), ("groups", 1), ("facts", "a")]
    assert not list(problems({"anything": [1, {"b": ()}]}, object))
    assert next(problems({"x": 1}, Keys({}), "in a wording")) == TableProblem(("x",), "unknown key in a wording: x")


SHAPES: list[tuple[Shape, object, bool]] = [
    (int, True, False), (int, 1, True), (float, 1, True), (float, True, False), (bool, True, True), (str, "", True),
    (Items(int), "12", False), (NamedEntries(int), [], False), (AlternativeShape((str, int)), 1.5, False),
    (AlternativeShape(texts=("*",)), "*", True),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "value", "fits"), SHAPES)
def test_kinds_of_values(shape: Shape, value: object, fits: bool) -> None:
    assert (not list(problems(value, shape))) is fits


KEYS = st.text("abc", min_size=1, max_size=2)
VALUES = st.sampled_from(
    ["1", '"b"', "[1, 2]", '[\n  "a",\n  "c = 1",\n]', '"""\na = 2\n[b]\n"""', "{a = 1, b = {c = 2}}"]
)


@given(st.lists(st.one_of(st.tuples(KEYS, VALUES), KEYS, st.just("# a = 3"), st.just(""), KEYS.map(lambda k: k + "?"))))
@settings(deadline=None)
def test_the_line_of_a_key_is_the_one_that_brings_it(parts: list[object]) -> None:
    lines: list[str] = []
    places: dict[tuple[str | int, ...], int] = {}
    table: tuple[str | int, ...] = ()
    counts: dict[str, int] = {}
    for part in parts:
        written = "\n".join(lines)
        if isinstance(part, tuple):
            key, value = part
            path, more = (*table, key), f"{key} = {value}"
        elif isinstance(part, str) and part.endswith("?"):
            key = part[:-1]
            path, more = (key, counts.get(key, 0)), f"[[{key}]]"
        elif isinstance(part, str) and part and not part.startswith("#"):
            path, more = (part,), f"[{part}]"
        else:
            path, more = (), str(part)
        try:
            parse_toml(f"{written}\n{more}")
        except NotationError:
            continue  # this key is there already
        places[path] = len(lines) + 1
        if more.startswith("["):
            table = path
            counts[str(path[0])] = counts.get(str(path[0]), 0) + 1
        lines += more.split("\n")
    text = "\n".join(lines)
    tomllib.loads(text)
    for path, line in places.items():
        if path:
            assert line_of(text, path) == line


def test_a_line_that_takes_too_long_to_find_is_not_told() -> None:
    text = "a = [\n" + "1,\n" * 3_000 + "]\nb = 1"
    assert line_of(text, ("c",)) is None or line_of(text, ("b",)) in (None, 3_003)
