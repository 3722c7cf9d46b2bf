"""The benchmark: its methods, its records, and that a run that was stopped goes on."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from formal_llm import Answer, Question, RandomLLM, ResourceNotFound, TaskPack
from formal_llm.errors import Cancelled, NoValidPlan, ProviderError, ResultsError
from formal_llm.llms import RecordingLLM, resolve
from formal_llm.llms.generation import Generated, Messages
from formal_llm.llms.usage import TokenUsage
from formal_llm.packs.openagi.benchmark.benchmark import Benchmark, Step
from formal_llm.packs.openagi.benchmark.methods import METHODS, ChanceWriter
from formal_llm.packs.openagi.benchmark.reading import LexicalMatcher, tool_texts
from formal_llm.packs.openagi.benchmark.records import PlanKey, Records
from formal_llm.packs.openagi.data.making import make_data
from formal_llm.packs.openagi.scores.judging import PlanJudge, Scores
from formal_llm.packs.openagi.scores.scores import SSIM, ChrF
from formal_llm.packs.openagi.toolkits import classical
from formal_llm.tools import Executor

#: Gray picture; noisy and gray, to object names; text to image; sentiment; a document and a question.
NUMBERS = [7, 50, 106, 116, 184]
SCORES = Scores(ChrF(), SSIM())


class Writer:
    """Writes the same text always, and chooses the first option: a model with both protocols."""

    def __init__(self, text: str, fail: int = 0) -> None:
        self.text = text
        self.fail = fail
        self.prompts: list[str] = []

    def generate(
        self, messages: Messages, *, max_tokens: int = 512, stop: Sequence[str] = (), temperature: float = 0.0
    ) -> Generated:
        assert isinstance(messages, str)
        if self.fail:
            self.fail -= 1
            raise ProviderError("the server cannot be reached")
        self.prompts.append(messages)
        return Generated(self.text, TokenUsage(1, 100, 10))

    def choose(self, question: Question) -> Answer:
        return Answer((1,), usage=TokenUsage(1, 50, 1))


class Together(Writer):
    """The same, asked many questions together."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.rounds = 0

    def choose_many(self, questions: Sequence[Question]) -> list[Answer]:
        self.rounds += 1
        return [Answer((len(question.options),)) for question in questions]


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


def test_all_methods_with_chance(made: Any, tmp_path: Path) -> None:
    bench = made()
    steps: list[Step] = []
    with Records(tmp_path, bench.identity) as records:
        bench.run({"test:random": RandomLLM(3)}, METHODS, records, on_step=steps.append)
        rows = records.joined()
    # No tool makes pictures of texts.
    assert list(bench.left_out) == [106]
    assert bench.left_out[106]
    assert len(rows) == 4 * 2 * 4
    assert all(0 <= row["value"] <= 1 for row in rows)
    assert all(row["value"] == 0 and row["reason"] for row in rows if not row["valid"])
    formal = [row for row in rows if row["method"] == "formal"]
    assert all(row["valid"] and not row["reason"] and row["steps"] for row in formal)
    assert all(row["text"] for row in rows if row["method"] in ("zero", "few"))
    assert {step.phase for step in steps} == {"planning", "executing"}
    assert [step.done for step in steps if step.phase == "planning"] == list(range(1, 33))
    assert all(step.total == 32 for step in steps if step.phase == "planning")
    planner = bench.pack.planner()
    for row in rows:
        accepted = planner.table(bench.tasks[row["task"]]).automaton.accepts(tuple(row["word"]))
        assert accepted == row["valid"]
        assert bench.judge(row["task"], row["word"]) == row["value"]


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
    assert "Colorization cannot stand at place 1" in other["reason"]
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


def test_forced_names(made: Any, tmp_path: Path) -> None:
    bench = made([7], repeats=1)
    asked: list[Question] = []

    class First(Writer):
        def choose(self, question: Question) -> Answer:
            asked.append(question)
            return Answer((len(question.options) if len(asked) == 2 else 1,))

    with Records(tmp_path, bench.identity) as records:
        bench.run({"f": First("")}, ["constrained"], records)
        (plan,) = records.plans.values()
    assert plan["word"] == ["colorization", "input_image"]
    assert (plan["valid"], plan["questions"]) == (True, 2)
    # Whatever was chosen before, all tools that are there are offered, and to stop.
    assert [len(question.options) for question in asked] == [11, 11]
    assert "Step 1: Use Colorization" in asked[1].prompt
    assert asked[1].options[-1].text.startswith("Stop")


def test_forced_names_end_somewhere(made: Any, tmp_path: Path) -> None:
    bench = made([7], repeats=1)
    with Records(tmp_path, bench.identity) as records:
        bench.run({"w": Writer("")}, ["constrained"], records)
        (plan,) = records.plans.values()
    assert plan["questions"] == 15
    assert plan["word"] == ["colorization"] * 15 + ["input_image"]
    assert not plan["valid"]


def test_questions_together(made: Any, tmp_path: Path) -> None:
    bench = made([7, 50], repeats=2)
    llm = Together("")
    with Records(tmp_path, bench.identity) as records:
        bench.run({"t": llm}, ["constrained"], records)
        assert len(records.plans) == 4
    assert llm.rounds == 1
    assert all(plan["word"] == [] and "empty" in plan["reason"] for plan in records.plans.values())


