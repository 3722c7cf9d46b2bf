"""Rules like real life, made from a few numbers: tools with sums, days, small grammars, wide choices, deep recursion.

What rules are made from is a *case*: the name of a family and its settings, one of which is a seed. The same case makes
the same rules, so a case is all that has to be written down.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from formal_llm import CFG, PDA, constraint
from formal_llm.errors import FormalLLMError

#: The settings of a case.
Settings = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Problem:
    """Rules to plan with.

    Attributes:
        source: the rules.
        text: the rules as text, with what is not in them as comments.
        formulas: formulas that a plan has to satisfy as well.
        steps: a step budget.
    """

    source: CFG | PDA
    text: str
    formulas: tuple[str, ...] = ()
    steps: int | None = None

    def constraints(self) -> list[PDA]:
        """The formulas as automata."""
        return [constraint(formula, self.source) for formula in self.formulas]

    def __str__(self) -> str:
        besides = [f"# and: {formula}" for formula in self.formulas]
        return "\n".join([self.text, *besides, *([] if self.steps is None else [f"# steps: {self.steps}"])])


@dataclass(frozen=True, slots=True)
class Family:
    """Rules of one kind.

    Attributes:
        settings: what each setting may be.
        make: the rules of some settings.
    """

    settings: Mapping[str, Sequence[int]]
    make: Callable[[Settings], Problem]

    def draw(self, rng: random.Random) -> dict[str, int]:
        """Settings at random."""
        return {name: rng.choice(values) for name, values in self.settings.items()} | {"seed": rng.randrange(10**6)}

    def neighbour(self, settings: Settings, rng: random.Random) -> dict[str, int]:
        """The same settings but for one of them."""
        name = rng.choice([*self.settings, "seed"])
        return {**settings, name: rng.randrange(10**6) if name == "seed" else rng.choice(self.settings[name])}


_RULES = (
    "(eventually {a})",
    "(-> (eventually {c}) (eventually {a}))",
    "(not (eventually (next {a} {b})))",
    "(not (eventually (next {a} (until any {b}))))",
    "(or (not (eventually {b})) (eventually (next {a} (until any {b}))))",
)


def _formulas(names: Sequence[str], count: int, rng: random.Random) -> tuple[str, ...]:
    made = []
    for _ in range(count):
        a, b, c = rng.sample(names, 3)
        made.append(rng.choice(_RULES).format(a=a, b=b, c=c))
    return tuple(made)


def _weight(size: int, rng: random.Random) -> int:
    """Small as points are, hundreds as money is, or large as bytes are."""
    return (rng.randint(1, 9), rng.randint(10, 300), rng.randint(10**5, 10**6))[size]


def _bounds(total: int, kind: int, slack: int) -> list[str]:
    """An upper bound, a lower one, both, or an exact sum; slack in percent around the sum of some plan."""
    low, high = total * (100 - slack) // 100, -(-total * (100 + slack) // 100)
    return [[f"<= {high}"], [f">= {low}"], [f"<= {high}", f">= {low}"], [f"<= {total}", f">= {total}"]][kind]


def _tools(settings: Settings) -> Problem:
    """Tools that may each be used once or a few times, sums over them, some that have to be used, prerequisites."""
    rng = random.Random(settings["seed"])
    names = [f"t{n}" for n in range(settings["tools"])]
    used = rng.sample(names, max(2, len(names) * settings["share"] // 100))
    lines = [f"%limit {settings['uses']}"]
    for k in range(settings["sums"]):
        total = 0
        weights = []
        for name in names:
            if rng.randrange(100) < settings["weighed"]:
                weights.append(f"{name} q{k}={(amount := _weight(settings['size'], rng))}")
                total += amount * (name in used)
        if weights:
            lines += [
                f"%limit q{k} {bound}" for bound in _bounds(total, settings["bound"], settings["slack"])
            ] + weights
    if settings["required"]:
        lines.append(f"%require 1 {' '.join(rng.sample(used, min(len(used), settings['required'])))}")
    body = " | ".join(names)
    shapes = (
        [f"S -> T S | T\nT -> {body}"],
        [f"S -> some({', '.join(names)})"],
        ["S -> A S | A | A B", f"A -> {' | '.join(names[::2])}", f"B -> C B | C\nC -> {' | '.join(names[1::2])}"],
        [f"S -> some({', '.join(names[:12])}) R\nR -> T R | ε\nT -> {' | '.join(names[12:] or names)}"],
        # As tools with inputs: a tree of calls.
        [f"S -> A | B\nA -> {' | '.join(f'{n} A' if k % 3 else f'{n} A B' for k, n in enumerate(names[::2]))} | x",
         f"B -> {' | '.join(f'{n} B' if k % 4 else f'{n} A' for k, n in enumerate(names[1::2]))} | y", "%limit * x y"],
    )  # fmt: skip
    text = "\n".join(lines + shapes[settings["shape"]])
    return Problem(CFG.from_string(text), text, _formulas(names, settings["formulas"], rng))


_TOOLS: Mapping[str, Sequence[int]] = {
    "tools": (10, 20, 60, 200), "sums": (0, 1, 2, 3, 4), "required": (0, 1, 5, 10), "size": (0, 1, 2),
    "share": (10, 30, 50, 80), "weighed": (30, 100), "bound": (0, 1, 2, 3), "slack": (0, 1, 5, 20),
    "uses": (1, 1, 2, 3), "shape": (0, 0, 1, 2, 3, 4), "formulas": (0, 0, 1, 3),
}  # fmt: skip


def _days(settings: Settings) -> Problem:
    """A day: activities with durations and prices, sums between bounds, a clock with windows, a step budget."""
    rng = random.Random(settings["seed"])
    names = [f"do{n}" for n in range(settings["activities"])]
    grain = settings["grain"]
    minutes = {name: grain * rng.randint(1, max(2, 90 // grain)) for name in names}
    text = [f'{name} "activity {name}" min={m} cost={rng.randint(0, 60)}' for name, m in minutes.items()]
    least = settings["hours"] * 60
    text.append(f"%limit min >= {least}")
    if settings["most"]:
        text.append(f"%limit min <= {least * (100 + settings['most']) // 100}")
    if settings["cost"]:
        text.append(f"%limit cost <= {settings['cost']}")
    if settings["uses"]:
        text.append(f"%limit {settings['uses']}")
    if settings["required"]:
        text.append(f"%require 1 {' '.join(rng.sample(names, min(settings['required'], len(names))))}")
    if settings["clock"]:
        # The numbers of a clock have no unit here: a day from 0:00 on, in minutes.
        text = [line.replace("min=", "time=").replace("%limit min", "%limit time") for line in text]
        text = [_timed(line) for line in text]
        text.append(f"%clock time 8:00-{8 + settings['hours'] + 3}:00")
        for name in rng.sample(names, min(len(names), settings["windows"])):
            begin = rng.randint(8, 8 + settings["hours"] - 2)
            text.append(f"%window {name} {begin}:00-{begin + rng.randint(2, 4)}:00")
        if settings["windows"] > 1:
            a, b = rng.sample(names, 2)
            text.append(f"%gap 1h {a} -> {b}")
    steps = settings["steps"] or None
    if settings["clock"] or settings["automaton"]:
        text.insert(0, f"%accept day\nday, {{what}}, ε -> day, ε for what in {', '.join(names)}")
        written = "\n".join(text)
        return Problem(PDA.from_string(written), written, steps=steps)
    text.insert(0, f"Day -> A Day | A\nA -> {' | '.join(names)}")
    written = "\n".join(text)
    return Problem(CFG.from_string(written), written, _formulas(names, settings["formulas"], rng), steps)


def _timed(line: str) -> str:
    """The numbers of the clock with their unit."""
    words = line.split(" ")
    for place, word in enumerate(words):
        if word.startswith("time=") or (place and words[0] == "%limit" and words[1] == "time" and word.isdigit()):
            words[place] += "min"
    return " ".join(words)


_DAYS: Mapping[str, Sequence[int]] = {
    "activities": (5, 10, 30, 60), "grain": (1, 5, 15, 30), "hours": (2, 8, 16), "most": (0, 0, 1, 20),
    "cost": (0, 60, 300),
    "uses": (0, 1, 2, 5), "required": (0, 1, 4), "clock": (0, 0, 1), "windows": (0, 1, 3), "automaton": (0, 0, 1),
    "steps": (0, 0, 20, 40, 100), "formulas": (0, 0, 1, 2),
}  # fmt: skip


def _grammars(settings: Settings) -> Problem:
    """Small random grammars with limits, sums, selections and formulas."""
    rng = random.Random(settings["seed"])
    heads = [f"N{n}" for n in range(settings["heads"])]
    names = [f"a{n}" for n in range(settings["terminals"])]
    lines = []
    for place, head in enumerate(heads):
        bodies = []
        for _ in range(rng.randint(1, settings["bodies"])):
            length = rng.randint(0 if settings["empty"] else 1, 3)
            symbols = [rng.choice(names if rng.random() < 0.5 else heads) for _ in range(length)]
            if settings["selections"] and rng.random() < 0.3:
                chosen = rng.sample(names, rng.randint(2, len(names)))
                symbols.insert(rng.randint(0, len(symbols)), f"some({', '.join(sorted(chosen))})")
            bodies.append(" ".join(symbols) or "ε")
        bodies.append(" ".join(rng.choices(names, k=rng.randint(1, 2))))
        lines.append(
            f"{head} -> {' | '.join(dict.fromkeys(bodies))}" + (" | N1 N0" if not place and len(heads) > 1 else "")
        )
    lines += [
        f"%limit {rng.randint(1, settings['uses'])} {name}"
        for name in names
        if rng.randrange(100) < settings["limited"]
    ]
    if settings["required"]:
        lines.append(
            f"%require {rng.randint(1, 3)} {' '.join(rng.sample(names, min(settings['required'], len(names))))}"
        )
    for k in range(settings["sums"]):
        weights = {name: _weight(settings["size"], rng) for name in names}
        total = sum(rng.randint(0, 4) * weight for weight in weights.values())
        lines += [f"%limit q{k} {bound}" for bound in _bounds(total, settings["bound"], settings["slack"])]
        lines += [f"{name} q{k}={weight}" for name, weight in weights.items()]
    text = "\n".join(lines)
    cfg = CFG.from_string(text)
    count = min(settings["formulas"], 3 if len(cfg.terminals) >= 3 else 0)
    return Problem(cfg, text, _formulas(list(cfg.terminals), count, rng), settings["steps"] or None)


_GRAMMARS: Mapping[str, Sequence[int]] = {
    "heads": (1, 2, 3, 5), "terminals": (3, 4, 6, 10), "bodies": (1, 2, 4), "empty": (0, 1), "selections": (0, 0, 1),
    "limited": (0, 50, 100), "uses": (1, 3, 20), "required": (0, 0, 1, 3), "sums": (0, 0, 1, 2), "size": (0, 1, 2),
    "bound": (0, 1, 2, 3), "slack": (0, 5, 20), "formulas": (0, 0, 1, 3), "steps": (0, 0, 0, 30, 100),
}  # fmt: skip


def _wide(settings: Settings) -> Problem:
    """Very many options at one place: tools with inputs, one or several questions, sums over them."""
    rng = random.Random(settings["seed"])
    count = settings["options"]
    names = [f"w{n}" for n in range(count)]
    labels = [
        f'{name} "option {n // settings["alike"]}" kg={_weight(settings["size"], rng)}' for n, name in enumerate(names)
    ]
    shapes = (
        [f"S -> {' | '.join(names)}"],
        [f"S -> {' | '.join(f'{name} in{n % 5}' for n, name in enumerate(names))}"],
        [f"S -> T S | T\nT -> {' | '.join(names)}"],
        [f"S -> {' | '.join(f'{name} T' for name in names)}\nT -> u T | v"],
        [f"S -> some({', '.join(names[:60])})"],
    )
    lines = shapes[settings["shape"]] + labels[: 60 if settings["shape"] == 4 else None]
    if settings["limit"]:
        lines.append(f"%limit {settings['limit']}")
    if settings["sum"]:
        size = (10, 200, 10**6)[settings["size"]]
        lines += [f"%limit kg <= {size * 5}", *([f"%limit kg >= {size * 5 // 2}"] if settings["sum"] > 1 else [])]
    text = "\n".join(lines)
    return Problem(CFG.from_string(text), text, steps=settings["steps"] or None)


_WIDE: Mapping[str, Sequence[int]] = {
    "options": (100, 500, 2_000), "alike": (1, 5, 100), "shape": (0, 1, 2, 3, 4), "limit": (0, 1, 3), "sum": (0, 1, 2),
    "size": (0, 1, 2), "steps": (0, 0, 30),
}  # fmt: skip

_DEEP_SHAPES = (
    "S -> S a | S b | c", "S -> S S | a | b", "S -> a S b | c | S c", "S -> A S | A\nA -> a A b | c",
    "S -> a S | b S | c", "S -> S A | A\nA -> a | b | c B\nB -> B b | a", "S -> S T S | c\nT -> a | b",
    "S -> A B S | c\nA -> a | ε\nB -> b | ε", "E -> E a T | T\nT -> T b F | F\nF -> c E d | a",
)  # fmt: skip


def _deep(settings: Settings) -> Problem:
    """Recursion of every kind, deep by lower bounds and by long walks."""
    rng = random.Random(settings["seed"])
    shape = _DEEP_SHAPES[settings["shape"]]
    cfg = CFG.from_string(shape)
    names, lines = list(cfg.terminals), [shape]
    if settings["least"]:
        lines.append(f"%require {settings['least']} {rng.choice(names)}")
    if settings["most"]:
        lines.append(f"%limit {settings['most']}")
    if settings["sum"]:
        lines += [f"{name} kg={_weight(settings['size'], rng)}" for name in names]
        total = settings["sum"] * (5, 150, 500_000)[settings["size"]]
        lines += [f"%limit kg {bound}" for bound in _bounds(total, settings["bound"], settings["slack"])]
    text = "\n".join(lines)
    count = settings["formulas"] if len(names) >= 3 else 0
    return Problem(CFG.from_string(text), text, _formulas(names, count, rng), settings["steps"] or None)


_DEEP: Mapping[str, Sequence[int]] = {
    "shape": range(len(_DEEP_SHAPES)), "least": (0, 1, 10, 100), "most": (0, 20, 200), "sum": (0, 5, 50),
    "size": (0, 1, 2), "bound": (0, 1, 2, 3), "slack": (0, 5, 20), "formulas": (0, 0, 1, 2), "steps": (0, 0, 50, 300),
}  # fmt: skip

FAMILIES: Mapping[str, Family] = {
    "tools": Family(_TOOLS, _tools),
    "days": Family(_DAYS, _days),
    "grammars": Family(_GRAMMARS, _grammars),
    "wide": Family(_WIDE, _wide),
    "deep": Family(_DEEP, _deep),
}


def problem(family: str, settings: Settings) -> Problem | None:
    """The rules of a case; None where its settings make none."""
    try:
        return FAMILIES[family].make(settings)
    except FormalLLMError:
        return None
