"""The shipped rules for coding agents: hook events of the documented formats, and shell lines that push."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from formal_llm import authored
from formal_llm.guard import Guard, GuardRules
from formal_llm.guard.hooks.hook import answer_event

GUARD = Guard(GuardRules.from_file(Path(authored.find("grammars", "guard")) / "coding-agent.guard"))
EVENTS = [
    line.split(" ", 2)
    for line in (Path(__file__).parent / "coding_agent_events.txt").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = tmp_path_factory.mktemp("home") / "work"
    (project / ".git").mkdir(parents=True)
    (project / "outlink").symlink_to("/opt")
    (project / "build").mkdir()
    return project


def answer(project: Path, folder: Path, event: str, **fields: object) -> Mapping[str, object]:
    """Send an event with the fields that all events have; return the answer."""
    row = {
        "session_id": "00893aaf-19fa-41d2-8238-13269b9b3ca0", "transcript_path": f"{project.parent}/.claude/t.jsonl",
        "cwd": str(project), "permission_mode": "default", "hook_event_name": event, **fields,
    }  # fmt: skip
    found = answer_event(json.dumps(row).encode(), lambda: GUARD, folder)
    assert found.code == 0, found.err
    return dict(json.loads(found.out)) if found.out else {}


def check_call(project: Path, folder: Path, tool: str, given: Mapping[str, object], number: int = 1) -> str:
    said = answer(
        project, folder, "PreToolUse", tool_name=tool, tool_input=given, tool_use_id=f"toolu_{number}"
    )  # fmt: skip
    decision = said.get("hookSpecificOutput", {"permissionDecision": "pass"})
    assert isinstance(decision, dict)
    return str(decision["permissionDecision"])


def test_half_of_the_events_are_refused() -> None:
    assert len(EVENTS) >= 200
    assert sum(row[0] != "pass" for row in EVENTS) >= 100
    assert len({tuple(row[1:]) for row in EVENTS}) == len(EVENTS)


@pytest.mark.parametrize(("expected", "tool", "text"), EVENTS, ids=[f"{row[1]} {row[2][:60]}" for row in EVENTS])
def test_an_event(project: Path, tmp_path: Path, expected: str, tool: str, text: str) -> None:
    given = json.loads(text.replace("%P", str(project)).replace("%H", str(project.parent)))
    if tool in ("Edit", "MultiEdit"):
        assert check_call(project, tmp_path, "Read", {"file_path": given["file_path"]}, 0) == "pass"
    assert check_call(project, tmp_path, tool, given) == expected


def test_a_session(project: Path, tmp_path: Path) -> None:
    """Edits need a reading before, by whatever path, and tests behind them that can fail."""
    file = {"file_path": str(project / "push.py")}
    change = {**file, "old_string": "a", "new_string": "b"}
    assert check_call(project, tmp_path, "Edit", change, 1) == "deny"
    assert check_call(project, tmp_path, "Read", {"file_path": "push.py"}, 2) == "pass"
    assert check_call(project, tmp_path, "Edit", change, 3) == "pass"
    response = {"stdout": "", "stderr": "", "interrupted": False, "isImage": False}
    for number, (command, more, after, ends) in enumerate((
        ("pytest --version", {}, response, False), ("pytest || true", {}, response, False),
        ("pytest | tail", {}, response, False), ("pytest; ls", {}, response, False),
        ("pytest -q", {}, {**response, "interrupted": True}, False),
        ("pytest -q", {"run_in_background": True}, {**response, "backgroundTaskId": "b1"}, False),
        ("git status && pytest -q 2>&1", {}, response, True),
    ), 4):  # fmt: skip
        given = {"command": command, **more}
        assert check_call(project, tmp_path, "Bash", given, number) == "pass"
        id_ = f"toolu_{number}"
        answer(
            project, tmp_path, "PostToolUse", tool_name="Bash", tool_input=given, tool_response=after, tool_use_id=id_
        )
        said = answer(project, tmp_path, "Stop", stop_hook_active=False, last_assistant_message="")
        assert (said == {}) is ends, command
