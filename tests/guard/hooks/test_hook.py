"""Hooks: what coding agents are answered, sessions on disk, many at once, and a process that is killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import NotationError
from formal_llm.guard import Decision, Guard, GuardRules
from formal_llm.guard.audit import read_log
from formal_llm.guard.hooks.hook import (
    HookAnswer,
    HookMemory,
    InvalidHookInput,
    answer_call,
    answer_event,
    answer_hook,
    find_session_file,
    read_input,
    refuse_stop,
    show_message,
)
from tests.strategies import examples

RULES = """
read: Read
edit: Edit
push: Bash[programs contains "touch"]
unknown: Bash[len(unknown) > 0]
tests: Bash[programs contains "pytest"]
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

    def __init__(self, folder: Path, guard: Guard = GUARD, memory: HookMemory | None = None, key: bytes = b"") -> None:
        self.folder = folder
        self.guard = guard
        self.memory = memory
        self.key = key
        self.calls = 0

    @property
    def path(self) -> Path:
        return find_session_file(self.folder, "../s/1")

    def send(self, event: str, **fields: Any) -> HookAnswer:
        row = {"session_id": "../s/1", "hook_event_name": event, "cwd": "/", "transcript_path": "/t", **fields}
        data = json.dumps(row).encode()
        return answer_event(data, lambda: self.guard, self.folder, key=self.key, memory=self.memory)

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
        reading = read_log(self.path, self.key)
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
    assert agent.before("Bash", command="cd x && python -m pytest || pytest -q") == "passes"
    agent.after("Bash", command="cd x && python -m pytest || pytest -q")
    assert agent.stop() == {}
    assert [row["told"] for row in agent.rows()].count(False) == 3  # a call that was refused, and two stops


