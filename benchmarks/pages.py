"""What pages cost and save: a plan of seven choices among 500 options each.

Run: ``python benchmarks/pages.py``

Printed for plain questions, pages and groups: questions a plan, characters of prompts a plan, characters of the longest
prompt, CPU milliseconds a plan. The answerer has an option in mind for each choice, any of the 500, and goes to it as
fast as the pages let it; ``first`` has those in mind that come first on their pages.
"""

from __future__ import annotations

import random
import time

from formal_llm import CFG, Walk
from formal_llm.planning.walks.pages import Pages

OPTIONS, CHOICES, PLANS = 500, 7, 20


def rules() -> CFG:
    """Seven choices among 500 places with costs, under a bound on their sum."""
    names = [f"r{number}" for number in range(OPTIONS)]
    lines = [f'{name} "Place {place} of the town" cost={10 + place % 40}' for place, name in enumerate(names)]
    body = ["%order forward", f"S -> {' '.join(['X'] * CHOICES)}", f"X -> {' | '.join(names)}", "%limit cost <= 340"]
    return CFG.from_string("\n".join([*body, *lines]))


def one_plan(cfg: CFG, pages: Pages | None, rng: random.Random | None) -> tuple[int, int, int]:
    """Questions, characters of prompts, and those of the longest one."""
    walk, sizes, wanted, made = Walk(cfg, "a week", pages=pages), list[int](), -1, -1
    while (question := walk.question) is not None and (entry := walk.choice) is not None:
        sizes.append(len(question.prompt))
        if made != len(walk.word):  # the first page of another choice
            made = len(walk.word)
            every = [choice.index for choice in entry.fork.iter_choices()]
            wanted = every[0] if rng is None else rng.choice(every)
        walk.answer(
            next(
                number
                for number, choice in enumerate(entry.offered_choices, 1)
                if any(one.index == wanted for one in choice.iter_choices())
            )
        )
    return len(sizes), sum(sizes), max(sizes)


def main() -> None:
    """Print the table."""
    cfg = rules()
    ways: list[tuple[str, Pages | None, bool]] = [
        ("plain", None, True),
        ("pages of 20, first", Pages(20), False),
        ("pages of 20, any", Pages(20), True),
        ("pages of 50, any", Pages(50), True),
        ("groups by cost, 20, any", Pages(20, by=("cost",)), True),
        ("groups by name, 20, any", Pages(20, by=("name",)), True),
    ]
    print("| questions with 500 options | questions | characters | longest prompt | CPU ms |")
    print("| --- | --- | --- | --- | --- |")
    for name, pages, anywhere in ways:
        begun = time.process_time()
        found = [one_plan(cfg, pages, random.Random(seed) if anywhere else None) for seed in range(PLANS)]
        took = 1000 * (time.process_time() - begun) / PLANS
        asked, characters = (sum(one[part] for one in found) / PLANS for part in (0, 1))
        print(f"| {name} | {asked:.0f} | {characters:,.0f} | {max(one[2] for one in found):,} | {took:.0f} |")


if __name__ == "__main__":
    main()
