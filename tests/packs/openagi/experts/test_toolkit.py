"""The experts through their real loading code, on tiny models with random weights."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
import torch

from formal_llm import CFG, Planner, TaskPack
from formal_llm.cli.main import app
from formal_llm.errors import CheckpointError, MissingDependency, ToolError, ToolkitError
from formal_llm.packs.openagi.experts.toolkit import ExpertToolkit, experts
from formal_llm.tools import Executor
from tests.packs.openagi.experts import tiny_experts
from tests.packs.openagi.experts.expert_cases import FEELINGS, PICTURES, TEXTS, TOOLS, columns, picture, plain, same

PACK = TaskPack.load("openagi")
KINDS = PACK.data["kinds"]
RESTORING = ["colorization", "denoising", "deblurring"]


# -- the toolkit -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TOOLS)
def test_together_is_as_one_by_one(name: str, kit: ExpertToolkit, make: Callable[..., ExpertToolkit]) -> None:
    tool = kit[name]
    values = columns(tool)
    given = [[plain(value) for value in column] for column in values]
    together = tool.batch(*values)
    assert [[plain(value) for value in column] for column in values] == given, "the inputs stay as they were"
    assert all(tool.output.has(value) for value in together)
    assert all(same(*pair) for pair in zip(together, (tool(*row) for row in zip(*values, strict=True)), strict=True))
    assert len({str(plain(value)) for value in together}) > 1, "the tiny model should tell inputs apart"
    # A model that is loaded anew says the same, to the last bit.
    again = make([name])[name].batch(*values)
    assert [plain(value) for value in again] == [plain(value) for value in together]


@pytest.mark.slow
def test_what_a_tool_makes_does_not_depend_on_the_seed_of_others(kit: ExpertToolkit) -> None:
    for name in ("visual_question_answering", "text_to_image", "colorization"):
        tool = kit[name]
        results = []
        for seed in (1, 2):
            torch.manual_seed(seed)
            results.append([plain(value) for value in tool.batch(*columns(tool, 2))])
        assert results[0] == results[1]


@pytest.mark.parametrize("name", RESTORING)
def test_restored_pictures_have_the_size_they_had(name: str, kit: ExpertToolkit) -> None:
    for image, restored in zip(PICTURES, kit[name].batch(PICTURES), strict=True):
        assert restored.size == image.size
        wanted = "RGB" if name == "colorization" and image.mode == "L" else image.mode
        assert restored.mode == wanted
        if image.mode == "RGBA":
            assert restored.getchannel("A").tobytes() == image.getchannel("A").tobytes()


# -- plans -------------------------------------------------------------------------------------------------------------

TREE = CFG.from_string("""
    %order prefix
    answer -> visual_question_answering I T
    I -> denoising J
    J -> super_resolution input_image
    T -> fill_mask input_text
