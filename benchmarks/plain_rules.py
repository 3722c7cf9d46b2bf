"""Rules in controlled English, read without a model, against what their author meant.

For each paragraph of ``plain_rules*.toml`` the language that is read is compared with the
intended one by :func:`formal_llm.automata.languages.differences`, exactly. Run with ``python
benchmarks/plain_rules.py``; ``-v`` shows the sentences that are not understood, and a shortest plan for each
difference. Single sentences of people who had not seen the patterns follow (:mod:`benchmarks.sentence_sets`); with
files of such sentences, ``python benchmarks/plain_rules.py FILE.jsonl``, only these are read.
"""

from __future__ import annotations

import functools
import operator
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from benchmarks.sentence_sets import report, sets
from formal_llm.authoring import read_english
from formal_llm.automata import PDA, Limits, constraint
from formal_llm.automata.languages import differences
from formal_llm.automata.languages.spelling import spelling_key
from formal_llm.automata.notation.limit_lines import read_line
from formal_llm.errors import NotationError

HERE = Path(__file__).parent
FILES = {
    "tuned": HERE / "plain_rules.toml",
    "held out": HERE / "plain_rules_held_out.toml",
    "everyday": HERE / "plain_rules_everyday.toml",
    "everyday, held out": HERE / "plain_rules_everyday_held_out.toml",
    "everyday 2": HERE / "plain_rules_everyday_2.toml",
}


class Paragraph(NamedTuple):
    """Rules in words, and the plans that are meant: formulas over steps, and limits."""

    words: str
    steps: tuple[str, ...]
    formulas: tuple[str, ...]
    limits: tuple[str, ...]

    def meant(self, spelled: Mapping[str, str]) -> PDA:
        """The plans that are meant, each step spelled as ``spelled`` says."""

        def renamed(text: str) -> str:
            return re.sub(r"[^\s()]+", lambda found: spelled.get(found[0], found[0]), text)

        steps = [renamed(step) for step in self.steps]
        formulas = [renamed(formula).replace("ALL", "(until any empty)") for formula in self.formulas]
        limits = Limits()
        for line in self.limits:
            limits = limits & read_line(renamed(line))
        rules = (constraint(formula, steps) for formula in formulas)
        return functools.reduce(operator.and_, rules).with_limits(limits)


def paragraphs(kind: str) -> Iterator[Paragraph]:
    """The paragraphs of a file."""
    for row in tomllib.loads(FILES[kind].read_text(encoding="utf-8"))["paragraph"]:
        yield Paragraph(row["words"], tuple(row["steps"].split()), tuple(row["formulas"]), tuple(row.get("limits", ())))


def judged(paragraph: Paragraph) -> str:
    """``"exact"``, or what is wrong.

    The forms of one name are one step: whether it is called ``book_hotel`` or ``booking_hotel`` does not matter.
    """
    try:
        read = read_english(paragraph.words)
    except NotationError as error:
        return f"not understood: {error}"
    names = {_form(name): name for name in read.steps}
    found = differences(
        read.behaviour, paragraph.meant({step: names.get(_form(step), step) for step in paragraph.steps})
    )
    if not found.equal:
        told = " (a step that may be another is told)" if read.doubts else ""
        return f"different{told}: only read {found.only_one}, only meant {found.only_other}"
    return "exact" if found.exact else f"equal up to {found.up_to} steps"


def _form(name: str) -> str:
    return name if "=" in name else spelling_key(name)


def main() -> None:
    verbose = "-v" in sys.argv[1:]
    files = [Path(name) for name in sys.argv[1:] if name.endswith(".jsonl")]
    if not files:
        _compare_paragraphs(verbose)
        print()
    named = {path.stem: (path, None) for path in files} or sets()
    print(f"{'sentences':<44}{'sentences':>10}{'read':>6}{'refused':>9}{'examples disagree':>19}")
    for name, (path, held_out) in named.items():
        print(f"{name}{'' if held_out is None else ', held out' if held_out else ', tuned on'}")
        for line in report(path, verbose):
            print(line)


def _compare_paragraphs(verbose: bool) -> None:
    print(f"{'file':<20}{'paragraphs':>12}{'sentences':>11}{'exact':>8}{'different':>11}{'not understood':>16}")
    for kind in FILES:
        verdicts, sentences = [], 0
        for paragraph in paragraphs(kind):
            verdict = judged(paragraph)
            sentences += paragraph.words.count(".")
            verdicts.append(verdict.partition(":")[0].partition(" (")[0])
            if verbose and verdict != "exact":
                print(f"  {paragraph.words!r}\n    {verdict}")
        counts = [verdicts.count(one) for one in ("exact", "different", "not understood")]
        print(f"{kind:<20}{len(verdicts):>12}{sentences:>11}{counts[0]:>8}{counts[1]:>11}{counts[2]:>16}")


if __name__ == "__main__":
    main()
