"""Data, a cache, and benchmarks over them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from formal_llm import TaskPack
from formal_llm.packs.openagi.benchmark.plans import Benchmark
from formal_llm.packs.openagi.benchmark.reading import LexicalMatcher, tool_texts
from formal_llm.packs.openagi.data.making import make_data
from formal_llm.packs.openagi.scores.choice import Scores
from formal_llm.packs.openagi.scores.images import SSIM
from formal_llm.packs.openagi.scores.judging import PlanJudge
from formal_llm.packs.openagi.scores.text import ChrF
from formal_llm.packs.openagi.toolkits import classical
from formal_llm.tools import Executor
from tests.cli.inside import runner

#: Gray picture; noisy and gray, to object names; text to image; sentiment; a document and a question.
NUMBERS = [7, 50, 106, 116, 184]


SCORES = Scores(ChrF(), SSIM())


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    make_data(folder, tasks=NUMBERS, samples=2, side=48)
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def made(data: Path, cache: Path) -> Any:
    def make(numbers: Sequence[int] = NUMBERS, **more: Any) -> Benchmark:
        judge = PlanJudge(Executor(classical(), cache=cache), data, SCORES, samples=more.pop("samples", 2))
        matcher = more.pop("matcher", None) or LexicalMatcher(tool_texts(judge.pack))
        return Benchmark(judge, numbers, matcher=matcher, **{"repeats": 2, **more})

    return make


@pytest.fixture
def laundry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TaskPack:
    monkeypatch.chdir(tmp_path)
    assert runner("new")("laundry")[0] == 0
    return TaskPack.load("./laundry")
