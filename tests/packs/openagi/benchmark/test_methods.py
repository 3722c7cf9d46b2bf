"""The ways of planning, and who can go them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from formal_llm import Answer, Question, RandomLLM, TaskPack
from formal_llm.llms import resolve
from formal_llm.llms.llm import LLM
from formal_llm.llms.text_request import TextRequest
from formal_llm.packs.openagi.benchmark.conditions import METHODS, Assignment, Attempt, Conditions, Method, PlanKey
from formal_llm.packs.openagi.benchmark.methods import get_writer, make_attempts
from formal_llm.packs.openagi.benchmark.plans import PackPlans
from formal_llm.packs.openagi.benchmark.reading import LexicalMatcher, chain_word, tool_texts
from formal_llm.packs.openagi.benchmark.records import Records
from tests.packs.openagi.benchmark.writers import Together, Writer


def test_what_does_not_apply_is_told(made: Any, tmp_path: Path) -> None:
    bench = made([7])
    llms = {"builtin": resolve("builtin"), "test:random": resolve("test:random")}
    skipped = bench.list_skipped(llms, METHODS)
    assert [(one.llm, one.method) for one in skipped] == [
        ("builtin", "zero"), ("builtin", "few"), ("builtin", "rltf"), ("builtin", "draft"),
        ("test:random", "rltf"), ("test:random", "draft"),
    ]  # fmt: skip
    with Records(tmp_path, bench.identity) as records:
        bench.run(llms, METHODS, records)
        assert {(key.llm, key.method) for key in records.plans} == {
            ("builtin", "typed"), ("builtin", "formal"), ("builtin", "look"),
            *(("test:random", method) for method in METHODS if method not in ("rltf", "draft"))
        }  # fmt: skip


def test_a_draft_is_written_whole_and_mended(made: Any, tmp_path: Path) -> None:
    bench = made([7], repeats=1)
    with Records(tmp_path, bench.identity) as records:
        bench.run({"w": Writer("no plan at all"), "same": Writer("no plan")}, ["draft", "formal"], records)
        plans = {(key.llm, key.method): plan for key, plan in records.plans.items()}
        assert all(plan["valid"] for plan in plans.values())
        assert plans["w", "draft"]["usage"]["requests"] == plans["w", "formal"]["usage"]["requests"] + 1
        assert plans["w", "draft"]["questions"] == plans["w", "formal"]["questions"] + 1  # a draft is one, too


def test_without_lookahead_a_plan_can_end_in_a_dead_end(laundry: TaskPack, tmp_path: Path) -> None:
    """What the rules allow next, one step at a time: some plans are finished, others cannot be any more."""
    run = PackPlans(laundry, {0: laundry.tasks[0]}, repeats=40)
    with Records(tmp_path, run.identity) as records:
        run.run({"r": RandomLLM(1)}, ["typed", "formal"], records)
        plans = list(records.plans.values())
    typed = [plan for plan in plans if plan["method"] == "typed"]
    assert {plan["valid"] for plan in typed} == {False, True}
    assert {plan["reason"] for plan in typed if not plan["valid"]} == {"a dead end: no plan can be finished from there"}
    assert all(plan["valid"] for plan in plans if plan["method"] == "formal")


def test_chance_draws_from_the_double() -> None:
    tools = tool_texts(TaskPack.load("openagi"))
    texts = [get_writer(RandomLLM(5), tools).ask(TextRequest("x")).text for _ in range(2)]
    assert texts[0] == texts[1]
    many = get_writer(RandomLLM(0), tools)
    written = [many.ask(TextRequest("x")).text.splitlines() for _ in range(300)]
    assert {len(lines) for lines in written} == {1, 2, 3, 4, 5}
    assert {line.partition("Use ")[2] for lines in written for line in lines} == {tool.label for tool in tools}


def test_an_answer_that_is_none_is_a_plan_that_is_not_valid(made: Any, tmp_path: Path) -> None:
    bench = made([7], repeats=1, tries=2)
    with Records(tmp_path, bench.identity) as records:
        bench.run({"wrong": resolve("test:script=99,99,99,99")}, ["typed", "formal"], records)
        assert [plan["valid"] for plan in records.plans.values()] == [False, False]
        assert all(plan["reason"] for plan in records.plans.values())


def test_questions_together(made: Any, tmp_path: Path) -> None:
    bench = made([7, 50], repeats=2)
    llm = Together("")
    with Records(tmp_path, bench.identity) as records:
        bench.run({"t": llm}, ["typed"], records)
        assert len(records.plans) == 4
    assert llm.rounds == 2  # the last tool of all, then to stop
    assert {tuple(plan["word"]) for plan in records.plans.values()} == {("sentiment", "input_text")}


@pytest.mark.parametrize("together", [False, True])
def test_typed_names_follow_the_type_of_the_last(together: bool, made: Any, tmp_path: Path) -> None:
    bench = made([7], repeats=1)
    asked: list[list[str]] = []

    class Second(Writer):
        def choose(self, question: Question) -> Answer:
            asked.append([option.text for option in question.options])
            return Answer((min(2, len(question.options)),))

    class SecondTogether(Second):
        at_once = 64

    with Records(tmp_path, bench.identity) as records:
        bench.run({"s": (SecondTogether if together else Second)("")}, ["typed"], records)
        (plan,) = records.plans.values()
    first, second, *_ = asked
    # The first can be any tool with one input, whatever the task gives, and nothing stops before it.
    assert first == [
        "Colorization", "Super Resolution", "Image Denoising", "Image Deblurring", "Object Detection",
        "Text Summarization", "Text Generation", "Fill Mask", "Sentiment Analysis",
    ]  # fmt: skip
    assert second[:-1] == ["Colorization", "Image Denoising", "Image Deblurring", "Object Detection"]
    assert second[-1].startswith("Stop")
    assert plan["word"][:4] == ["sentiment", "fill_mask", "text_generation", "detection"]
    # No tool comes twice; the last question offers one tool and to stop.
    assert [len(options) for options in asked[2:]] == [4, 3, 5, 4, 3, 2]


class Nth(LLM):
    """Answers as a list of places says, then with the first option, and notes how many options there were."""

    def __init__(self, places: list[int]) -> None:
        self.places = places
        self.many: list[int] = []

    def answer(self, question: Question) -> Answer:
        self.many.append(len(question.options))
        place = self.places[len(self.many) - 1] if len(self.many) <= len(self.places) else 0
        return Answer((place + 1,))


def every_chain(method: Method, conditions: Conditions) -> list[tuple[float, Attempt]]:
    """What comes out of every way to answer, each with its probability where all options are equally likely."""
    found: list[tuple[float, Attempt]] = []
    places: list[int] = []
    while True:
        llm, made = Nth(places), list[Attempt]()
        keep = lambda _, attempt, made=made: made.append(attempt)  # noqa: E731
        make_attempts(method, Assignment(llm, [PlanKey("n", method, 7, 0)], conditions, keep))
        share = 1.0
        for many in llm.many:
            share /= many
        found.append((share, made[0]))
        places = places[: len(llm.many)] + [0] * (len(llm.many) - len(places))
        while places and places[-1] + 1 == llm.many[len(places) - 1]:
            places.pop()
        if not places:
            return found
        places[-1] += 1


def test_chance_with_typed_names() -> None:
    pack = TaskPack.load("openagi")
    tools = tool_texts(pack)
    conditions = Conditions(pack, {}, tools, tools, LexicalMatcher(tools), {}, max_typed=3)
    chains = every_chain("typed", conditions)
    assert sum(share for share, _ in chains) == pytest.approx(1)
    inputs = {"image": "input_image", "text": "input_text"}
    known = {tool.label: tool.name for tool in tools}
    valid = 0.0
    for number in pack.splits["test"]:
        automaton = pack.planner().table(pack.tasks[number]).automaton
        for share, one in chains:
            word = chain_word([known[step.removeprefix("Use ")] for step in one.steps], tools, inputs)
            assert word == one.word
            valid += share * automaton.accepts(word)
    # A walk over the published trie, counted apart from this code, gives the same: 32.8%.
    assert valid / 17 == pytest.approx(0.3284467633207129)


def test_texts_of_a_model_in_batches_are_one_batch(made: Any, tmp_path: Path) -> None:
    bench = made([7, 50], repeats=3)

    class Batches(Writer):
        at_once = 64

        def answer_all(self, questions: Sequence[Question]) -> list[Answer]:
            rounds.append(len({question.walk for question in questions}))
            return [Answer((), text="Step 1: Use Colorization") for _ in questions]

    rounds: list[int] = []
    with Records(tmp_path, bench.identity) as records:
        bench.run({"b": Batches("")}, ["zero", "few"], records)
        assert rounds == [6, 6]
        assert {plan["steps"][0] for plan in records.plans.values()} == {"Use Colorization"}
