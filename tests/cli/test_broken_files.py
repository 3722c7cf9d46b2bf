"""Files that are broken in the ways in which files are broken: each is told what is wrong, with its place."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from formal_llm.cli.main import app

PDA = "%start 2\n%accept 0\n{t}, a, ε -> {t-1}, ε for t in 1..2\n"
CHART = "flowchart TD\n  q{Go?} -->|yes| go[Go]\n  q -->|no| stay[Stay]\n"
AGENT = '(define x (:states (A (:text "[A]")) (B (:text "[B]"))) (:behavior (next A B)))'

#: What a file holds, and what is said of it after its name: line and column, where they are known, and the problem.
BROKEN: dict[str, tuple[bytes, str]] = {
    "typo.cfg": (
        b"S -> wash T | dry\nT -> was S\n%limit 1 whas\n",
        "3:10: unknown symbol in a limit: whas (did you mean was?)",
    ),
    "arrow.cfg": (b"S => a\n", "1:3: the arrow is missing"),
    "no_bar.cfg": (b"S -> a | | b\n", "1:10: unexpected '|'"),
    "quote.cfg": (b'S "a plan -> a\n', '1:3: a text that does not end on its line (closing " is missing)'),
    "cycle.cfg": (b"S -> T\nT -> S\n", "1:1: the language is empty: no word can be derived from S, T"),
    "empty.cfg": (b"", " the grammar is empty"),
    "comment.cfg": (b"# nothing here\n", " the grammar is empty"),
    "binary.cfg": (bytes(range(256)), " this is not a text file in UTF-8 (byte 128 cannot be read)"),
    "utf16.cfg": ("S -> a\n".encode("utf-16"), " this is not a text file in UTF-8 (byte 0 cannot be read)"),
    "zero.cfg": (b"S -> a\x00b\n", " this is not a text file (zero byte at 6)"),
    "directive.cfg": (b"%limt 1\nS -> a\n", "1:1: unknown directive %limt"),
    "clash.cfg": (
        b"%limit 1 a\n%require 2 a\nS -> a S | b\n",
        "3:6: the language is empty under these limits, which clash: %limit 1 a; %require 2 a",
    ),
    "typo.mmd": (CHART.replace("flowchart", "flowchrt").encode(), "1:1: the flowchart does not begin with its header"),
    "arrow.mmd": (CHART.replace("-->|no|", "->|no|").encode(), "3:5: '->' is no arrow of a flowchart"),
    "twice.mmd": (CHART.replace("no", "yes").encode(), "3:5: the decision q ('Go?') has two answers 'yes'"),
    "unclosed.mmd": (CHART.replace("[Stay]", "[Stay").encode(), "3:17: the bracket '[' is not closed"),
    "island.mmd": (
        CHART.encode() + b"  alone[Alone] --> other[Other]\n  other --> alone\n",
        "4:3: no end can be reached from alone ('Alone'): every way from it goes round in a circle",
    ),
    "loop.mmd": (
        b"flowchart TD\n  a[A] --> b[B]\n  b --> c[C]\n  c --> b\n",
        "2:3: no end can be reached from a ('A'): every way from it goes round in a circle",
    ),
    "empty.mmd": (b"flowchart TD\n", " the flowchart has no nodes"),
    "sequence.mmd": (
        b"sequenceDiagram\n  A->>B: Hi\n",
        "1:1: this is a Mermaid diagram of another kind (sequenceDiagram)",
    ),
    "arrow.pda": (PDA.replace("->", "=>").encode(), "3:12: unexpected character '>'"),
    "clause.pda": (PDA.replace(" for t in 1..2", "").encode(), "3:1: unknown name t in braces"),
    "parts.pda": (
        PDA.replace(", ε ->", " ->").encode(),
        "3:1: 2 parts before the arrow; there are three: state, read, pop",
    ),
    "state.pda": (PDA.replace("%accept 0", "%accept nul").encode(), "2:9: final state 'nul' is in no transition"),
    "never.pda": (
        PDA.encode() + b"2, b, X -> 0, \xce\xb5\n",
        "4:7: stack symbol 'X' is popped but never pushed: (2, b, X -> 0, ε)",
    ),
    "stuck.pda": (
        b"%start 2\n%accept 0\n2, a, \xce\xb5 -> 1, \xce\xb5\n0, a, \xce\xb5 -> 0, \xce\xb5\n",
        "4:1: state '0' cannot be reached from '2': (0, a, ε -> 0, ε)",
    ),
    "empty.pda": (b"", " the automaton has no transition"),
    "brackets.agent": (AGENT[:-1].encode(), "1:1: this parenthesis is never closed"),
    "state.agent": (AGENT.replace("(next A B)", "(next A C)").encode(), "1:76: unknown state: C"),
    "operator.agent": (AGENT.replace("(next", "(nxt").encode(), "1:69: unknown operator: nxt"),
    "nothing.agent": (
        AGENT.replace("(next A B)", "(and A B)").encode(),
        "1:68: no sequence of states satisfies the formula",
    ),
}


def run(*arguments: str) -> tuple[int, str]:
    """The exit code of a command, run in this process, and what it says on standard error."""
    said = io.StringIO()
    with redirect_stdout(io.StringIO()), redirect_stderr(said):
        try:
            app(arguments, standalone_mode=True)
        except SystemExit as end:
            return int(end.code or 0), said.getvalue()
    return 0, said.getvalue()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content, expected = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    for command in ("check", "count", "plan"):
        code, said = run(command, name)
        assert code == 2
        assert said.splitlines()[0] == f"error: {name}:{expected}"


def test_every_message_is_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = {}
    for name, (content, _) in BROKEN.items():
        (tmp_path / name).write_bytes(content)
        said[name] = run("check", name)[1].replace(name, "FILE")
    alike = [name for name in said if list(said.values()).count(said[name]) > 1]
    assert set(alike) <= {"empty.cfg", "comment.cfg"}


@pytest.mark.parametrize("name", ["good.cfg", "good.mmd", "good.pda", "good.agent"])
@pytest.mark.parametrize("how", ["as it is", "windows", "byte order mark", "tabs"])
def test_what_is_not_broken(name: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = {".cfg": "S -> a S | b\n", ".mmd": CHART, ".pda": PDA, ".agent": AGENT.replace(" (:", "\n  (:")}
    text = texts[Path(name).suffix]
    if how == "windows":
        text = text.replace("\n", "\r\n")
    elif how == "byte order mark":
        text = "\ufeff" + text
    elif how == "tabs":
        text = text.replace("  ", "\t").replace(" -> ", "\t->\t")
    (tmp_path / name).write_bytes(text.encode())
    assert run("check", name) == (0, "")


def test_facts_from_a_file_and_from_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "deal.toml").write_text('buyer = "Initech"\ncompany = "Initrode"\n')
    printed = io.StringIO()
    with redirect_stdout(printed), pytest.raises(SystemExit):
        app(("plan", "risk", "--set", "@deal.toml", "--set", "seller=its founder", "--llm", "test:script=2"))
    assert "its founder may not sell Initrode" in printed.getvalue()
    for wrong, expected in (("@none.toml", "there is no such file"), ("buyer", "NAME=VALUE"), ("byer=x", "'buyer'")):
        code, said = run("plan", "risk", "--set", wrong)
        assert code == 2
        assert expected in said


def test_constraints_on_the_line() -> None:
    printed = io.StringIO()
    with redirect_stdout(printed), pytest.raises(SystemExit):
        app(("count", "daily", "--constraint", "(eventually (next homework washing))"))
    assert printed.getvalue() == "4\n"
    code, said = run("plan", "daily", "--constraint", "(eventually (next lunch washing))")
    assert code == 1
    assert "these constraints clash" in said
    code, said = run("plan", "daily", "--constraint", "(eventually lunhc)")
    assert code == 2
    assert "did you mean lunch?" in said
