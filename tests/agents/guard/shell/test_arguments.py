"""The arguments of tools that run shell lines."""

from __future__ import annotations

from formal_llm.agents.guard import Call, Guard, GuardRules
from formal_llm.agents.guard.shell.arguments import add_shell_commands


def test_lines_and_words() -> None:
    assert add_shell_commands("Bash", {"command": "git push"})["commands"] == [["git", "push"]]
    assert add_shell_commands("shell", {"command": ["bash", "-lc", "git push"]})["commands"] == [
        ["bash", "-lc", "git push"], ["git", "push"],
    ]  # fmt: skip
    assert add_shell_commands("local_shell", {"action": {"command": ["ls"]}})["programs"] == ["ls"]
    assert add_shell_commands("exec_command", {"cmd": "ls"})["programs"] == ["ls"]
    assert add_shell_commands("Read", {"command": "git push"}) == {"command": "git push"}
    assert add_shell_commands("Bash", {}) == {}
    assert add_shell_commands("Bash", {"command": 3})["unknown"]


def test_what_the_agent_says_itself_does_not_count() -> None:
    assert add_shell_commands("Bash", {"command": "git push", "commands": []})["commands"] == [["git", "push"]]


def test_rules_look_at_words() -> None:
    rules = 'push: Bash[runs(commands, "git push")]\nforce: Bash[runs(commands, "git push --force*")]\n'
    guard = Guard(GuardRules.from_string(rules + "rule no-push: never push\nrule no-force: never force\n"))

    def refused(line: str) -> bool:
        return not guard.start().check(Call("Bash", add_shell_commands("Bash", {"command": line}))).runs

    assert refused("cd x && git -C y push origin")
    assert refused("git push --force-with-lease")
    assert not refused("echo git push")
    assert not refused("git pull")


def test_lists_and_names_in_conditions() -> None:
    rules = (
        'two: pay[len(matching(ids, "card*")) > 1]\nstrange: pay[not within(ids, keys(known))]\n'
        "rule one-card: never two\nrule known-only: never strange\n"
    )
    state = Guard(GuardRules.from_string(rules)).start()
    known = {"card1": 1, "card2": 2, "gift": 3}
    for ids, action in (
        (["card1", "gift"], "allow"),
        (["card1", "card2"], "block"),
        (["card3"], "block"),
        ([], "allow"),
    ):
        assert state.check(Call("pay", {"ids": ids, "known": known})).action == action
    assert state.check(Call("pay", {"ids": 3, "known": known})).action == "block"  # that cannot be told
