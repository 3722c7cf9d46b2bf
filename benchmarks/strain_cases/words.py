"""Whether a word is in a language, how a wrong one is put right, and how two languages differ."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial

from benchmarks.strain_cases.case import Case, milliseconds, spread
from formal_llm import CFG, PDA, Planner, constraint
from formal_llm.automata.languages.comparison import differences
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


TYPED = """
%limit 1
%limit * given_text given_image
S -> T | I
T -> B I | D T | E I T | F T T | given_text
I -> A I | C T | given_image
A -> a1 | a2 | a3 | a4 | a5
B -> b1 | b2 | b3 | b4
C -> c1 | c2
D -> d1 | d2 | d3 | d4 | d5 | d6
E -> e1
F -> f1 | f2
"""


def random_symbols(text: str) -> dict[str, float | str]:
    """Words of 30 random symbols."""
    rng = random.Random(3)
    names = list(CFG.from_string(text).terminals)
    return repaired(text, [rng.choices(names, k=30) for _ in range(3)])


NAMES = [f"t{n}" for n in range(12)]
RULES = [
    "(eventually {a})",
    "(-> (eventually {c}) (eventually {a}))",
    "(-> (eventually {a}) (eventually (next {b} (until any {c}))))",
    "(not (eventually (next {a} {b})))",
    "(not (eventually (next {a} (until any {b}))))",
    "(until (not (eventually {a})) (or empty (next {b} (until any empty))))",
]


def ten_formulas() -> dict[str, float | str]:
    """From ten random formulas to the first question."""
    cfg = CFG.from_string("%limit 1\nS -> T | T S\nT -> " + " | ".join(NAMES))
    times = []
    for seed in (3, 4):
        rng = random.Random(seed)
        rules = []
        for _ in range(10):
            a, b, c = rng.sample(NAMES, 3)
            rules.append(constraint(rng.choice(RULES).format(a=a, b=b, c=c), cfg))
        times.append(milliseconds(partial(Planner(cfg, "test:first", constraints=rules).start, "a plan")))
    return {"start": max(times)}


MINUTES = {
    "museum": 120, "lunch": 60, "walk": 30, "coffee": 15, "shop": 45, "swim": 75, "read": 90, "call": 105, "mail": 15,
    "nap": 30,
}  # fmt: skip


def day(most: int, limit: str, form: str) -> CFG:
    lines = [limit, form, "A -> " + " | ".join(MINUTES), *(f'{name} "{name}" min={n}' for name, n in MINUTES.items())]
    return CFG.from_string("\n".join([*lines, f"%limit min <= {most}", "%limit min >= 480"]))


def days() -> dict[str, float | str]:
    """Days of eight hours: each activity once, against any; some at most twice, written in two ways."""
    plain, other = "S -> A | A S", "S -> A R\nR -> A R | ε"
    once, longer = day(480, "%limit 1", plain), day(495, "", plain)
    twice, both = day(480, "%limit 2 museum lunch swim", plain), day(480, "%limit 2 museum lunch", other)
    first = milliseconds(partial(differences, once, longer))
    return {"once": first, "twice": milliseconds(partial(differences, twice, both))}


CASES = [
    Case("membership of 200 symbols: finite automaton", "0.05 ms", finite),
    Case("membership of 200 symbols: behaviour", "0.05 ms", behaviour),
    Case("membership of 200 symbols: left-recursive expressions", "0.2 ms", left_recursive),
    Case("membership of 200 symbols: S -> S S | a", "5 ms", ambiguous),
    Case("verify with repair: a^400 in S -> a S b | c", "1,000 ms", no_middle),
    Case("verify with repair: 30 random symbols, 20 tools", "500 ms, decided", partial(random_symbols, TOOLS)),
    Case("verify with repair: 30 random symbols, 20 typed tools", "500 ms, decided", partial(random_symbols, TYPED)),
    Case("start: ten formulas over 12 tools", "300 ms", ten_formulas),
    Case("diff: two days in quarter hours", "1,000 ms", days),
]
