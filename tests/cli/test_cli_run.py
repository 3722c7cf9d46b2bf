"""``formal-llm run``: a task is planned and carried out."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from formal_llm.cli.main import app
from formal_llm.packs.openagi.degradation import Degradation
from formal_llm.packs.openagi.scores import SSIM
from formal_llm.packs.openagi.sources import pictures


def run(*arguments: str) -> tuple[int, str, str]:
    printed, said = io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(said), pytest.raises(SystemExit) as end:
        app(("run", *arguments))
    return int(end.value.code or 0), printed.getvalue(), said.getvalue()


def test_a_photograph_is_restored(tmp_path: Path) -> None:
    good = pictures()[0].open().convert("RGB").resize((96, 96))
    bad = Degradation(noise=0.08).apply(good, np.random.default_rng(0))
    bad.save(tmp_path / "bad.png")
    task = "Given noisy image, how to return the regular image step by step?"
    code, printed, said = run("openagi", task, "--input", f"image={tmp_path}/bad.png", "--out", str(tmp_path / "out"))
    assert (code, said) == (0, "")
    assert printed.splitlines()[0] == "Step 1: Use Image Denoising on the input image"
    restored = Image.open(tmp_path / "out" / "output.png")
    assert SSIM()(restored, good) > SSIM()(bad, good)
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "data:image/png" in report
    assert "http://" not in report.replace("http://www.w3.org", "")


def test_a_text_is_summarized(tmp_path: Path) -> None:
    text = "The pump runs well. The valve of the pump is stuck. Nobody knows why the valve is stuck. It rains today."
    (tmp_path / "story.txt").write_text(text)
    task = "Given English text, how to return the summarization step by step?"
    code, _, _ = run("openagi", task, "--input", f"text={tmp_path}/story.txt", "--out", str(tmp_path / "out"))
    assert code == 0
    assert (tmp_path / "out" / "output.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("openagi", "0", "--input", "image=none.png"), "no such file"),
        (("openagi", "0", "--input", "picture=x.png"), "no input 'picture'"),
        (("openagi", "0", "--input", "x.png"), "NAME=FILE"),
        (("openagi", "0", "--input", "image=x.png", "--toolkit", "classic"), "Did you mean 'classical'"),
        (("daily", "", "--input", "image=x.png"), "no toolkit"),
        (("opnagi", "0", "--input", "image=x.png"), "openagi"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    code, _, said = run(*arguments, "--out", str(tmp_path / "out"))
    assert code == 2
    assert expected in said
    assert not (tmp_path / "out").exists()
