"""The options that commands share: what the shell completes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.slow_server import read_counts, slow_server
from tests.cli.inside import runner


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("formal-llm pl", ["plan"]),
        ("formal-llm tr", ["train", "train-planner", "try"]),
        ("formal-llm plan openagi --search be", ["best-first"]),
        ("formal-llm plan coo", ["cooking"]),
        ("formal-llm verify rea", ["react", "react-5", "react-ablated"]),
        ("formal-llm plan openagi --llm test:r", ["test:random"]),
        ("formal-llm plan openagi --llm openai:", ["openai:"]),
        ("formal-llm train --schedu", ["--schedule"]),
        ("formal-llm train mini", ["minilm-demo", "minilm-rewordings"]),
        ("formal-llm check inc", ["incident"]),
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


plan = runner("plan")


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
        for option in ("--rps", "--tpm", "--max-retries", "--timeout", "--deadline"):
            assert option in printed, name


def test_they_reach_the_client(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with slow_server(0, breaks=1) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        options = ("--rps", "50", "--tpm", "1000000", "--timeout", "5", "--deadline", "5")
        code, _, said = plan(rules, "shirts", "--llm", "openai:x", "--max-retries", "0", *options)
        assert code == 3 and "the server failed" in said
        assert read_counts(url)["failed"] == 1
        plan(rules, "shirts", "--llm", "openai:x", "--max-retries", "1", *options)
        assert read_counts(url)["failed"] == 3


def test_wrong_values(rules: str) -> None:
    code, _, said = plan(rules, "shirts", "--rps", "0")
    assert code == 2 and "--rps" in said


def test_the_second_provider_takes_over(rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("VLLM_BASE_URL", "http://127.0.0.1:9/v1")
    with slow_server(0) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        code, printed, said = plan(rules, "shirts", "--llm", "vllm:a,openai:b", "--max-retries", "0")
    assert code == 0, said
    assert "Step 1" in printed
