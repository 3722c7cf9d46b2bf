"""``formal-llm author``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formal_llm.cli import author as cli
from formal_llm.llms.doubles import ScriptedLLM
from tests.cli.program import run

WORDS = "steps: wash, dry, iron. wash before dry. at most 2 iron."


def test_words_become_a_file_and_answers_its_tests(tmp_path: Path) -> None:
    done = run("author", WORDS, "--out", "laundry.rules", cwd=tmp_path, stdin="y\nn\nwhat\nq\n")
    assert done.returncode == 0, done.stderr
    assert "the shortest plan; the rules allow it" in done.stderr
    assert "y, n, Enter, or q" in done.stderr
    assert done.stdout == "written        laundry.rules\nexamples       2, in laundry.examples\n"
    assert (tmp_path / "laundry.examples").read_text() == "--- allowed\nε\n\n--- not allowed\ndry\n"
    checked = run("check", "laundry.rules", cwd=tmp_path)
    assert "examples       1 to allow, 1 to refuse, all kept\n" in checked.stdout
    assert "warning" not in checked.stderr
    # Rules that change are held to what was said; answers are put behind those that stand there.
    (tmp_path / "laundry.examples").write_text("# mine\n" + (tmp_path / "laundry.examples").read_text())
    again = run("author", WORDS + " first wash.", "--out", "laundry.rules", cwd=tmp_path, stdin="y\nq\n")
    assert again.returncode == 1
    assert "  ε\n" not in again.stderr  # it is known what to say of that
    assert "not kept       should be allowed: ε" in again.stdout
    text = (tmp_path / "laundry.examples").read_text()
    assert text.startswith("# mine\n--- allowed\nε\n")
    assert text.endswith("--- not allowed\ndry\n\n--- allowed\nwash\n")
    assert "first" not in (tmp_path / "laundry.rules.old").read_text()
    checked = run("check", "laundry.rules", cwd=tmp_path)
    assert checked.returncode == 1
    assert "not kept       line 2: refused, and should be allowed: ε" in checked.stdout
    assert json.loads(run("check", "laundry.rules", "--json", cwd=tmp_path).stdout)["not kept"]


def test_without_questions_and_from_other_places(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text(WORDS)
    assert run("author", "@words.txt", "--out", "a", "--yes", cwd=tmp_path).stdout == "written        a.rules\n"
    assert run("author", "-", "--out", "b.rules", cwd=tmp_path, stdin=WORDS).returncode == 0
    assert (tmp_path / "a.rules").read_text() == (tmp_path / "b.rules").read_text()
    assert not list(tmp_path.glob("*.examples"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("Be nice.", "--out", "x.rules"), "a file of rules begins with its steps"),
        ((WORDS, "--out", "x.cfg"), "without --llm, rules are sentences: --out x.rules"),
        ((WORDS, "--out", "x.txt"), "the ending .txt is no notation"),
        ((WORDS, "--out", "x.cfg", "--llm", "test:first"), "writes no free text"),
    ],
)
def test_what_cannot_be(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = run("author", *arguments, cwd=tmp_path)
    assert done.returncode in (2, 3)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_model_that_gives_up_leaves_its_drafts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import typer

    with pytest.raises(typer.Exit) as caught:
        cli.author_(WORDS, tmp_path / "x.cfg", ScriptedLLM(texts=["S = wash", "S -> S"]), attempts=2)  # type: ignore[arg-type]
    assert caught.value.exit_code == 3
    kept = (tmp_path / "x.cfg.drafts").read_text()
    assert "# ---- draft 1 (.cfg)" in kept
    assert "S -> S" in kept
    assert "write '->' instead of '='" in kept
    assert "x.cfg.drafts" in capsys.readouterr().err
    cli.author_(WORDS, tmp_path / "x", ScriptedLLM(texts=["S = wash", "```cfg\nS -> wash\n```"]), attempts=2, yes=True)  # type: ignore[arg-type]
    assert (tmp_path / "x.cfg").read_text() == "S -> wash\n"
    assert not (tmp_path / "x.drafts").exists()