def test_shell_lines_by_their_words(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    assert agent.before("Bash", command="echo touch") == "passes"
    assert agent.before("Bash", command="bash -c 'sudo touch now'") == "passes"
    assert agent.before("Bash", command="true; touch") == "deny"
    assert agent.before("Bash", command="$CMD now") == "deny"


def test_a_person_is_asked_where_nothing_is_known(tmp_path: Path) -> None:
    path = tmp_path / "rules.guard"
    for text, unsure in ((RULES, "ask"), (f"%unsure allow\n{RULES}", "allow"), (f"%unsure block\n{RULES}", "block")):
        path.write_text(text)
        assert HookMemory().get_guard(path, "some").unsure == unsure


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


@pytest.mark.parametrize("kept", [False, True])
def test_a_session_whose_log_is_gone_is_not_judged(tmp_path: Path, kept: bool) -> None:
    agent = Agent(tmp_path, memory=HookMemory() if kept else None)
    assert agent.before("Bash", command="touch") == "passes"
    for content in (None, b"") if kept else (None, b"", agent.path.read_bytes()[:100]):
        agent.path.unlink()
        if content is not None:
            agent.path.write_bytes(content)
        for _ in range(2):
            assert agent.before("Bash", command="touch") == "deny"
        assert "the record of this session was changed" in agent.send("Stop").err
    other = Agent(tmp_path / "other")
    assert other.before("Bash", command="touch") == "passes"


def test_lines_that_are_taken_away_are_missed_by_the_process_that_wrote_them(tmp_path: Path) -> None:
    agent = Agent(tmp_path, memory=HookMemory())
    agent.before("Read")
    before = agent.path.read_bytes()
    agent.before("Bash", command="touch")
    agent.path.write_bytes(before)
    for _ in range(2):
        assert "lines at its end are missing" in agent.send("Stop").err


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


@pytest.mark.parametrize("kept", [False, True])
def test_new_rules_count_what_happened_and_need_a_person(tmp_path: Path, kept: bool) -> None:
    agent = Agent(tmp_path, memory=HookMemory() if kept else None)
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


def test_a_signed_session_goes_on_with_its_key_alone(tmp_path: Path) -> None:
    agent = Agent(tmp_path, key=b"0123456789abcdef")
    assert agent.before("Read") == "passes"
    assert agent.rows()
    for key in (b"", b"fedcba9876543210"):
        agent.key = key
        assert agent.before("Read") == "deny"
        # Each key has a list of sessions of its own, so sessions of other keys, or without one, begin beside this.
        row = {"session_id": f"other {key.hex()}", "hook_event_name": "Stop"}
        assert answer_event(json.dumps(row).encode(), lambda: GUARD, tmp_path, key=key) == HookAnswer()
    agent.key = b"0123456789abcdef"
    agent.path.unlink()
    assert agent.before("Read") == "deny"


def test_a_signed_session_stays_signed_in_a_process_with_memory(tmp_path: Path) -> None:
    agent = Agent(tmp_path, memory=HookMemory(), key=b"0123456789abcdef")
    assert agent.before("Read") == "passes"
    agent.key = b""
    assert agent.before("Read") == "deny"
    agent.key = b"0123456789abcdef"
    assert agent.before("Read") == "passes"
    assert len(agent.rows()) == 2


def test_hooks_with_different_rules_do_not_share_a_session(tmp_path: Path) -> None:
    memory = HookMemory()
    row = {"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "pay", "tool_input": {}}
    for name, most in (("a", 1), ("b", 2)):
        (tmp_path / name).write_text(f"pay: pay\nrule r: at most {most} pay\n")
    (tmp_path / "c").symlink_to("a")
    given = [(name, f"{number}") for number, name in enumerate("ababac")]
    found = [
        answer_hook([name], (str(tmp_path), "state"), json.dumps({**row, "tool_use_id": id_}).encode(), memory).out
        for name, id_ in given
    ]
    assert ["deny" in out for out in found] == [False, False, True, False, True, True]


def test_a_guard_is_built_anew_when_a_file_of_its_rules_changes(tmp_path: Path) -> None:
    contents = {
        "rules.guard": 'pay: pay\n%import "more.guard"\nrule g: file "order.cfg"\n',
        "more.guard": "rule r: at most 2 pay\n",
        "order.cfg": "S -> pay pay | pay\n",
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (1, 1))
    memory = HookMemory()
    first = memory.get_guard(tmp_path / "rules.guard", "some")
    assert memory.get_guard(tmp_path / "rules.guard", "some") is first
    assert memory.get_guard(tmp_path / "rules.guard", "whatever") is not first
    for name, text in contents.items():
        (tmp_path / name).write_text(text + " \n")
        os.utime(tmp_path / name, (1, 1))
        second = memory.get_guard(tmp_path / "rules.guard", "some")
        assert second is not first
        assert memory.get_guard(tmp_path / "rules.guard", "some") is second
        first = second
    (tmp_path / "more.guard").unlink()
    with pytest.raises(NotationError, match=r"more\.guard"):
        memory.get_guard(tmp_path / "rules.guard", "some")


def test_rules_that_may_have_changed_while_they_were_read_are_read_again(tmp_path: Path) -> None:
    path = tmp_path / "rules.guard"
    path.write_text("pay: pay\nrule r: at most 2 pay\n")
    later = time.time() + 1_000
    os.utime(path, (later, later))
    memory = HookMemory()
    assert memory.get_guard(path, "some") is not memory.get_guard(path, "some")


MORE_RULES = """
read: Read with file = file
edit: Edit with file = file
push: Bash[runs(commands, "touch")]
known: Bash.result[ok]
again: Edit[not read(file)]
go: user[text contains "go"]
rule one for each file: read before edit
rule two for each file: at most 2 edit since known
rule three: go before push
rule four ask: never again
rule five: known after each edit
"""
GUARDS = [GUARD, Guard(GuardRules.from_string(MORE_RULES)), Guard(GuardRules.from_string(MORE_RULES.replace("2", "1")))]
CALLS = st.tuples(
    st.sampled_from(["PreToolUse", "PreToolUse", "PostToolUse", "PostToolUseFailure"]),
    st.sampled_from(["Read", "Edit", "Bash", "Deploy"]),
    st.sampled_from(["1", "2", "3", ""]),
    st.sampled_from([{}, {"file": "a"}, {"file": "b"}, {"command": "touch"}, {"command": "pytest; $X"}]),
)
OTHERS = st.one_of(
    st.tuples(st.just("UserPromptSubmit"), st.sampled_from(["go", "stop"])),
    st.tuples(st.just("Stop"), st.booleans()),
    st.tuples(st.sampled_from(["restart", "other process", "torn line"])),
    st.tuples(st.just("rules"), st.integers(0, 2)),
)
STEPS = st.tuples(CALLS, OTHERS, CALLS)


@examples(40)
@given(st.integers(0, 2), st.lists(STEPS, min_size=1, max_size=6))
def test_a_process_with_memory_answers_as_those_without(first: int, steps: list[Any]) -> None:
    """Also where it is killed between an event and the next, and where another process answers some events."""
    with tempfile.TemporaryDirectory() as name:
        plain, kept = Agent(Path(name, "plain"), GUARDS[first]), Agent(Path(name, "kept"), GUARDS[first], HookMemory())
        killed = False
        for kind, *rest in chain.from_iterable(steps):
            if kind == "rules":
                plain.guard = kept.guard = GUARDS[rest[0]]
            elif kind == "restart":
                kept.memory = HookMemory()
            elif kind == "torn line" and kept.path.exists():  # it was killed while it wrote a line
                with kept.path.open("ab") as file:
                    file.write(b'{"at":"2026')
                killed = True
            elif kind == "other process":
                memory, kept.memory = kept.memory, None
                row = {"tool_name": "Read", "tool_input": {"file": "a"}, "tool_use_id": "9"}
                assert kept.send("PreToolUse", **row) == plain.send("PreToolUse", **row)
                kept.memory = memory
            elif kind == "Stop":
                row = {"stop_hook_active": rest[0], "last_assistant_message": "done"}
                assert kept.send(kind, **row) == plain.send(kind, **row)
            elif kind == "UserPromptSubmit":
                assert kept.send(kind, prompt=rest[0]) == plain.send(kind, prompt=rest[0])
            elif kind != "torn line":
                tool, id_, given = rest
                row = {"tool_name": tool, "tool_input": given, "tool_use_id": id_, "tool_response": "x", "error": "y"}
                assert kept.send(kind, **row) == plain.send(kind, **row)
        if plain.path.exists():
            shapes = [[{**row, "at": "", "before": "", "hash": "", "torn": "", "event": {**(row["event"] or {}), "at": ""}}
                       for row in agent.rows()] for agent in (plain, kept)]  # fmt: skip
            assert shapes[0] == shapes[1]
        assert killed or not kept.path.exists() or read_log(kept.path).torn == ""


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
    command = [sys.executable, "-m", "formal_llm", "guard", "--hook", "--alone", str(tmp_path / "rules.guard")]
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
