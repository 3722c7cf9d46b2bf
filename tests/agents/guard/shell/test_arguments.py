"""The arguments of tools that run shell lines."""

from __future__ import annotations

from formal_llm.agents.guard.shell.arguments import with_commands


def test_lines_and_words() -> None:
    assert with_commands("Bash", {"command": "git push"})["commands"] == [["git", "push"]]
    assert with_commands("shell", {"command": ["bash", "-lc", "git push"]})["commands"] == [
        ["bash", "-lc", "git push"], ["git", "push"],
    ]  # fmt: skip
    assert with_commands("local_shell", {"action": {"command": ["ls"]}})["programs"] == ["ls"]
    assert with_commands("exec_command", {"cmd": "ls"})["programs"] == ["ls"]
    assert with_commands("Read", {"command": "git push"}) == {"command": "git push"}
    assert with_commands("Bash", {}) == {}
    assert with_commands("Bash", {"command": 3})["unknown"]


def test_what_the_agent_says_itself_does_not_count() -> None:
    assert with_commands("Bash", {"command": "git push", "commands": []})["commands"] == [["git", "push"]]
