"""Large grammars and dense ambiguity: formal_llm beside pyformlang, nltk, lark and automata-lib.

The large grammar has 10,000 productions over 1,000 terminals and is drawn with a fixed seed; every production begins
with a terminal, so that all libraries can be given it in the form that suits them: lark reads it with LALR,
automata-lib gets a pushdown automaton that reads a terminal with every move. The dense one is S -> S S | a. Each
library runs in a process of its own; what takes longer than the time limit is left out.

Run: python benchmarks/scale.py
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

Production = tuple[str, tuple[str, ...]]
Word = tuple[str, ...]
#: A library's part: reads a grammar, and gives back the question whether a word is in its language.
Reader = Callable[[list[Production]], Callable[[Word], bool]]

PRODUCTIONS = 10_000
LENGTHS = (10, 50, 200)
DENSE_LENGTHS = (50, 200)
DENSE: list[Production] = [("S", ("S", "S")), ("S", ("a",))]


def large(count: int = PRODUCTIONS, seed: int = 0) -> list[Production]:
    """A grammar with five productions for each head: two of them end, one goes on, two fork."""
    rng = random.Random(seed)
    heads = count // 5
    letters = [f"tool{number}" for number in range(count // 10)]
    made: list[Production] = []
    for head in range(heads):
        for first, forks in zip(rng.sample(letters, 5), (0, 0, 1, 2, 2), strict=True):
            # One way leads to the next head, so that all can be reached.
            named = [(head + 1) % heads] if forks == 1 else [rng.randrange(heads) for _ in range(forks)]
            made.append((f"N{head}", (first, *(f"N{number}" for number in named))))
    return made


def draw(productions: list[Production], length: int, rng: random.Random) -> Word:
    """A random word of this length of a grammar that :func:`large` made."""
    rules: dict[str, list[Word]] = {}
    for head, body in productions:
        rules.setdefault(head, []).append(body)
    stack = [productions[0][0]]
    word: list[str] = []
    while stack:
        left = length - len(word) - 1
        pending = len(stack) - 1
        bodies = [
            b for b in rules[stack.pop()] if pending + len(b) - 1 <= left and (left == 0) == (pending + len(b) == 1)
        ]
        body = rng.choice(bodies)
        word.append(body[0])
        stack += reversed(body[1:])
    return tuple(word)


def by_head(productions: list[Production], arrow: str = " -> ", spell: Callable[[str], str] = str) -> str:
    """The grammar as text, a line for each head."""
    rules: dict[str, list[str]] = {}
    for head, body in productions:
        rules.setdefault(head, []).append(" ".join(map(spell, body)))
    return "\n".join(f"{spell(head)}{arrow}{' | '.join(bodies)}" for head, bodies in rules.items())


# -- the libraries ----------------------------------------------------------------------------------------------------


def formal_llm(productions: list[Production]) -> Callable[[Word], bool]:
    from formal_llm import CFG, PDA

    cfg = CFG.from_string(by_head(productions))
    PDA.from_cfg(cfg)
    return cfg.accepts


def pyformlang(productions: list[Production]) -> Callable[[Word], bool]:
    from pyformlang.cfg import CFG  # type: ignore[import-untyped]

    # Names that begin with a small letter are terminals.
    cfg = CFG.from_text(by_head(productions), productions[0][0])
    cfg.to_pda()
    return lambda word: bool(cfg.contains(list(word)))


def nltk(productions: list[Production]) -> Callable[[Word], bool]:
    from nltk import CFG, ChartParser  # type: ignore[import-untyped]

    cfg = CFG.fromstring(by_head(productions, spell=lambda name: name if name[0].isupper() else f"'{name}'"))
    parser = ChartParser(cfg, max_time=None)  # our own time limit holds for all alike

    def accepts(word: Word) -> bool:
        # The edges alone: the trees of a dense grammar cannot be listed.
        edges = parser.chart_parse(list(word)).select(is_complete=True, span=(0, len(word)), lhs=cfg.start())
        return any(True for _ in edges)

    return accepts


def lark(productions: list[Production]) -> Callable[[Word], bool]:
    from lark import Lark
    from lark.exceptions import LarkError

    sys.setrecursionlimit(100_000)  # its LALR analysis recurses deeply

    def spell(name: str) -> str:
        return name.lower() if name[0].isupper() else f'"{name}"'

    text = by_head(productions, ": ", spell) + '\n%ignore " "\n'
    dense = productions == DENSE
    parser = Lark(text, start=productions[0][0].lower(), parser="earley" if dense else "lalr")

    def accepts(word: Word) -> bool:
        try:
            parser.parse(" ".join(word))
        except LarkError:
            return False
        return True

    return accepts


def automata_lib(productions: list[Production]) -> Callable[[Word], bool]:
    from automata.pda.npda import NPDA

    heads = {head for head, _ in productions}
    letters = {name for _, body in productions for name in body if name not in heads}
    moves: dict[str, dict[str, set[tuple[str, tuple[str, ...]]]]] = {"": {"$": {("end", ("$",))}}}
    for head, body in productions:
        # A body that begins with a terminal reads it at once; one that does not is put on the stack.
        read, rest = (body[0], body[1:]) if body[0] in letters else ("", body)
        moves.setdefault(read, {}).setdefault(head, set()).add(("q", rest))
    start = productions[0][0]
    npda = NPDA(
        states={"begin", "q", "end"},
        input_symbols=letters,
        stack_symbols={*heads, "$"},
        transitions={"begin": {"": {"$": {("q", (start, "$"))}}}, "q": moves},
        initial_state="begin",
        initial_stack_symbol="$",
        final_states={"end"},
        acceptance_mode="final_state",
    )
    accepts: Callable[[Any], bool] = npda.accepts_input  # a tuple of names does as well as a string
    return accepts


READERS: dict[str, Reader] = {
    "formal_llm": formal_llm,
    "pyformlang": pyformlang,
    "nltk": nltk,
    "lark": lark,
    "automata-lib": automata_lib,
}
DISTRIBUTIONS = {"formal_llm": "formal-llm"}


# -- measuring, in a process of its own ------------------------------------------------------------------------------


def median(measured: Callable[[], object], repeats: int = 5, enough: float = 2.0) -> float:
    """The median time of a call; fewer repeats where ``enough`` seconds are used up."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < enough:
        begin = perf_counter()
        measured()
        times.append(perf_counter() - begin)
    return statistics.median(times)


