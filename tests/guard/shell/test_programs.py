"""The table of programs, and how the words of a command are split by it."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.guard.shell.programs import read_programs, select_operands, split_words
from formal_llm.guard.shell.reader import ShellWord
from tests.strategies import examples

PROGRAMS = read_programs()


def split(line: str) -> tuple[list[str], list[str], bool]:
    """The operands, the rest, and whether there are doubts."""
    name, *words = line.split()
    found = split_words(PROGRAMS[name], [ShellWord(word, "$" not in word) for word in words])
    return [word.text for word in found.operands], [word.text for word in found.rest], bool(found.doubts)


@pytest.mark.parametrize(
    ("line", "operands", "rest", "doubts"),
    [
        ("cat -n a b", ["a", "b"], [], False), ("timeout -k 3 9 git push", ["9"], ["git", "push"], False),
        ("timeout -k3 -- 9 git push", ["9"], ["git", "push"], False), ("timeout --kill-after=3 9 ls", ["9"], ["ls"], False),
        ("timeout --strange 9 ls", ["9"], ["ls"], True), ("nice -10 ls", [], ["ls"], False), ("env A=1 ls", [], ["ls"], False),
        ("sort --compress-program=x f", ["f"], [], True), ("sort --comp x f", ["x", "f"], [], True),
        ("sort $x", ["$x"], [], True), ("cat $x", ["$x"], [], False), ("sort -- $x", ["$x"], [], False),
        ("tar xf a.tar -C d", [], [], False), ("tar cfI x ./p f", ["x", "./p", "f"], [], True),
        ("git -C d push", [], ["push"], False), ("git -c a.b=c push", [], ["push"], True),
        ("git -c user.name=x log", [], ["log"], False), ("make CC=x", ["CC=x"], [], True), ("make -C d all", ["all"], [], False),
        ("python -m pytest -q", [], ["-q"], False), ("python -Im pytest -q", [], ["-q"], False),
        ("python x.py -m y", [], ["x.py", "-m", "y"], False), ("sed --expr=1e f", ["f"], [], True),
        ("sed -e p -n f", ["f"], [], False), ("awk -v x=1 {system(x)}", ["{system(x)}"], [], True),
    ],
)  # fmt: skip
def test_words(line: str, operands: list[str], rest: list[str], doubts: bool) -> None:
    assert split(line) == (operands, rest, doubts)


@pytest.mark.parametrize(
    ("line", "field", "paths"),
    [
        ("rm -rf a b", "deletes", ["a", "b"]), ("cp a b c", "writes", ["c"]), ("cp a b c", "reads", ["a", "b"]),
        ("cp -t d a b", "reads", ["a", "b"]), ("cp -t d a b", "writes", []), ("chmod +x f", "writes", ["f"]),
        ("sed p f", "reads", ["f"]), ("sed -e p f", "reads", ["f"]), ("dd if=a of=b", "writes", ["b"]),
        ("git status", "writes", []), ("uniq a b", "reads", ["a"]), ("unzip a", "writes", ["."]),
    ],
)  # fmt: skip
def test_paths(line: str, field: str, paths: list[str]) -> None:
    name, *words = line.split()
    program = PROGRAMS[name]
    found = split_words(program, [ShellWord(word) for word in words])
    assert [word.text for word in select_operands(program, found, getattr(program, field))] == paths


def test_each_pattern_of_the_table_is_one() -> None:
    for program in PROGRAMS.values():
        for pattern in program.texts.values():
            re.compile(pattern)
        for which in (program.reads, program.writes, program.deletes):
            assert which in ("", "all", "first", "last", "init", "rest", ".", "*") or which.endswith("="), which


PIECES = [
    "s", "/", "a", "b", "e", "w", "[", "]", "^", "\\", ";", "\n", "1", ",", "$", "p", "d", "!", "{", "}", "#", "g", " ", "r",
    "i", ":", "y", "|",
]  # fmt: skip


@pytest.mark.skipif(shutil.which("sed") is None, reason="there is no sed")
@examples(150)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join))
def test_scripts_of_sed_that_pass_run_nothing(script: str) -> None:
    """GNU sed has a mode of its own that refuses to run programs and to read and write files: it is the oracle."""
    if re.fullmatch(PROGRAMS["sed"].texts[""], script):
        done = subprocess.run(["sed", "--sandbox", script], input="a\n", capture_output=True, text=True, timeout=20)
        assert "sandbox" not in done.stderr
