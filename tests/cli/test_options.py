"""The options that commands share: what the shell completes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("formal-llm pl", ["plan", "plugins"]),
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
