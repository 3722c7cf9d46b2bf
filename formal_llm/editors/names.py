"""The names in the text of rules, found without reading the rules: they are there while a line is half written, too."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from formal_llm.authored.files import read_text
from formal_llm.automata.notation.cfg_syntax import DIRECTIVES, strip_comment
from formal_llm.automata.notation.imports import imported_files, named_files
from formal_llm.automata.notation.pda_lines import DIRECTIVES as PDA_DIRECTIVES
from formal_llm.errors import NotationError
from formal_llm.guard.rules.rule_set import WORDS as GUARD_WORDS

_CLOSED = re.compile(r'"(?:[^"\\]|\\.)*"')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?')


@dataclass(frozen=True, slots=True)
class NamePlace:
    """Where a name stands: the file, and the line and column, counted from 0."""

    file: Path
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Look:
    """How the names of a notation look.

    Attributes:
        word: a name.
        rule: where a name gets its meaning: a rule, a state, a step; the group ``name`` is the name.
        label: where it gets a label.
        words: words of the notation, offered for completion.
        bare: a line without its comment.
    """

    word: re.Pattern[str]
    rule: re.Pattern[str]
    label: re.Pattern[str]
    words: tuple[str, ...] = ()
    bare: Callable[[str], str] = str


def _bare_agent(line: str) -> str:
    kept = re.match(r'(?:[^"#;]|"(?:[^"\\]|\\.)*"?)*', line)
    return kept[0] if kept else line


def _bare_chart(line: str) -> str:
    return "" if line.lstrip().startswith("%%") else line


_CFG = r"(?!%)(?:(?!->|→|::=)[^\s|\"#(),=*+?{}])+"
_PDA = r"(?!->|→)[^\s,\"'#{}%()<>*→]+"
_NODE = r"[^\W\d][\w-]*(?<!-)"
_BOX = rf"(?P<name>{_NODE})\s*(?:@\{{|[\[({{>])"
LOOKS: dict[str, Look] = {
    ".cfg": Look(
        re.compile(_CFG),
        re.compile(rf"^\s*(?P<name>{_CFG})[^|]*?(?:->|→|::=)"),
        re.compile(rf'^\s*(?P<name>{_CFG})\s+(?:"|{_CFG}=)'),
        (*DIRECTIVES, "%import"),
        strip_comment,
    ),
    ".pda": Look(
        re.compile(_PDA),
        re.compile(rf"^\s*(?P<name>{_PDA})\s*,"),
        re.compile(rf'^\s*(?P<name>{_PDA})\s+"'),
        tuple(PDA_DIRECTIVES),
        strip_comment,
    ),
    ".agent": Look(
        re.compile(r"[^\s()\"#;]+"),
        re.compile(r"\(\s*(?P<name>[^\s()\"#;:]+)\s*\(:"),
        re.compile(r"\(define\s+(?P<name>[^\s()\"#;]+)"),
        (":import", ":states", ":text", ":flags", ":env-input", ":numbers", ":limits", ":behavior", "next", "until",
         "or", "and", "not", "always", "eventually"),
        _bare_agent,
    ),
    ".guard": Look(
        re.compile(r"[^\W\d][\w-]*"),
        re.compile(r"^(?P<name>(?!rule\b|tools\b)[^\W\d][\w-]*)\s*:"),
        re.compile(r"^rule\s+(?P<name>[^\W\d][\w-]*)"),
        ("%import", "%limit", *GUARD_WORDS),
        strip_comment,
    ),
    ".mmd": Look(re.compile(_NODE), re.compile(_BOX), re.compile(_BOX), ("subgraph", "end"), _bare_chart),
}  # fmt: skip
LOOKS[".mermaid"] = LOOKS[".mmd"]


class Names:
    """The names in a text and in the files that it imports.

    Args:
        text: the text.
        file: the file it is, or is to be, in; its ending tells the notation.

    Attributes:
        rules: where names have their first rule.
        labels: where they have a label.
        used: where they stand first.
        count: how often they stand there.
    """

    def __init__(self, text: str, file: Path) -> None:
        self.file = file
        self.look = LOOKS.get(file.suffix, LOOKS[".cfg"])
        self._lines = text.split("\n")
        self.rules: dict[str, NamePlace] = {}
        self.labels: dict[str, NamePlace] = {}
        self.used: dict[str, NamePlace] = {}
        self.count: Counter[str] = Counter()
        self._read(text, file)
        if "import" in text:
            for other in _imported(text, file):
                try:
                    self._read(read_text(other), other)
                except NotationError:
                    continue  # told as an error of the import

    def _read(self, text: str, file: Path) -> None:
        for number, line in enumerate(text.split("\n")):
            bare = self.look.bare(line)
            for pattern, found in ((self.look.rule, self.rules), (self.look.label, self.labels)):
                for match in pattern.finditer(bare):
                    found.setdefault(match["name"], NamePlace(file, number, match.start("name")))
            for name, column in self._words(bare):
                self.used.setdefault(name, NamePlace(file, number, column))
                self.count[name] += 1

    def _words(self, bare: str) -> Iterator[tuple[str, int]]:
        """The names of a line; those in texts are none, and neither are the words of a directive."""
        blanked = _STRING.sub(lambda match: " " * len(match[0]), bare)
        if blanked.lstrip().startswith("%"):
            blanked = re.sub(r"^\s*%\w*", lambda match: " " * len(match[0]), blanked)
        return ((match[0], match.start()) for match in self.look.word.finditer(blanked))

    def at(self, line: int, column: int) -> str | None:
        """The name at a place (counted from 0), also right behind it."""
        if not 0 <= line < len(self._lines):
            return None
        words = self._words(self.look.bare(self._lines[line]))
        return next((name for name, begin in words if begin <= column <= begin + len(name)), None)

    def definition(self, name: str) -> NamePlace | None:
        """Where a name gets its meaning: its rule, else its label, else where it stands first."""
        return self.rules.get(name) or self.labels.get(name) or self.used.get(name)

    def imported_at(self, line: int) -> Path | None:
        """The file that a line imports."""
        found = named_files(self._lines[line]) if 0 <= line < len(self._lines) else []
        return (self.file.parent / found[0]).resolve() if found else None

    def completions(self, line: int, column: int) -> list[str]:
        """What may be meant by what is written before a place: directives after a percent sign, else names."""
        before = self._lines[line][:column] if 0 <= line < len(self._lines) else ""
        if re.fullmatch(r"\s*%\w*", before):
            return [word for word in self.look.words if word.startswith("%")]
        if _CLOSED.sub("", before).count('"') or len(self.look.bare(before)) < len(before.rstrip()):
            return []  # in a text or a comment
        begun = re.search(r"[^\s(|,]*$", before)
        own = begun[0] if begun else ""
        names = [name for name in self.used if name != own or self.count[name] > 1]
        return [*names, *(word for word in self.look.words if not word.startswith("%"))]


def _imported(text: str, file: Path) -> Iterator[Path]:
    """The files that a text, which may not be saved yet, imports, and those that these import."""
    seen: set[Path] = set()
    for name in named_files(text):
        first = (file.parent / name).resolve()
        for one in (first, *imported_files(first)):
            if one not in seen:
                seen.add(one)
                yield one
