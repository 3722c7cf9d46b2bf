"""``formal-llm agent`` with a real client against a server whose model calls tools: native turns, pauses, a person."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from formal_llm.agents import Transcript
from tests.cli.inside import runner
from tests.tool_server import Asked, ToolServer

agent = runner("agent")
TOOLS = '''
import os, signal, time
from formal_llm.errors import Pending
from formal_llm.tools import Toolkit, tool

@tool("pay")
def pay(amount: int) -> str:
    """Pays."""
    with open("paid.txt", "a") as file:
        file.write(f"{amount}\\n")
    return f"paid {amount}"

@tool("ask_user")
def ask_user(question: str) -> str:
    """Asks the user."""
    raise Pending(question)

@tool("interrupt")
def interrupt(times: int = 1) -> str:
    """As if Ctrl-C was pressed."""
    for _ in range(times):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)  # signals of one kind that come at once are one
    return "interrupted"

toolkit = Toolkit([pay, ask_user, interrupt])
'''


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    Path("pause_tools.py").write_text(TOOLS)
    yield
    sys.modules.pop("pause_tools", None)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ToolServer]:
    with ToolServer(lambda _: ("", [])) as started:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{started.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield started


def play(server: ToolServer, *turns: tuple[str, list[tuple[str, dict[str, Any]]]]) -> None:
    """Have the model take turns, one after the other; then it answers with the results."""

    def act(asked: Asked) -> Any:
        done = sum(message["role"] == "assistant" for message in asked.body["messages"])
        return turns[done] if done < len(turns) else ("; ".join(asked.results), [])

    server.model = act


HOW = ("--llm", "openai:m", "--tools", "pause_tools:toolkit")
PAY: Any = ("I pay.", [("pay", {"amount": 3})])


class Terminal:
    """A terminal at which lines are typed ahead."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
        self.master, slave = os.openpty()
        os.write(self.master, typed.encode())
        self.stdin = os.fdopen(slave)
        monkeypatch.setattr("sys.stdin", self.stdin)

    def close(self) -> None:
        self.stdin.close()
        os.close(self.master)


def test_a_hosted_model_calls_tools_natively_and_its_text_is_shown_once(server: ToolServer) -> None:
    play(server, PAY)
    code, printed, _ = agent("react", "Pay.", *HOW, "--instructions", "Be brief.", "--save", "run.jsonl")
    assert code == 0 and '  pay({"amount": 3})\n' in printed and len(server.asked) == 2
    assert server.asked[0].tools == ["pay", "ask_user", "interrupt"] and server.asked[0].body["stream"]
    assert server.asked[0].body["messages"][0]["content"].startswith("Be brief.")
    lines = printed.splitlines()
    # What came before the call was streamed as an answer might be, and turned out to be a thought.
    assert lines[:6] == [
        "Ques: Pay.", "Final-Tht: ", "Ans: I pay.", "  Ans is withdrawn", "  Final-Tht is withdrawn", "Tht: I pay.",
    ]  # fmt: skip
    assert lines[-2:] == ["Ans: paid 3", "0 questions, 2 requests, 0 corrections"] and printed.count("paid 3") == 2
    Path("how.txt").write_text("Be kind.")
    code, printed, _ = agent("react", "Pay.", *HOW, "--instructions", "@how.txt", "--text", "--max-tokens", "1")
    assert code == 4 and server.asked[-1].tools == []
    assert server.asked[-1].body["messages"][0]["content"].startswith("Be kind.")


