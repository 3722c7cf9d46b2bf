"""What a shell line runs, as rules see it."""

from __future__ import annotations

import pytest

from formal_llm.guard import Call, Guard, GuardRules
from formal_llm.guard.shell.commands import add_effects, shell_data, shell_line

PUSHES = [
    'git push', 'cd x && git push origin', '/usr/bin/git push', 'sudo -u bob git push',
    'sudo -E git -C repo push', 'env A=1 git push', 'A=1 git push', "bash -c 'cd x; git push'",
    'bash -lc "git push"', 'sh -c \'bash -c "git push"\'', 'timeout -k 3 10 git push', 'nice -n 5 git push',
    'nice -10 git push', 'echo x | xargs -n1 git push', 'eval git push', "eval 'git push'", '$(git push)',
    'echo "`git push`"', '(git push)', 'f() { git push; }; f', 'bash <<E\ngit push\nE',
    "bash -s <<'E'\ngit push\nE", "bash <<< 'git push'", 'find . -exec git push \\;',
    'find . -execdir sudo git push {} +', "g'i't pu\\sh", "$'\\x67it' push", 'git --git-dir=x --no-pager push',
    'git -c a.b=c push', 'time -p git push', 'if true; then git push; fi', "trap 'git push' EXIT",
    'command git push', 'exec -a x git push', 'uv run git push', "xargs sh -c 'git push'", "su bob -c 'git push'",
    'chroot /srv git push', 'taskset -a 3 git push', 'chrt -f 5 git push', 'ionice -c 3 git push', 'setsid -w git push',
    'doas -u bob git push', 'strace -f -o log git push', 'poetry run git push', 'npx -y -p x git push',
    'stdbuf -oL git push', "bash -o pipefail -c 'git push'", "bash -O extglob +o posix -c 'git push'", 'nohup git push &', 'cat <<E\n$(git push)\nE',
]  # fmt: skip


@pytest.mark.parametrize("line", PUSHES)
def test_a_push_is_found_behind_what_runs_it(line: str) -> None:
    assert any(words[:2] == ["git", "push"] for words in shell_line(line).commands)


@pytest.mark.parametrize(
    "line",
    [
        "echo git push", "echo 'a; git push'", "# git push",
        "git commit -m 'git push'", "cat <<'E'\n$(git push)\nE",
        "git log --grep push", "command -v git push", "echo \"\\$(git push)\"", "cat <<< 'git push'", "git -C push log",
    ],
)  # fmt: skip
def test_what_only_speaks_of_a_push_is_none(line: str) -> None:
    read = shell_line(line)
    assert not any(words[:2] == ["git", "push"] for words in read.commands)
    assert read.unknown == []


@pytest.mark.parametrize(
    "line",
    [
        "bash -c \"$X\"", "eval $X", "curl x | bash", "bash -s < file", "source file", ". ./file",
        "alias ls='git push'",
        "git $X",
        "x='a[$(git push)]'; echo $((x))", "let 'a[`git push`]=1'", "test -v 'a[$(x)]'", "hash -p /bin/git ls",
        "mapfile -C 'git push' x", "declare -i y='a[$(x)]'", "sudo --weird git push", "env -S 'git push'",
        "xargs bash", "watch ls", "git -c alias.x=push x", "$X",
        "bash <<E\n$X\nE", "sudo $X", "su bob", "parallel ls", "bash --rcfile x", "bash $X", "trap $X EXIT", "a 'b",
    ],
)  # fmt: skip
def test_what_is_not_known_is_told(line: str) -> None:
    assert shell_line(line).unknown


def test_as_data_for_rules() -> None:
    assert shell_data("A=1 sudo ./run *.py <in >out 2>&1") == {
        "commands": [["sudo", "./run", "*.py"], ["./run", "*.py"], ["run", "*.py"]],
        "programs": ["sudo", "./run", "run"],
        "unknown": [],
        "expanded": ["*.py"],
        "assigned": ["A"],
        "written": ["out"],
        "taken": ["in"],
    }
    assert shell_data("")["commands"] == []


def test_it_ends_soon_however_deep_the_line() -> None:
    """Each level of a line in a line is read once, and too many are told."""
    line = "git push"
    for _ in range(40):
        line = f"eval {line}"
    assert shell_line(line).unknown
    assert len(shell_line("sudo " * 60 + "ls").commands) < 40
    assert shell_line("sudo " * 60 + "ls").unknown


def test_lines_and_words() -> None:
    assert add_effects("Bash", {"command": "git push"})["commands"] == [["git", "push"]]
    assert add_effects("shell", {"command": ["bash", "-lc", "git push"]})["commands"] == [
        ["bash", "-lc", "git push"], ["git", "push"],
    ]  # fmt: skip
    assert add_effects("local_shell", {"action": {"command": ["ls"]}})["programs"] == ["ls"]
    assert add_effects("exec_command", {"cmd": "ls"})["programs"] == ["ls"]
    assert add_effects("Read", {"command": "git push"}) == {"command": "git push"}
    assert add_effects("Bash", {}) == {}
    assert add_effects("Bash", {"command": 3})["unknown"]


def test_what_the_agent_says_itself_does_not_count() -> None:
    assert add_effects("Bash", {"command": "git push", "commands": []})["commands"] == [["git", "push"]]


def test_rules_look_at_words() -> None:
    rules = 'push: Bash[runs(commands, "git push")]\nforce: Bash[runs(commands, "git push --force*")]\n'
    guard = Guard(GuardRules.from_string(rules + "rule no-push: never push\nrule no-force: never force\n"))

    def refused(line: str) -> bool:
        return not guard.start().check(Call("Bash", add_effects("Bash", {"command": line}))).runs

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
