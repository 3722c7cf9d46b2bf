"""Questions on the way to known plans."""

from __future__ import annotations

import pytest
from hypothesis import assume, given

from formal_llm import CFG, Planner, Task, TaskPack
from formal_llm.errors import NoValidPlan, TooManyPlans, Undecided
from formal_llm.packs.openagi.references import tools_called_for
from formal_llm.packs.training_rewards import exact_tools
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.known import known_questions, questions_of, reference_words
from tests import strategies
from tests.strategies import examples


@given(strategies.tool_grammars())
@examples(30)
def test_right_options_are_those_with_a_known_plan_behind_them(cfg: CFG) -> None:
    planner, task = Planner(cfg, "test:first"), Task("t")
    try:
        leaves = enumerate_episodes(planner, task, 0, 60)
    except (NoValidPlan, TooManyPlans, Undecided):
        assume(False)
    paths = {leaf.word: leaf.path for leaf in leaves}
    assume(len(paths) == len(leaves) and len(paths) > 1)  # each word by one way
    good = sorted(paths)[::2]
    found = known_questions(planner, task, good, count=99)
    befores = {paths[word][:place] for word in good for place in range(len(paths[word]))}
    assert len(found) == len(befores)
    wanted = sorted(
        sorted({paths[word][len(before)] for word in good if paths[word][: len(before)] == before})
        for before in befores
    )
    assert sorted(sorted(one.right) for one in found) == wanted
    one_way = known_questions(planner, task, good, seed=3)
    assert len(one_way) in {len(paths[word]) for word in good}


def test_tasks_of_openagi() -> None:
    pack = TaskPack.load("openagi")
    planner, task = pack.planner("test:first"), pack.task(15)
    words = reference_words(planner, task, exact_tools(pack))
    assert words and all({n for n in w if not n.startswith("input_")} == tools_called_for(task) for w in words)
    found = questions_of(planner, {task: words}, count=2)
    assert found and {one.index for one in found} == {0}
    assert all(one.right and one.right <= {o.number for o in one.question.options} for one in found)
    with pytest.raises(ValueError, match="no plan"):
        known_questions(planner, task, [("colorization",)])


def test_a_task_without_reference_plans() -> None:
    pack = TaskPack.load("openagi")
    task = pack.read("Given text, how to return the text step by step?")
    assert reference_words(pack.planner("test:first"), task, lambda _: exact_tools(pack)(pack.task(0))) == []
