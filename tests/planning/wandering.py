"""What the tests of walks and of searches share: small grammars, and a walk that goes anywhere."""

from __future__ import annotations

import random
from contextlib import suppress

from formal_llm import CFG, RandomLLM, Walk
from formal_llm.errors import WalkError
from tests import oracles

#: One question after another, until c.
CHAIN = CFG.from_string("S -> a S | b S | c")
#: Tools of which each may be used once.
TOOLS = CFG.from_string(
    """
    %order prefix
    %limit 1
    %limit * image
    T "text" -> B I | D T
    I "image" -> A I | image
    A -> colorize | denoise
    B -> classify | caption
    D -> translate
    """
)
#: One question with several numbers for an answer.
SEASONING = CFG.from_string("S -> cook some(salt, pepper, chili) serve | raw")


def texts(walk: Walk) -> list[str]:
    """The texts of the options that are asked now."""
    assert walk.question is not None
    return [option.text for option in walk.question.options]


def keeps(cfg: CFG, word: tuple[str, ...]) -> bool:
    """Whether a word keeps the limits of a grammar."""
    return oracles.keeps(word, cfg.limits, cfg.terminals, cfg.symbols)


def drive(walk: Walk, rng: random.Random) -> Walk:
    """Answer at random to the end."""
    llm = RandomLLM(rng.randrange(1 << 30))
    while (question := walk.question) is not None:
        assert len(question.options) > 1
        walk.answer(llm.ask(question))
    return walk


def wander(walk: Walk, rng: random.Random, most: int) -> None:
    """Do fewer than ``most`` things at random: answer, step back, rule a branch out.

    Raises:
        NoValidPlan, BudgetExceeded: no branch is left, or the budget is used up.
    """
    for _ in range(rng.randrange(most)):
        question = walk.question
        if question is not None:
            walk.answer(RandomLLM(rng.randrange(99)).ask(question))
        if rng.random() < 0.3:
            with suppress(WalkError):  # a dead end may have undone the only answer
                walk.back()
        elif rng.random() < 0.3:
            walk.rule_out()


def subset_sum(items: int, seed: int = 0) -> CFG:
    """Items of random weights, each at most once, and just the weight of half of them: hard beyond the filters."""
    rng = random.Random(seed)
    weights = [rng.randint(100, 999) for _ in range(items)]
    target = sum(rng.sample(weights, items // 2))
    names = [f"t{number}" for number in range(items)]
    lines = ["%limit 1", f"%limit g <= {target}", f"%limit g >= {target}", "S -> T S | T", f"T -> {' | '.join(names)}"]
    return CFG.from_string("\n".join([*lines, *(f"{n} g={w}" for n, w in zip(names, weights, strict=True))]))
