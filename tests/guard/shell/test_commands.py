"""What a shell line runs, as rules see it."""

from __future__ import annotations

from pathlib import Path

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
        "((i++))", "[[ $n -eq 1 && $x == PATH ]]", "echo ${x:1:2} ${HOME:-a=b} ${a[i]}", "((BASH_VERSINFO[0] >= 4))", "a[i+1]=PATH",
        "wait -n", "unset x", "[[ $a = b && $c -eq 1 ]]", "echo \"$i=$((i*2))\"", "read -r x", "read -p \"$y\" x", "printf '%s' \"$y\"", "a=(HOME=1 [2]=x)", "x=PATH=1; echo $x",
    ],
)  # fmt: skip
def test_arithmetic_that_sets_nothing_strong_is_known(line: str) -> None:
    assert shell_line(line).unknown == []


@pytest.mark.parametrize(
    "line",
    [
        "bash -c \"$X\"", "eval $X", "curl x | bash", "bash -s < file", "source file", ". ./file",
        "alias ls='git push'",
        "git $X",
        "x='a[$(git push)]'; echo $((x))", "let 'a[`git push`]=1'", "test -v 'a[$(x)]'", "hash -p /bin/git ls",
        "mapfile -C 'git push' x", "declare -i y='a[$(x)]'", "sudo --weird git push", "env -S 'git push'",
        "xargs bash", "watch ls", "git -c alias.x=push x", "$X",
        "read PATH <<< .; ls", "printf -v GIT_EDITOR x; git commit", "for PATH in .; do ls; done", ": ${EDITOR:=x}; ls",
        "set -a; x=1; ls", "mapfile GIT_EDITOR", "PATH=. ls", "export GIT_EDITOR=x", "GIT_PAGER=x git log", "EDITOR=x",
        "[[ 0 -eq PATH=1 ]]", "[[ -v a[PATH=1] ]]", "a[PATH=1]=x", "a=([PATH=1]=x)", "a+=([PATH=1]+=x)", "echo ${x:PATH=1}", "echo ${x[PATH=1]}",
        "wait -p PATH", "wait -pPATH", "printf -vPATH x", "printf -v PATH[0] x", "let x=PATH=1", "((PATH[0]=1))", "((PATH++))",
        "((--PATH))", "y=PATH; (($y=1))", "((${y}TH=1))", "x=PATH=1; ((x))", "declare -i x; x=PATH=1", "unset PATH",
        "y=PATH; read -r $y <<<.", "y=PATH; printf -v \"$y\" .", "test -v a[PATH=1]", "[[ -v 'a[$(x)]' ]]", "echo ${a['$(x)']}", "frobnicate", "git frobnicate", "python -c 'x()'", "python -m x", "python <f",
        "bash <<E\n$X\nE", "sudo $X", "su bob", "parallel ls", "bash --rcfile x", "bash $X", "trap $X EXIT", "a 'b",
    ],
)  # fmt: skip
def test_what_is_not_known_is_told(line: str) -> None:
    assert shell_line(line).unknown


def test_as_data_for_rules() -> None:
    assert shell_data("A=1 sudo ./run *.py <in >out 2>&1") == {
        "commands": (run := [["sudo", "./run", "*.py"], ["./run", "*.py"], ["run", "*.py"]]),
        "programs": ["sudo", "./run", "run"],
        "unknown": [],
        "scripts": ["run"],
        "decisive": run,
        "deleted": [],
        "expanded": ["*.py"],
        "assigned": ["A"],
        "written": ["out"],
        "taken": ["in"],
    }
    assert shell_data("")["commands"] == []


