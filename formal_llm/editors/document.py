"""The text of rules as an editor sees it: what is wrong where, and what a name means."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal
from warnings import catch_warnings

from formal_llm.authored.files import read_text
from formal_llm.automata import CFG, PDA, Limits, Lookahead
from formal_llm.automata.languages.word_lists import count_plans
from formal_llm.automata.models.behaviour import Behaviour
from formal_llm.automata.models.flowchart import Flowchart
from formal_llm.automata.models.rules import Rules
from formal_llm.automata.models.symbols import Symbol
from formal_llm.automata.notation.cfg_syntax import DIRECTIVES, strip_comment
from formal_llm.automata.notation.files import DIAGRAMS, read_rules_text
from formal_llm.automata.notation.imports import imported_files, named_files
from formal_llm.automata.notation.pda_lines import DIRECTIVES as PDA_DIRECTIVES
from formal_llm.errors import FormalLLMError, GrammarWarning, NotationError, Undecided
from formal_llm.guard.rules.reading import read_rules as read_guard
from formal_llm.guard.rules.rule_set import WORDS as GUARD_WORDS
from formal_llm.procedures.diagrams import declares_tools, read_diagram
from formal_llm.procedures.reading import WORDS as PROCEDURE_WORDS
from formal_llm.procedures.reading import read_procedure

_CLOSED = re.compile(r'"(?:[^"\\]|\\.)*"')
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?')


@dataclass(frozen=True, slots=True)
class NamePlace:
    """An occurrence of a name: the file, and the line and column, counted from 0."""

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
        (":import", ":states", ":text", ":flags", ":env-input", ":world", ":numbers", ":limits", ":behavior", "next",
         "until", "or", "and", "not", "always", "eventually"),
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
_DECLARED = re.compile(r"^(?:(?:goal\s+)?(?:check|action)|fact|constant)\s+(?P<name>[^\W\d]\w*)")
LOOKS[".procedure"] = Look(re.compile(r"[^\W\d]\w*"), _DECLARED, _DECLARED, PROCEDURE_WORDS, strip_comment)


class Names:
    """The names in a text and in the files that it imports.

    Args:
        file: the file it is, or is to be, in; its ending determines the notation.

    Attributes:
        rules: where names have their first rule.
        labels: where they have a label.
        used: where they occur first.
        count: how often they occur.
    """

    def __init__(self, text: str, file: Path) -> None:
        self.file = file
        self.look = LOOKS.get(file.suffix, LOOKS[".cfg"])
        self._lines = text.split("\n")
        self.rules: dict[str, NamePlace] = {}
        self.labels: dict[str, NamePlace] = {}
        self.used: dict[str, NamePlace] = {}
        self.count: Counter[str] = Counter()
        self._collect_names(text, file)
        if "import" in text:
            for other in _find_imported_files(text, file):
                try:
                    self._collect_names(read_text(other), other)
                except NotationError:
                    continue  # reported as an error of the import

    def _collect_names(self, text: str, file: Path) -> None:
        for number, line in enumerate(text.split("\n")):
            bare = self.look.bare(line)
            for pattern, found in ((self.look.rule, self.rules), (self.look.label, self.labels)):
                for match in pattern.finditer(bare):
                    found.setdefault(match["name"], NamePlace(file, number, match.start("name")))
            for name, column in self._find_names(bare):
                self.used.setdefault(name, NamePlace(file, number, column))
                self.count[name] += 1

    def _find_names(self, bare: str) -> Iterator[tuple[str, int]]:
        """The names of a line; those in texts are none, and neither are the words of a directive."""
        blanked = _STRING.sub(lambda match: " " * len(match[0]), bare)
        if blanked.lstrip().startswith("%"):
            blanked = re.sub(r"^\s*%\w*", lambda match: " " * len(match[0]), blanked)
        return ((match[0], match.start()) for match in self.look.word.finditer(blanked))

    def at(self, line: int, column: int) -> str | None:
        """The name at a place (counted from 0), also right behind it."""
        if not 0 <= line < len(self._lines):
            return None
        words = self._find_names(self.look.bare(self._lines[line]))
        return next((name for name, begin in words if begin <= column <= begin + len(name)), None)

    def definition(self, name: str) -> NamePlace | None:
        """Where a name gets its meaning: its rule, else its label, else its first occurrence."""
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


def _find_imported_files(text: str, file: Path) -> Iterator[Path]:
    """The files that a text, which may not be saved yet, imports, and those that these import."""
    seen: set[Path] = set()
    for name in named_files(text):
        first = (file.parent / name).resolve()
        for one in (first, *imported_files(first)):
            if one not in seen:
                seen.add(one)
                yield one


#: With more productions plans are not counted while somebody points at a name.
_MOST = 2_000
#: How many productions of a symbol are shown.
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class DocumentFinding:
    """Something wrong, or that looks wrong; lines and columns are counted from 0."""

    line: int
    column: int
    end: int
    severity: Literal["error", "warning"]
    message: str


class Document:
    """A text of rules.

    Args:
        file: the file that it is, or is to be, in; its ending determines the notation, and imports are relative to it.
        before: the document as it was: while the text cannot be read, names mean what they meant then.
    """

    def __init__(self, text: str, file: str | Path, before: Document | None = None) -> None:
        self.text = text
        self.file = Path(file)
        self.names = Names(text, self.file)
        self.rules: Rules | None = None
        self.findings: tuple[DocumentFinding, ...] = tuple(self._read_rules())
        if self.rules is None and before is not None:
            self.rules = before.rules

    def _read_rules(self) -> list[DocumentFinding]:
        """Read the rules; return the reports about them."""
        found = []
        with catch_warnings(record=True, action="always") as caught:
            try:
                if self.file.suffix == ".guard":
                    read_guard(self.text, str(self.file))
                elif self.file.suffix == ".procedure":
                    read_procedure(self.text, str(self.file))
                elif self.file.suffix in DIAGRAMS and declares_tools(self.text):
                    read_diagram(self.text, str(self.file))
                else:
                    self.rules = read_rules_text(self.text, self.file)
            except NotationError as error:
                message = [error.problem, *([f"expected: {', '.join(error.expected)}"] if error.expected else [])]
                message += [error.suggestion] if error.suggestion else []
                found.append(self._build_finding(error, "error", "\n".join(message)))
            except (FormalLLMError, ValueError) as error:
                found.append(DocumentFinding(0, 0, 1, "error", str(error)))
        warned = [one.message for one in caught if isinstance(one.message, GrammarWarning)]
        return found + [self._build_finding(one, "warning", one.problem) for one in warned]

    def _build_finding(
        self, problem: NotationError | GrammarWarning, severity: Literal["error", "warning"], message: str
    ) -> DocumentFinding:
        lines = self.text.split("\n")
        if problem.file is not None and problem.file != str(self.file):
            # It is reported where the other file is imported.
            place = "" if problem.line is None else f":{problem.line}:{problem.column}"
            other = Path(problem.file).resolve()
            named = {number: self.names.imported_at(number) for number in range(len(lines))}
            line = next((n for n, path in named.items() if path == other), None)
            line = next((n for n, path in named.items() if path), 0) if line is None else line
            return DocumentFinding(line, 0, len(lines[line]), severity, f"{problem.file}{place}: {message}")
        line = min((problem.line or 1) - 1, len(lines) - 1)
        column = min((problem.column or 1) - 1, len(lines[line]))
        name = self.names.at(line, column)
        return DocumentFinding(
            line, column, column + max(1, len(name or "") if column < len(lines[line]) else 1), severity, message
        )

    # -- what names mean ----------------------------------------------------------------------------------------

    def hover(self, line: int, column: int) -> str | None:
        """What is known of the name at a place, as Markdown; None where there is no name."""
        name = self.names.at(line, column)
        if name is None or name not in self.names.used:
            return None
        if isinstance(self.rules, CFG):
            return self._describe_in_grammar(self.rules, name)
        return self._describe_in_automaton(name)

    def _describe_in_grammar(self, cfg: CFG, name: str) -> str | None:
        kind = "nonterminal" if name in cfg.nonterminals else "terminal" if name in cfg.terminals else None
        if kind is None:
            return None
        lines = [
            f"**{name}** ({'start symbol' if name == cfg.start else kind})",
            *_describe_symbol(cfg.symbols.get(name)),
        ]
        if kind == "terminal":
            lines += [f"`{one}`" for one in cfg.limits.lines() if name in one.split()]
            return "\n\n".join(lines)
        rules = [str(production) for production in cfg.by_head[name]]
        more = [f"and {len(rules) - _SHOWN} more"] if len(rules) > _SHOWN else []
        lines.append("\n".join(["```", *rules[:_SHOWN], *more, "```"]))
        return "\n\n".join([*lines, *self._count_plans(cfg, name)])

    def _count_plans(self, cfg: CFG, name: str) -> list[str]:
        if len(cfg.productions) > _MOST:
            return []
        if name not in self._counts:
            what = "plans" if name == cfg.start else "what it can be, limits aside"
            # What is required of a whole plan is not required of a part.
            own = cfg if name == cfg.start else cfg.with_start(name).with_limits(Limits())
            try:
                self._counts[name] = f"{what}: {count_plans(Lookahead(own)).describe_count('of at most {} terminals')}"
            except Undecided:
                self._counts[name] = f"{what}: too many to count"
        return [self._counts[name]]

    @cached_property
    def _counts(self) -> dict[str, str]:
        return {}

    def _describe_in_automaton(self, name: str) -> str | None:
        lines = [f"**{name}**"]
        if isinstance(self.rules, Behaviour) and name in self.rules.states:
            state = self.rules.states[name]
            lines += ["state", *([state.text] if state.text else []), *sorted(f":{flag}" for flag in state.flags)]
        elif isinstance(self.rules, Flowchart) and name in {node.id for node in self.rules.nodes}:
            node = next(node for node in self.rules.nodes if node.id == name)
            lines += [self.rules.kind(name), *([node.text] if node.text else [])]
        elif isinstance(self.rules, PDA):
            if name in map(str, self.rules.states):
                lines.append("state, " + ("final" if name in map(str, self.rules.accepting_states) else "not final"))
            if name in self.rules.terminals:
                lines += ["terminal", *_describe_symbol(self.rules.symbols.get(name))]
        return "\n\n".join(lines) if len(lines) > 1 else None


def _describe_symbol(symbol: Symbol | None) -> list[str]:
    if symbol is None:
        return []
    numbers = ", ".join(f"{quantity} = {amount}" for quantity, amount in symbol.numbers.items())
    return [part for part in (symbol.label, symbol.description, numbers) if part]
