"""Shell lines that push to a remote repository, and harmless ones: which of them guards let through, and refuse."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from formal_llm import authored
from formal_llm.guard import Call, Guard, GuardRules
from formal_llm.guard.shell.commands import add_effects

ROOT = Path(__file__).resolve().parents[3]
LINES = Path(__file__).parent / "lines.txt"
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
