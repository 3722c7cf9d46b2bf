"""The judge as a reward."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from formal_llm import TaskPack
from formal_llm.packs.openagi.data.making import make_data
from formal_llm.packs.openagi.data_reward import data_reward
from formal_llm.packs.openagi.scores.choice import Scores
from formal_llm.packs.openagi.scores.images import SSIM
from formal_llm.packs.openagi.scores.judging import PlanJudge, plan_of
from formal_llm.packs.openagi.scores.text import ChrF
from formal_llm.packs.openagi.toolkits import classical
from formal_llm.rltf.rewards import Judged
from formal_llm.tools import Toolkit, tool

PACK = TaskPack.load("openagi")


CHEAP = Scores(ChrF(), SSIM())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("data")
    make_data(place, tasks=[13, 15], samples=2, side=48)
    return place


@pytest.fixture(scope="module")
def judge(folder: Path) -> PlanJudge:
    return PlanJudge(classical(), folder, CHEAP)


def test_a_reward(folder: Path, judge: PlanJudge) -> None:
    reward = data_reward(judge)
    task = judge.task(13)
    plan = PACK.planner().plan(task)
    assert reward.judge(task, plan) == Judged(judge(13, plan))
    wrong = reward.judge(task, plan_of(PACK.cfg, ["captioning", "input_image"]))
    assert wrong.value == 0
    assert "cannot stand" in wrong.failed
    assert reward.identity == data_reward(PlanJudge(classical(), folder, CHEAP)).identity
    assert reward.identity != data_reward(PlanJudge(classical(), folder, CHEAP, samples=1)).identity
    fewer = {number: data for number, data in judge.data.items() if number != 13}
    assert reward.identity != data_reward(PlanJudge(classical(), fewer, CHEAP)).identity


def test_a_plan_that_fails_everywhere_says_why(folder: Path) -> None:
    @tool("denoising")
    def broken(image: Image.Image) -> Image.Image:
        raise ValueError("out of order")

    judge = PlanJudge(Toolkit([broken]), folder, CHEAP)
    judged = data_reward(judge).judge(judge.task(13), plan_of(PACK.cfg, ["denoising", "input_image"]))
    assert judged.value == 0
    assert "out of order" in judged.failed
