"""Forty slips of somebody new: each message names the place and the way out, and none is a traceback."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.inside import runner

#: What is typed; the place that the message names; the way out that it names.
SLIPS = {
    # the wrong file
    "plan tea.cgf": ("tea.cgf", "there are: .cfg, .pda"),
    "plan tee.cfg": ("tee.cfg: there is no such file", "did you mean tea.cfg?"),
    "plan tea": ("'tea'", "Did you mean 'tea.cfg'?"),
    "plan empty.cfg": ("empty.cfg", "write at least one rule"),
    "plan notes.cfg": ("notes.cfg", "save it as UTF-8 text"),
    "plan latin.cfg": ("latin.cfg", "save it as UTF-8 text"),
    "verify tea.cfg nopack": ("nopack", "name a file that you may read"),
    "plan nopack": ("nopack", "formal-llm new NAME"),
    # rules
    "plan arrow.cfg": ("arrow.cfg:1:5", "write '->' instead of '='"),
    "plan typo.cfg": ("typo.cfg:1:10", "did you mean steep?"),
    "plan loop.cfg": ("loop.cfg:1:1", "give it a rule that ends"),
    "plan loop.mmd": ("loop.mmd:2:2", "draw a way out of the circle"),
    "plan sequence.mmd": ("sequence.mmd:1:1", "expected: flowchart TD"),
    "plan badpack": ("badpack/pack.toml:2", "Or name a file in this folder"),
    "plan slip": ("slip/pack.toml:2:1", "did you mean rules?"),
    "check bad.guard": ("bad.guard:1:17", "did you mean before?"),
    "check bad.procedure": ("bad.procedure:1:1", "begin it with goal, check, action, fact or constant"),
    # options
    "plan tea.cfg --lmit steep=1": ("--lmit", "--limit"),
    "plan tea.cfg --limit steap=1": ("a limit: steap", "did you mean steep?"),
    "plan tea.cfg --limit steep": ("--limit", "NAME=N"),
    "plan tea.cfg --search fast": ("--search", "'greedy'"),
    "plan tea.cfg --max-questions many": ("--max-questions", "integer"),
    "plan tea.cfg --rule (eventually": ("--rule:1:1", "this parenthesis is never closed"),
    "plan tea.cfg --goal Tee": ("goal 'Tee'", "Did you mean 'Tea'?"),
    "plan tea.cfg --input water": ("--input", "--limit NAME=0"),
    "plan tea.cfg --set buyer": ("--set", "NAME=VALUE"),
    "plan tea.cfg --out nodir/plan.json": ("there is no folder nodir", "make it, or name another file"),
    "plan tea.cfg --wording bad.toml": ("bad.toml:1:5", "write name = value"),
    "pln tea.cfg": ("'pln'", "Did you mean 'plan'"),
    "new laundry": ("laundry", "choose another name"),
    "new 9lives": ("9lives", "such as laundry"),
    # models
    "plan tea.cfg --llm opnai:gpt-6": ("'opnai:gpt-6'", "Did you mean 'openai:gpt-6'?"),
    "plan tea.cfg --llm openai:gpt-6": ("openai:gpt-6", "set the environment variable OPENAI_API_KEY"),
    "plan tea.cfg --llm replay:none.jsonl": ("none.jsonl", "--record FILE writes one"),
    "plan tea.cfg --llm replay:hello.jsonl": ("hello.jsonl: this file is no", "--record FILE writes one"),
    "plan tea.cfg --search draft": ("it cannot draft a plan", "--search greedy"),
    # tasks and plans
    "plan tea.cfg --tasks blank.txt --out r.jsonl": ("blank.txt", "write a sentence on each line"),
    "plan tea.cfg --tasks bad.jsonl --out r.jsonl": ("bad.jsonl:1", "did you mean task?"),
    "plan ./laundry 7": ("task '7'", "There are: 0 to 0"),
    "verify laundry/laundry.rules odd.txt": ("odd.txt:2", "expected: dry, fold, iron, wash"),
}
FILES = {
    "tea.cfg": b"%limit 1\nTea -> steep Tea | boil\n", "empty.cfg": b"", "notes.cfg": b"PK\x03\x04\x00",
    "latin.cfg": "Käse -> a".encode("latin-1"), "nopack/readme.txt": b"x",
    "arrow.cfg": b"Tea = steep Tea | boil\n", "typo.cfg": b"%limit 1 steap\nTea -> steep Tea | boil\n",
    "loop.cfg": b"Tea -> steep Tea\n", "loop.mmd": b"flowchart TD\n a --> b\n b --> a\n",
    "sequence.mmd": b"sequenceDiagram\n A->>B: hi\n", "badpack/pack.toml": b'title = "x"\nrules = "none.cfg"\n',
    "slip/pack.toml": b'title = "x"\nrule = "tea.cfg"\n', "bad.guard": b"rule x: approve bfore pay\n",
    "bad.procedure": b'gaol action pay(amount) "Pay"\n', "bad.toml": b"a = \n", "hello.jsonl": b"hello\n",
    "blank.txt": b"\n# nothing\n", "bad.jsonl": b'{"tsk": "x"}\n', "odd.txt": b"wash\nfly\n",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    for name, content in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    assert runner("new")("laundry")[0] == 0
    return tmp_path


def test_there_are_forty() -> None:
    assert len(SLIPS) == 40


@pytest.mark.parametrize("line", SLIPS)
def test_a_slip(line: str, folder: Path) -> None:
    command, *arguments = shlex.split(line)
    code, printed, said = runner(command)(*arguments)
    assert code in (1, 2, 3)
    assert printed == ""
    assert "Traceback" not in said
    for expected in SLIPS[line]:
        assert expected in said
