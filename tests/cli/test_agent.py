"""``formal-llm agent``."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from formal_llm.agents import Transcript
from formal_llm.automata import Behaviour
from formal_llm.cli.agent import tools_of
from formal_llm.llms.recorded import list_answers
from tests.cli.inside import invoke, runner

agent = runner("agent")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_a_run_is_shown_saved_and_made_a_page() -> None:
    options = ("--llm", "test:random=3", "--page", "run.html", "--save", "run.jsonl", "--limit", "search=1")
    code, printed, _ = agent("react", "Into which sea <b>does</b> the Danube flow?", *options)
    assert code == 0 and printed.startswith("Ques: Into which sea <b>does</b> the Danube flow?\n")
    made = Transcript.from_jsonl(Path("run.jsonl").read_text())
    assert made.verify(Behaviour.load("react")).valid
    shown = [
        line.split(":")[0] for line in printed.splitlines() if line.split(":")[0] in Behaviour.load("react").states
    ]
    assert tuple(shown) == made.word
    assert printed.count("corrected: ") == len(made.corrections) > 0
    assert all(line.startswith(("corrected: ", "  ")) or "corrected: " not in line for line in printed.splitlines())
    assert f"{len(made.corrections)} correction" in printed.splitlines()[-1]
    page = Path("run.html").read_text()
    assert "Into which sea &lt;b&gt;does" in page and "test:random=3" in page and "Corrected: " in page


def test_the_answer_alone() -> None:
    code, printed, _ = agent("direct", "q", "--llm", "test:random=3", "--quiet", "--save", "run.jsonl")
    assert code == 0 and printed.strip() == Transcript.from_jsonl(Path("run.jsonl").read_text()).answer


def test_the_transcript_alone_on_standard_output() -> None:
    code, printed, said = agent("direct", "q", "--llm", "test:random=3", "--save", "-")
    assert code == 0 and Transcript.from_jsonl(printed).text_of("Ques") == "q" and "1 request" in said
    assert not Path("-").exists()


def test_what_cannot_be_done_is_told_before_anything_is_asked() -> None:
    for arguments, words in (
        (("",), "no question"),
        (("q", "--page", "gone/run.html"), "there is no folder gone"),
        (("q", "--save", "."), "cannot be written"),
    ):
        code, printed, said = agent("react", *arguments, "--llm", "test:random")
        assert code == 2 and words in said and not printed


def test_tools_of_ones_own_and_rules() -> None:
    Path("own_tools.py").write_text(
        "from formal_llm.tools import Toolkit, tool\n\n@tool\ndef ring(bell: str) -> str:\n    '''Ring.'''\n"
        "    return 'ding'\n\ntoolkit = Toolkit([ring])\n\ndef make():\n    return toolkit\n\nnothing = 1\n"
    )
    options = ("--llm", "test:random=1", "--rule", "(eventually ring)", "--limit", "ring=1")
    for name in ("own_tools:toolkit", "own_tools:make"):
        code, printed, _ = agent("react", "q", "--tools", name, *options)
        assert code == 0 and printed.count("  ring(") == 1
    for name in ("own_tools:nothing", "own_tools:no", "no_such:x", "own_tools"):
        code, _, said = agent("react", "q", "--tools", name, *options)
        assert code == 2 and "toolkit" in said
    sys.modules.pop("own_tools")


def test_a_module_in_the_folder_comes_before_others_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, folder in (("there", tmp_path / "elsewhere"), ("here", tmp_path)):
        folder.mkdir(exist_ok=True)
        (folder / "twice_there.py").write_text(
            f"from formal_llm.tools import Toolkit, tool\n\n@tool\ndef {name}() -> str:\n    'It.'\n    return ''\n\n"
            f"toolkit = Toolkit([{name}])\n"
        )
    monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))
    before = [*sys.path]
    assert [*tools_of("twice_there:toolkit", None).tools] == ["here"]
    assert sys.path == before
    sys.modules.pop("twice_there")


def test_a_recorded_run_is_replayed() -> None:
    first = agent("react", "q", "--llm", "test:random=5", "--record", "r.jsonl")[1]
    assert agent("react", "q", "--llm", "replay:r.jsonl")[1] == first
    listed = [json.loads(line) for line in invoke("list", "answers", "r.jsonl")[1].splitlines()]
    assert listed == [*list_answers("r.jsonl")] and {line["llm"] for line in listed} == {"test:random"}
    assert "list answers FILE" in invoke("list", "answers")[2]


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (("reakt", "q", "--llm", "test:random"), 2, "Did you mean 'react'?"),
        (("react", "q", "--llm", "builtin"), 3, "writes no free text"),
        (("react", "q"), 2, "Missing option '--llm'"),
        (("react", "q", "--llm", "test:random", "--limit", "serch=1"), 2, "serch"),
        (("react", "q", "--llm", "test:random", "--limit", "search=0", "--require", "search=1"), 2, "nothing keeps"),
        (("react", "q", "--llm", "test:random", "--max-tokens", "1"), 4, "budget of 1 tokens is used up"),
        (("react", "q", "--llm", "test:random", "--corpus", "none.sqlite"), 2, "there is no such file"),
    ],
)
def test_what_goes_wrong_says_how_to_go_on(arguments: tuple[str, ...], code: int, expected: str) -> None:
    got, printed, said = agent(*arguments)
    assert got == code and expected in " ".join((printed + said).split())


def test_a_chat_without_an_end_is_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("and then?\n\nbye\n"))
    options = ("--llm", "test:random=3", "--chat", "--save", "chat.jsonl", "--page", "chat.html")
    code, printed, _ = agent("chat-bot-endless", "Good morning.", *options)
    made = Transcript.from_jsonl(Path("chat.jsonl").read_text())
    assert code == 0 and made.word == (*("Chat-Bot", "User") * 3, "Chat-Bot")
    assert [one.text for one in made.segments if one.state == "User"] == ["Good morning.", "and then?", "bye"]
    assert "User: " in printed and "bye" in Path("chat.html").read_text()


def test_earlier_messages_are_shown_to_a_chat_of_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("And my name?\n"))
    code, printed, _ = agent("chat-bot", "I am Ada.", "--llm", "test:random=3", "--chat", "--record", "r.jsonl", "-q")
    assert code == 0 and printed
    assert "Earlier in this conversation:" in json.dumps([*list_answers("r.jsonl")])
