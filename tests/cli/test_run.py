"""``formal-llm run``: a task is planned and carried out."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from formal_llm.packs.openagi.data.degradation import Degradation
from formal_llm.packs.openagi.data.sources import pictures
from formal_llm.packs.openagi.scores.images import SSIM
from tests.cli.inside import runner

run = runner("run")


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
        (("0", "--input", "text=a.txt"), "task 0 takes --input image=FILE: Given low-resolutioned"),
        (("0", "--input", "text=a.txt", "--input", "image=a.png"), "task 0 takes --input image=FILE"),
        ((" ", "--input", "text=a.txt"), "the task is empty"),
        (("0", "--input", "image=empty.png"), "empty.png is empty"),
        (("0", "--input", "image=a.txt"), "a.txt cannot be read as PNG"),
    ],
)
def test_inputs_that_do_not_go_with_the_task(
    arguments: tuple[str, ...], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("It rains.")
    Path("empty.png").touch()
    Image.new("L", (8, 8)).save("a.png")
    code, _, said = run("openagi", *arguments, "--out", "out")
    assert code == 2
    assert expected in said
    assert "0x" not in said  # nobody wants to read where in memory something is
    assert not Path("out").exists()


def test_several_files_for_one_input(tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_text("The tower was built in 1874. It is white.")
    (tmp_path / "question.txt").write_text("When was the tower built?")
    given = [part for name in ("report", "question") for part in ("--input", f"text={tmp_path}/{name}.txt")]
    code, printed, said = run("openagi", "184", *given, "--out", str(tmp_path / "out"))
    assert (code, said) == (0, ""), said
    assert "Question Answering" in printed
    assert "1874" in (tmp_path / "out" / "output.txt").read_text()


def test_a_link_that_a_person_names_is_followed(tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("It rains.")
    (tmp_path / "link.txt").symlink_to(tmp_path / "texts" / "a.txt")
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    arguments = ("openagi", "Summarize it", "--out", str(tmp_path / "out"), "--input")
    assert run(*arguments, f"text={tmp_path}/link.txt")[0] == 0
    assert (tmp_path / "out" / "output.txt").read_text() == "It rains."
    code, _, said = run(*arguments, f"text={tmp_path}/loop.txt")
    assert code == 2
    assert "'loop.txt'" in said


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("It rains.")
    arguments = ("openagi", "Summarize it", "--input", f"text={tmp_path}/a.txt", "--out", str(tmp_path / "a.txt"))
    code, _, said = run(*arguments)
    assert code == 2
    assert "is no folder" in said
    assert (tmp_path / "a.txt").read_text() == "It rains."


HANGING = """
import sys, time
from formal_llm.cli.main import main
from formal_llm.packs.openagi import toolkits
from formal_llm.tools import Toolkit, tool
from tests.cli.inside import runner

@tool
def summarization(text: str) -> str:
    print("begun", file=sys.stderr, flush=True)
    time.sleep(300)

toolkits.AT_HAND = {"classical": lambda: Toolkit([summarization])}
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are others there")
def test_an_interrupted_tool_is_left_behind(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("It rains.")
    given = ["run", "openagi", "Summarize it", "--input", "text=a.txt", "--out", "out"]
    with subprocess.Popen([sys.executable, "-c", HANGING, *given], cwd=tmp_path, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == b"begun\n"
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)  # not the 300 seconds of the tool
        finally:
            process.kill()
    assert process.returncode == 130
    assert b"interrupted" in said
    assert b"Traceback" not in said


@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "huggingface_hub")), reason="torch is not installed"
)
def test_experts_that_cannot_be_had_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a.txt").write_text("It rains.")
    common = ("openagi", "Summarize it", "--input", f"text={tmp_path}/a.txt", "--toolkit", "experts")
    code, _, said = run(*common, "--out", str(tmp_path / "out"))
    assert code == 2
    assert said.count("left out: ") == 15
    assert "left out: sentiment: its checkpoint is not on this machine; download it with a network (hf " in said
    assert "none of the tools of experts can be had" in said


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("openagi", "0", "--input", "image=none.png"), "no such file"),
        (("openagi", "0", "--input", "picture=x.png"), "no input 'picture'"),
        (("openagi", "0", "--input", "x.png"), "NAME=FILE"),
        (("openagi", "0", "--input", "image=x.png", "--toolkit", "classic"), "Did you mean 'classical'"),
        (("daily", "", "--input", "image=x.png"), "the task pack daily has no tools"),
        (("openagi", "0", "--input", "image="), "NAME=FILE"),
        (("opnagi", "0", "--input", "image=x.png"), "no task pack 'opnagi'. Did you mean 'openagi'?"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    code, _, said = run(*arguments, "--out", str(tmp_path / "out"))
    assert code == 2
    assert expected in said
    assert not (tmp_path / "out").exists()
