"""Shell lines that push to a remote repository: how many are run past guards, and how many harmless ones are refused.

What it shows: of the lines in ``tests/guard/shell/lines.txt`` that push, those that the shipped rules and the rules of
the documentation let through; of the harmless ones, those that they refuse. With ``--run`` each line that pushes is run
in a sandbox, with a project, a home folder and a remote repository of its own and without a network, to measure that
the remote moves.

Run: ``python benchmarks/shell_lines.py [--run] [--list]``
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from formal_llm import authored
from formal_llm.guard import Call, Guard, GuardRules
from formal_llm.guard.shell.commands import add_effects

ROOT = Path(__file__).resolve().parent.parent
LINES = ROOT / "tests" / "guard" / "shell" / "lines.txt"
#: What the files of the project are made of.
SCRIPTS = {
    "push.sh": "#!/bin/sh\ngit push\n",
    "push.py": "import os\nos.system('git push')\n",
    "test_push.py": "import os, unittest\nclass Test(unittest.TestCase):\n    def test(self): os.system('git push')\n",
    "Makefile": "CMD = true\nshow:\n\t@echo $(shell $(CMD))\npush:\n\tgit push\n",
    "package.json": '{"name": "x", "version": "1.0.0", "scripts": {"push": "git push", "test": "true"}}\n',
    ".hooks/post-commit": "#!/bin/sh\ngit push\n",
    "f": "a\n",
    "g": "b\n",
}
_PATH = f"/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin:{Path(sys.executable).parent}"
ENVIRONMENT = {"PATH": _PATH, "LANG": "C.UTF-8", "TERM": "dumb"}


def read_lines() -> dict[str, list[str]]:
    """Read the lines of each kind."""
    kinds: dict[str, list[str]] = {}
    for row in LINES.read_text().splitlines():
        if row.startswith("== "):
            lines = kinds.setdefault(row[3:], [])
        elif kinds:
            lines.append(row.replace("␤", "\n"))
    return kinds


def make_project(folder: Path) -> Path:
    """Make a project with a remote repository that lacks its last commit."""
    project = folder / "work"
    project.mkdir(parents=True)
    git = ["git", "-c", "init.defaultBranch=main", "-c", "user.name=A", "-c", "user.email=a@example.com"]
    for name, text in SCRIPTS.items():
        path = project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)
    for command in (
        ["init", "-q", "--bare", "../remote.git"], ["init", "-q"], ["remote", "add", "origin", "../remote.git"],
        ["add", "."], ["commit", "-qm", "one"], ["push", "-qu", "origin", "main"], ["rm", "-q", "g"],
        ["commit", "-qm", "two"],
    ):  # fmt: skip
        subprocess.run([*git, *command], cwd=project, check=True, capture_output=True)
    return project


def read_remote(folder: Path) -> str:
    """Read the branches of the remote repository."""
    command = ["git", "--git-dir", str(folder / "remote.git"), "for-each-ref"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def run_line(line: str, folder: Path, template: Path) -> str:
    """Run a line in a copy of a project; return "pushes", "missing" where a program is, or "does not push"."""
    shutil.copytree(template, folder, symlinks=True)
    home = folder / "home"
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\nname = A\nemail = a@example.com\n")
    before = read_remote(folder)
    command = ["unshare", "-n", "timeout", "-k", "1", "10", "bash", "--norc", "-c", line]
    done = subprocess.run(
        command, cwd=folder / "work", env={**ENVIRONMENT, "HOME": str(home)}, stdin=subprocess.DEVNULL,
        capture_output=True,
    )  # fmt: skip
    for _ in range(10):
        if read_remote(folder) != before:
            return "pushes"
        time.sleep(0.05)
    missing = re.search(rb"not found|No such file or directory|No module named|D-Bus|systemd", done.stderr)
    return "missing" if missing else f"does not push: {done.stderr[-100:].decode(errors='replace')!r}"


def run_lines(lines: list[str]) -> dict[str, str]:
    """Run lines, each by itself."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        make_project(Path(name) / "template")
        for number, line in enumerate(lines):
            folder = Path(name) / f"line{number}"
            found[line] = run_line(line, folder, Path(name) / "template")
            shutil.rmtree(folder, ignore_errors=True)
    return found


def read_guards() -> dict[str, Guard]:
    """Read the shipped rules, and those of the documentation."""
    page = (ROOT / "docs" / "howto" / "guard-hooks.md").read_text()
    strict = re.search(r"# file: coding\.guard\n(.*?)```", page, re.DOTALL)
    assert strict is not None
    return {
        "shipped": Guard(GuardRules.from_file(Path(authored.find("grammars", "guard")) / "coding-agent.guard")),
        "documented": Guard(GuardRules.from_string(strict[1])),
    }


def is_let_through(guard: Guard, line: str, project: Path) -> bool:
    """Return whether a guard allows a line, without asking a person."""
    return guard.start().check(Call("Bash", add_effects("Bash", {"command": line}, str(project)))).runs


def find_misses(kinds: Mapping[str, list[str]], project: Path) -> dict[str, tuple[list[str], list[str]]]:
    """Find for each guard the lines that push and are let through, and the harmless ones that are refused."""
    return {
        name: (
            [line for line in kinds["pushes"] if is_let_through(guard, line, project)],
            [line for line in kinds["harmless"] if not is_let_through(guard, line, project)],
        )
        for name, guard in read_guards().items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--run", action="store_true", help="run the lines that push")
    parser.add_argument("--list", action="store_true", help="list the lines that are judged wrongly")
    options = parser.parse_args()
    kinds = read_lines()
    if options.run:
        found = run_lines(kinds["pushes"])
        for kind in ("pushes", "missing", "does not push"):
            lines = [line for line, what in found.items() if what.startswith(kind)]
            print(f"{kind:14} {len(lines):4}")
            for line in lines if kind != "pushes" else []:
                print(f"    {line!r} {found[line][14:]}")
        kinds["pushes"] = [line for line, what in found.items() if what == "pushes"]
    with tempfile.TemporaryDirectory() as name:
        missed = find_misses(kinds, make_project(Path(name) / "sandbox"))
    for guard, (through, refused) in missed.items():
        print(
            f"{guard:11} pushes let through {len(through):3} of {len(kinds['pushes'])}, harmless lines refused "
            f"{len(refused):3} of {len(kinds['harmless'])}"
        )
        for line in (*through, "--", *refused) if options.list else ():
            print(f"    {line!r}")


if __name__ == "__main__":
    main()
