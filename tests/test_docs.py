"""Every example of the README and of the book is run: it must work, and print what stands there.

What a block is, the first word behind its fence says:

- ``python``: run alone; what it prints stands below each ``print`` as a ``#>`` comment, or between three quotes
  (``--update-examples`` writes it). ``test="skip"`` is for what needs a key, ``test="warns"`` for what warns.
- ``console``: each ``$ formal-llm ...`` is run, and its output is compared; ``...`` stands for anything. ``$ echo $?``
  shows the exit code, a line ``> 2`` is what a person types.
- ``cfg``: a grammar; ``cfg wrong`` must be refused, ``cfg warns`` must warn, ``cfg part`` is a line or two of one.
- ``mermaid``: a flowchart, ``pda``: an automaton; with ``wrong`` it must be refused.
- ``toml``: must parse. ``bash``: installing and setting keys, not run. ``text``: for the eye.

A block whose first line is ``# file: NAME`` (``%% file: NAME`` in a flowchart) is written, without that line, to a
temporary folder, where all blocks after it find it. So are the files of a folder of the repository that a page names:
``<!-- folder: examples/access -->``.
"""

from __future__ import annotations

import io
import re
import shlex
import shutil
import sys
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from pytest_examples import CodeExample, EvalExample, find_examples

from formal_llm import CFG, PDA, Flowchart
from formal_llm.errors import GrammarError, GrammarWarning, NotationError
from tests.cli.inside import COMMAND

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts)]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FOLDER = re.compile(r"^<!-- folder: (\S+) -->$", re.MULTILINE)
FILE = re.compile(r"^(?:#|%%) file: (\S+)$", re.MULTILINE)
KINDS = {"python", "console", "cfg", "mermaid", "pda", "toml", "bash", "text"}
BASH = re.compile(r"(pip install (formal-llm|\.)|export [A-Z_]+=|make )")
#: What an example must not see of the machine it runs on; and a fixed width of the terminal.
ENVIRONMENT = {
    "OPENAI_API_KEY": None,
    "OPENAI_BASE_URL": None,
    "ANTHROPIC_API_KEY": None,
    "ANTHROPIC_AUTH_TOKEN": None,
    "ANTHROPIC_BASE_URL": None,
    "VLLM_BASE_URL": None,
    "LLAMACPP_BASE_URL": None,
    "OLLAMA_HOST": None,
    "FORCE_COLOR": None,
    "NO_COLOR": "1",
    "COLUMNS": "100",
}


@dataclass(frozen=True)
class Block:
    """A block of code: its page, its line, the words behind the fence, its text."""

    page: Path
    line: int
    info: str
    text: str

    @property
    def kind(self) -> str:
        return self.info.split()[0] if self.info.split() else ""

    @property
    def tags(self) -> list[str]:
        return self.info.split()[1:]

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = FENCE.finditer(text)
    return [Block(page, text[: m.start()].count("\n") + 1, m["info"].strip(), m["text"]) for m in found]


ALL = [block for page in PAGES for block in blocks_of(page)]
SESSIONS = [page for page in PAGES if any(block.kind == "console" for block in blocks_of(page))]


def of_kind(*kinds: str) -> list[object]:
    return [pytest.param(block, id=str(block)) for block in ALL if block.kind in kinds]


def write_file(block: Block, folder: Path) -> None:
    """Write the file that a block shows, if it does."""
    name = FILE.match(block.text)
    if name is not None:
        path = folder / name[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text.partition("\n")[2], encoding="utf-8")


def copy_folder(page: Path, folder: Path) -> None:
    """Copy the folder that a page names, if it does."""
    for name in FOLDER.findall(page.read_text(encoding="utf-8")):
        shutil.copytree(ROOT / name, folder, dirs_exist_ok=True)


