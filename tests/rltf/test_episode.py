"""Episodes: a plan by its word and by the numbers that were chosen."""

from __future__ import annotations

from formal_llm import CFG, Planner, Task
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.rollout import Start, replay


def test_the_path_tells_plans_of_one_word_apart() -> None:
    planner, task = Planner(CFG.from_string("S -> A b | a B | c\nA -> a\nB -> b"), "test:first"), Task("t")
    one, other, third = enumerate_episodes(planner, task, 0, 3)
    assert one.word == other.word == ("a", "b")
    assert (one.path, other.path, third.path) == ((1,), (2,), (3,))
    for episode in (one, other, third):
        assert episode.word == episode.plan.word
        assert replay(planner, Start(0, task), episode.path).path == episode.path
