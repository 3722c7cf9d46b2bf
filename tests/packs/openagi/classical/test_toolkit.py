"""The table of the classical tools."""

from __future__ import annotations

import inspect
import typing

import pytest
from PIL import Image

from formal_llm import TaskPack
from formal_llm.packs.openagi.classical.toolkit import CLASSICAL, DESCRIPTIONS

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
