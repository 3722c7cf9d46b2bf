"""What the tests of walks and of searches share: small grammars, and a walk that goes anywhere."""

from __future__ import annotations

import random
from contextlib import suppress

from formal_llm import CFG, RandomLLM, Walk, WalkError

#: One question after another, until c.
CHAIN = CFG.from_string("S -> a S | b S | c")
#: One question with several numbers for an answer.
SEASONING = CFG.from_string("S -> cook some(salt, pepper, chili) serve | raw")


def wander(walk: Walk, rng: random.Random, most: int) -> None:
    """Do fewer than ``most`` things at random: answer, step back, rule a branch out.

    Raises:
        NoValidPlan, BudgetExceeded: no branch is left, or the budget is used up.
    """
    for _ in range(rng.randrange(most)):
        question = walk.question
        if question is not None:
            walk.answer(RandomLLM(rng.randrange(99)).choose(question))
        if rng.random() < 0.3:
            with suppress(WalkError):  # a dead end may have undone the only answer
                walk.back()
        elif rng.random() < 0.3:
            walk.rule_out()
