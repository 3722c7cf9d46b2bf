"""The toolkits by name."""

from __future__ import annotations

import inspect
import typing

import pytest
from PIL import Image

from formal_llm import TaskPack
from formal_llm.packs.openagi.experts.loading import hub_answers
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
