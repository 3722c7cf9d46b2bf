"""The toolkits by name."""

from __future__ import annotations

import inspect
import typing
from typing import Any

import pytest
from PIL import Image

from formal_llm import RandomLLM, Task, TaskPack
from formal_llm.errors import NotationError
from formal_llm.packs.openagi.experts.loading import hub_answers
from formal_llm.packs.openagi.references import (
    ToolReferences,
    load_references,
    openagi_exact_reward,
    openagi_reward,
    tools_called_for,
)
from formal_llm.packs.openagi.toolkits import CLASSICAL, DESCRIPTIONS, TOOLKITS
from tests.packs.openagi.experts.expert_cases import TOOLS
from tests.packs.openagi.hub import Hub

#: What cannot be done honestly without weights.
LEFT_OUT = {"classification", "captioning", "text_to_image", "translation", "visual_question_answering"}


def test_each_tool_is_a_terminal_and_only_five_are_left_out() -> None:
    terminals = set(TaskPack.load("openagi").cfg.terminals) - {"input_image", "input_text"}
    assert set(CLASSICAL) == terminals - LEFT_OUT
    assert set(DESCRIPTIONS) == set(CLASSICAL)
    assert all(description.endswith(".") and "`" not in description for description in DESCRIPTIONS.values())


@pytest.mark.parametrize("name", CLASSICAL)
def test_the_hints_say_what_the_grammar_says(name: str) -> None:
    kinds = {
        "A": ([Image.Image], Image.Image), "B": ([Image.Image], str), "D": ([str], str), "F": ([str, str], str),
    }  # fmt: skip
    cfg = TaskPack.load("openagi").cfg
    (family,) = {p.head for p in cfg.productions if p.body == (name,)}
    hints = typing.get_type_hints(CLASSICAL[name])
    result = hints.pop("return")
    assert (list(hints.values()), result) == kinds[family]
    assert list(hints) == list(inspect.signature(CLASSICAL[name]).parameters)


PACK = TaskPack.load("openagi")


def test_the_toolkit_at_hand_lacks_what_no_hub_can_give(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub.constants

    from formal_llm.packs.openagi.toolkits import AT_HAND, TOOLKITS

    assert hub_answers()
    assert len(AT_HAND["experts"]()) == 15
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens there
    assert not hub_answers()
    without = AT_HAND["experts"]()
    assert (len(without), len(without.left_out)) == (0, 15)
    assert "(hf download facebook/detr-resnet-101 --revision no_timm)" in without.left_out["detection"]
    # Where nobody reads what is left out, as in training, nothing is.
    assert len(TOOLKITS["experts"]()) == 15


def test_the_shipped_experts_are_the_fifteen_tools_of_the_grammar() -> None:
    made = TOOLKITS["experts"]()
    assert sorted(tool.name for tool in made) == sorted(TOOLS)
    made.check(PACK.cfg, PACK.data["kinds"])
    assert all(tool.batch is not None and tool.description and tool.version for tool in made)


def test_the_classical_toolkit_has_its_tools_by_name() -> None:
    made = TOOLKITS["classical"]()
    assert {tool.name: tool.description for tool in made} == DESCRIPTIONS
    assert made["sentiment"]("A good day.") == CLASSICAL["sentiment"]("A good day.")


OPENAGI = TaskPack.load("openagi")
INPUTS = {"input_image", "input_text"}


@pytest.mark.parametrize(
    ("number", "tools"),
    [
        (0, {"super_resolution", "denoising", "deblurring", "colorization"}),
        (7, {"colorization"}),
        (105, {"text_to_image", "fill_mask"}),
        (106, {"text_to_image"}),
        (
            117,
            {"super_resolution", "denoising", "deblurring", "colorization", "fill_mask", "visual_question_answering"},
        ),
        (175, {"super_resolution", "visual_question_answering"}),
        (184, {"question_answering"}),
    ],
)
def test_what_a_person_reads_in_some_sentences(number: int, tools: set[str]) -> None:
    assert tools_called_for(OPENAGI.tasks[number]) == tools, OPENAGI.tasks[number].description


def test_every_task_calls_for_tools_that_the_grammar_has() -> None:
    terminals = set(OPENAGI.cfg.terminals) - INPUTS
    for task in OPENAGI.tasks:
        tools = tools_called_for(task)
        assert tools, task.description
        assert tools <= terminals
    # A text is only continued where somebody asks for that, which no sentence does.
    assert set().union(*map(tools_called_for, OPENAGI.tasks)) == terminals - {"text_generation"}


def test_questions_are_about_the_image_where_there_is_one() -> None:
    asking = [task for task in OPENAGI.tasks if "answer the question" in task.description]
    assert asking
    for task in asking:
        about_image = "visual_question_answering" in tools_called_for(task)
        assert about_image == ("image" in task.inputs)
        assert ("question_answering" in tools_called_for(task)) != about_image


def test_a_sentence_without_any_of_the_words_calls_for_nothing() -> None:
    assert tools_called_for(Task("Make me happy")) == set()


def test_the_builtin_answerer_has_the_full_reward_and_chance_has_not() -> None:
    rewards = [openagi_reward(), openagi_exact_reward()]
    builtin, chance = OPENAGI.planner("builtin"), OPENAGI.planner(RandomLLM(0))
    tasks = OPENAGI.tasks[::5]
    for reward in rewards:
        assert [reward(task, builtin.plan(task)) for task in tasks] == [1.0] * len(tasks)
    shares = [sum(reward(task, chance.plan(task)) for task in tasks) / len(tasks) for reward in rewards]
    assert 0.1 < shares[0] < 0.9
    assert shares[1] < 0.2


def test_the_reward_is_that_of_the_sets_of_tools() -> None:
    chance = OPENAGI.planner(RandomLLM(1))
    for task in OPENAGI.tasks[::10]:
        plan = chance.plan(task)
        wanted, used = tools_called_for(task), set(plan.word) - INPUTS
        assert openagi_reward()(task, plan) == pytest.approx(2 * len(wanted & used) / (len(wanted) + len(used)))
        assert openagi_reward("exact")(task, plan) == (wanted == used)


def test_references_of_ones_own() -> None:
    data = {
        "words": {"hot": "oven"},
        "questions": [{"words": "cold", "given": "ice", "tool": "ice_box"}, {"words": "cold", "tool": "fridge"}],
    }
    own = ToolReferences.from_mapping(data)
    assert own.find_tools(Task("hot and cold", inputs=("ice",))) == {"oven", "ice_box"}
    assert own.find_tools(Task("hot and cold")) == {"oven", "fridge"}
    assert own.version != load_references().version
    assert ToolReferences.from_mapping({**data, "words": {"hot": "stove"}}).version != own.version


@pytest.mark.parametrize(
    ("data", "match"),
    [
        ({}, "'words' is missing"),
        ({"words": {"a": 1}}, "words, a is a text, not 1"),
        ({"words": {}, "questions": [{"tool": "x"}]}, "'words' is missing"),
        ({"words": {}, "questions": [{"words": "x", "given": 3, "tool": "x"}]}, "given is a text, not 3"),
        ({"words": {}, "questions": [{"words": "x", "givn": "y", "tool": "x"}]}, "did you mean given"),
        ({"words": {}, "questions": [3]}, "questions 1 is a table, not 3"),
        ({"words": 5}, "words is a table, not 5"),
    ],
)
def test_references_that_are_none(data: Any, match: str) -> None:
    with pytest.raises(NotationError, match=match) as caught:
        ToolReferences.from_mapping(data, file="references.toml")
    assert caught.value.file == "references.toml"
