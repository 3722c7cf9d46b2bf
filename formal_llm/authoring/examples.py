"""Examples of plans beside rules: plans that must be allowed, and plans that must not.

``rules.examples`` is beside ``rules.cfg``, or a file of another notation::

        # Everything before the first line of dashes is a comment.
    --- allowed
    wash dry iron

    --- not allowed: nothing is dried that was not washed
    dry

A line with three dashes starts an example, and the rest of the line is its title. With a title that begins with ``not
allowed``, the rules must refuse the plan; otherwise they must allow it. A plan is the names of its terminals, separated
by blanks or line breaks; a name with blanks is in quotes, and ``ε`` is the empty plan. The plans of prefix grammars are
read as the rules write them, or, with slashes between the names, in the order of carrying out. Beside an agent's file,
the same file may contain transcripts, which :mod:`formal_llm.agents.examples` reads.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path

from formal_llm.authored.files import read_text
from formal_llm.automata import CFG, PDA, Word
from formal_llm.automata.models.symbols import Order, turn_word, unquote_text
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import NotationError, did_you_mean
from formal_llm.planning.plans.vocabulary import SLASH, write_word

#: The file extension of examples.
ENDING = ".examples"
_BEGIN = re.compile(r"^---.*$", re.MULTILINE)
_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')
_REFUSED = re.compile(r"not allowed\b|refused\b", re.IGNORECASE)
_EMPTY = "ε"


@dataclass(frozen=True)
class Section:
    """An example in a text.

    Attributes:
        title: the text after the dashes.
        at: the start of the line of dashes.
        begin, end: the bounds of its text.
    """

    title: str
    at: int
    begin: int
    end: int

    @property
    def allowed(self) -> bool:
        """Whether the rules must allow it."""
        return not _REFUSED.match(self.title)


@dataclass(frozen=True)
class Example:
    """A plan, and whether the rules must allow it.

    Attributes:
        plan: its terminals.
        allowed: whether it must be allowed.
        why: the reason given in the file; empty if there is none.
        line: its line in the file; 0 if it is not from a file.
        order: which way ``plan`` is read.
    """

    plan: Word
    allowed: bool
    why: str = ""
    line: int = 0
    order: Order = "forward"

    def satisfied_by(self, rules: CFG | PDA) -> bool:
        """Return whether the rules agree."""
        word = turn_word(turn_word(self.plan, self.order), rules.order)
        return automaton(rules).accepts(word) == self.allowed

    def __str__(self) -> str:
        return write_word(self.plan, self.order) if self.plan else _EMPTY


def automaton(rules: CFG | PDA) -> PDA:
    """Return the automaton that determines whether a plan is allowed, including limits."""
    return PDA.from_cfg(rules).with_limits(rules.limits) if isinstance(rules, CFG) else rules


def examples_beside(path: str | Path) -> Path | None:
    """Return the file with the examples for a file of rules; None if there is none."""
    beside = Path(path).with_suffix(ENDING)
    return beside if beside.is_file() else None


def sections(source: SourceText) -> tuple[Section, ...]:
    """Return the examples in a text, unparsed.

    Raises:
        NotationError: something other than comments precedes the first example, or there is none.
    """
    text = source.text
    begins = list(_BEGIN.finditer(text))
    suggestion = "begin each with a line of three dashes: ---"
    at = 0
    for line in text[: begins[0].start() if begins else len(text)].split("\n"):
        if line.strip() and not line.startswith("#"):
            source.fail_at("this belongs to no example", source.place_of(at), suggestion=suggestion)
        at += len(line) + 1
    if not begins:
        source.fail_at("there is no example in it", None, suggestion=suggestion)
    ends = [match.start() for match in begins[1:]] + [len(text)]
    return tuple(
        Section(match[0].lstrip("-").strip(), match.start(), match.end(), end)
        for match, end in zip(begins, ends, strict=True)
    )


def plan_of(text: str, terminals: Container[str], order: Order = "forward") -> Word | None:
    """Return the plan in the text of an example; None if it contains anything but names of terminals."""
    words = [unquote_text(word) if word[:1] == '"' else word for word in _NAME.findall(text)]
    steps = [step.strip() for step in text.split(SLASH)]
    if len(steps) > 1 and all(step in terminals for step in steps):
        return tuple(turn_word(steps, order))
    if words == [_EMPTY]:
        return ()
    return tuple(words) if words and all(word in terminals for word in words) else None


def read_plan_examples(
    text: str, rules: CFG | PDA, file: str | None = None, *, others: bool = False
) -> tuple[Example, ...]:
    """Read the plans in a text of examples.

    Args:
        text: the text.
        rules: the rules that the examples belong to.
        file: the name of the file, for messages.
        others: whether other examples (transcripts of agents) are allowed; they are skipped.

    Raises:
        NotationError: there is something other than names of terminals: line, column, the nearest name.
    """
    source = SourceText.from_text(text, file, NotationError)
    examples = []
    for section in sections(source):
        plan = plan_of(source.text[section.begin : section.end], rules.terminals, rules.order)
        if plan is None and not others:
            _raise_unknown(source, section, rules)
        if plan is not None:
            why = section.title.partition(":")[2].strip()
            examples.append(Example(plan, section.allowed, why, source.place_of(section.at).line, rules.order))
    return tuple(examples)


def _raise_unknown(source: SourceText, section: Section, rules: CFG | PDA) -> None:
    for match in _NAME.finditer(source.text, section.begin, section.end):
        name = unquote_text(match[0]) if match[0][:1] == '"' else match[0]
        if name not in rules.terminals:
            nearest = did_you_mean(name, rules.terminals)
            advice = f"did you mean {nearest}?" if nearest else f"there are: {', '.join(list(rules.terminals)[:12])}"
            source.fail_at(f"{name} is no terminal of the rules", source.place_of(match.start()), suggestion=advice)
    source.fail_at(
        "the example is empty", source.place_of(section.at), suggestion=f"write {_EMPTY} for the plan without any step"
    )


def load_plan_examples(path: str | Path, rules: CFG | PDA, *, others: bool = False) -> tuple[Example, ...]:
    """Read the plans beside a file of rules; none if there is no such file. Raises as :func:`read_plan_examples`."""
    beside = examples_beside(path)
    return () if beside is None else read_plan_examples(read_text(beside), rules, str(beside), others=others)


def write_examples(examples: Iterable[Example]) -> str:
    """Return the text of a file of examples, from which they can be read again."""
    sections_text = []
    for one in examples:
        title = "allowed" if one.allowed else "not allowed"
        sections_text.append(f"--- {title}{': ' + ' '.join(one.why.split()) if one.why else ''}\n{one}\n")
    return "\n".join(sections_text)
