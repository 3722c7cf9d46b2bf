"""Examples of plans beside rules: those that must be allowed, and those that must not.

``rules.examples`` lies beside ``rules.cfg``, or whatever notation the rules have::

    # What stands before the first line of dashes is a comment.
    --- allowed
    wash dry iron

    --- not allowed: nothing is dried that was not washed
    dry

A line that begins with three dashes begins an example. What follows is its title; one that begins with ``not allowed``
is a plan that the rules must refuse, every other one must be allowed. A plan is the names of its terminals, between
blanks or on lines; a name with blanks stands in quotes, and ``ε`` is the plan without any step. Beside an agent's file
the same file may hold transcripts, which are read by :mod:`formal_llm.agents.examples`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path

from formal_llm.authored.files import read_text
from formal_llm.automata import CFG, PDA, Word
from formal_llm.automata.models.symbols import unquote_text
from formal_llm.automata.notation.source import SourceText
from formal_llm.errors import NotationError, did_you_mean
from formal_llm.planning.plans.vocabulary import write_word

#: The ending of files with examples.
ENDING = ".examples"
_BEGIN = re.compile(r"^---.*$", re.MULTILINE)
_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')
_REFUSED = re.compile(r"not allowed\b|refused\b", re.IGNORECASE)
_EMPTY = "ε"


@dataclass(frozen=True)
class Section:
    """An example as it is written.

    Attributes:
        title: what stands behind the dashes.
        at: where the line of dashes begins.
        begin, end: where its text is.
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
        why: what is said of it in the file; nothing where nothing is said.
        line: where it stands in its file; 0 for one from nowhere.
    """

    plan: Word
    allowed: bool
    why: str = ""
    line: int = 0

    def kept(self, rules: CFG | PDA) -> bool:
        """Whether the rules say the same."""
        return automaton(rules).accepts(self.plan) == self.allowed

    def __str__(self) -> str:
        return write_word(self.plan) if self.plan else _EMPTY


def automaton(rules: CFG | PDA) -> PDA:
    """What says whether a plan is allowed, limits included."""
    return PDA.from_cfg(rules).with_limits(rules.limits) if isinstance(rules, CFG) else rules


def examples_beside(path: str | Path) -> Path | None:
    """The file with the examples for a file of rules; None where there is none."""
    beside = Path(path).with_suffix(ENDING)
    return beside if beside.is_file() else None


def sections(source: SourceText) -> tuple[Section, ...]:
    """The examples in a text, as they are written.

    Raises:
        NotationError: something that is no comment stands before the first one, or there is none.
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


def plan_of(text: str, terminals: Container[str]) -> Word | None:
    """The plan that the text of an example is; None where it holds anything but names of terminals."""
    words = [unquote_text(word) if word[:1] == '"' else word for word in _NAME.findall(text)]
    if words == [_EMPTY]:
        return ()
    return tuple(words) if words and all(word in terminals for word in words) else None


def read_plan_examples(
    text: str, rules: CFG | PDA, file: str | None = None, *, others: bool = False
) -> tuple[Example, ...]:
    """The plans that a text of examples holds.

    Args:
        text: the text.
        rules: whose examples they are.
        file: the name of the file, for messages.
        others: whether there may be examples that are no plans (transcripts of agents); they are left out.

    Raises:
        NotationError: something else stands there than names of terminals: line, column, the nearest name.
    """
    source = SourceText.from_text(text, file, NotationError)
    found = []
    for section in sections(source):
        plan = plan_of(source.text[section.begin : section.end], rules.terminals)
        if plan is None and not others:
            _raise_unknown(source, section, rules)
        if plan is not None:
            why = section.title.partition(":")[2].strip()
            found.append(Example(plan, section.allowed, why, source.place_of(section.at).line))
    return tuple(found)


def _raise_unknown(source: SourceText, section: Section, rules: CFG | PDA) -> None:
    for match in _NAME.finditer(source.text, section.begin, section.end):
        name = unquote_text(match[0]) if match[0][:1] == '"' else match[0]
        if name not in rules.terminals:
            near = did_you_mean(name, rules.terminals)
            known = f"did you mean {near}?" if near else f"there are: {', '.join(list(rules.terminals)[:12])}"
            source.fail_at(f"{name} is no terminal of the rules", source.place_of(match.start()), suggestion=known)
    source.fail_at(
        "the example is empty", source.place_of(section.at), suggestion=f"write {_EMPTY} for the plan without any step"
    )


def load_plan_examples(path: str | Path, rules: CFG | PDA, *, others: bool = False) -> tuple[Example, ...]:
    """The plans beside a file of rules; nothing where there is no such file. Raises as :func:`read_plan_examples`."""
    beside = examples_beside(path)
    return () if beside is None else read_plan_examples(read_text(beside), rules, str(beside), others=others)


def write_examples(examples: Iterable[Example]) -> str:
    """The text of a file of examples, from which they are read back."""
    made = []
    for one in examples:
        title = "allowed" if one.allowed else "not allowed"
        made.append(f"--- {title}{': ' + ' '.join(one.why.split()) if one.why else ''}\n{one}\n")
    return "\n".join(made)