def forget_modules(folder: Path) -> None:
    """Forget the modules of an example: the next command is another process."""
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(str(folder)):
            del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to stand in, without keys in the environment."""
    place = tmp_path / "example"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name, value in ENVIRONMENT.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    yield place
    forget_modules(place)


def test_every_block_says_what_it_is() -> None:
    directive = re.compile(r"\{[\w-]+\}")
    strange = [str(b) for b in ALL if b.kind not in KINDS and not directive.match(b.info)]
    assert not strange, f"blocks that nothing checks: {strange}"
    fences = {page: page.read_text(encoding="utf-8").count("```") for page in PAGES}
    assert [page for page in PAGES if fences[page] != 2 * len(blocks_of(page))] == [], "indented or unbalanced fences"


@pytest.mark.parametrize("example", list(find_examples(*map(str, PAGES))), ids=str)
def test_python(example: CodeExample, eval_example: EvalExample, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = example.prefix_settings().get("test")
    if test == "skip":
        compile(example.source, str(example), "exec")
        return
    copy_folder(example.path, folder)
    monkeypatch.syspath_prepend(folder)
    for block in blocks_of(example.path):
        if block.line < example.start_line:
            write_file(block, folder)
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    # pytest-examples forges a traceback for errors, which pytest cannot read on every Python.
    monkeypatch.setattr("pytest_examples.run_code.create_example_traceback", lambda *_: None)
    eval_example.set_config(line_length=100, target_version="py311")
    with warnings.catch_warnings():
        if test == "warns":
            warnings.simplefilter("ignore", GrammarWarning)
        if eval_example.update_examples:
            eval_example.run_print_update(example)
        else:
            eval_example.run_print_check(example)


@pytest.mark.parametrize("block", of_kind("cfg"))
def test_grammar(block: Block) -> None:
    if "wrong" in block.tags:
        with pytest.raises(GrammarError):
            CFG.from_string(block.text)
    elif "warns" in block.tags:
        with pytest.warns(GrammarWarning):
            CFG.from_string(block.text)
    elif "part" not in block.tags:
        cfg = CFG.from_string(block.text)
        assert CFG.from_string(str(cfg)) == cfg


@pytest.mark.parametrize("block", of_kind("mermaid", "pda"))
def test_chart_or_automaton(block: Block) -> None:
    read = Flowchart.from_mermaid if block.kind == "mermaid" else PDA.from_string
    if "wrong" in block.tags:
        with pytest.raises(NotationError):
            read(block.text)
    elif "warns" in block.tags:
        with pytest.warns(GrammarWarning):
            read(block.text)
    else:
        assert str(read(str(read(block.text)))) == str(read(block.text))


@pytest.mark.parametrize("block", of_kind("toml"))
def test_toml(block: Block) -> None:
    tomllib.loads(block.text)


@pytest.mark.parametrize("block", of_kind("bash"))
def test_bash(block: Block) -> None:
    for line in block.text.splitlines():
        assert BASH.match(line), f"not in the list of known commands: {line}"


# -- sessions at the terminal ------------------------------------------------------------------------------------------


@dataclass
class Command:
    """A command of a session and the lines that follow it."""

    line: str
    shown: list[str]

    @property
    def typed(self) -> list[str]:
        """What a person types while it runs."""
        return [line[2:] for line in self.shown if line.startswith("> ")]


def commands_of(text: str) -> list[Command]:
    commands: list[Command] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            commands.append(Command(line[2:], []))
        else:
            assert commands, f"a session begins with a command, not {line!r}"
            commands[-1].shown.append(line)
    return commands


def run(command: Command) -> tuple[str, int]:
    """The output of a command as it looks on the terminal, and its exit code."""
    words = shlex.split(command.line)
    assert words[0] == "formal-llm", f"only formal-llm is run, not {command.line!r}"
    # One stream for both, so that the lines come in the order in which a terminal shows them.
    screen = io.StringIO()
    stdin, sys.stdin = sys.stdin, io.StringIO("".join(line + "\n" for line in command.typed))
    try:
        with redirect_stdout(screen), redirect_stderr(screen):
            COMMAND.main(words[1:], prog_name="formal-llm")
        exit_code = 0
    except SystemExit as end:
        exit_code = int(end.code or 0)
    finally:
        sys.stdin = stdin
    output = screen.getvalue()
    if command.typed:
        # The terminal shows what is typed, and the end of its line.
        parts = re.split(r"^> ", output, flags=re.MULTILINE)
        output = parts[0] + "".join(f"> {line}\n{part}" for line, part in zip(command.typed, parts[1:], strict=True))
    return output, exit_code


def lines_of(text: str) -> list[str]:
    """The lines of a text without blanks at their ends, and without empty lines at its beginning and end."""
    return [line.rstrip() for line in text.strip("\n").splitlines()]


def matches(shown: list[str], output: list[str]) -> bool:
    """Whether the output is what is shown, where ``...`` alone is any lines and in a line any text."""
    patterns = []
    for line in shown:
        whole = re.escape(line).replace(re.escape("..."), ".*") + "\n"
        patterns.append(r"(?:.*\n)*" if line.strip() == "..." else whole)
    return re.fullmatch("".join(patterns), "".join(line + "\n" for line in output)) is not None


@pytest.mark.parametrize("page", SESSIONS, ids=lambda page: str(page.relative_to(ROOT)))
def test_console(page: Path, folder: Path) -> None:
    exit_code = 0
    copy_folder(page, folder)
    for block in blocks_of(page):
        write_file(block, folder)
        if block.kind != "console":
            continue
        for command in commands_of(block.text):
            if command.line == "echo $?":
                output = str(exit_code)
            else:
                output, exit_code = run(command)
                forget_modules(folder)
            assert matches(lines_of("\n".join(command.shown)), lines_of(output)), (
                f"{block}: $ {command.line}\n{output}\n(exit code {exit_code})"
            )
