"""Plans on record without anything carried out."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from formal_llm import RandomLLM, Task, TaskPack
from formal_llm.errors import (
    Cancelled,
    NoValidPlan,
    ProviderError,
    RecordError,
    ResourceNotFound,
)
from formal_llm.llms import resolve
from formal_llm.packs.openagi.benchmark.conditions import METHODS, PlanKey
from formal_llm.packs.openagi.benchmark.plans import PackPlans, Plans, RunProgress, read_examples
from formal_llm.packs.openagi.benchmark.reading import chain_word, tool_texts
from formal_llm.packs.openagi.benchmark.records import Records, ScoredPlan
from formal_llm.rltf.reference_tools import ReferenceTools
from tests.packs.openagi.benchmark.writers import Writer


@pytest.fixture(scope="module")
def pack() -> TaskPack:
    return TaskPack.load("openagi")


def test_what_cannot_be(pack: TaskPack) -> None:
    with pytest.raises(ValueError, match="a task and a repeat"):
        Plans(pack, {})
    with pytest.raises(ValueError, match="a task and a repeat"):
        Plans(pack, {7: pack.tasks[7]}, repeats=0)
    none = {tool.name: 0 for tool in tool_texts(pack)}
    from dataclasses import replace

    from formal_llm import Limits

    with pytest.raises(NoValidPlan, match="none of the 1 tasks"):
        Plans(pack, {106: replace(pack.tasks[106], limits=pack.tasks[106].limits & Limits(none))}, ())


def test_plans_of_any_pack_are_valued_by_a_reward(laundry: TaskPack, tmp_path: Path) -> None:
    tasks = {0: laundry.tasks[0], 1: Task("Wash and iron")}
    wanted = {tasks[0]: ("wash", "dry", "fold"), tasks[1]: ("wash", "iron", "fold")}

    def seven(plan: ScoredPlan) -> float:
        used, good = set(plan["word"]), set(wanted[tasks[plan["task"]]])
        return 2 * len(used & good) / (len(used) + len(good)) if plan["valid"] else 0.0

    run = PackPlans(laundry, tasks, ReferenceTools(wanted.__getitem__, inputs=(), name="refs"), repeats=4)
    with Records(tmp_path, run.identity) as records:
        run.run({"r": RandomLLM(0)}, ["typed", "formal"], records)
        rows = records.join_scores()
    assert len(rows) == 16
    for row in rows:
        assert row["value"] == pytest.approx(seven(row))
        assert row["score"] == ("refs" if row["valid"] else "")
    # Other references are another benchmark.
    assert PackPlans(laundry, tasks, ReferenceTools(wanted.__getitem__, name="x")).identity != run.identity


def test_all_methods_with_chance(made: Any, tmp_path: Path) -> None:
    bench = made()
    steps: list[RunProgress] = []
    with Records(tmp_path, bench.identity) as records:
        bench.run({"test:random": RandomLLM(3)}, METHODS, records, on_step=steps.append)
        rows = records.join_scores()
    # No tool makes pictures of texts.
    assert list(bench.left_out) == [106]
    assert bench.left_out[106]
    assert len(rows) == 4 * 2 * (len(METHODS) - 2)  # chance writes no drafts, and was not trained
    assert all(0 <= row["value"] <= 1 for row in rows)
    assert all(row["value"] == 0 and row["reason"] for row in rows if not row["valid"])
    formal = [row for row in rows if row["method"] == "formal"]
    assert all(row["valid"] and not row["reason"] and row["steps"] for row in formal)
    assert all(row["text"] for row in rows if row["method"] in ("zero", "few"))
    assert {step.phase for step in steps} == {"planning", "executing"}
    assert [step.done for step in steps if step.phase == "planning"] == list(range(1, 41))
    assert all(step.total == 40 for step in steps if step.phase == "planning")
    planner = bench.pack.planner()
    for row in rows:
        accepted = planner.table(bench.tasks[row["task"]]).automaton.accepts(tuple(row["word"]))
        assert accepted == row["valid"]
        assert bench.judge(row["task"], row["word"]) == row["value"]


# -- stopping and going on ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 1, 7, 8, 9, 10])
def test_a_run_that_was_stopped_goes_on(after: int, made: Any, tmp_path: Path) -> None:
    llms = {"builtin": resolve("builtin")}
    bench = made([7, 50, 116])
    with Records(tmp_path / "whole", bench.identity) as records:
        bench.run(llms, ["typed", "formal"], records)
        expected = records.join_scores()
    count = 0

    def stop(step: RunProgress) -> None:
        nonlocal count
        count += 1
        if count > after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Records(tmp_path / "stopped", bench.identity) as records:
        made([7, 50, 116]).run(llms, ["typed", "formal"], records, on_step=stop)
    # As when the machine went down in the middle of a line.
    for name in ("plans.jsonl", "scores.jsonl"):
        with (tmp_path / "stopped" / name).open("ab") as file:
            file.write(b'{"llm": "bui')
    again: list[RunProgress] = []
    with Records(tmp_path / "stopped", bench.identity) as records:
        there = len(records.plans) + len(records.scores)
        assert there >= after
        made([7, 50, 116]).run(llms, ["typed", "formal"], records, on_step=again.append)
        assert len(again) == len(records.plans) + len(records.scores) - there
        assert sorted(records.join_scores(), key=str) == sorted(expected, key=str)


def test_more_is_added(made: Any, tmp_path: Path) -> None:
    bench = made([7], repeats=1)
    with Records(tmp_path, bench.identity) as records:
        bench.run({"builtin": resolve("builtin")}, ["formal"], records)
    more = made([7, 50], repeats=2)
    with Records(tmp_path, more.identity) as records:
        more.run({"builtin": resolve("builtin"), "test:first": resolve("test:first")}, ["formal"], records)
        assert len(records.plans) == 8


def test_an_execution_is_cancelled(made: Any, tmp_path: Path) -> None:
    bench = made([7], repeats=1)
    cancel = threading.Event()
    cancel.set()
    with Records(tmp_path, bench.identity) as records, pytest.raises(Cancelled):
        bench.run({"builtin": resolve("builtin")}, ["formal"], records, cancel=cancel)


def test_wrong_settings(made: Any) -> None:
    with pytest.raises(ResourceNotFound, match="data for the task '8'"):
        made([7, 8])
    with pytest.raises(NoValidPlan, match="none of the 1 tasks has a plan with these tools: colorization, "):
        made([106])
    with pytest.raises(ValueError, match="repeat"):
        made(repeats=0)
    with pytest.raises(ValueError, match="task"):
        made([])


def test_examples_are_valid_plans_of_training_tasks() -> None:
    pack = TaskPack.load("openagi")
    tools, inputs = tool_texts(pack), {"image": "input_image", "text": "input_text"}
    examples = read_examples({tool.name for tool in tools})
    assert set(examples) <= set(pack.splits["training"])
    planner = pack.planner()
    for number, chain in examples.items():
        word = chain_word(chain, tools, inputs)
        assert planner.table(pack.tasks[number]).automaton.accepts(word), (number, word)
    few = read_examples({"colorization", "sentiment"})
    assert few == {7: ("colorization",), 116: ("sentiment",)}


def test_free_text_is_read_verified_and_paid_for(made: Any, tmp_path: Path) -> None:
    bench = made([7, 50], repeats=1)
    writer = Writer("Step 1: Use Colorization\nStep 2: Return the result")
    with Records(tmp_path, bench.identity) as records:
        bench.run({"w": writer}, ["zero", "few"], records)
        plan = records.plans[PlanKey("w", "zero", 7, 0)]
        other = records.plans[PlanKey("w", "few", 50, 0)]
    assert plan["word"] == ["colorization", "input_image"]
    assert plan["valid"]
    assert plan["steps"] == ["Use Colorization", "Return the result"]
    assert plan["usage"]["input_tokens"] == 100
    assert not other["valid"]
    assert "Colorization cannot stand at place 2" in other["reason"]
    zero, few = writer.prompts[0], writer.prompts[2]
    task = "Given grayscale image, how to return the regular image step by step?"
    # Some tools are not there, so those that are there are told.
    assert zero.startswith("The tools are: Colorization, Super Resolution, ")
    assert "Captioning" not in zero
    assert zero.endswith(f"\n\nProblem: {task}.\nWhat is its solution? Use 'Step' to mark.")
    assert few.endswith(f"Problem: {task}.\nSolution:")
    # No example is the task itself, and none uses a tool that is not there.
    assert few.count(task) == 1
    assert few.count("Problem: ") == 5 + 1
    assert "Step 1: Use Sentiment Analysis;" in few


@pytest.mark.parametrize("concurrency", [None, 1, 3])
def test_threads_make_the_same_plans(concurrency: int | None, made: Any, tmp_path: Path) -> None:
    bench = made([7, 50, 116])
    with Records(tmp_path, bench.identity) as records:
        llms = {"w": Writer("Step 1: Use Sentiment Analysis")}
        bench.run(llms, ["zero", "typed", "formal"], records, concurrency=concurrency)
        rows = {(row["method"], row["task"], row["repeat"]): row["valid"] for row in records.join_scores()}
    assert {key for key, valid in rows.items() if key[0] == "zero" and valid} == {("zero", 116, 0), ("zero", 116, 1)}
    assert all(valid for key, valid in rows.items() if key[0] == "formal")
    assert len(rows) == 18


def test_a_provider_that_fails(made: Any, tmp_path: Path) -> None:
    bench = made([7, 50, 116], repeats=2)
    with Records(tmp_path, bench.identity) as records:
        # Now and then: the others are made and executed, and the next run goes on with the rest.
        with pytest.raises(ProviderError):
            bench.run({"w": Writer("Step 1: Use Sentiment Analysis", fail=2)}, ["zero"], records)
        assert (len(records.plans), len(records.scores)) == (4, 1)
        # Always: the run ends soon.
        broken = Writer("", fail=1000)
        with pytest.raises(ProviderError):
            bench.run({"b": broken}, ["zero"], records)
        assert broken.fail == 995
        bench.run({"w": Writer("Step 1: Use Sentiment Analysis")}, ["zero"], records)
        assert len(records.plans) == 6


def test_every_value_is_on_record(made: Any, tmp_path: Path) -> None:
    bench = made([7, 184])
    with Records(tmp_path, bench.identity) as records:
        bench.run({"builtin": resolve("builtin")}, ["formal"], records)
        scores = list(records.scores.values())
    assert len(scores) == 2  # both repeats made the same plan
    for row in scores:
        assert row["value"] == pytest.approx(sum(sample["value"] for sample in row["samples"]) / 2)
        for sample in row["samples"]:
            assert [step["name"] for step in sample["steps"]] == row["word"]
            for step in sample["steps"]:
                (file,) = (tmp_path / "values").glob(f"{step['key']}.*")
                assert file.suffix == (".png" if step["kind"] == "image" else ".txt")


def test_another_setting_is_refused(made: Any, tmp_path: Path, data: Path) -> None:
    bench = made([7])
    with Records(tmp_path, bench.identity), pytest.raises(RecordError, match="another benchmark is writing"):
        Records(tmp_path, bench.identity)
    for other, key in ((made([7], samples=1), "judge"), (made([7], temperature=0.5), "asking")):
        with pytest.raises(RecordError, match=rf"another setting \({key}"):
            Records(tmp_path, other.identity)
    assert Records(tmp_path, made([7, 50], repeats=9).identity).close() is None


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("setting.json", "no", "no JSON"),
        ("plans.jsonl", "hello", "no file of a benchmark"),
        ("plans.jsonl", '{"llm": 1}\n', "plans.jsonl:1"),
        ("scores.jsonl", "[]\n", "scores.jsonl:1"),
    ],
)
def test_files_that_are_something_else(name: str, text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(RecordError, match=why):
        Records(tmp_path, {})
    assert (tmp_path / name).read_text() == text
