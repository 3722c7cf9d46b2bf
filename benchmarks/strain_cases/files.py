"""Long files: reading them, and starting with what they say."""

from __future__ import annotations

import random
import warnings

from benchmarks.strain_cases.case import Case, milliseconds
from formal_llm import CFG, PDA, Planner


def nested_tools(productions: int = 10_000) -> str:
    """A grammar of tools with two inputs each, ten productions for each kind of data, at most three uses of a tool."""
    rng = random.Random(1)
    kinds, tools = productions // 10, productions // 5
    lines = ["%start N0", "%limit 3"]
    for kind in range(kinds):
        last = kinds - 1
        bodies = [
            f"t{rng.randrange(tools)} N{min(last, kind + rng.randrange(1, 20))} N{min(last, kind + rng.randrange(60))}"
            for _ in range(9)
        ]
        lines.append(f"N{kind} -> {' | '.join([*bodies, f't{rng.randrange(tools)}'])}")
    return "\n".join(lines)


def chain_of_tools(productions: int = 10_000) -> str:
    """A plan of steps: one rule on each line, each with a tool of its own."""
    return "\n".join(["%limit 3", *(f"S -> t{number} S" for number in range(productions - 1)), "S -> end"])


def states(transitions: int = 10_000) -> str:
    """An automaton with as many states as transitions."""
    lines = [f"q{number}, a{number % 50}, ε -> q{number + 1}, ε" for number in range(transitions)]
    return "\n".join([f"%accept q{transitions}", *lines])


def stack(transitions: int = 10_000) -> str:
    """An automaton with few states that pushes and pops a hundred symbols."""
    lines = [f"p, a{n % 100}, ε -> p, X{n % 50} X{n // 100}" for n in range(transitions // 2)]
    lines += [f"p, b{n % 100}, X{n // 50} -> p, ε" for n in range(transitions // 2)]
    return "\n".join(["%accept p", *lines])


def _read_grammar(text: str) -> dict[str, float | str]:
    CFG.from_string("S -> a")  # what is read once only is not counted
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read = min(milliseconds(lambda: CFG.from_string(text)) for _ in range(3))
        cfg = CFG.from_string(text)
    start = milliseconds(lambda: Planner(cfg, "test:first").start("a task").question)
    return {"read": read, "start": start}


def _read_pda(text: str) -> dict[str, float | str]:
    PDA.from_string("%accept q\np, a, ε -> q, ε")
    return {"read": min(milliseconds(lambda: PDA.from_string(text)) for _ in range(3))}


CASES = [
    Case("%limit 3 over 10,000 productions, nested", "500, 500 ms", lambda: _read_grammar(nested_tools())),
    Case("%limit 3 over 10,000 productions, a chain", "500, 500 ms", lambda: _read_grammar(chain_of_tools())),
    Case(".pda of 10,000 transitions, states", "500 ms", lambda: _read_pda(states())),
    Case(".pda of 10,000 transitions, stack", "500 ms", lambda: _read_pda(stack())),
]
