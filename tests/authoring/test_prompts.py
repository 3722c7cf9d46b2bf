"""What a model is told: the examples in it are rules that can be read."""

from __future__ import annotations

import re

import pytest

from formal_llm.authoring import Draft, Example
from formal_llm.authoring.drafts import KINDS, check_draft
from formal_llm.authoring.prompts import NOTATIONS, first_messages, retry_messages


@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
@pytest.mark.parametrize("ending", KINDS)
def test_the_example_of_each_notation_is_clean(ending: str) -> None:
    text = re.search(r"```\w+\n(.*?)```", NOTATIONS[ending], re.DOTALL)
    assert text is not None
    assert check_draft(text[1], ending).problems == ()


def test_the_chat() -> None:
    system, user = first_messages("Wash.", None, ["wash"], [Example(("wash",), True), Example((), False)])
    assert all(name[1:] in system.content for name in KINDS)
    assert "The steps are called: wash." in user.content
    assert "must not be allowed: ε" in user.content
    assert "flowchart" not in first_messages("Wash.", ".cfg", [], [])[0].content
    mine, yours = retry_messages(Draft("S -> a", ".cfg"), ["it is wrong"])
    assert (mine.role, mine.content) == ("assistant", "```cfg\nS -> a\n```")
    assert "- it is wrong" in yours.content
