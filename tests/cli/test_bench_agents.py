"""``formal-llm bench agents``: a table, offline, that goes on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formal_llm.agents.tools import Corpus
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


def test_hotpotqa_is_searched_in_its_own_paragraphs(tmp_path: Path) -> None:
    def question(number: int) -> dict[str, object]:
        context = [[f"Zubrowka {number}", ["It is a land.", f" It has {number} rivers."]], ["Vienna", ["A city."]]]
        return {"_id": str(number), "question": f"Zubrowka {number}?", "answer": "yes", "context": context}

    data, out = tmp_path / "hotpot.json", tmp_path / "out"
    data.write_text(json.dumps([question(number) for number in range(3)]))
    options = ("agents", "--data", str(data), "--form", "hotpotqa", "--llm", "test:random", "--agents", "react")
    assert bench(*options, "--out", str(out), "--most", "2")[0] == 0
    (corpus,) = out.glob("corpus-*.sqlite")
    session = Corpus(corpus).session()
    assert len(Corpus(corpus)) == 4 and "It has 2 rivers." in session.search("Zubrowka 2")
    # More questions may be added; other paragraphs are another benchmark.
    assert bench(*options, "--out", str(out))[0] == 0
    data.write_text(json.dumps([question(number) for number in range(4)]))
    code, _, said = bench(*options, "--out", str(out))
    assert code == 2 and "belongs to another run" in " ".join(said.split())
    code, _, said = bench(*options, "--out", str(tmp_path / "other"), "--corpus", str(corpus))
    assert code == 0 and not list((tmp_path / "other").glob("corpus-*"))


def test_votes_at_temperature_0_are_warned_of(tmp_path: Path) -> None:
    options = ("agents", "--llm", "test:random", "--agents", "cot-sc", "--most", "1", "--samples", "2")
    with pytest.warns(
        UserWarning, match="at temperature 0 the 2 answers to a question are the same.*--temperature 0.7"
    ):
        assert bench(*options, "--temperature", "0", "--out", str(tmp_path / "sure"))[0] == 0
    assert bench(*options, "--out", str(tmp_path / "out"))[0] == 0
