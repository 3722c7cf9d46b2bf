"""The tools that the sentences of the OpenAGI tasks call for."""

from __future__ import annotations

from typing import Any

import pytest

from formal_llm import RandomLLM, Task, TaskPack
from formal_llm.errors import NotationError
from formal_llm.packs.openagi.references import (
    ToolReferences,
    load_references,
    openagi_exact_reward,
    openagi_reward,
    tools_called_for,
)
from formal_llm.rltf.rewards import reward_of

PACK = TaskPack.load("openagi")
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
    assert tools_called_for(PACK.tasks[number]) == tools, PACK.tasks[number].description


def test_every_task_calls_for_tools_that_the_grammar_has() -> None:
    terminals = set(PACK.cfg.terminals) - INPUTS
    for task in PACK.tasks:
        tools = tools_called_for(task)
        assert tools, task.description
        assert tools <= terminals
    # A text is only continued where somebody asks for that, which no sentence does.
    assert set().union(*map(tools_called_for, PACK.tasks)) == terminals - {"text_generation"}


def test_questions_are_about_the_image_where_there_is_one() -> None:
    asking = [task for task in PACK.tasks if "answer the question" in task.description]
    assert asking
    for task in asking:
        about_image = "visual_question_answering" in tools_called_for(task)
        assert about_image == ("image" in task.inputs)
        assert ("question_answering" in tools_called_for(task)) != about_image


def test_a_sentence_without_any_of_the_words_calls_for_nothing() -> None:
    assert tools_called_for(Task("Make me happy")) == set()


def test_the_builtin_answerer_has_the_full_reward_and_chance_has_not() -> None:
    rewards = [openagi_reward(), openagi_exact_reward()]
    builtin, chance = PACK.planner("builtin"), PACK.planner(RandomLLM(0))
    tasks = PACK.tasks[::5]
    for reward in rewards:
        assert [reward(task, builtin.plan(task)) for task in tasks] == [1.0] * len(tasks)
    shares = [sum(reward(task, chance.plan(task)) for task in tasks) / len(tasks) for reward in rewards]
    assert 0.1 < shares[0] < 0.9
    assert shares[1] < 0.2


def test_the_reward_is_that_of_the_sets_of_tools() -> None:
    chance = PACK.planner(RandomLLM(1))
    for task in PACK.tasks[::10]:
        plan = chance.plan(task)
        wanted, used = tools_called_for(task), set(plan.word) - INPUTS
        assert openagi_reward()(task, plan) == pytest.approx(2 * len(wanted & used) / (len(wanted) + len(used)))
        assert openagi_reward("exact")(task, plan) == (wanted == used)


def test_rewards_by_name_and_their_identities() -> None:
    assert reward_of("formal_llm.packs.openagi.references:openagi_reward").identity == openagi_reward().identity
    identities = [openagi_reward().identity, openagi_exact_reward().identity]
    assert None not in identities
    assert identities[0] != identities[1]
    assert load_references().version in str(identities[0])


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
