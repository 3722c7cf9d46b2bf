"""Whether a word is in a language, how a wrong one is put right, and how two languages differ."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

from benchmarks.strain_cases.case import Case, milliseconds, spread
from formal_llm import CFG
from formal_llm.automata import PDA
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.planning.checking.verify import Verifier

#: How often a word is asked for.
_TIMES = 20

EXPRESSIONS = """
E -> E plus T | T
T -> T times F | F
F -> open E close | id
"""


def asked(source: CFG | PDA, words: Sequence[Sequence[str]]) -> dict[str, float | str]:
    """Membership of words, the second time round."""
    for word in words:
        source.accepts(word)
    return spread(milliseconds(partial(source.accepts, word)) for _ in range(_TIMES) for word in words)


def finite() -> dict[str, float | str]:
    """A finite automaton with several ways at each letter: an a in the eighth place from the end."""
    steps = [(0, "a", None, 0), (0, "b", None, 0), (0, "a", None, 1)]
    steps += [(n, letter, None, n + 1) for n in range(1, 8) for letter in "ab"]
    pda = PDA(steps, start=0, accepting=[8])
    rng = random.Random(1)
    return asked(pda, [rng.choices("ab", k=200) for _ in range(5)])


def behaviour() -> dict[str, float | str]:
    agent = Behaviour.load("react").pda
    return asked(agent, [["Ques", *["Tht", "Act", "Act-Inp", "Obs"] * 49, "Final-Tht", "Ans"]])


def left_recursive() -> dict[str, float | str]:
    rng = random.Random(2)
    words = []
    for _ in range(5):
        word = ["id"]
        while len(word) < 199:
            word += [rng.choice(["plus", "times"]), "id"]
        words += [word, [*word[:100], "plus", *word[100:]]]
    return asked(CFG.from_string(EXPRESSIONS), words)


def ambiguous() -> dict[str, float | str]:
    return asked(CFG.from_string("S -> S S | a"), [["a"] * 200])


def repaired(text: str, words: Sequence[Sequence[str]]) -> dict[str, float | str]:
    """Verification with repair, by a verifier that is new for each word."""
    cfg = CFG.from_string(text)
    found = []
    times = []
    for word in words:
        verifier = Verifier(cfg)
        times.append(milliseconds(partial(lambda verifier, word: found.append(verifier.verify(word)), verifier, word)))
    undecided = sum(not each.decided or not each.nearest_decided for each in found)
    return {**spread(times), "distance": found[-1].distance or "none", "undecided": undecided}


def no_middle() -> dict[str, float | str]:
    return repaired("S -> a S b | c", [["a"] * 400])


TOOLS = "%limit 1\nS -> T | T S\nT -> " + " | ".join(f"t{n}" for n in range(20))


def random_symbols() -> dict[str, float | str]:
    rng = random.Random(3)
    return repaired(TOOLS, [[f"t{rng.randrange(20)}" for _ in range(30)] for _ in range(3)])


CASES = [
    Case("membership of 200 symbols: finite automaton", "0.05 ms", finite),
    Case("membership of 200 symbols: behaviour", "0.05 ms", behaviour),
    Case("membership of 200 symbols: left-recursive expressions", "0.2 ms", left_recursive),
    Case("membership of 200 symbols: S -> S S | a", "5 ms", ambiguous),
    Case("verify with repair: a^400 in S -> a S b | c", "1,000 ms", no_middle),
    Case("verify with repair: 30 random symbols, 20 tools", "500 ms", random_symbols),
]
