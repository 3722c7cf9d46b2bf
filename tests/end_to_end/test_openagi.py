"""All 185 OpenAGI tasks, many seeds, judged by an oracle that knows tools and types and nothing of this library."""

from __future__ import annotations

import pytest
from pyformlang.cfg import CFG as PyformlangCFG

from formal_llm import Budget, Limits, Planner, Question, RandomLLM, Task, TaskPack
from formal_llm.llms.question import Answer
from formal_llm.packs.openagi.references import tools_called_for

#: Formal-LLM, Eq. 3: what each tool makes of what.
TYPES: dict[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(["colorization", "super_resolution", "denoising", "deblurring"], ("image", ("image",))),
    **dict.fromkeys(["classification", "detection", "captioning"], ("text", ("image",))),
    "text_to_image": ("image", ("text",)),
    **dict.fromkeys(["summarization", "text_generation", "translation", "fill_mask", "sentiment"], ("text", ("text",))),
    "visual_question_answering": ("text", ("image", "text")),
    "question_answering": ("text", ("text", "text")),
    "input_image": ("image", ()),
    "input_text": ("text", ()),
}


def is_valid(word: tuple[str, ...], task: Task) -> bool:
    """Well-typed in prefix order, the right result, a tool or more, each at most once, only inputs that are given."""
    wanted = ["image" if task.goal == "image_plan" else "text"]
    tools = [name for name in word if not name.startswith("input_")]
    if not tools or len(set(tools)) < len(tools):
        return False
    if any(f"input_{kind}" in word and kind not in task.inputs for kind in ("image", "text")):
        return False
    for name in word:
        if not wanted or TYPES[name][0] != wanted.pop(0):
            return False
        wanted[:0] = TYPES[name][1]
    return not wanted


class Watching(RandomLLM):
    """Answers at random and looks at every question."""

    questions = 0

    def answer(self, question: Question) -> Answer:
        assert len(question.options) > 1
        self.questions += 1
        return super().answer(question)


@pytest.fixture(scope="module")
def pack() -> TaskPack:
    return TaskPack.load("openagi")


def test_the_oracle_itself() -> None:
    task = Task("t", goal="text_plan", inputs=("image",))
    assert is_valid(("captioning", "denoising", "input_image"), task)
    assert not is_valid(("captioning", "denoising"), task)
    assert not is_valid(("captioning", "input_text"), task)
    assert not is_valid(("captioning", "denoising", "denoising", "input_image"), task)
    assert not is_valid(("colorization", "input_image"), task)
    assert not is_valid(("input_image",), task)
    assert not is_valid(("summarization", "input_text"), task)


def test_every_plan_of_every_task_is_valid_and_nothing_is_wasted(pack: TaskPack) -> None:
    planner = Planner(pack.cfg, "test:first", wording=pack.wording)
    for seed in range(50):
        for task in pack.tasks:
            llm = Watching(seed)
            planner.llm = llm  # type: ignore[assignment]
            plan = planner.plan(task)
            assert is_valid(plan.word, task), (task, plan.word)
            assert plan.usage.backtracks == plan.usage.wasted == 0
            assert plan.usage.questions == llm.questions


@pytest.mark.slow
def test_without_lookahead_every_plan_is_valid_all_the_same(pack: TaskPack) -> None:
    planner = Planner(pack.cfg, "test:first", wording=pack.wording, lookahead="off", budget=Budget())
    wasted = 0
    for seed in range(50):
        for task in pack.tasks:
            planner.llm = RandomLLM(seed)
            plan = planner.plan(task)
            assert is_valid(plan.word, task), (task, plan.word)
            wasted += plan.usage.wasted
    assert wasted > 0  # this is what lookahead is for


def test_pyformlang_agrees_on_the_plans(pack: TaskPack) -> None:
    lines = [str(production).split(' "')[0] for production in pack.cfg.productions]
    # pyformlang wants variables in capitals; every head is renamed, every terminal is written in lower case already.
    heads = {head: f"V_{head.upper()}" for head in pack.cfg.nonterminals}
    text = "\n".join(" ".join(heads.get(token, token) for token in line.split()) for line in lines)
    oracle = PyformlangCFG.from_text(text, start_symbol=heads["plan"]).to_normal_form()
    planner = Planner(pack.cfg, RandomLLM(5), wording=pack.wording)
    checked = 0
    for task in pack.tasks[::6]:
        word = planner.plan(task).word
        if len(word) <= 9:
            assert oracle.contains(list(word)), word
            checked += 1
    assert checked > 10


def test_limits_on_tools_hold(pack: TaskPack) -> None:
    planner = Planner(pack.cfg, "test:first", limits=Limits({"text_to_image": 0}, {"translation": 1, "denoising": 1}))
    for seed in range(20):
        planner.llm = RandomLLM(seed)
        word = planner.plan(pack.task(117)).word
        assert {"translation", "denoising"} <= set(word)
        assert "text_to_image" not in word


def test_the_builtin_answerer_uses_the_tools_that_the_description_calls_for(pack: TaskPack) -> None:
    planner = Planner(pack.cfg, "builtin", wording=pack.wording)
    right = 0
    for task in pack.tasks:
        plan = planner.plan(task)
        assert is_valid(plan.word, task)
        right += tools_called_for(task) == {name for name in plan.word if not name.startswith("input_")}
    assert right >= 0.9 * len(pack.tasks)