@pytest.mark.parametrize("concurrency", [None, 1, 3])
def test_threads_make_the_same_plans(concurrency: int | None, made: Any, tmp_path: Path) -> None:
    bench = made([7, 50, 116])
    with Records(tmp_path, bench.identity) as records:
        llms = {"w": Writer("Step 1: Use Sentiment Analysis")}
        bench.run(llms, ["zero", "constrained", "formal"], records, concurrency=concurrency)
        rows = {(row["method"], row["task"], row["repeat"]): row["valid"] for row in records.joined()}
    assert {key for key, valid in rows.items() if key[0] == "zero" and valid} == {("zero", 116, 0), ("zero", 116, 1)}
    assert all(valid for key, valid in rows.items() if key[0] == "formal")
    assert len(rows) == 18


def test_what_does_not_apply_is_told(made: Any, tmp_path: Path) -> None:
    bench = made([7])
    llms = {"builtin": resolve("builtin"), "test:random": resolve("test:random")}
    skipped = bench.skipped(llms, METHODS)
    assert [(one.llm, one.method) for one in skipped] == [("builtin", "zero"), ("builtin", "few")]
    with Records(tmp_path, bench.identity) as records:
        bench.run(llms, METHODS, records)
        assert {(key.llm, key.method) for key in records.plans} == {
            ("builtin", "constrained"), ("builtin", "formal"), *(("test:random", method) for method in METHODS)
        }  # fmt: skip


def test_chance_draws_from_the_double() -> None:
    tools = tool_texts(TaskPack.load("openagi"))
    texts = [ChanceWriter(RandomLLM(5), tools).generate("x").text for _ in range(2)]
    assert texts[0] == texts[1]
    many = ChanceWriter(RandomLLM(0), tools)
    written = [many.generate("x").text.splitlines() for _ in range(300)]
    assert {len(lines) for lines in written} == {1, 2, 3, 4, 5}
    assert {line.partition("Use ")[2] for lines in written for line in lines} == {tool.label for tool in tools}


# -- stopping and going on ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 1, 7, 8, 9, 10])
def test_a_run_that_was_stopped_goes_on(after: int, made: Any, tmp_path: Path) -> None:
    llms = {"builtin": resolve("builtin")}
    bench = made([7, 50, 116])
    with Records(tmp_path / "whole", bench.identity) as records:
        bench.run(llms, ["constrained", "formal"], records)
        expected = records.joined()
    count = 0

    def stop(step: Step) -> None:
        nonlocal count
        count += 1
        if count > after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Records(tmp_path / "stopped", bench.identity) as records:
        made([7, 50, 116]).run(llms, ["constrained", "formal"], records, on_step=stop)
    # As when the machine went down in the middle of a line.
    for name in ("plans.jsonl", "scores.jsonl"):
        with (tmp_path / "stopped" / name).open("ab") as file:
            file.write(b'{"llm": "bui')
    again: list[Step] = []
    with Records(tmp_path / "stopped", bench.identity) as records:
        there = len(records.plans) + len(records.scores)
        assert there >= after
        made([7, 50, 116]).run(llms, ["constrained", "formal"], records, on_step=again.append)
        assert len(again) == len(records.plans) + len(records.scores) - there
        assert sorted(records.joined(), key=str) == sorted(expected, key=str)


def test_more_is_added(made: Any, tmp_path: Path) -> None:
    bench = made([7], repeats=1)
    with Records(tmp_path, bench.identity) as records:
        bench.run({"builtin": resolve("builtin")}, ["formal"], records)
    more = made([7, 50], repeats=2)
    with Records(tmp_path, more.identity) as records:
        more.run({"builtin": resolve("builtin"), "test:first": resolve("test:first")}, ["formal"], records)
        assert len(records.plans) == 8


def test_another_setting_is_refused(made: Any, tmp_path: Path, data: Path) -> None:
    bench = made([7])
    with Records(tmp_path, bench.identity), pytest.raises(ResultsError, match="another benchmark is writing"):
        Records(tmp_path, bench.identity)
    for other, key in ((made([7], samples=1), "judge"), (made([7], temperature=0.5), "asking")):
        with pytest.raises(ResultsError, match=rf"another setting \({key}"):
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
    with pytest.raises(ResultsError, match=why):
        Records(tmp_path, {})
    assert (tmp_path / name).read_text() == text


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


def test_an_answer_that_is_none_is_a_plan_that_is_not_valid(made: Any, tmp_path: Path) -> None:
    bench = made([7], repeats=1, tries=2)
    with Records(tmp_path, bench.identity) as records:
        bench.run({"wrong": resolve("test:script=99,99,99,99")}, ["constrained", "formal"], records)
        assert [plan["valid"] for plan in records.plans.values()] == [False, False]
        assert all(plan["reason"] for plan in records.plans.values())


def test_what_is_asked_is_recorded(made: Any, tmp_path: Path) -> None:
    bench = made([50], repeats=1)
    with Records(tmp_path, bench.identity) as records:
        with RecordingLLM(RandomLLM(0), tmp_path / "answers.jsonl") as llm:
            bench.run({"test:random": llm}, METHODS, records)
        asked = sum(plan["questions"] for key, plan in records.plans.items() if key.method in ("constrained", "formal"))
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
