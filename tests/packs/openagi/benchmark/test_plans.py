"""Plans on record without anything carried out."""

from __future__ import annotations

from pathlib import Path

import pytest

from formal_llm import RandomLLM, TaskPack
from formal_llm.errors import NoValidPlan
from formal_llm.packs.openagi.benchmark.plans import Plans
from formal_llm.packs.openagi.benchmark.reading import LexicalMatcher, tool_texts
from formal_llm.packs.openagi.benchmark.records import Records


@pytest.fixture(scope="module")
def pack() -> TaskPack:
    return TaskPack.load("openagi")


def test_all_tools_are_there_where_nobody_says_which(pack: TaskPack, tmp_path: Path) -> None:
    matcher = LexicalMatcher(tool_texts(pack))
    run = Plans(pack, {106: pack.tasks[106]}, repeats=3, matcher=matcher)
    assert {tool.name for tool in run.conditions.tools} == {tool.name for tool in run.conditions.every}
    with Records(tmp_path, run.identity) as records:
        run.run({"x": RandomLLM(0)}, ["formal"], records)
        rows = records.join_scores()
    assert [row["valid"] for row in rows] == [True] * 3
    assert {row["value"] for row in rows} == {None}  # not judged
    automaton = pack.planner().table(pack.tasks[106]).automaton
    assert all(automaton.accepts(tuple(row["word"])) for row in rows)


def test_what_cannot_be(pack: TaskPack) -> None:
    with pytest.raises(ValueError, match="a task and a repeat"):
        Plans(pack, {})
    with pytest.raises(ValueError, match="a task and a repeat"):
        Plans(pack, {7: pack.tasks[7]}, repeats=0)
    none = {tool.name: 0 for tool in tool_texts(pack)}
    from dataclasses import replace

    from formal_llm import Limits

    with pytest.raises(NoValidPlan, match="none of the 1 tasks"):
        Plans(pack, {106: replace(pack.tasks[106], limits=pack.tasks[106].limits & Limits(none))}, ())
