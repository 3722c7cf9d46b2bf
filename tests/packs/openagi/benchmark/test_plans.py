"""Plans on record without anything carried out."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from formal_llm import RandomLLM, Task, TaskPack
from formal_llm.errors import AutomatonError, Cancelled, FormalLLMError, NoValidPlan, ResourceNotFound
from formal_llm.llms import RecordingLLM, resolve
from formal_llm.packs.openagi.benchmark.conditions import METHODS
from formal_llm.packs.openagi.benchmark.plans import PackPlans, Plans, RunProgress, read_examples
from formal_llm.packs.openagi.benchmark.reading import LexicalMatcher, chain_word, tool_texts
from formal_llm.packs.openagi.benchmark.records import Records, ScoredPlan
from formal_llm.rltf.reference_tools import ReferenceTools


@pytest.fixture(scope="module")
def pack() -> TaskPack:
    return TaskPack.load("openagi")


def test_all_tools_are_there_where_nobody_says_which(pack: TaskPack, tmp_path: Path) -> None:
    matcher = LexicalMatcher(tool_texts(pack))
    run = Plans(pack, {106: pack.tasks[106]}, repeats=3, matcher=matcher)
    assert {tool.name for tool in run.conditions.tools} == {tool.name for tool in run.conditions.every}
    with Records(tmp_path, run.identity) as records:
        run.run({"x": RandomLLM(0)}, ["formal"], records)
        rows = records.join_scores()
    assert [row["valid"] for row in rows] == [True] * 3
    assert {row["value"] for row in rows} == {None}  # not judged
    automaton = pack.planner().table(pack.tasks[106]).automaton
    assert all(automaton.accepts(tuple(row["word"])) for row in rows)


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


def test_look_is_left_out_where_rules_cannot_be_weighed(tmp_path: Path) -> None:
    (tmp_path / "go.cfg").write_text("S -> a S | b", encoding="utf-8")
    (tmp_path / "pack.toml").write_text('title = "Go"\nrules = "go.cfg"\ntask = "go"', encoding="utf-8")
    endless = TaskPack.load(str(tmp_path))
    run = PackPlans(endless, {0: endless.tasks[0]})
    llms = {"r": RandomLLM(0)}
    skipped = {one.method: one.why for one in run.list_skipped(llms, ["look", "formal"])}
    try:
        endless.planner("test:random", search="exact").plan(endless.tasks[0])
    except FormalLLMError as error:
        assert skipped == {"look": str(error)}
    else:
        assert skipped == {}


def test_rules_in_which_the_world_decides_are_refused(tmp_path: Path) -> None:
    (tmp_path / "w.cfg").write_text("%world R\nS -> try R\nR -> ok | ko S", encoding="utf-8")
    (tmp_path / "pack.toml").write_text('title = "W"\nrules = "w.cfg"\ntask = "go"', encoding="utf-8")
    pack = TaskPack.load(str(tmp_path))
    with pytest.raises(AutomatonError, match="the world decides in these rules; plan with --strategy"):
        PackPlans(pack, {0: pack.tasks[0]})


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


def test_what_is_asked_is_recorded(made: Any, tmp_path: Path) -> None:
    bench = made([50], repeats=1)
    with Records(tmp_path, bench.identity) as records:
        with RecordingLLM(RandomLLM(0), tmp_path / "answers.jsonl") as llm:
            bench.run({"test:random": llm}, METHODS, records)
        asked = sum(
            plan["questions"] for key, plan in records.plans.items() if key.method in ("typed", "formal", "look")
        )
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()
    assert len(lines) == asked
    assert all(json.loads(line)["answer"] for line in lines)


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
