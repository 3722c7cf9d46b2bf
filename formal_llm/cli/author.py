"""``formal-llm author``: rules from plain words, accepted by examples."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from formal_llm.authored.files import read_text
from formal_llm.authoring import (
    AuthoredRules,
    Candidate,
    Draft,
    Example,
    StopReview,
    author,
    load_plan_examples,
    write_examples,
)  # fmt: skip
from formal_llm.authoring.drafts import ENDINGS
from formal_llm.authoring.examples import ENDING
from formal_llm.automata import CFG, PDA
from formal_llm.automata.models.symbols import turn_word
from formal_llm.cli.console import check_writable, command, counted, err, print_text
from formal_llm.cli.sources import load, read_words
from formal_llm.errors import FormalLLMError, NotAuthored

HELP = """Write rules from plain words, and accept them by examples.

A model drafts (--llm), and what the checker finds goes back to it until the draft is clean. Without a model the words
have to be rules in sentences: a line "steps: wash, dry, iron", then lines such as "wash before dry" and "at most 2
iron". Then plans are shown, and you say whether they should be allowed: y, n, Enter to skip, q to end. Your answers are
kept beside the rules, in NAME.examples; `formal-llm check` runs them from then on.

RULES is the text, @FILE for the text in a file, or - for standard input.

Examples:

  formal-llm author "Wash before you dry. Iron at most twice." --out laundry.rules --llm openai:MODEL

  formal-llm author "steps: wash, dry, iron. wash before dry. at most 2 iron." --out laundry.rules
"""


@command
def author_(
    rules: Annotated[str, typer.Argument(metavar="RULES", help="The rules in words; @FILE, or - for standard input.")],
    out: Annotated[
        Path,
        typer.Option(
            help="The file that is written: .rules, .cfg, .mmd, .pda, .agent; without an ending the model picks."
        ),
    ],
    llm: Annotated[
        str | None, typer.Option("--llm", help="Who drafts; without it the words are rules in sentences.")
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, help="How often the model may write, corrections included.")] = 5,
    drafts: Annotated[int, typer.Option(min=1, help="How many drafts of the model are compared.")] = 1,
    plans: Annotated[
        int, typer.Option(min=0, help="How many plans are shown, beside those on which rules differ.")
    ] = 6,
    yes: Annotated[bool, typer.Option("--yes", help="Show nothing; take the rules as they are.")] = False,
) -> None:
    """Write rules from plain words."""
    words = read_words(rules)
    if out.suffix and out.suffix not in ENDINGS:
        raise FormalLLMError(f"--out {out}: the ending {out.suffix} is no notation; there are: {', '.join(ENDINGS)}")
    if llm is None and out.suffix not in ("", ".rules"):
        raise FormalLLMError(f"without --llm, rules are sentences: --out {out.with_suffix('.rules')}")
    known = out if out.suffix else out.with_suffix(".rules")
    check_writable(known)
    old, previous, examples = _load_previous(known)
    log = _Log(out)
    # An answer is kept at once: no answer of the author is lost.
    person = None if yes or rules == "-" else _Person(known.with_suffix(ENDING))
    try:
        made = author(
            words, llm, notation=out.suffix or None, attempts=attempts, drafts=drafts, examples=examples,
            previous=previous, reviewer=person, max_plans=plans, on_draft=log.note,
        )  # fmt: skip
    except NotAuthored:
        err().print(f"what was tried is in {log.path}")
        raise
    path = out.with_suffix(made.ending)
    if old is not None and old != made.text:
        kept = path.with_name(path.name + ".old")
        kept.write_text(old, encoding="utf-8")
        err().print(f"the old rules are in {kept}")
    path.write_text(made.text, encoding="utf-8")
    log.path.unlink(missing_ok=True)
    _tell(made, path)


def _load_previous(path: Path) -> tuple[str | None, CFG | PDA | None, Sequence[Example]]:
    """The old rules of that name, and the examples beside them, where there are any."""
    if not path.is_file():
        return None, None, ()
    source = load(str(path)).whole
    return read_text(path), source, load_plan_examples(path, source, others=True)


def _tell(made: AuthoredRules, path: Path) -> None:
    for warning in made.warnings:
        err().print(f"warning: {warning}", style="yellow")
    print_text(f"written        {path}")
    if made.drafts:
        print_text(f"drafts         {len(made.drafts)}")
    if made.examples:
        print_text(f"examples       {len(made.examples)}, in {path.with_suffix(ENDING)}")
    for one in made.violated:
        print_text(f"not kept       {'should be allowed' if one.allowed else 'should not be allowed'}: {one}")
    if made.violated:
        err().print(
            "say it in other words, or mend the file by hand; formal-llm check tells when the examples are kept",
        )
        raise typer.Exit(1)


class _Log:
    """The drafts so far, in a file beside the one that is to be written: there they are whatever happens."""

    def __init__(self, out: Path) -> None:
        self.path = out.with_name(out.name + ".drafts")
        self._number = 0

    def note(self, draft: Draft) -> None:
        """Put a draft at the end of the file."""
        self._number += 1
        problems = [*draft.problems, *draft.warnings] or ["nothing"]
        notes = "\n".join(f"# found: {' '.join(problem.split())}" for problem in problems)
        with self.path.open("w" if self._number == 1 else "a", encoding="utf-8") as file:
            file.write(
                f"# ---- draft {self._number} ({draft.ending or 'no notation'})\n{notes}\n{draft.text.rstrip()}\n\n"
            )
        err().print(f"draft {self._number}: {counted(len(draft.problems + draft.warnings), 'finding')}")


class _Person:
    """Asks the person at the terminal, and keeps the answers."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begun = False

    def __call__(self, plan: Candidate) -> bool | None:
        """The person's verdict on a plan."""
        console = err()
        if not self._begun:
            console.print("Should these plans be allowed? y, n, Enter to skip, q to end")
            self._begun = True
        shown = Example(plan.plan, plan.allowed, order=plan.order)
        console.print(f"\n  {shown}")
        if any(
            label.casefold() != name.replace("_", " ").casefold()
            for name, label in zip(turn_word(plan.plan, plan.order), plan.labels, strict=True)
        ):
            console.print(f"  ({' / '.join(plan.labels)})")
        console.print(f"  {plan.why}; the rules {'allow' if plan.allowed else 'refuse'} it")
        while True:
            sys.stderr.write("> ")
            sys.stderr.flush()
            line = sys.stdin.readline()
            reply = line.strip().casefold()
            if not line or reply in ("q", "quit"):
                raise StopReview
            if reply in ("", "y", "yes", "n", "no"):
                break
            console.print("y, n, Enter, or q")
        if not reply:
            return None
        allowed = reply[0] == "y"
        before = read_text(self._path).rstrip("\n") + "\n\n" if self._path.is_file() else ""
        self._path.write_text(before + write_examples([replace(shown, allowed=allowed)]), encoding="utf-8")
        return allowed
