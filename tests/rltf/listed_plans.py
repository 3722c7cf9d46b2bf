"""What tests of all plans share: grammars, and a list of the plans of one."""

from __future__ import annotations

import math
from collections.abc import Callable

from hypothesis import assume

from formal_llm import CFG, Answer, Planner, Task
from formal_llm.errors import NoValidPlan, TooManyPlans, Undecided
from formal_llm.llms.question import Question
from formal_llm.rltf.all_plans import enumerate_episodes
from formal_llm.rltf.episode import Episode
from tests import strategies

MOST = 150
TASK = Task("t")

#: Two derivations of "a b", one of "c".
AMBIGUOUS = CFG.from_string("S -> A b | a B | c\nA -> a\nB -> b")
#: Three tools on top of each other in any order, or none.
STACKED = CFG.from_string("%limit 1\nS -> x S | y S | z S | e")

some_grammars = strategies.limited_grammars() | strategies.tool_grammars()
single_choices = strategies.limited_grammars(selections=False) | strategies.tool_grammars()


def listed(cfg: CFG) -> tuple[Planner, list[Episode]]:
    """All plans of a grammar that has some, and few."""
    planner = Planner(cfg, "test:first")
    try:
        planner.start(TASK)
        return planner, enumerate_episodes(planner, TASK, 3, MOST)
    except (NoValidPlan, TooManyPlans, Undecided):
        assume(False)
        raise


def probabilities_under(episodes: list[Episode], choose: Callable[[Question], Answer]) -> list[float]:
    """The probability of each plan under an answerer that has probabilities."""
    return [
        math.prod((choose(one.question).probabilities or {})[one.number] for one in episode.decisions)
        for episode in episodes
    ]
