"""What is said of errors at the command line."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest
import typer

from formal_llm import CFG, Budget, Planner, WeightedLLM
from formal_llm.cli.console import (
    check_folder,
    check_writable,
    command,
    counted,
    exit_code,
    print_text,
    progress_bars,
    said_of,
    without_loading_bars,
    write_to,
)
from formal_llm.errors import (
    BudgetExceeded,
    FormalLLMError,
    InfiniteLanguage,
    InputError,
    LLMError,
    NoValidPlan,
    Undecided,
)
from tests.cli.program import run


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            Undecided("not counted within the budget; raise max_states"),
            "not counted within the budget; raise --max-states",
        ),
        (InfiniteLanguage("give a bound on their length (max_length)"), "give a bound on their length (--max-length)"),
        # What somebody named so stays as it is.
        (FormalLLMError("there is no terminal max_states"), "there is no terminal max_states"),
    ],
)
def test_arguments_are_said_as_options(error: Exception, said: str) -> None:
    assert said_of(error) == said


def test_a_spent_budget_names_its_option() -> None:
    cfg = CFG.from_string("Trip -> walk Trip | train Trip | home")
    with pytest.raises(BudgetExceeded) as caught:
        Planner(cfg, WeightedLLM(1), search="best-first", budget=Budget(questions=1)).plan("t")
    assert said_of(caught.value) == (
        "the budget of 1 questions is used up; a plan of 1 terminals is finished, there may be a more probable one; "
        "raise it with --max-questions"
    )


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (NoValidPlan("nothing"), 1, "error: no valid plan: nothing\n"),
        (InputError("no file"), 2, "error: no file\n"),
        (LLMError("nobody there"), 3, "error: nobody there\n"),
        (ValueError("[bold]x"), 2, "error: [bold]x\n"),
        (OSError(), 2, "error: \nOSError()\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_errors_end_with_their_code(
    error: BaseException, code: int, said: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.dup2", lambda *_: None)  # the standard output of the tests stays open

    @command
    def failing() -> None:
        raise error

    with pytest.raises(typer.Exit) as end:
        failing()
    assert end.value.exit_code == code
    assert capfd.readouterr().err == said
    if isinstance(error, FormalLLMError):
        assert exit_code(error) == code


def test_other_exceptions_are_our_mistakes_and_come_out() -> None:
    @command
    def broken(number: int) -> float:
        return 1 / number

    assert broken(2) == 0.5
    with pytest.raises(ZeroDivisionError):
        broken(0)


def test_texts_end_with_one_line_end(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("a", "a\n", ""):
        print_text(text)
    assert capsys.readouterr().out == "a\na\n\n"


def test_files_are_looked_at_before_the_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_writable(None, Path("-"), tmp_path / "new.html")
    for file in (tmp_path / "gone" / "x.html", tmp_path):
        with pytest.raises(InputError, match=str(file)):
            check_writable(file)
    write_to(tmp_path / "new.html", "a")
    write_to(Path("-"), "b")
    assert (tmp_path / "new.html").read_text() == "a" and capsys.readouterr().out == "b\n"


def test_a_folder_that_can_be_made_and_some_that_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_folder(tmp_path)
    check_folder(tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()  # it is only looked at
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match=f"{tmp_path / 'file'}: it is no folder"):
        check_folder(tmp_path / "file")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^file/a/b: .*file is no folder"):
        check_folder(Path("file/a/b"))
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(InputError, match="may not be written"):
        check_folder(tmp_path / "a")


def test_counted() -> None:
    assert [counted(number, "task") for number in (0, 1, 2, 12345)] == ["0 tasks", "1 task", "2 tasks", "12,345 tasks"]


def test_no_bars_where_nobody_looks_and_no_markup_in_them() -> None:
    bars = progress_bars()
    assert bars.disable
    assert bars.console.stderr
    bars.add_task("", said="[bold]x")
    (said, *_) = bars.columns
    assert said.render(bars.tasks[0]).plain == "[bold]x"  # type: ignore[attr-defined]


def test_loading_bars_are_switched_off_where_there_are_any(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    utils = types.ModuleType("transformers.utils")
    utils.logging = types.SimpleNamespace(disable_progress_bar=lambda: called.append("off"))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", types.ModuleType("transformers"))
    monkeypatch.setitem(sys.modules, "transformers.utils", utils)
    without_loading_bars()
    assert called == ["off"]
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.delitem(sys.modules, "transformers.utils")
    without_loading_bars()
    assert called == ["off"]


BAD = "\x1b]0;owned\x07\u202eelif"
RULES = f'S -> go S "Go {BAD}" | stop "Stop"\ngo "Go {BAD}"\nstop "Stop"\n%limit 2 go\n'


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "r.cfg", f"a task {BAD}", "--llm", "test:first"),
        ("plan", "r.cfg", f"a task {BAD}", "--llm", "test:first", "--json"),
        ("plan", "r.cfg", f"a task {BAD}", "--llm", "person"),
        ("plan", "r.cfg", f"a task {BAD}", "--llm", "test:first", "--show"),
        ("plan", f"no{BAD}.cfg", "t"),
        ("plan", "r.cfg", "--tasks", "tasks.jsonl", "--out", "o.jsonl", "--llm", "test:first"),
        ("try", "r.cfg"),
        ("check", "r.cfg"),
        ("check", "bad.cfg"),
        ("draw", "r.cfg"),
        ("verify", "r.cfg", "plan.txt"),
        ("check", "r.cfg", "--sample", "1"),
        ("check", "r.cfg", "--rule", f"(next {BAD} b)"),
        ("check", "p"),
        ("list", "p"),
    ],
)
def test_nothing_authored_reaches_the_terminal_raw(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "r.cfg").write_text(RULES, encoding="utf-8")
    (tmp_path / "bad.cfg").write_text(f'{RULES}%limit 1 x\ny "{BAD}', encoding="utf-8")
    (tmp_path / "tasks.jsonl").write_text(f'{{"task": "t", "limit{BAD}": {{}}}}\n', encoding="utf-8")
    (tmp_path / "plan.txt").write_text(f"Step 1: Go {BAD}\nStep 2: {BAD}\n", encoding="utf-8")
    (tmp_path / "p").mkdir()
    groups = '[[groups]]\nname = "G"\ntext = "t\\u001b[31m"\n'
    (tmp_path / "p" / "pack.toml").write_text(f'title = "T\\u001b\\u202e"\nrules = "../r.cfg"\n{groups}')
    done = run(*command, cwd=tmp_path, stdin="1\n2\nwhy\nquit\n")
    for said in (done.stdout, done.stderr):
        assert not [sign for sign in said if sign in "\x1b\x07\u202e"]
    assert "Traceback" not in done.stderr
