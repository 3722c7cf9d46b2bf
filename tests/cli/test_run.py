"""``formal-llm run``: a task is planned and carried out."""

from __future__ import annotations

import importlib.util
import re
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import formal_llm
from formal_llm.packs.openagi.data.making import Degradation
from formal_llm.packs.openagi.data.sources import load_pictures
from formal_llm.packs.openagi.scores.images import SSIM
from tests.cli.inside import runner

run = runner("run")
#: What is said before a plan of the classical tools.
LACKS = (
    "the toolkit classical lacks: Image Classification, Image Captioning, Text to Image Generation, Machine "
    "Translation, Visual Question Answering\n"
)


def test_a_photograph_is_restored(tmp_path: Path) -> None:
    good = load_pictures()[0].open().convert("RGB").resize((96, 96))
    bad = Degradation(noise=0.08).apply(good, np.random.default_rng(0))
    bad.save(tmp_path / "bad.png")
    task = "Given noisy image, how to return the regular image step by step?"
    code, printed, said = run("openagi", task, "--input", f"image={tmp_path}/bad.png", "--out", str(tmp_path / "out"))
    assert (code, said) == (0, LACKS)
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
    assert (code, said) == (0, LACKS), said
    assert "Question Answering" in printed
    assert "1874" in (tmp_path / "out" / "output.txt").read_text()


CAPTION = "Given image, how to return the caption in English step by step?"


def test_a_plan_that_needs_a_missing_tool(tmp_path: Path) -> None:
    Image.new("RGB", (64, 64)).save(tmp_path / "a.png")
    given = ("--input", f"image={tmp_path}/a.png", "--out", str(tmp_path / "out"))
    code, printed, said = run("openagi", CAPTION, *given)
    assert code == 1
    wants, *rest = said.removeprefix(LACKS).splitlines()
    assert wants.startswith(
        "the plan needs Image Captioning, which the toolkit classical lacks; it was planned without"
    )
    assert not rest
    assert "Object Detection" in printed  # all that the toolkit can read from a picture
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert wants in report
    assert "<th>missing tools</th><td>Image Classification, Image Captioning, " in report


def test_strict_carries_nothing_out_without_the_tool(tmp_path: Path) -> None:
    Image.new("RGB", (64, 64)).save(tmp_path / "a.png")
    (tmp_path / "a.txt").write_text("It rains.")
    common = ("--input", f"image={tmp_path}/a.png", "--out", str(tmp_path / "out"), "--strict")
    code, printed, said = run("openagi", CAPTION, *common)
    assert (code, printed) == (1, "")
    assert "the plan needs Image Captioning, which the toolkit classical lacks; take another toolkit" in said
    assert not list((tmp_path / "out").iterdir())
    # A question about a picture is not asked of the text that holds the question.
    question = "Given image and English query, how to answer the question in English step by step?"
    code, _, said = run("openagi", question, "--input", f"text={tmp_path}/a.txt", *common)
    assert code == 1
    assert "needs Visual Question Answering, which" in said
    # Where nothing is missing, strict is as usual.
    code, _, said = run("openagi", "Given noisy image, how to return the regular image?", *common)
    assert (code, said) == (0, LACKS)


def test_the_first_plan_is_not_made_twice(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("It rains.")
    arguments = ("openagi", "Summarize it", "--input", f"text={tmp_path}/a.txt", "--out", str(tmp_path / "out"))
    code, printed, said = run(*arguments, "--llm", "test:script=1,4,10")
    assert (code, said) == (0, LACKS), said
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<th>LLM</th><td>test:script=1,4,10</td>" in report
    assert "<th>questions</th><td>3</td>" in report, printed


def test_the_report_says_how_it_came_about(tmp_path: Path) -> None:
    (tmp_path / "<b>.txt").write_text("It rains. It <i>pours</i>.")
    arguments = ("openagi", "Summarize it", "--input", f"text={tmp_path}/<b>.txt", "--out", str(tmp_path / "out"))
    assert run(*arguments)[0] == 0
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    about = dict(re.findall(r"<th>(.*?)</th><td>(.*?)</td>", report))
    assert set(about) == {
        "task", "inputs", "LLM", "questions", "toolkit", "missing tools", "date", "versions",
    }  # fmt: skip
    assert about["inputs"] == f"text={tmp_path}/&lt;b&gt;.txt"
    assert about["toolkit"].startswith("classical: Colorization, ")
    assert about["versions"].startswith(f"formal_llm {formal_llm.__version__}, Python 3.")
    assert datetime.fromisoformat(about["date"]).tzinfo is not None
    assert "<i>" not in report


def test_what_an_earlier_run_wrote_is_removed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("It rains.")
    Image.new("RGB", (32, 32)).save(tmp_path / "a.png")
    out = ("--out", str(tmp_path / "out"))
    assert run("openagi", "Summarize it", "--input", f"text={tmp_path}/a.txt", *out)[0] == 0
    assert run("openagi", "7", "--input", f"image={tmp_path}/a.png", *out)[0] == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["output.png", "report.html"]
    # What came out goes in again; a run that fails leaves it there, and no report of another run.
    again = ("--input", f"image={tmp_path}/out/output.png", *out)
    assert run("openagi", CAPTION, *again, "--strict")[0] == 1
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["output.png"]
    (tmp_path / "out" / "report.html").mkdir()
    code, _, said = run("openagi", "7", *again)
    assert code == 2
    assert "report.html cannot be replaced" in said


def test_files_that_a_plan_does_not_use_as_meant(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"It rains in {name}.")
        Image.new("RGB", (32, 32)).save(tmp_path / f"{name}.png")
    texts, images = ([f"--input={kind}={tmp_path}/{name}.{ending}" for name in "ab"]
                     for kind, ending in (("text", "txt"), ("image", "png")))  # fmt: skip
    out = ("--out", str(tmp_path / "out"))
    code, _, said = run("openagi", "7", *images, *out)
    assert code == 2
    assert f"--input image=FILE is given twice, and there is one image: image={tmp_path}/b.png" in said
    code, _, said = run("openagi", "Summarize it", *texts, *out)
    assert (code, said) == (0, f"{LACKS}2 files given for the input text, 1 used by the plan\n")
    assert "2 files given for the input text, 1 used by the plan" in (tmp_path / "out" / "report.html").read_text()
    code, _, said = run("openagi", "Give the summarization of the text", texts[0], images[0], *out)
    assert (code, said) == (0, f"{LACKS}1 file given for the input image, 0 used by the plan\n")
    code, _, said = run("openagi", "184", texts[0], *out)
    assert (code, said) == (
        0, f"{LACKS}Question Answering gets the input text twice, since one file was given for it\n",
    )  # fmt: skip


def test_a_picture_of_16_bits(tmp_path: Path) -> None:
    values = np.linspace(0, 65_535, 64 * 64).reshape(64, 64).astype(np.uint16)
    Image.fromarray(values).save(tmp_path / "a.png")
    task = "Given noisy image, how to return the regular image?"
    code, _, said = run("openagi", task, "--input", f"image={tmp_path}/a.png", "--out", str(tmp_path / "out"))
    assert code == 0, said
    with Image.open(tmp_path / "out" / "output.png") as made:
        assert np.asarray(made.convert("L")).max() > 240


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
            assert process.stderr.readline().startswith(b"the toolkit classical lacks: ")
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
        (("openagi", "0", "--input", "image=/dev/zero"), "'zero' in /dev is no regular file"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    code, _, said = run(*arguments, "--out", str(tmp_path / "out"))
    assert code == 2
    assert expected in said
    assert not (tmp_path / "out").exists()
