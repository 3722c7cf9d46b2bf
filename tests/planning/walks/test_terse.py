"""Short wordings."""

from __future__ import annotations

from io import StringIO

import pytest

from formal_llm import Answer, Planner, Question, TaskPack, Wording
from formal_llm.llms.calibrated import CalibratedLLM, SureLLM
from formal_llm.llms.doubles import Person
from formal_llm.planning.walks.terse import NAMED, adapt_wording, shortened


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


class ByText:
    """An LLM whose options are scored by their texts."""

    wording = "unlisted"

    def choose(self, question: Question) -> Answer:
        return Answer((1,), dict.fromkeys(range(1, len(question.options) + 1), 1 / len(question.options)))


def test_who_reads_short_questions_best_is_asked_so_where_nobody_said_how() -> None:
    pack, llm = TaskPack.load("openagi"), ByText()
    assert pack.planner(llm).wording == shortened(pack.wording, "unlisted") == adapt_wording(pack.wording, llm)
    assert pack.planner(llm, wording=pack.wording).wording == pack.wording
    assert pack.planner("test:first").wording == pack.wording
    assert Planner(pack.source, llm).wording == shortened(Wording(), "unlisted").settled(pack.source)
    assert Planner(pack.source, llm, wording=Wording()).wording.prompt == Wording().prompt
    assert CalibratedLLM(llm, 2.0).wording == "unlisted" and CalibratedLLM("test:first", 2.0).wording == ""


def test_a_person_who_is_asked_then_sees_the_options() -> None:
    writes = StringIO()
    pack = TaskPack.load("openagi")
    pack.planner(SureLLM(ByText(), 0.9, Person(StringIO("1\n" * 99), writes))).plan(pack.task(9))
    assert "1: Colorization" in writes.getvalue() and "would choose 1" in writes.getvalue()


def test_what_stands_beside_the_questions_stays() -> None:
    own = Wording(system="Be brief.", conversation=True, examples=(("1?", "1"),), order="forward")
    found = shortened(own)
    assert (found.system, found.conversation, found.examples, found.order) == (
        "Be brief.",
        True,
        own.examples,
        "forward",
    )
    with pytest.raises(ValueError, match="there are: terse, unlisted"):
        shortened(own, "shorter")
