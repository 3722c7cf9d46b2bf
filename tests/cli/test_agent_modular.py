"""``formal-llm agent modular``."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from formal_llm.agents import Transcript
from tests.cli.inside import runner

agent = runner("agent")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_a_run_keeps_its_rules_and_is_shown_saved_and_made_a_page() -> None:
    options = ("--llm", "test:random=4", "--require", "search=2", "--limit", "calculate=0", "--page", "run.html")
    code, printed, _ = agent("modular", "How long <i>is</i> the Rhine?", *options, "--save", "run.jsonl")
    assert code == 0 and printed.startswith("request: How long <i>is</i> the Rhine?\n")
    word = Transcript.from_jsonl(Path("run.jsonl").read_text()).word
    assert word.count("search") >= 2 and "calculate" not in word and word[-1] == "respond"
    assert printed.splitlines()[-1].startswith(f"{len(word)} steps, ")
    page = Path("run.html").read_text()
    assert "How long &lt;i&gt;is" in page and page.count('class="call"') == len(word)
    assert 0 < page.count("<h2>plan ") <= len(word) == page.count('<section class="environment">')


def test_formulas_constrain_the_order_of_tools() -> None:
    first = "(not (next calculate (until any empty)))"
    for seed in range(6):
        options = ("--llm", f"test:random={seed}", "--tool-llm", "test:random=1", "--rule", first)
        code, _, _ = agent("modular", "q", *options, "--save", "run.jsonl", "--times", "3", "-q")
        assert code == 0 and Transcript.from_jsonl(Path("run.jsonl").read_text()).word[0] != "calculate"
    code, _, said = agent("modular", "q", "--llm", "test:random", "--rule", "(next serach respond)")
    assert code == 2 and "serach" in said


def test_a_conversation_and_what_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("And the Elbe?\n\nThe Oder?\n"))
    code, printed, _ = agent("modular", "The Rhine?", "--llm", "test:random=2", "--chat", "--decisions", "plans.jsonl")
    assert code == 0
    assert [line for line in printed.splitlines() if line.startswith("request: ")] == [
        "request: The Rhine?", "request: And the Elbe?", "request: The Oder?",
    ]  # fmt: skip
    rows = [json.loads(line) for line in Path("plans.jsonl").read_text().splitlines()]
    assert {row["run"] for row in rows} == {0, 1, 2}
    assert "User: The Rhine?" in rows[-1]["prompt"][1]["content"]


def test_tools_with_any_signature() -> None:
    Path("sums.py").write_text(
        "from formal_llm.tools import Toolkit, tool\n\n@tool\ndef add(a: str, b: str) -> str:\n    '''Add.'''\n"
        "    return a + b\n\ntoolkit = Toolkit([add])\n"
    )
    code, printed, _ = agent("modular", "q", "--llm", "test:random=1", "--tools", "sums:toolkit", "--require", "add=1")
    assert code == 0 and "  add(" in printed
    code, _, said = agent("react", "q", "--llm", "test:random=1", "--tool-llm", "test:random=2")
    assert code == 2 and "for the modular agent" in said


def test_text_agents_talk_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("again\n"))
    code, printed, _ = agent("direct", "first", "--llm", "test:random=3", "--chat")
    assert code == 0 and printed.count("Ques: ") == 2
