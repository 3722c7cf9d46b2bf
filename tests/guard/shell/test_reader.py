"""What is read of shell lines, against bash: what it runs stands among what was read, or the reader is not sure."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from formal_llm.guard.shell.reader import MOST_SIGNS, read_simple
from tests.strategies import examples

BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="there is no bash")
#: Programs that do not exist: bash tells each of them, with its words, to this function.
TELL = "command_not_found_handle() { printf '%s\\0' \"$@\" $'\\1' >&9; }\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("bash")


def ran_by_bash(line: str, folder: Path) -> set[tuple[str, ...]]:
    """The commands that bash runs of a line, with their words; nothing else can be run."""
    assert BASH is not None
    told = folder / uuid4().hex  # what goes on behind an earlier line may still write
    told.write_bytes(b"")
    program = f'exec 9>>{told}; exec 1>/dev/null 2>&1 </dev/null\nulimit -t 1 -f 100\n{TELL}eval "$LINE"'
    known = {"PATH": "/nowhere", "LINE": line, "LC_ALL": "C.UTF-8"}
    subprocess.run([BASH, "--norc", "-c", program], env=known, cwd=folder, timeout=20)
    words: list[str] = []
    ran = set()
    for word in told.read_bytes().decode("utf-8", "surrogateescape").split("\0")[:-1]:
        if word == "\1":
            ran.add(tuple(words))
            words = []
        else:
            words.append(word)
    return ran


def read(line: str) -> tuple[list[list[str]], list[str]]:
    found, unsure = read_simple(line)
    return [[word.text for word in one.words] for one in found if one.words], unsure


def fits(ran: tuple[str, ...], line: str) -> bool:
    """Whether a command that bash ran stands among those read, words that are only known then left open."""
    for simple in read_simple(line)[0]:
        words = simple.words
        if len(words) == len(ran) and all(not w.known or w.text == r for w, r in zip(words, ran, strict=True)):
            return True
        # A word that is not known may become any number of words.
        first = next((place for place, word in enumerate(words) if not word.known), None)
        if first is not None and tuple(word.text for word in words[:first]) == ran[:first]:
            return True
    return False


WORDS = [
    "aa",
    "bb",
    "'c d'",
    '"e f"',
    "g\\ h",
    "$'i\\tj'",
    '"k\\"l"',
    "m\\\nn",
    "''",
    "a'b'\"c\"",
    "$X",
    '"$X"',
    "if",
    "do",
    "in",
]
PIECES = [
    *WORDS, " ", " ", " ", ";", "\n", "&&", "||", "|", "&", "(", ")", "{ ", " }", "$(", "`", '"', "'", "\\", "#", "((",
    "))", "$((", "<<E\n", "\nE\n", "<<-'E'\n", "case aa in ", "esac", ";;", "aa)", " then ", "fi", "if ",
    "for x in ", "; do ", "[[ ", " ]]", "!", "$'", "${X", "}", "${X:-", "<(", ">f", "2>&1", "<<<", "x=", "a=(",
    "fn() ", "time ",
    "|&", "&>f", ";&", "E", "\t", "function g ", "{aa,bb}", "*", "=",
]  # fmt: skip


#: Lines that bash takes: commands in quotes, brackets, substitutions and texts, deep in each other.
SIMPLE = st.lists(st.sampled_from(WORDS[:12]), min_size=1, max_size=3).map(" ".join)
VALID = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["; ", " && ", " || ", " | ", "\n", " & "]), inner).map("".join),
        inner.map(lambda line: f"( {line} )"),
        inner.map(lambda line: f"{{ {line}; }}"),
        inner.map(lambda line: f"aa $( {line}\n) bb"),
        inner.map(lambda line: f'x="$( {line}\n)" cc'),
        inner.filter(lambda line: "`" not in line and "\\" not in line).map(lambda line: f"aa `{line}`"),
        inner.map(lambda line: f"if aa; then {line}\nelse bb; fi"),
        inner.map(lambda line: f"for x in 1 2; do {line}\ndone"),
        inner.map(lambda line: f"case aa in b|aa) {line}\n;; (*) cc;; esac"),
        inner.filter(lambda line: "<<E" not in line).map(lambda line: f"cat <<E\n$( {line}\n)\nE\n"),
        inner.map(lambda line: f"ff() {{ {line}\n}}; ff"),
        inner.map(lambda line: f"aa ${{x:-$( {line}\n)}} <({line}\n)"),
        inner.map(lambda line: f"[[ -n $( {line}\n) && a == b ]]; dd # {line[:3]!r}\n ee"),
    ),
    max_leaves=4,
)


@needs_bash
@examples(40)
@given(VALID)
def test_what_bash_takes_is_read(folder: Path, line: str) -> None:
    _, unsure = read(line)
    if not any("only known when it runs" in told for told in unsure):
        assert unsure == []
        for ran in ran_by_bash(line, folder):
            assert fits(ran, line), (line, ran, read(line))


@needs_bash
@examples(60)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join))
@example("cat <<E\nx\\\nE\naa\nE\nbb")
@example("aa <<E\nb\nE\\\n\nE\nbb\n")
@example("aa <<E\nb\nx\\\nE\nE\nbb\n")
@example("aa <<E\nb\nE\\\n")
@example("aa <<E\n$(bb cc)\nE\n")
@example("aa <<'E'\n$(bb cc)\nE\n")
@example("$( (aa); (bb) )")
@example("((aa); bb)")
@example("case aa in (aa) bb;; esac; aa")
@example("aa$((1+2))bb; x=$(bb)")
@example("echo aa#bb; #aa\nbb")
@example("if ! aa; then bb; fi")
@example("for x in aa; do bb $x; done")
@example("x=(aa $(bb)); aa")
@example('aa "$(bb "c d")"')
@example("aa `bb \\`aa\\``")
@example("fn() { aa; }; fn")
@example("aa <(bb)")
def test_what_bash_runs_is_read(folder: Path, line: str) -> None:
    _, unsure = read(line)
    if not unsure:
        for ran in ran_by_bash(line, folder):
            assert fits(ran, line), (line, ran, read(line))


@needs_bash
@examples(60)
@given(
    st.lists(
        st.sampled_from([*WORDS[:10], "é", "$'\\x41\\u00e9\\101\\n\\q'", "a\\\\b", '"a\\b$"', "#a"[1:]]),
        min_size=1,
        max_size=6,
    )
)
def test_words_are_those_of_bash(words: list[str]) -> None:
    """Words without expansions are exactly those that bash hands to printf."""
    line = " ".join(["printf", "'%s\\0'", *words])
    assert BASH is not None
    told = subprocess.run([BASH, "-c", line], capture_output=True, check=True, timeout=20).stdout
    (command,), unsure = read(line)
    assert not unsure
    assert command[2:] == told.decode().split("\0")[:-1]


@needs_bash
@examples(40)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join))
def test_what_is_left_open_is_no_bash(line: str) -> None:
    """Where the reader is sure, no quote or bracket is open; a line that bash takes is read to its end or told."""
    assert BASH is not None
    checked = subprocess.run([BASH, "-n"], input=line.encode(), capture_output=True, timeout=20)
    _, unsure = read(line)
    if checked.returncode and b"looking for matching" in checked.stderr:
        assert unsure, (line, checked.stderr)


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("a b; c | d && e || f & g", ["a b", "c", "d", "e", "f", "g"]),
        ("(a; b) > x; { c; }", ["a", "b", "c"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("while a\ndo b\ndone", ["a", "b"]),
        ("for x in 1 2; do a $x; done", ["a $x"]),
        ("for ((i=0; i<3; i++)); do a; done", ["a"]),
        ("case $x in\n a|b) c ;;\n *) d ;;\nesac", ["c", "d"]),
        ("a=1 b=$(c d) e f", ["c d", "e f"]),
        ("a $(b `c`) <(d)", ["c", "b `c`", "d", "a $(b `c`) <(d)"]),
        ("a <<E | b\n$(c)\nE\nd", ["a", "b", "c", "d"]),
        ("a <<'E' | b\n$(c)\nE\nd", ["a", "b", "d"]),
        ("a <<\\E\n$(c)\nE\nd", ["a", "d"]),
        ("a <<E\nb\nE\\\n", ["a"]),  # a line that goes on at the end of the text
        ("[[ -f a && ! ( b < c ) ]] && d", ["d"]),
        ("f() { a; }; function g { b; }; f", ["a", "b", "f"]),
        ("a # b; c\nd", ["a", "d"]),
        ("a\\\n b", ["a b"]),
        ("time -p a; ! b", ["a", "b"]),
        ("select x in 1; do a; done", ["a"]),
        ("a ${x:-$(b)} \"${y:-'}\"", ["b", "a ${x:-$(b)} \"${y:-'}\""]),
        ("", []),
        ("  # nothing", []),
    ],
)  # fmt: skip
def test_commands_of_lines(line: str, commands: list[str]) -> None:
    found, unsure = read(line)
    assert [" ".join(words) for words in found] == commands
    assert unsure == []


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("a 'b", "single quote"), ('a "b', "double quote"), ("a `b", "backquote"), ("a $(b", "does not end"),
        ("a ${b", "does not end"), ("a )", "nothing opened"), ("$x a", "only known when it runs"),
        ("a <<E\nb", "does not end"), ("a <<E\nb\nE\\", "does not end"),
        ("a (b)", "bracket"), ("coproc a", "coproc"), ("${ a; }", "not read"), ("a ${x@P}",
        "runs what its variable holds"),
        ("a\0b", "zero byte"), ("(" * 2_000, "too many brackets"), ("$(" * 5_000, "nested too deeply"),
        ("a " * MOST_SIGNS, "too long"), ("a ;; b", "outside"), ("esac", "no case"), ("[[ a",
        "does not end"), ("a >", "missing"),
        ("case a b", "no in"), ("case a in b c", "does not end"), ("$[1]", "not read"), ("((a; b))", "blank between"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told(line: str, why: str) -> None:
    _, unsure = read(line)
    assert any(re.search(why, told) for told in unsure), unsure


def test_files_and_variables_are_told() -> None:
    (one,), unsure = read_simple("A=1 B+=2 a > out 2>>log <in 2>&1 &>both >&- 3<>x")
    assert not unsure
    assert one.assigned == ["A", "B"]
    assert [word.text for word in one.written] == ["out", "log", "both", "x"]
    assert [word.text for word in one.taken] == ["in"]
