"""The command line as a whole: exit codes, help, interruptions."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperOption

from formal_llm.cli import console
from formal_llm.cli.console import EXIT_CODES
from formal_llm.cli.help_pages import PANELS, USUAL
from formal_llm.cli.main import COMMANDS, app
from formal_llm.errors import ResourceNotFound
from tests.cli.inside import runner
from tests.cli.program import run
from tests.slow_server import read_counts, slow_server

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["plan", "openagi", "3", "--limit", "colorization=0", "--require", "colorization=1"], 1, "these limits clash"),
        (["plan", "openagy", "3"], 2, "Did you mean 'openagi'"),
        (["plan", "missing.cfg", "3"], 2, "no such file"),
        (["plan", "openagi", "999"], 2, "0 to 184"),
        (["plan", "openagi", "3", "--limit", "denoising"], 2, "NAME=N"),
        (["plan", "openagi", "3", "--limit", "denoisin=1"], 2, "did you mean denoising"),
        (["plan", "openagi", "3", "--goal", "sound"], 2, "no goal 'sound'. There are: image, text."),
        (["plan", "openagi", "3", "--goal", "sound"], 2, "There are: image, text"),
        (["plan", "openagi", "3", "--input", "sound"], 2, "There are: image, text"),
        (["plan", "g.cfg", "x", "--goal", "Nigth"], 2, "Did you mean 'Night'"),
        (["plan", "g.cfg", "x", "--input", "image"], 2, "--input is for task packs"),
        (["count", "g.cfg"], 2, "In its place: check --count"),
        (["train-planner", "openagi"], 2, "head_training.train_head"),
        (["diff", "g.cfg", "g.cfg"], 2, "languages.comparison.differences"),
        (["chekc", "g.cfg"], 2, "Did you mean 'check'?"),
        (["plan", "openagi", "3", "--config", "longer.toml"], 2, "length_penalty is for --search best-first"),
        (
            ["plan", "openagi", "15", "--config", "short.toml"],
            4,
            "at least 7 are needed; raise it with max_steps in the file of --config",
        ),
        (["plan", "openagi", "3", "--config", "none.toml"], 2, "none.toml: there is no such file"),
        (["plan", "openagi", "3", "--llm", "bultin"], 2, "Did you mean 'builtin'"),
        (["plan", "openagi", "3", "--llm", "openai"], 2, "Did you mean 'openai:MODEL'?"),
        (["plan", "openagi", "3", "--llm", "test:script=9"], 3, "9 is not one of the numbers from 1 to"),
        (["draw", "openagi", "--out", "no/x.mmd"], 2, "error: no/x.mmd: No such file or directory"),
        (["plan", "openagi", "3", "--out", "no/x.txt"], 2, "no/x.txt: there is no folder no"),
        (["plan", "openagi", "3", "--llm", "openai:gpt-6-luna"], 3, "set the environment variable OPENAI_API_KEY"),
        (["plan", "openagi", "3", "--llm", "anthropic:x"], 3, "set the environment variable ANTHROPIC_API_KEY"),
        (["plan", "openagi", "3", "--llm", "test:script=9,9,9"], 3, "9 is not one of the numbers"),
        (["plan", "openagi", "15", "--max-questions", "1"], 4, "budget of 1 questions is used up with 1 terminals"),
        (["plan", "openagi", "15", "--max-questions", "1"], 4, "in the plan; raise it with --max-questions"),
        (["try", "openagi", "3", "--lookahead", "sideways"], 2, "'sideways' is not one of 'on', 'off'"),
        (["plan"], 2, "Missing argument"),
        (["plan", "openagi", "3", "--wording", "none.toml"], 2, "none.toml: there is no such file"),
        (["list", "openagi", "--split", "tset"], 2, "Did you mean 'test'"),
        (["draw", "openagi", "--out", "x.jpg"], 2, "the ending of x.jpg names no format"),
        (["frobnicate"], 2, "No such command 'frobnicate'"),
    ],
)
def test_what_goes_wrong_ends_with_its_code_and_no_traceback(
    arguments: list[str], code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / "longer.toml").write_text("length_penalty = 1.0\n", encoding="utf-8")
    (tmp_path / "short.toml").write_text("max_steps = 3\n", encoding="utf-8")
    (tmp_path / "g.cfg").write_text("Day -> eat Night\nNight -> sleep\n", encoding="utf-8")
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    if code != 4:
        assert done.stdout == ""


def test_debug_shows_the_traceback() -> None:
    debug = console.settings.debug
    try:
        with pytest.raises(ResourceNotFound):
            run("--debug", "plan", "openagi", "999")
    finally:
        console.settings.debug = debug


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """All commands, those of groups and those that are not listed included."""
    yield path
    for name in dict.fromkeys([*group.list_commands(None), *group.commands]):
        found = group.get_command(None, name)
        if hasattr(found, "commands"):
            yield from commands(found, (*path, name))
        else:
            yield (*path, *name.split())


@pytest.fixture(scope="module")
def helps() -> dict[tuple[str, ...], str]:
    """The help of every command, on a wide terminal."""
    known = commands(typer.main.get_command(app))
    every = {path: "--help-all" if path[-1:] and path[-1] in USUAL else "--help" for path in known}
    return {path: run(*path, one, COLUMNS="400", TERMINAL_WIDTH="400").stdout for path, one in every.items()}


def test_help_has_examples_and_the_exit_codes_stand_once(helps: dict[tuple[str, ...], str]) -> None:
    assert {("plan",), ("train",), ("travel", "plan"), ("guard", "verify")} <= helps.keys()
    for command in ("plan", "check", "draw", "list", "verify"):
        assert f"formal-llm {command}" in helps[(command,)]
    assert [path for path, said in helps.items() if "Exit codes" in said] == [()]
    assert all(f"{code}: {meaning}" in helps[()] for code, meaning in EXIT_CODES.items())
    assert run("--version").stdout.startswith("formal-llm 0")


def test_the_list_of_commands_says_what_the_help_of_each_begins_with(helps: dict[tuple[str, ...], str]) -> None:
    for name, (*_, text) in COMMANDS.items():
        assert text.split(".")[0] in helps[(name,)], name


def test_help_shows_brackets_as_they_are_written(helps: dict[tuple[str, ...], str]) -> None:
    written = set()
    for file in (ROOT / "formal_llm" / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            is_help = isinstance(node, ast.keyword) and node.arg == "help"
            if isinstance(node, ast.Assign):
                is_help = ast.unparse(node.targets[0]).endswith("HELP")
            for part in ast.walk(node.value) if is_help else ():
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    written |= set(re.findall(r"\S*\[[a-z/#@][^\[\]]*\]\S*", part.value))
    assert '"formal-llm[lsp]"' in written
    everything = "\n".join(helps.values())
    assert [text for text in written if text not in everything] == []


def test_the_paragraphs_of_a_help_text_are_left_to_the_terminal_to_wrap() -> None:
    command = typer.main.get_command(app).get_command(None, "run")  # type: ignore[attr-defined]  # a group
    paragraphs = command.help.split("\n\n")
    assert all("\n" not in paragraph for paragraph in paragraphs if not paragraph.startswith("  "))
    assert command.epilog.split("\n\n")[1].startswith("  formal-llm run")


@pytest.mark.slow
def test_ctrl_c_ends_quietly(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from formal_llm.cli.main import main; main()", "plan", "openagi", "3"]
    process = subprocess.Popen(
        [*command, "--llm", "person"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    # The first line of the prompt: the program waits for an answer.
    while "choices" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "interrupted" in stderr
    assert "Traceback" not in stderr


def test_a_closed_pipe_is_no_error() -> None:
    program = "from formal_llm.cli.main import main; main()"
    done = subprocess.run(
        f'"{sys.executable}" -c "{program}" list openagi | head -n 1', shell=True, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout.startswith("   0")


# -- where the command line starts: a hook goes past all other commands --


LOADED = """
import sys
sys.argv = ["formal-llm", *sys.argv[1:]]
from formal_llm.cli.start import main
try:
    main()
