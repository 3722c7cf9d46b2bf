"""What is wrong with the arguments is said before a model is loaded: that takes seconds, and of a large one minutes."""

from __future__ import annotations

import importlib.util
import shlex
from pathlib import Path

import pytest

from formal_llm.llms import LLM
from formal_llm.llms.doubles import TEXTS, RandomLLM
from formal_llm.llms.providers import MAKERS
from tests.cli.inside import runner

NEEDED = {
    "bench openagi": ("numpy", "PIL"),
    "train": ("torch", "peft", "pydantic"),
}  # fmt: skip
WRONG = {
    # one plan
    "plan openagi 3 --limit nosuch=1": "unknown terminal in a limit: nosuch",
    "plan openagi 3 --limit colorization": "--limit takes NAME=N",
    "plan openagi 999": "no task '999'",
    "plan openagi 3 --goal nosuch": "no goal 'nosuch'",
    "plan openagi 3 --limit captioning=0 --require captioning=1": "captioning",
    "plan openagi 3 --prices a": "--prices takes IN,OUT",
    "plan openagi 3 --max-cost 1": "--max-cost needs --prices",
    "plan openagi 3 --concurrency 3": "--concurrency, --retry-failed and --batch are for many tasks",
    "plan openagi 3 --out nodir/plan.json": "there is no folder nodir",
    "plan openagi 3 --cache nodir/answers": "there is no folder nodir",
    "plan openagi 3 --record nodir/answers": "there is no folder nodir",
    "plan openagi 3 --certificate file/proof": "is no folder",
    # many
    "plan openagi --tasks test": "--tasks needs --out FILE",
    "plan openagi --tasks nofile.txt --out results": "nofile.txt",
    # trips
    'travel plan "..." --database nodir': "there is no such folder",
    'travel plan "..." --reader wrong': "'wrong' names no LLM",
    # agents
    "agent react x --tools nosuch": "no toolkit 'nosuch'",
    "agent nosuch x": "no behaviour 'nosuch'",
    "agent react x --rule ((": "this parenthesis is never closed",
    "agent react x --limit nosuch=1": "unknown terminal in a limit: nosuch",
    "agent react x --corpus nofile": "nofile: there is no such file",
    "agent modular x --limit nosuch=1": "unknown terminal in a limit: nosuch",
    "agent modular x --tool-llm wrong": "'wrong' names no LLM",
    # benchmarks
    "bench openagi --out b --data nodir": "no folder of task data",
    "bench openagi --out b --toolkit nosuch": "no toolkit 'nosuch'",
    "bench openagi --out b --methods nosuch": "no method 'nosuch'",
    "bench openagi --out b --methods rltf --adapter nodir": "no adapter file",
    "bench openagi --out b --bert x --text-score chrf": "--bert is for --text-score bertscore",
    "bench openagi --out b --llm wrong": "'wrong' names no LLM",
    "bench openagi --out file/b": "is no folder",
    "bench agents --out b --agents nosuch": "no behaviour 'nosuch'",
    "bench agents --out b --tools nosuch": "no toolkit 'nosuch'",
    "bench agents --out b --llm wrong": "'wrong' names no LLM",
    "bench agents --out file/b": "cannot be made",
    "bench travelplanner --out b --data nodir": "there is no such folder",
    "bench travelplanner --out b --data nodir --reader wrong": "'wrong' names no LLM",
    # others
    "run openagi 3 --input image=nofile --out o": "there is no such file",
    "author 'Wash before dry.' --out nodir/rules.cfg": "there is no folder nodir",
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str | None]:
    """The models that were made, by what stood behind their provider; in a folder of its own."""
    found: list[str | None] = []

    def make(rest: str | None) -> LLM:
        found.append(rest)
        return RandomLLM(can=TEXTS)

    monkeypatch.setitem(MAKERS, "smollm2", make)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    return found


def run(line: str) -> tuple[int, str, str]:
    command, *arguments = shlex.split(line)
    return runner(command)(*arguments, "--llm", "smollm2")


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_is_said_before_a_model_is_loaded(line: str, made: list[str | None], tmp_path: Path) -> None:
    for command, modules in NEEDED.items():
        if line.startswith(command):
            for module in modules:
                pytest.importorskip(module)
    code, _, said = run(line.replace("--llm wrong", "--llm smollm2 --llm wrong"))
    assert code in (1, 2), said
    assert WRONG[line] in " ".join(said.split())
    assert made == []


@pytest.mark.parametrize(
    "line", ["plan openagi 3 --show word", "plan openagi 3 --search draft", "agent react x --times 2"]
)
def test_where_nothing_is_wrong_it_is_loaded_once(line: str, made: list[str | None]) -> None:
    run(line)
    assert made == [None]


@pytest.mark.skipif(importlib.util.find_spec("peft") is None, reason="peft is not installed")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--out", "file/run"), "file is no folder"),
        (("--out", "run", "--set", "adapter=nodir"), "no adapter file 'nodir/adapter_model.safetensors'"),
        (("--out", "run", "--set", "train=nosuch"), "no split of tasks 'nosuch'"),
    ],
)
def test_nor_is_one_that_is_trained(arguments: tuple[str, ...], expected: str, made: list[str | None]) -> None:
    code, _, said = runner("train")("smollm2-cpu", "--set", "model=smollm2", *arguments)
    assert code == 2
    assert expected in " ".join(said.split())
    assert made == []
