"""Hooks: what coding agents are answered, sessions on disk, many at once, and a process that is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from formal_llm.guard import Decision, Guard, GuardRules
from formal_llm.guard.audit import read_log
from formal_llm.guard.hooks.hook import (
    HookAnswer,
    InvalidHookInput,
    answer_call,
    answer_event,
    answer_hook,
    find_session_file,
    load_guard,
    read_input,
    refuse_stop,
    show_message,
)

RULES = """
read: Read
edit: Edit
push: Bash[plain and programs contains "touch"]
unknown: Bash[not plain]
tests: Bash[plain and programs contains "pytest"]
deploy: Deploy
rule read-first: read before edit
rule one-push: at most 1 push
rule plain-lines: never unknown
rule ask-deploy ask: never deploy
rule tested: tests after each edit
"""
GUARD = Guard(GuardRules.from_string(RULES))


class Agent:
    """A coding agent as its hooks see it."""

    def __init__(self, folder: Path, guard: Guard = GUARD) -> None:
        self.folder = folder
        self.guard = guard
        self.calls = 0

    @property
    def path(self) -> Path:
        return find_session_file(self.folder, "../s/1")

    def send(self, event: str, **fields: Any) -> HookAnswer:
        row = {"session_id": "../s/1", "hook_event_name": event, "cwd": "/", "transcript_path": "/t", **fields}
        data = json.dumps(row).encode()
        return answer_event(data, lambda: self.guard, self.folder)

    def before(self, tool: str, id_: str | None = None, **given: Any) -> str:
        self.calls += 1
        found = self.send("PreToolUse", tool_name=tool, tool_input=given, tool_use_id=id_ or f"id{self.calls}")
        assert found.code == 0
        if not found.out:
            return "passes"
        return str(json.loads(found.out)["hookSpecificOutput"]["permissionDecision"])

    def after(self, tool: str, id_: str | None = None, **given: Any) -> None:
        found = self.send(
            "PostToolUse",
            tool_name=tool,
            tool_input=given,
            tool_use_id=id_ or f"id{self.calls}",
            tool_response={"ok": True},
        )
        assert found == HookAnswer()

    def stop(self, **fields: Any) -> Mapping[str, Any]:
        found = self.send("Stop", **fields)
        return dict(json.loads(found.out)) if found.out else {}

    def rows(self) -> list[Mapping[str, Any]]:
        reading = read_log(self.path)
        assert reading.faults == ()
        return [entry.row for entry in reading.entries[1:]]


def test_a_session(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    assert agent.send("UserPromptSubmit", prompt="fix it") == HookAnswer()
    assert agent.before("Edit", file_path="a.py") == "deny"
    assert agent.before("Read", file_path="a.py") == "passes"
    agent.after("Read", file_path="a.py")
    assert agent.before("Edit", file_path="a.py") == "passes"
    agent.after("Edit", file_path="a.py")
    held = agent.stop()
    assert held["decision"] == "block"
    assert "pytest" in held["reason"] or "tests" in held["reason"]
    assert agent.before("Bash", command="cd x && pytest || pytest -q") == "passes"
    agent.after("Bash", command="cd x && pytest || pytest -q")
    assert agent.stop() == {}
    assert [row["told"] for row in agent.rows()].count(False) == 3  # a call that was refused, and two stops


def test_shell_lines_by_their_words(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    assert agent.before("Bash", command="echo touch") == "passes"
    assert agent.before("Bash", command="bash -c 'sudo touch now'") == "deny"
    assert agent.before("Bash", command="true; touch") == "passes"
    assert agent.before("Bash", command="true; touch") == "deny"
    assert agent.before("Bash", command="$CMD now") == "deny"


def test_a_person_is_asked_where_nothing_is_known(tmp_path: Path) -> None:
    path = tmp_path / "rules.guard"
    for text, unsure in ((RULES, "ask"), (f"%unsure allow\n{RULES}", "allow"), (f"%unsure block\n{RULES}", "block")):
        path.write_text(text)
        assert load_guard(path, "some").unsure == unsure


def test_a_person_is_asked(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    assert agent.before("Deploy", "d1") == "ask"
    assert agent.rows()[-1]["told"] is False
    agent.after("Deploy", "d1")  # it ran: somebody said yes
    assert agent.rows()[-2]["event"]["approved"] is True
    assert agent.rows()[-2]["told"] is True
    assert agent.before("Deploy", "d2") == "ask"


def test_a_call_of_which_the_guard_learns_by_its_result_alone_counts_unapproved(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.after("Bash", "one", command="touch")
    call, result = (row["event"] for row in agent.rows())
    assert (call["call"], call.get("approved", False), result["result"]) == ("Bash", False, "Bash")
    assert agent.before("Bash", "two", command="touch") == "deny"


def test_the_same_hook_again_counts_once(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    for _ in range(2):
        assert agent.before("Bash", "one", command="touch") == "passes"
    assert agent.before("Bash", "two", command="touch") == "deny"
    agent.after("Bash", "one", command="touch")
    assert agent.before("Bash", "one", command="touch") == "deny"  # it would run again


def test_another_call_with_the_id_of_an_allowed_one_is_judged(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    assert agent.before("Bash", "one", command="ls") == "passes"
    assert agent.before("Bash", "one", command="touch") == "passes"
    assert agent.before("Bash", "one", command="touch --again") == "deny"
    assert agent.before("Edit", "one", command="ls") == "deny"
    assert agent.before("Bash", "one", command="touch") == "passes"  # the same hook again
    agent.after("Bash", "one", command="pytest")  # what ran is not what was let through
    assert [row["event"].get("call") for row in agent.rows()[-2:]] == ["Bash", None]


def test_a_session_whose_log_is_gone_is_not_judged(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    assert agent.before("Bash", command="touch") == "passes"
    for content in (None, b"", agent.path.read_bytes()[:100]):
        agent.path.unlink()
        if content is not None:
            agent.path.write_bytes(content)
        for _ in range(2):
            assert agent.before("Bash", command="touch") == "deny"
        assert "the record of this session was changed" in agent.send("Stop").err
    other = Agent(tmp_path / "other")
    assert other.before("Bash", command="touch") == "passes"


def test_a_list_of_sessions_that_was_changed_is_not_believed(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.before("Read")
    path = tmp_path / "sessions.log"
    path.write_bytes(path.read_bytes().replace(agent.path.stem.encode(), b"0" * 32))
    agent.path.unlink()
    assert "sessions.log: line 2: it was changed" in agent.send("Stop").err


def test_a_session_that_was_cut_off_when_it_began_begins_again(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.path.write_bytes(b'{"format":"formal-llm gua')
    assert agent.before("Bash", command="touch") == "passes"
    assert agent.before("Bash", command="touch") == "deny"
    head = agent.path.read_bytes().splitlines(keepends=True)[0]
    (tmp_path / "sessions.log").unlink()
    agent.path.write_bytes(head)  # it was killed before it was listed
    assert agent.before("Bash", command="touch") == "passes"
    agent.path.unlink()
    assert agent.before("Read") == "deny"


def test_new_rules_count_what_happened_and_need_a_person(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    assert agent.before("Bash", command="touch") == "passes"
    agent.guard = Guard(GuardRules.from_string(RULES.replace("at most 1", "at most 2")))
    assert agent.before("Bash", "a", command="touch") == "ask"
    assert agent.before("Bash", "a", command="touch") == "ask"  # nobody said yes
    assert agent.before("Edit", "b") == "deny"
    asked = agent.send("PreToolUse", tool_name="Read", tool_input={}, tool_use_id="c")
    assert "The rules have changed" in asked.out
    agent.after("Bash", "a", command="touch")  # it ran, so the person said yes
    assert agent.before("Read") == "passes"
    assert agent.before("Bash", command="touch") == "deny"  # the third
    agent.guard = GUARD
    assert agent.before("Read") == "ask"
    agent.guard = Guard(GuardRules.from_string(RULES.replace("at most 1", "at most 2")))
    assert agent.before("Read") == "passes"  # nobody approved the others
    assert all("rules" not in row or row["event"]["approved"] for row in agent.rows())


def test_a_yes_to_a_call_is_no_yes_to_rules_that_came_later(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    assert agent.before("Deploy", "a") == "ask"
    agent.guard = Guard(GuardRules.from_string(RULES.replace("at most 1", "at most 2")))
    agent.after("Deploy", "a")
    assert agent.before("Read", "b") == "ask"
    agent.guard = Guard(GuardRules.from_string(RULES.replace("at most 1", "at most 3")))
    agent.after("Read", "b")
    assert agent.before("Read", "c") == "ask"


def test_hooks_with_different_rules_do_not_share_a_session(tmp_path: Path) -> None:
    row = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "pay", "tool_input": {}}
    for name, most in (("a", 1), ("b", 2)):
        (tmp_path / name).write_text(f"pay: pay\nrule r: at most {most} pay\n")
    (tmp_path / "c").symlink_to("a")
    given = [(name, f"{number}") for number, name in enumerate("ababac")]
    found = [
        answer_hook([name], (str(tmp_path), "state"), json.dumps({**row, "tool_use_id": id_}).encode()).out
        for name, id_ in given
    ]
    assert ["deny" in out for out in found] == [False, False, True, False, True, True]


def test_an_agent_that_does_nothing_is_not_held_for_ever(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.before("Read")
    agent.before("Edit")
    agent.after("Edit")
    assert agent.stop()["decision"] == "block"
    told = agent.stop(stop_hook_active=True)
    assert "decision" not in told
    assert "not kept" in told["systemMessage"]


def test_warnings_are_shown_and_log_only_says_nothing(tmp_path: Path) -> None:
    rules = "push: push\nlook: look\nrule pushes warn: at most 0 push\nrule looks log: at most 0 look\n"
    agent = Agent(tmp_path, Guard(GuardRules.from_string(rules)))
    found = agent.send("PreToolUse", tool_name="push", tool_input={}, tool_use_id="a")
    assert "systemMessage" in json.loads(found.out)
    assert agent.send("PreToolUse", tool_name="look", tool_input={}, tool_use_id="b") == HookAnswer()
    assert [row["decision"]["action"] for row in agent.rows()] == ["warn", "log"]
    assert all(row["told"] for row in agent.rows())


@pytest.mark.parametrize(
    ("data", "told"),
    [(b"", "no JSON"), (b"[1]", "no JSON object"), (b"{}", "no hook_event_name"),
     (b'{"hook_event_name": "Stop"}', "no session_id"),
     (b"\xff", "no JSON"), (b" " * 40_000_000, "more than"), (b"[" * 1_000_000, "no JSON")],
)  # fmt: skip
def test_input_that_is_none_is_denied(tmp_path: Path, data: bytes, told: str) -> None:
    found = answer_event(data, lambda: GUARD, tmp_path)
    assert found.code == 2
    assert told in found.err
    assert not list(tmp_path.iterdir())


def test_events_that_rules_do_not_look_at_pass_with_a_note(tmp_path: Path) -> None:
    for name in ("SessionStart", "SubagentStop", "PreCompact", "Whatever"):
        found = Agent(tmp_path).send(name)
        assert (found.code, found.out) == (0, "")
        assert name in found.err


def test_what_cannot_be_judged_does_not_run(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.before("Read")
    path = find_session_file(tmp_path, "../s/1")
    path.write_bytes(path.read_bytes().replace(b'"call":"Read"', b'"call":"Edit"'))
    assert agent.before("Edit") == "deny"
    assert agent.send("Stop").code == 1
    assert "changed (line 2" in agent.send("Stop").err

    def broken() -> Guard:
        return Guard(GuardRules.from_string("rule x: nonsense\n"))

    row = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {}}
    assert '"deny"' in answer_event(json.dumps(row).encode(), broken, tmp_path).out
    assert answer_event(json.dumps({**row, "hook_event_name": "Stop"}).encode(), broken, tmp_path).code == 1


@pytest.mark.parametrize(
    ("cwd", "given"),
    [("/a\0b", {"command": "ls x"}), ("/a\ud800", {"command": "ls x"}), ("/a", {"command": "ls", "workdir": "b\0c"})],
)
def test_a_character_that_no_path_can_have_is_named(tmp_path: Path, cwd: str, given: Mapping[str, Any]) -> None:
    row = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": given, "cwd": cwd}
    found = answer_event(json.dumps(row).encode(), lambda: GUARD, tmp_path)
    assert '"deny"' in found.out and "cwd or a path of the call has a character" in found.out
    assert answer_event(json.dumps({**row, "hook_event_name": "PostToolUse"}).encode(), lambda: GUARD, tmp_path).err


#: A process that has all it needs, and answers events as hooks do.
MANY = """
import json, os, sys
from pathlib import Path
from formal_llm.guard import Guard, GuardRules
from formal_llm.guard.hooks.hook import answer_event
guard = Guard(GuardRules.from_string("push: push\\nrule few: at most %d push\\n"))
def push(name):
    row = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "push", "tool_input": {}}
    row["tool_use_id"] = name
    return answer_event(json.dumps(row).encode(), lambda: guard, Path(sys.argv[1])).out