@pytest.mark.parametrize("llm", ["openai:m", "anthropic:m", "ollama:m"])
def test_a_liar_is_corrected_before_the_eyes_of_the_person(
    server: ToolServer, llm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    play(server, ("", [("rm", {"path": "/"})]), PAY)
    code, printed, _ = agent("react", "Pay.", "--llm", llm, "--native", *HOW[2:], "--limit", "ask_user=0")
    assert code == 0 and "corrected: " in printed and "'rm'" in printed and "1 correction" in printed
    assert "there is no tool 'rm'; what may be called now: pay, interrupt" in printed
    assert "\n  rm(" not in printed


def test_without_a_terminal_the_run_pauses_and_is_continued_by_another_command(server: ToolServer) -> None:
    play(server, PAY)
    code, printed, said = agent("react", "Pay.", *HOW, "--approve", "pay", "--state", "run.json", "--page", "run.html")
    assert code == 5 and not Path("paid.txt").exists()
    assert '4.0: pay({"amount": 3}) waits for: approval' in said and "--resume run.json" in said
    assert "Pay." in Path("run.html").read_text()
    how = (*HOW, "--approve", "pay")
    for arguments, words in (
        (("Pay.", "--state", "run.json"), "run.json is there already; continue its run with --resume run.json"),
        (("Pay.", "--resume", "run.json"), "run.json has the question; leave it out"),
        (("--resume", "run.json", "--state", "other.json"), "leave --state out"),
        (("--resume", "run.json", "--answer", "4.0=perhaps"), "4.0 waits for an approval"),
        (("--resume", "run.json", "--answer", "9.0=yes"), "it waits for 4.0 (approval)"),
        (("--resume", "run.json", "--answer", "yes"), "--answer takes ID=TEXT"),
        (("--resume", "gone.json"), "gone.json: there is no such file"),
        (("--resume", "run.json", "--rule", "(eventually pay)"), "paused under rules with the fingerprint"),
        (("Pay.", "--answer", "4.0=yes"), "--answer is for a run that continues"),
        (("Pay.", "--chat", "--state", "new.json"), "not for a conversation"),
        (("Pay.",), "nobody is at the terminal who approves calls"),
        ((), "there is no question"),
    ):
        code, _, said = agent("react", *arguments, *how)
        assert code == 2 and words in " ".join(said.split()), arguments
    code, _, said = agent("modular", "Pay.", "--llm", "test:random", "--native")
    assert code == 2 and "the modular agent takes none of" in said
    assert agent("react", "--resume", "run.json", *how)[0] == 5  # nobody has answered
    assert len(server.asked) == 1
    code, printed, _ = agent("react", "--resume", "run.json", "--answer", "4.0=yes", *how, "--save", "run.jsonl")
    assert code == 0 and Path("paid.txt").read_text() == "3\n" and not Path("run.json").exists()
    assert printed.startswith("Ques: Pay.\nTht: I pay.\nAct: pay\n") and "Ans: paid 3" in printed
    assert Transcript.from_jsonl(Path("run.jsonl").read_text()).usage.requests == len(server.asked) == 2


def test_a_person_at_the_terminal_approves_declines_and_answers(
    server: ToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(server, PAY, ("", [("pay", {"amount": 4})]), ("", [("ask_user", {"question": "Which river?"})]))
    terminal = Terminal(monkeypatch, "what?\ny\nn: too much\nthe Danube\n")
    try:
        code, printed, said = agent("react", "Pay.", *HOW, "--approve", "pay", "--state", "run.json")
    finally:
        terminal.close()
    assert code == 0 and Path("paid.txt").read_text() == "3\n" and not Path("run.json").exists()
    assert said.count('pay({"amount": 3}): shall it be called?') == 2 and "Which river?" in said
    assert "Ans: paid 3; Error: a person declined this call: too much; the Danube" in printed
    assert len(server.asked) == 4


def test_a_person_who_leaves_pauses_the_run(server: ToolServer, monkeypatch: pytest.MonkeyPatch) -> None:
    play(server, ("", [("ask_user", {"question": "Which river?"})]))
    terminal = Terminal(monkeypatch, "\x04")
    try:
        code, _, said = agent("react", "Ask.", *HOW, "--state", "run.json")
    finally:
        terminal.close()
    assert code == 5 and 'ask_user({"question": "Which river?"}) waits for: Which river?' in said
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code, printed, _ = agent("react", "--resume", "run.json", "--answer", "4.0=the Danube", *HOW, "-q")
    assert (code, printed) == (0, "the Danube\n")
    code, _, said = agent("react", "Ask.", *HOW)
    assert code == 5 and "with --state FILE it can be continued" in said


def test_ctrl_c_pauses_the_run_and_once_more_ends_it(server: ToolServer) -> None:
    play(server, ("", [("interrupt", {"times": 1})]), PAY)
    code, _, said = agent("react", "Pay.", *HOW, "--state", "run.json")
    assert code == 130 and "SIGINT: the run pauses" in said and "--resume run.json in place of the question" in said
    assert len(server.asked) == 1
    code, printed, _ = agent("react", "--resume", "run.json", *HOW)
    assert code == 0 and "Ans: interrupted; paid 3" in printed and len(server.asked) == 3
    play(server, ("", [("interrupt", {"times": 2})]))
    code, _, said = agent("react", "Pay.", *HOW, "--state", "run.json")
    assert code == 130 and "interrupted" in said and "what was under way is done again" in said
    assert json.loads(Path("run.json").read_text())["calls"] == []


def test_a_run_that_fails_is_continued_where_it_failed(server: ToolServer) -> None:
    play(server, PAY)
    code, _, said = agent("react", "Pay.", *HOW, "--state", "run.json", "--max-tokens", "10")
    assert code == 4 and "the run can be continued: the same command" in said
    assert json.loads(Path("run.json").read_text())["question"] == "Pay."
    code, printed, _ = agent("react", "--resume", "run.json", *HOW, "-q")
    assert (code, printed) == (0, "paid 3\n") and Path("paid.txt").read_text() == "3\n" and len(server.asked) == 2


def test_random_turns() -> None:
    code, printed, _ = agent("react", "q", "--llm", "test:random=3", "--native", "--times", "2", "--save", "run.jsonl")
    assert code == 0 and printed.startswith("Ques: q\n")
    code, _, said = agent("direct", "q", "--llm", "test:random", "--native")
    assert code == 2 and "no states for an action" in said
