"""Shell lines that are read plainly, beside bash, and where the paths of calls lead."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from formal_llm.guard.shell import add_effects, find_project, inside, read_plain

SIGNS = [
    "a", "b", "1", "2", "12", "é", " ", "  ", "'", '"', ">", ">>", "<", "2>&1", "2>", "1>", "&&", "|", ";", "||", "=", "-",
    "/", ".", "x y", "'q r'", '"s t"', "'$x'", '""', "$", "`", "\\", "~", "*", "{", "}", "#", "(", ")", "&", "!", "\t",
    "\r", "\x0b", "\xa0", "\n", "^", "%", "@", ":", "+", ",", "aa ",
]  # fmt: skip
#: The commands of a line write their words to a file, and succeed.
SHELL = r"""
aa() { { printf '[%s]' aa "$@"; printf '\n'; } >> "$LOG"; }
command_not_found_handle() { { printf '[%s]' "$@"; printf '\n'; } >> "$LOG"; }
"""


def make_lines(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return ["aa " + "".join(rng.choices(SIGNS, k=rng.randint(1, 7))) for _ in range(count)]


def run_bash(line: str, folder: Path) -> tuple[list[str], list[str]]:
    """Run a line in an empty folder; return the commands with their words, and the files that it made."""
    work, log = folder / "work", folder / "log"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    log.write_text("")
    subprocess.run(
        ["/bin/bash", "-c", f"{SHELL}\n{line}\n"], cwd=work, env={"PATH": "/nonexistent", "LOG": str(log)},
        stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False,
    )  # fmt: skip
    return log.read_bytes().decode().split("\n")[:-1], sorted(path.name for path in work.iterdir())


def write_words(words: Sequence[str]) -> str:
    return "".join(f"[{word}]" for word in words)


def check_lines(lines: Sequence[str], folder: Path) -> int:
    """Compare lines of one command, or of several joined by && or ;, with bash; return how many."""
    compared = 0
    for line in lines:
        read = read_plain(line)
        if read is None or read.taken or any("/" in path or path in ("", ".", "..") for path in read.written):
            continue
        if any(sign in line for sign in "|") or any("/" in words[0] or words[0] != "aa" for words in read.commands):
            continue
        said, made = run_bash(line, folder)
        assert (said, made) == ([write_words(words) for words in read.commands], sorted(set(read.written))), line
        compared += 1
    return compared


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="the machine has no bash")
def test_plain_lines_are_what_bash_reads(tmp_path: Path) -> None:
    assert check_lines(make_lines(2_000, 1), tmp_path) > 40


@pytest.mark.slow
@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="the machine has no bash")
def test_many_plain_lines_are_what_bash_reads(tmp_path: Path) -> None:
    assert check_lines(make_lines(60_000, 2), tmp_path) > 1_000


@pytest.mark.parametrize(
    "line",
    [
        "", ";", "&& a", "a &&", "a |", "a >", "a > > b", "a > 2>&1 b", "a 3> b", "a &> b", "a >& b", "a << b", "a <(b)",
        "a >| b", "a <> b", "a &", "a $X", "a `b`", 'a "$X"', "a *", "a ~", "a {b,c}", "a \\b", "a # b", "a\nb", "a\rb",
        "a 'b", 'a "b!"', "a 'b\0c'", "X=1 a", "=a", "a =b", "%1", "! a", "if a", "time a", "sudo a", "/usr/bin/env a",
        "'sudo' a", "python x.py", "eval a", "export PATH=b", "test -v 'a[$(b)]'", "find . -delete", "(a)", "a;;b",
    ],
)  # fmt: skip
def test_lines_that_are_not_plain(line: str) -> None:
    assert read_plain(line) is None


@pytest.mark.parametrize(
    ("line", "decisive"),
    [
        ("a && b", "ab"), ("a; b", "b"), ("a || b", ""), ("a && b | c", "ac"), ("a | b && c", "bc"), ("a || b; c", "c"),
        ("a && b || c", ""), ("a;", "a"),
    ],
)  # fmt: skip
def test_what_a_success_shows(line: str, decisive: str) -> None:
    read = read_plain(line)
    assert read is not None
    assert read.decisive == tuple((one,) for one in decisive)


def test_files_of_lines(tmp_path: Path) -> None:
    project = tmp_path / "work"
    (project / ".git").mkdir(parents=True)
    (project / "src").mkdir()
    (project / "out").symlink_to("/opt")
    assert find_project(str(project / "src")) == str(project)
    found = add_effects("Bash", {"command": "a < ../b > c 2> out/d"}, str(project / "src"))
    assert (found["written"], found["taken"]) == (["src/c", "src/out/d"], ["b"])
    assert add_effects("Bash", {"command": "a > out/d"}, str(project))["written"] == ["/opt/d"]
    assert add_effects("Bash", {"command": "cd src && a > b"}, str(project))["written"] == ["/?/b"]
    assert add_effects("Bash", {"command": "a > b", "workdir": "src"}, str(project))["written"] == ["src/b"]
    assert add_effects("Bash", {"command": "a > src/../../b"})["written"] == ["../b"]


def test_calls_of_other_forms() -> None:
    assert add_effects("Bash", {"command": "$X", "plain": True, "commands": []}) == {"command": "$X", "plain": False}
    assert add_effects("Bash", {"command": "a", "cmd": "b"})["plain"] is False
    assert add_effects("shell", {"command": ["a", "b c"]})["commands"] == [["a", "b c"]]
    assert add_effects("shell", {"command": ["bash", "-c", "a"]})["plain"] is False
    assert add_effects("local_shell", {"action": {"command": ["a"]}})["programs"] == ["a"]
    assert add_effects("Read", {"file_path": "a/../b"})["taken"] == ["b"]
    patch = "*** Begin Patch\n*** Add File: a\n*** Delete File: b\n*** Move to: ../c\n"
    found = add_effects("apply_patch", {"input": patch, "written": []})
    assert (found["written"], found["deleted"]) == (["a", "../c"], ["b"])
    assert add_effects("pay", {"path": "a"}) == {"path": "a"}


def test_folders() -> None:
    assert inside("src/a", "src") and inside("a", ".") and inside("src", "src")
    assert not any(inside(path, "src") for path in ("srcx", "src/../a", "/src")) and not inside("../a", ".")