""")


@pytest.mark.slow
def test_a_tree_plan_is_what_the_nested_calls_are(kit: ExpertToolkit, tmp_path: Path) -> None:
    plan = Planner(TREE).plan("answer")
    executor = Executor(kit, cache=tmp_path / "cache")
    rows = [{"input_image": image, "input_text": text} for image, text in zip(PICTURES, TEXTS, strict=True)]
    for row, result in zip(rows, executor.run_many(plan, rows, keep=True), strict=True):
        assert result.error is None
        seen = kit["denoising"](kit["super_resolution"](row["input_image"]))
        assert result.output == kit["visual_question_answering"](seen, kit["fill_mask"](row["input_text"]))
        assert [step.name for step in result.steps][:3] == [
            "visual_question_answering",
            "denoising",
            "super_resolution",
        ]
    again = Executor(kit, cache=tmp_path / "cache")
    assert [r.output for r in again.run_many(plan, rows)] == [r.output for r in executor.run_many(plan, rows)]
    assert again.stats.executed == 0


def test_every_tool_in_plans_of_the_grammar(kit: ExpertToolkit) -> None:
    inputs = {"input_image": PICTURES[0], "input_text": TEXTS[0]}
    planner = Planner(PACK.cfg, "test:random")
    plans = [planner.plan(f"task {number}") for number in range(6)]
    results = Executor(kit).run_many(plans, inputs)
    assert [result.error for result in results] == [None] * 6


def test_formal_llm_run_with_experts(
    checkpoints: dict[str, str], faster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = faster.read_text()
    for name, place in checkpoints.items():
        told = told.replace(f"[tools.{name}]", f"[tools.{name}]\ncheckpoint = '{place}'")
    (tmp_path / "mine.toml").write_text(f"[machine]\ndevice = 'cpu'\noffline = true\n{told}")
    monkeypatch.setenv("FORMAL_LLM_EXPERTS", str(tmp_path / "mine.toml"))
    picture(1, 24, 24).save(tmp_path / "bad.png")
    task = "Given noisy image, how to return the caption in German step by step?"
    printed = io.StringIO()
    arguments = ("run", "openagi", task, "--input", f"image={tmp_path}/bad.png", "--toolkit", "experts", "--out")
    with redirect_stdout(printed), redirect_stderr(io.StringIO()), pytest.raises(SystemExit) as end:
        app((*arguments, str(tmp_path / "out")))
    assert not end.value.code
    assert "Image Captioning" in printed.getvalue()
    assert (tmp_path / "out" / "output.txt").is_file()


# -- memory ------------------------------------------------------------------------------------------------------------


def test_models_leave_by_least_recent_use(make: Callable[..., ExpertToolkit]) -> None:
    names = ["sentiment", "fill_mask", "question_answering"]
    everything = make(names)
    expected = {name: everything[name](*(column[0] for column in columns(everything[name]))) for name in names}
    weights = {}
    for key in everything.pool.inside:
        with everything.pool.use(key) as parts:
            weights[key.split()[0]] = parts.bytes
    assert len(weights) == 3
    small = make(names, memory=sum(weights.values()) - 1)
    for name in (*names, "sentiment", *reversed(names)):
        assert small[name](*(column[0] for column in columns(small[name]))) == expected[name]
        assert small.pool.inside[-1].split()[0] == type(small.experts[name]).__name__
        assert len(small.pool.inside) <= 2


@pytest.mark.slow
def test_plans_in_parallel_under_a_small_budget(kit: ExpertToolkit, make: Callable[..., ExpertToolkit]) -> None:
    inputs = [{"input_image": image, "input_text": text} for image, text in zip(PICTURES, TEXTS, strict=True)]
    planner = Planner(PACK.cfg, "test:random")
    plans = [planner.plan(f"number {number}") for number in range(10)]
    rows = [inputs[number % 5] for number in range(10)]
    expected = [plain(result.output) for result in Executor(kit).run_many(plans, rows)]
    largest = 0
    for key in kit.pool.inside:
        with kit.pool.use(key) as parts:
            largest = max(largest, parts.bytes)
    small = make(memory=largest)
    results = Executor(small, workers=4).run_many(plans, rows)
    assert [result.error for result in results] == [None] * 10
    assert [plain(result.output) for result in results] == expected
    assert len(small.pool.inside) < len(kit.pool.inside)


def test_a_model_that_is_too_large_is_planned_around(make: Callable[..., ExpertToolkit]) -> None:
    kit = make(["sentiment", "summarization"], memory=22_000)
    with pytest.raises(MemoryError, match="the budget of the pool is 22,000"):
        kit["summarization"]("A storm came.")
    cfg = CFG.from_string("%order prefix\ntext -> summarization input_text | sentiment input_text")
    with pytest.raises(ToolError) as caught:
        Executor(make(["summarization"], memory=1)).run(Planner(TREE_OF_ONE).plan("x"), {"input_text": "A storm."})
    assert caught.value.reason == "memory"
    loose = make(["sentiment"])
    loose["sentiment"]("red")
    with loose.pool.use(loose.pool.inside[0]) as parts:
        room = parts.bytes
    kit = make(["sentiment", "summarization"], memory=room)
    solution = Planner(cfg, "test:first").solve("What is it?", {"input_text": "A storm came."}, kit)
    assert solution.result.output in FEELINGS


TREE_OF_ONE = CFG.from_string("%order prefix\ntext -> summarization input_text")


def test_tools_with_one_checkpoint_share_one_model(make: Callable[..., ExpertToolkit]) -> None:
    kit = make(["denoising", "deblurring", "super_resolution"])
    for name in ("denoising", "deblurring", "super_resolution", "denoising"):
        kit[name](PICTURES[0])
    assert len(kit.pool.inside) == 2


# -- which tools, which checkpoints ------------------------------------------------------------------------------------


def test_only_some(make: Callable[..., ExpertToolkit]) -> None:
    kit = make(["captioning", "sentiment"])
    assert {tool.name for tool in kit} == {"captioning", "sentiment"}
    planner = PACK.planner("test:random")
    inputs = {"input_image": PICTURES[0]}
    solution = planner.solve(PACK.read("Given noisy image, how to return the caption in English?"), inputs, kit)
    assert set(solution.plan.word) <= {"captioning", "sentiment", "input_image"}
    with pytest.raises(ToolkitError, match="did you mean 'captioning'"):
        make(["captoining"])
    with pytest.raises(ToolkitError, match="did you mean 'sentiment'"):
        experts(checkpoints={"sentimnt": "x/y"})


def test_a_checkpoint_is_replaced(make: Callable[..., ExpertToolkit], tmp_path: Path) -> None:
    torch.manual_seed(99)
    tiny_experts.classification(tmp_path / "other")
    old, new = (
        make(["classification"]),
        make(["classification"], checkpoints={"classification": str(tmp_path / "other")}),
    )
    pictures = [picture(seed) for seed in range(12)]
    assert old["classification"].batch(pictures) != new["classification"].batch(pictures)
    assert old["classification"].version != new["classification"].version
    assert old["classification"].version == make(["classification"])["classification"].version
    # New weights in the same folder are other weights.
    before = new["classification"].version
    torch.manual_seed(100)
    tiny_experts.classification(tmp_path / "other")
    assert (
        make(["classification"], checkpoints={"classification": str(tmp_path / "other")})["classification"].version
        != before
    )


def test_half_precision_is_for_devices(checkpoints: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('[tools.sentiment]\ndtype = "bfloat16"\n')
    kit = experts(
        ["sentiment", "text_to_image"], settings=tmp_path / "mine.toml", checkpoints=checkpoints, device="cpu"
    )
    assert {name: expert.source.dtype for name, expert in kit.experts.items()} == {
        "sentiment": "bfloat16", "text_to_image": "float32"
    }  # fmt: skip
    assert kit["sentiment"]("red") in FEELINGS
    far = experts(["text_to_image"], checkpoints=checkpoints, device="cuda")  # nothing is loaded
    assert far.experts["text_to_image"].source.dtype == "float16"


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(MissingDependency, match=r"formal-llm\[experts\]"):
        experts()


def test_a_folder_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"sentiment: the checkpoint .*nowhere.* is no folder; name another"):
        experts(checkpoints={"sentiment": str(tmp_path / "nowhere")})