except SystemExit as error:
    print(error.code)
print([name for name in ("typer", "rich", "openai", "anthropic", "mcp", "formal_llm.cli.main") if name in sys.modules])
"""


def loaded_by(*arguments: str) -> list[str]:
    found = subprocess.run([sys.executable, "-c", LOADED, *arguments], input=b"junk", capture_output=True, timeout=60)
    return found.stdout.decode().splitlines()


def test_a_hook_loads_no_other_command() -> None:
    assert loaded_by("guard", "--hook", "rules.guard") == ["2", "[]"]


def test_all_else_is_the_command_line() -> None:
    assert "formal_llm.cli.main" in loaded_by("--version")[-1]


# -- the help of commands: the usual options, all of them, the examples --


NAMES = {"openagi": ("bench", "openagi")}


def options_of(name: str) -> list[str]:
    group = typer.main.get_command(app)
    for part in NAMES.get(name, (name,)):
        group = group.get_command(None, part)  # type: ignore[attr-defined]  # a group
    return [one.opts[0] for one in group.params if isinstance(one, TyperOption)]


def shown(printed: str) -> set[str]:
    return set(re.findall(r"^│ [* ]*(--[a-z-]+)", printed, re.MULTILINE))


@pytest.mark.parametrize("name", USUAL)
def test_the_usual_options_are_shown_and_all_are_there_when_asked_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 300)
    command, *rest = NAMES.get(name, (name,))
    first, every, again = (runner(command)(*rest, option)[1] for option in ("--help", "--help-all", "--help"))
    usual = {f"--{one}" for one in USUAL[name].split()}
    assert usual <= set(options_of(name))
    assert shown(first) == shown(again) == {*usual, "--help"}
    assert shown(every) == {*options_of(name), "--help"}
    assert f"--help-all shows all {len(options_of(name))}" in first
    assert "--help-all" not in every


def test_each_option_of_a_panel_is_one_of_a_command() -> None:
    known = {one for name in USUAL for one in options_of(name)}
    assert [one for panel in PANELS.values() for one in panel.split() if f"--{one}" not in known] == []


def test_examples_come_last() -> None:
    printed = runner("plan")("--help")[1]
    assert printed.index("Examples:") > printed.index("--llm") > printed.index("Plan a task")


# -- the options that commands share: what the shell completes --


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("formal-llm tr", ["train", "travel", "try"]),
        ("formal-llm plan openagi --search be", ["best-first"]),
        ("formal-llm verify rea", ["react", "react-5", "react-ablated"]),
        ("formal-llm plan openagi --llm test:r", ["test:random"]),
        ("formal-llm train mini", ["minilm-demo", "minilm-rewordings"]),
    ],
)
def test_the_shell_completes_commands_options_sources_and_llms(words: str, found: list[str]) -> None:
    program = "import sys; from formal_llm.cli.main import main; sys.argv = ['formal-llm']; main()"
    environment = {
        **os.environ,
        "_FORMAL_LLM_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=60)
    assert sorted(done.stdout.split()) == found, done.stderr


run_plan = runner("plan")


@pytest.fixture
def rules(tmp_path: Path) -> str:
    (tmp_path / "rules.cfg").write_text("S -> wash S | iron S | fold\n%limit 1")
    return str(tmp_path / "rules.cfg")


def test_all_commands_have_them() -> None:
    for name in ("plan", "run", "bench"):
        code, printed, _ = runner(name)(
            *(["openagi"] if name == "bench" else []), "--help" if name == "run" else "--help-all"
        )
        assert code == 0
        for option in ("--max-retries", "--deadline"):
            assert option in printed, name


def test_they_reach_the_client(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with slow_server(0, breaks=1) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        options = ("--deadline", "5", "--search", "greedy")
        code, _, said = run_plan(rules, "shirts", "--llm", "openai:x", "--max-retries", "0", *options)
        assert code == 3 and "the server failed" in said
        assert read_counts(url)["failed"] == 1
        run_plan(rules, "shirts", "--llm", "openai:x", "--max-retries", "1", *options)
        assert read_counts(url)["failed"] == 3


def test_wrong_values(rules: str) -> None:
    code, _, said = run_plan(rules, "shirts", "--deadline", "0")
    assert code == 2 and "--deadline" in said


def test_the_second_provider_takes_over(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("VLLM_BASE_URL", "http://127.0.0.1:9/v1")
    with slow_server(0) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        code, printed, said = run_plan(
            rules, "shirts", "--llm", "vllm:a,openai:b", "--max-retries", "0", "--search", "greedy"
        )
    assert code == 0, said
    assert "Step 1" in printed