def measure_large(reader: Reader) -> Iterator[tuple[str, float]]:
    grammar = large()
    reader([("S", ("a",))])  # what a library loads and builds for itself is not counted
    yield "read", median(lambda: reader(grammar))
    accepts = reader(grammar)
    rng = random.Random(1)
    samples = {length: [draw(grammar, length, rng) for _ in range(20)] for length in LENGTHS}
    first = samples[LENGTHS[0]][0]
    yield "first", median(lambda: accepts(first), repeats=1)
    for length, sample in samples.items():
        assert accepts(sample[0])
        assert not accepts((*sample[0], sample[0][0]))
        # Some libraries remember what they found, so a word that is new is one thing, a word read again another.
        yield f"new {length}", statistics.median(median(partial(accepts, word), repeats=1) for word in sample[1:])
        yield f"again {length}", statistics.median(median(partial(accepts, word), repeats=1) for word in sample)


def measure_dense(reader: Reader) -> Iterator[tuple[str, float]]:
    accepts = reader(DENSE)
    for length in DENSE_LENGTHS:
        word = ("a",) * length
        assert accepts(word)
        yield f"dense {length}", median(partial(accepts, word))


def child(library: str, part: str) -> None:
    measure = measure_large if part == "large" else measure_dense
    for name, seconds in measure(READERS[library]):
        print(json.dumps([name, seconds]), flush=True)


def run(library: str, part: str, limit: float) -> dict[str, float]:
    """What a process of its own measured before it ended or the time limit did."""
    command = [sys.executable, __file__, "--child", library, part]
    try:
        output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=limit).stdout
    except subprocess.TimeoutExpired as error:
        output = (error.stdout or b"").decode()
    return dict(json.loads(line) for line in output.splitlines())


def version(library: str) -> str | None:
    try:
        return importlib.metadata.version(DISTRIBUTIONS.get(library, library))
    except importlib.metadata.PackageNotFoundError:
        return None


def shown(seconds: float | None, base: float | None) -> str:
    if seconds is None:
        return "over the limit"
    text = f"{seconds * 1e3:,.2f} ms" if seconds < 1 else f"{seconds:,.2f} s"
    return text if base is None else f"{text} ({seconds / base:,.1f}x)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=20, help="seconds for each library and grammar")
    parser.add_argument("--child", nargs=2, metavar=("LIBRARY", "PART"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child)
        return
    results: dict[str, dict[str, float]] = {}
    versions = {library: version(library) for library in READERS}
    for library, number in versions.items():
        if number is not None:
            results[library] = run(library, "large", arguments.limit) | run(library, "dense", arguments.limit)
    rows: dict[str, str] = {
        "read": f"text of {PRODUCTIONS:,} productions to grammar and PDA *",
        "first": f"membership there: the first word ({LENGTHS[0]} symbols)",
        **{f"new {n}": f"membership there: a new word of {n}" for n in LENGTHS},
        **{f"again {n}": f"membership there: a word of {n} again" for n in LENGTHS},
        **{f"dense {n}": f"S -> S S | a: a word of {n}" for n in DENSE_LENGTHS},
    }
    table = Table(
        title=f"Medians, and times formal_llm's; limit {arguments.limit:g} s; Python {platform.python_version()}"
    )
    table.add_column("")
    for library, number in versions.items():
        table.add_column(f"{library}\n{number or 'not installed'}", justify="right")
    for row, title in rows.items():
        base = results["formal_llm"].get(row)
        cells: list[Any] = []
        for library in READERS:
            own = library == "formal_llm"
            cells.append(shown(results[library].get(row), None if own else base) if library in results else "-")
        table.add_row(title, *cells)
    console = Console(width=150)
    console.print(table)
    console.print(
        "* or what is nearest: pyformlang the same, unchecked; nltk a grammar and a chart parser; lark an LALR parser "
        "(Earley for S S); automata-lib an NPDA made from data, since it reads no grammars."
    )


if __name__ == "__main__":
    main()
