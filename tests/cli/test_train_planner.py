"""``formal-llm train-planner``: a planner from sentences, used as an LLM."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from formal_llm.llms.packaged import MINILM
from tests.cli.inside import runner

run, plan = runner("train-planner"), runner("plan")
installed = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in (MINILM, "torch")), reason="MiniLM is not installed"
)
SENTENCES = """
[[sentences]]
given = ["image"]
goal = "image"
steps = ["denoising"]
texts = ["Sweep the snow off this picture.", "There is snow on it.", "So much snow!", "Too much snow in here."]
[[sentences]]
given = ["image"]
goal = "image"
steps = ["colorization"]
texts = ["Give it a fresh coat of paint.", "Paint it.", "It lacks paint.", "Some paint, please."]
"""


@installed
def test_a_planner_is_trained_and_plans(tmp_path: Path) -> None:
    file, out = tmp_path / "s.toml", tmp_path / "mine.safetensors"
    file.write_text(SENTENCES)
    code, printed, said = run(
        "openagi",
        "--sentences",
        str(file),
        "--validation",
        str(file),
        "--epochs",
        "20",
        "--seeds",
        "1",
        "--out",
        str(out),
    )
    assert code == 0, said
    assert "8 sentences to train on, 8 for validation" in said
    assert "8 of 8 plans for validation" in printed
    asked = (
        "openagi",
        "More snow than a winter",
        "--input",
        "image",
        "--goal",
        "image",
        "--llm",
        f"minilm-planner:{out}",
    )
    code, printed, said = plan(*asked, "--show", "call")
    assert code == 0, said
    assert printed.strip() == "image = denoising(input_image)"


@installed
def test_without_sentences_descriptions_are_learned(tmp_path: Path) -> None:
    code, printed, said = run("cooking", "--epochs", "1", "--seeds", "1", "--out", str(tmp_path / "k.safetensors"))
    assert code == 0, said
    assert (tmp_path / "k.safetensors").is_file()
    assert "--llm minilm-planner:" in printed


def test_what_cannot_be_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    for arguments, problem in (
        (("openagi", "--out", str(tmp_path)), "it is a folder"),
        (("openagi", "--out", str(tmp_path / "no" / "x")), "folder does not exist"),
        (("openagi", "--sentences", "none.toml", "--out", str(tmp_path / "x")), "none.toml"),
        (("cooking", "--sentences", "0", "--out", str(tmp_path / "x")), "labelled sentences"),
        (("nowhere", "--out", str(tmp_path / "x")), "nowhere"),
    ):
        code, _, said = run(*arguments)
        assert code == 2, said
        assert problem in said
