"""How often names chosen at random make a valid plan: where any tool may follow, and where types hold the chain.

Exact, over the 17 test tasks of OpenAGI with all 15 tools: the probabilities of all chains are added up, chains of the
same tools and the same end together. `typed` is the baseline of the papers, `names` forces nothing but names
(docs/howto/benchmark.md). What counts as valid is first compared with the task's automaton, on chains at random.

    python benchmarks/uniform_choice.py
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache

from formal_llm import TaskPack
from formal_llm.packs.openagi.benchmark.reading import ToolText, chain_word, tool_texts
from formal_llm.planning import Task

INPUTS = {"image": "input_image", "text": "input_text"}
GOALS = {"image_plan": "image", "text_plan": "text"}


def fits(chain: Sequence[ToolText], task: Task) -> bool:
    """Whether a chain is a plan: each tool once, each takes what comes, the last gives what the task asks for."""
    kinds = [tool.kinds for tool in chain]
    comes = [None, *(tool.gives for tool in chain)]
    return (
        bool(chain)
        and len(set(chain)) == len(chain)
        and comes[-1] == GOALS[str(task.goal)]
        and all(kind is None or kind in taken for kind, taken in zip(comes, kinds, strict=False))
        and all(set(rest(taken, kind)) <= set(task.inputs or ()) for kind, taken in zip(comes, kinds, strict=False))
    )


def rest(taken: tuple[str, ...], comes: str | None) -> tuple[str, ...]:
    """What a tool takes from the inputs: everything but what the tool before gives."""
    at = taken.index(comes) if comes in taken else len(taken)
    return (*taken[:at], *taken[at + 1 :])


def chance(tools: Sequence[ToolText], task: Task, most: int, *, typed: bool) -> float:
    """The probability that a chain of at most ``most`` tools is a plan when each option is as likely as the others."""

    @cache
    def ahead(used: frozenset[ToolText], last: ToolText | None) -> float:
        valid = float(last is not None and last.gives == GOALS[str(task.goal)])
        if len(used) == most:
            return valid
        offered = [tool for tool in tools if not typed or len(tool.kinds) == 1]
        if typed and last is not None:
            offered = [tool for tool in offered if tool.kinds == (last.gives,) and tool not in used]
        total = 0.0
        for tool in offered:
            comes = last.gives if last else None
            good = tool not in used and (comes is None or comes in tool.kinds)
            if good and set(rest(tool.kinds, comes)) <= set(task.inputs or ()):
                total += ahead(used | {tool}, tool)
        stop = not typed or last is not None
        return (total + (valid if stop else 0.0)) / (len(offered) + stop) if offered else valid

    return ahead(frozenset(), None)


def main() -> None:
    pack = TaskPack.load("openagi")
    tools = tool_texts(pack)
    tasks = [pack.tasks[number] for number in pack.splits["test"]]
    rng = random.Random(0)
    compared = agreed = 0
    for task in tasks:
        automaton = pack.planner().table(task).automaton
        for _ in range(2_000):
            chain = rng.sample(tools, rng.randint(1, 4)) + rng.choices(tools, k=rng.randint(0, 1))
            word = chain_word([tool.name for tool in chain], tools, INPUTS)
            compared += 1
            agreed += automaton.accepts(word) == fits(chain, task)
    print(f"{agreed:,} of {compared:,} chains at random are judged as the automaton judges them")
    for name, most in (("typed", 3), ("typed", 5), ("typed", 10), ("names", 15)):
        shares = [chance(tools, task, most, typed=name == "typed") for task in tasks]
        print(f"{name}, chains of at most {most:2}: {sum(shares) / len(shares):.4%} valid")


if __name__ == "__main__":
    main()