"""
AT_ONCE = """
begin = os.pipe()
children = []
for number in range(20):
    if not (child := os.fork()):
        os.close(begin[1])
        os.read(begin[0], 1)  # all begin when the other end is closed
        os._exit(1 if "deny" in push(f"p{number}") else 0)
    children.append(child)
os.close(begin[1])
print(sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""
WITHOUT_END = """
for number in range(1_000_000):
    push(f"{os.getpid()}-{number}")
    print(f"{os.getpid()}-{number}", flush=True)
"""


def test_twenty_processes_at_once_share_one_limit(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", MANY % 7 + AT_ONCE, str(tmp_path)], capture_output=True, check=True, timeout=120
    )
    assert int(told.stdout) == 13
    (path,) = tmp_path.rglob("*.jsonl")
    reading = read_log(path)
    assert reading.faults == ()
    assert len(reading.entries) == 21
    assert sum(entry.row.get("told") is True for entry in reading.entries) == 7


def test_hooks_that_are_killed_lose_nothing(tmp_path: Path) -> None:
    """Wherever they die, what was answered before is there, the chain holds, and the next one goes on."""
    started = [
        subprocess.Popen([sys.executable, "-c", MANY % 99_999 + WITHOUT_END, str(tmp_path)], stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    answered: list[str] = []
    for number, one in enumerate(started):
        assert one.stdout is not None
        answered += [one.stdout.readline().decode().strip() for _ in range(10 + 7 * number)]
        one.kill()
        *lines, _ = one.communicate()[0].decode().split("\n")
        answered += lines
    (path,) = tmp_path.rglob("*.jsonl")
    reading = read_log(path)
    assert reading.faults == ()
    ids = [entry.row["event"]["id"] for entry in reading.entries[1:]]  # type: ignore[index,call-overload]
    assert len(answered) >= 27
    assert set(answered) <= set(ids)
    assert len(ids) == len(set(ids))


def test_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "rules.guard").write_text("push: push\nrule few: at most 0 push\n")
    row = {
        "session_id": "s",
        "hook_event_name": "PreToolUse",
        "tool_name": "push",
        "tool_input": {},
        "tool_use_id": "1",
    }
    command = [sys.executable, "-m", "formal_llm", "guard", "--hook", str(tmp_path / "rules.guard")]
    told = subprocess.run(
        [*command, "--state", str(tmp_path / "state")], input=json.dumps(row).encode(), capture_output=True, timeout=60
    )
    assert told.returncode == 0
    assert json.loads(told.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_decisions() -> None:
    assert answer_call(Decision("allow")) == HookAnswer()
    assert answer_call(Decision("log", "r", "why")) == HookAnswer()
    for action, said in (("block", "deny"), ("ask", "ask")):
        found = json.loads(answer_call(Decision(action, "r", "why")).out)["hookSpecificOutput"]  # type: ignore[arg-type]
        assert found["hookEventName"] == "PreToolUse"
        assert found["permissionDecision"] == said
        assert "why" in found["permissionDecisionReason"]
    assert "why" in json.loads(answer_call(Decision("warn", "r", "why")).out)["systemMessage"]
    assert json.loads(refuse_stop("tests").out) == {"decision": "block", "reason": "tests"}
    assert "x" in show_message("x").out


def test_input() -> None:
    assert read_input(b'{"hook_event_name": "Stop", "session_id": "x"}')["session_id"] == "x"
    with pytest.raises(InvalidHookInput, match="session_id"):
        read_input(b'{"hook_event_name": "Stop", "session_id": 3}')
