"""Rules in controlled English, read without a model, against what their author meant.

For each paragraph of ``plain_rules.toml`` (the half that the reader was tuned on) and of
``plain_rules_held_out.toml`` (the half that nobody tuned it on) the language that is read is compared with the
intended one by :func:`formal_llm.automata.languages.differences`, exactly. Run with ``python
benchmarks/plain_rules.py``; ``-v`` shows the sentences that are not understood, and a shortest plan for each
difference.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from formal_llm.authoring import read_english
from formal_llm.automata import PDA, Limits, constraint
from formal_llm.automata.languages import differences
from formal_llm.automata.notation.limit_lines import read_line
from formal_llm.errors import NotationError

HERE = Path(__file__).parent
HALVES = {"tuned": HERE / "plain_rules.toml", "held out": HERE / "plain_rules_held_out.toml"}


class Paragraph(NamedTuple):
    """Rules in words, and the plans that are meant."""

    words: str
    meant: PDA


def paragraphs(half: str) -> Iterator[Paragraph]:
    """The paragraphs of a half."""
    for row in tomllib.loads(HALVES[half].read_text(encoding="utf-8"))["paragraph"]:
        steps = row["steps"].split()
        meant: PDA | None = None
        for formula in row["formulas"]:
            one = constraint(formula.replace("ALL", "(until any empty)"), steps)
            meant = one if meant is None else meant & one
        assert meant is not None
        limits = Limits()
        for line in row.get("limits", ()):
            limits = limits & read_line(line)
        yield Paragraph(row["words"], meant.with_limits(limits))


def judged(paragraph: Paragraph) -> str:
    """``"exact"``, or what is wrong."""
    try:
        read = read_english(paragraph.words)
    except NotationError as error:
        return f"not understood: {error}"
    found = differences(read.behaviour, paragraph.meant)
    if not found.equal:
        return f"different: only read {found.only_one}, only meant {found.only_other}"
    return "exact" if found.exact else f"equal up to {found.up_to} steps"


def main() -> None:
    verbose = "-v" in sys.argv[1:]
    print(f"{'half':<10}{'paragraphs':>12}{'sentences':>11}{'exact':>8}{'different':>11}{'not understood':>16}")
    for half in list(HALVES)[: 1 if "-t" in sys.argv else 2]:
        verdicts, sentences = [], 0
        for paragraph in paragraphs(half):
            verdict = judged(paragraph)
            sentences += paragraph.words.count(".")
            verdicts.append(verdict.partition(":")[0])
            if verbose and verdict != "exact":
                print(f"  {paragraph.words!r}\n    {verdict}")
        counts = [verdicts.count(kind) for kind in ("exact", "different", "not understood")]
        print(f"{half:<10}{len(verdicts):>12}{sentences:>11}{counts[0]:>8}{counts[1]:>11}{counts[2]:>16}")


if __name__ == "__main__":
    main()