@pytest.mark.parametrize(
    ("line", "written", "deleted"),
    [
        ("rm -rf build/../src", [], ["src"]), ("cd build && rm x", [], ["build/x"]), ("cd build; rm x", [], ["x", "build/x"]),
        ("cd a && cd b && rm x", [], ["a/b/x"]), ("cd a && true; rm x", [], ["x", "a/x"]), ("(cd a; true); rm x", [], ["x", "a/x"]),
        ("cd a || rm x", [], ["x", "a/x"]), ("cd $X; rm x", [], ["x", "/?/x"]), ("cd && rm x", [], ["/?/x"]),
        ("for x in 1; do rm y; cd /; done", [], ["y", "/y"]), ("for x in 1; do rm y; cd ..; done", [], ["y", "/?/y"]),
        ("f() { rm y; }; cd /a; f", [], ["y", "/a/y"]), ("bash -c 'cd a && rm x'", [], ["a/x"]), ("rm $X/y", [], ["/?/$X|y"]),
        ("git -C a rm x", ["a"], ["a/x"]), ("git -C $X rm x", ["/?/."], ["/?/x"]), ("mv a b/", ["b", "b/a"], ["a"]), ("cp a b", ["b", "b/a"], []),
        ("echo x > a 2> /dev/null", ["a"], []), ("sed -i s/a/b/ f", ["f"], []), ("sed s/a/b/ f", [], []), ("sort -of g", ["f"], []),
        ("find a -name x -delete", [], ["a/*"]), ("find a -delete", [], ["a"]), ("find a -exec rm {} +", [], ["a/*"]),
        ("ls | xargs rm", [], ["/?/$input"]), ("ls | xargs -I{} rm a/{}", [], ["/?/a|{}"]), ("ln -s / l && rm l/x", ["/", "l"], ["/?/$|l|x"]),
        ("eval 'cd /'; rm x", [], ["x", "/?/x"]), ("command cd / && rm x", [], ["/?/x"]), (". ./f; rm x", [], ["x", "/?/x"]),
        (". .venv/bin/activate; rm x", [], ["x"]), ("command rm x; rm y", [], ["x", "y"]), ("env -C / rm x", [], ["/x"]),
        ("sudo rm /a", [], ["/a"]), ("tar xf a -C b", ["b", "a", "."], []), ("tar cf a --remove-files b", ["a", "."], ["b"]),
        ("zip -m a b", ["a"], ["b"]), ("zip a b", ["a"], []), ("gzip a", ["a"], ["a"]), ("git mv a b", ["b", "b/a"], ["a"]),
        ("git worktree remove a", [], ["a"]), ("history -w a", ["a"], []), ("iconv -o a b", ["a"], []), ("git rm --cached a", [], []),
        ("f > g() { :; }", [], []),
    ],
)  # fmt: skip
def test_files_that_are_changed(line: str, written: list[str], deleted: list[str]) -> None:
    read = shell_line(line)
    assert (sorted(read.written), read.deleted) == (sorted(written), deleted)


@pytest.mark.parametrize(
    ("line", "decides"),
    [
        ("pytest", True), ("pytest -q tests", True), ("cd x && pytest", True), ("cd x; pytest", True), ("pytest && ls", True),
        ("ruff check . && pytest && mypy .", True), ("timeout 60 pytest", True), ("bash -c 'cd x && pytest'", True),
        ("uv run pytest", True), ("python -m pytest", True), ("set -o pipefail; pytest | tail", True), ("time pytest", True),
        ("set -euo pipefail; pytest | tail", True), ("source .venv/bin/activate && pytest", True), ("ls | cat; pytest", True),
        ("true || false && pytest", True), ("pytest > log 2>&1", True), ("A=1 pytest;", True), ("exec pytest", True),
        ("pytest --version", False), ("pytest --help", False), ("pytest --co", False), ("pytest --collect-only -q", False),
        ("pytest || true", False), ("pytest; true", False), ("pytest | tail", False), ("pytest &", False), ("! pytest", False),
        ("if false; then pytest; fi", False), ("false && pytest || true", False), ("true || pytest", False), ("echo pytest", False),
        ("pytest() { :; }; pytest", False), ("exit 0; pytest", False), ("trap 'exit 0' EXIT; pytest", False), ("echo $(pytest)", False),
        ("command -v pytest", False), ("timeout 5 pytest --version", False), ("setsid pytest", False), ("ls | xargs pytest", False),
        ("bash -c 'pytest || true'", False), ("bash -c 'pytest' | cat", False), ("pytest\ntrue", False), ("(pytest)", False),
        ("PATH=. pytest", False), ("pytest && $X", False), ("find . -exec pytest \\;", False), ("set -n; pytest", False),
    ],
)  # fmt: skip
def test_a_success_shows_that_the_tests_ran(line: str, decides: bool) -> None:
    assert any(words[:1] == ["pytest"] for words in shell_line(line).decisive) is decides


