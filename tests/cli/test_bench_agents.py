"""``formal-llm bench agents``: a table, offline, that goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.inside import runner

bench = runner("bench")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_table_of_agents_that_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("agents", "--llm", "test:random", "--agents", "direct,react,cot-sc-react", "--out", str(out))
    code, printed, said = bench(*options, "--most", "3", "--samples", "2")
    assert code == 0 and "on record in" in said
    rows = json.loads((out / "table.json").read_text())
    assert [(row["agent"], row["questions"], row["failed"]) for row in rows] == [
        ("direct", 3, 0), ("react", 3, 0), ("cot-sc-react", 3, 0),
    ]  # fmt: skip
    assert printed.strip() == (out / "table.md").read_text().strip()
    assert len((out / "react-test_random.jsonl").read_text().splitlines()) == 3
    assert len((out / "cot-sc-react-test_random.votes.jsonl").read_text().splitlines()) == 6
    # The same command asks nothing anew; more questions are added.
    before = (out / "react-test_random.jsonl").read_bytes()
    assert bench(*options, "--most", "3", "--samples", "2")[1] == printed
    assert (out / "react-test_random.jsonl").read_bytes() == before
    assert bench("agents", "--llm", "test:random", "--agents", "react", "--out", str(out), "--most", "4")[0] == 0
    assert (out / "react-test_random.jsonl").read_bytes().startswith(before)


def test_the_published_figures_stand_beside(tmp_path: Path) -> None:
    data = tmp_path / "hotpot.json"
    data.write_text(json.dumps([{"_id": "1", "question": "Which?", "answer": "that"}]))
    options = ("--data", str(data), "--form", "hotpotqa", "--llm", "test:random", "--agents", "direct,react")
    code, printed, _ = bench("agents", *options, "--out", str(tmp_path / "out"))
    assert code == 0 and "| 28.7 |" in printed and "| 27.4 |" in printed and "PaLM-540B, exact match" in printed


def test_what_goes_wrong(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "out"))
    for options, expected in (
        (("--llm", "test:random", "--agents", "reakt"), "Did you mean 'react'?"),
        (("--llm", "builtin"), "writes no free text"),
        (("--llm", "test:random", "--data", "none.json"), "cannot be read"),
    ):
        code, _, said = bench("agents", *options, *out)
        assert code in (2, 3) and expected in " ".join(said.split())
