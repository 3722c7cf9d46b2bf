"""Short wordings."""

from __future__ import annotations

import pytest

from formal_llm import Planner, TaskPack, Wording
from formal_llm.planning.walks.terse import NAMED, shortened


def test_they_are_short_and_offer_the_same() -> None:
    pack = TaskPack.load("openagi")
    task = pack.task(0)
    first = pack.planner("test:first").start(task).question
    prompts = [first.prompt] if first else []
    for name in NAMED:
        asked = pack.planner("test:first", wording=shortened(pack.wording, name)).start(task).question
        assert first is not None and asked is not None and len(asked.options) == len(first.options)
        assert task.description in asked.prompt
        for one, other in zip(asked.options, first.options, strict=True):
            assert one.text in other.text
        prompts.append(asked.prompt)
    assert sorted(prompts, key=len, reverse=True) == prompts and len(set(prompts)) == 3
    assert "1: Colorization" in prompts[1] and "Colorization" not in prompts[2]


@pytest.mark.parametrize("name", NAMED)
def test_plans_stay_the_same(name: str) -> None:
    pack = TaskPack.load("openagi")
    wording = shortened(pack.wording, name)
    for conversation in (False, True):
        words = [
            Planner(pack.source, "test:random=3", wording=one).plan(pack.task(9)).word
            for one in (pack.wording, Wording(**{**vars(wording), "conversation": conversation}))
        ]
        assert words[0] == words[1]


def test_what_stands_beside_the_questions_stays() -> None:
    own = Wording(system="Be brief.", conversation=True, examples=(("1?", "1"),), order="forward")
    found = shortened(own)
    assert (found.system, found.conversation, found.examples, found.order) == ("Be brief.", True, own.examples, "forward")
    with pytest.raises(ValueError, match="there are: terse, unlisted"):
        shortened(own, "shorter")