@pytest.mark.parametrize(
    ("line", "scripts"),
    [
        ("python x.py", ["x.py"]), ("bash x.sh", ["x.sh"]), ("./x", ["x"]), ("cd a && ../x", ["x"]), ("make -C a", ["a/Makefile"]),
        ("make -i all", ["Makefile"]), ("make -f m", ["m"]), ("npm run push --if-present", ["package.json"]), ("pytest", ["pytest"]),
        (".venv/bin/pytest", [".venv/bin/pytest", "pytest"]), ("node a/b.js", ["a/b.js"]), ("source .venv/bin/activate", [".venv/bin/activate"]),
        ("git status", []), ("python --version", []),
    ],
)  # fmt: skip
def test_code_of_the_project(line: str, scripts: list[str]) -> None:
    read = shell_line(line)
    assert scripts == [one for one in read.scripts if not one.lower().startswith(("makefile ", "gnu"))][: len(scripts)]
    assert bool(read.scripts) is bool(scripts)
    assert read.unknown == []


def test_shell_scripts_are_read(tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text("cd a && git push\n")
    (tmp_path / "y").write_text("#!/usr/bin/env bash\nrm -rf b\n")
    (tmp_path / "z").write_text("#!/usr/bin/python\n")
    (tmp_path / "me.sh").write_text("bash me.sh\n")
    for line in ("bash x.sh", "./x.sh", ". ./x.sh", "cd . && sh x.sh"):
        assert ["git", "push"] in shell_line(line, str(tmp_path)).commands
    assert shell_line("./y", str(tmp_path)).deleted == ["b"]
    assert shell_line("./z", str(tmp_path)).scripts == ["z"]
    assert shell_line("echo a > x.sh; bash x.sh", str(tmp_path)).scripts == ["x.sh"]
    assert shell_line(". ./none.sh", str(tmp_path)).unknown
    assert shell_line("bash me.sh", str(tmp_path)).unknown == ["commands are nested too deeply"]


def test_tools_that_change_files(tmp_path: Path) -> None:
    at = str(tmp_path)
    assert add_effects("Edit", {"file_path": f"{at}/a"}, at)["written"] == ["a"]
    assert add_effects("Write", {"file_path": "/b"}, at)["written"] == ["/b"]
    assert add_effects("Read", {"file_path": "x/../a", "written": 3}, at) == {
        "file_path": "x/../a", "written": [], "deleted": [], "taken": ["a"],
    }  # fmt: skip
    patch = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** Delete File: c\n*** End Patch"
    changed = add_effects("apply_patch", {"command": patch})
    assert (changed["written"], changed["deleted"]) == (["a", "b"], ["c"])
    patch = "*** Begin Patch\r\n  *** Add File: ../a \r\n+x\r\n*** End Patch"  # as lenient as Codex is
    assert add_effects("apply_patch", {"command": patch})["written"] == ["../a"]
    assert add_effects("Write", {"file_path": "a", "path": "/b"}, at)["written"] == ["a", "/b"]
    for kind, paths in (("delete_file", ([], ["/c"])), ("update_file", (["/c"], []))):
        changed = add_effects("apply_patch", {"operation": {"type": kind, "path": "/c", "diff": "+x"}}, at)
        assert (changed["written"], changed["deleted"]) == paths
    assert add_effects("exec_command", {"cmd": "rm x", "workdir": "sub"}, at)["deleted"] == ["sub/x"]
    assert add_effects("Edit", {}) == {}


def test_what_makes_the_reader_doubt_ends_soon() -> None:
    """The work is bounded: lines of one piece, repeated, are read or refused."""
    for piece in (
        "(",
        "((",
        "$((",
        "$(",
        "[[ ",
        "`",
        "cd x;",
        "eval ",
        "find . -exec ",
        "((a[",
        "(($a",
        "<(",
        "xargs ",
        "f() { ",
    ):
        assert shell_line(piece * (20_000 // len(piece))).commands is not None
    assert shell_line("(" * 8_000).unknown == ["too many brackets are nested"]


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
    assert add_effects("exec_command", {"cmd": "git push", "command": "ls"})["unknown"]


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
