"""What programs do with their words: the table ``programs.toml``, and how it applies to the words of a command."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.resources import files

from formal_llm.authored.tables import parse_toml
from formal_llm.guard.shell.reader import ShellWord

_NO_OPTIONS: frozenset[str] = frozenset()
_ENVIRONMENT = re.compile(r"([A-Za-z_]\w*)=")


@dataclass(frozen=True, slots=True)
class ShellProgram:
    """An entry of the table; ``programs.toml`` describes the fields."""

    valued: frozenset[str] = _NO_OPTIONS
    flags: frozenset[str] | None = None
    unsafe: frozenset[str] = _NO_OPTIONS
    idle: frozenset[str] = _NO_OPTIONS
    texts: Mapping[str, str] = field(default_factory=dict)
    command: int | None = None
    status: bool = False
    variables: bool = False
    reader: bool = False
    line: frozenset[str] = _NO_OPTIONS
    module: frozenset[str] = _NO_OPTIONS
    file: bool = False
    project: str = ""
    code: frozenset[str] = _NO_OPTIONS
    modules: bool = False
    subcommands: bool = False
    folder: frozenset[str] = _NO_OPTIONS
    bundle: bool = False
    reads: str = ""
    writes: str = ""
    deletes: str = ""
    ins: frozenset[str] = _NO_OPTIONS
    out: frozenset[str] = _NO_OPTIONS
    writes_if: frozenset[str] = _NO_OPTIONS
    deletes_if: frozenset[str] = _NO_OPTIONS

    @property
    def stops_early(self) -> bool:
        """Whether the options of the program end at its first operand that belongs to another program."""
        return self.command is not None or self.subcommands or self.file


@cache
def read_programs() -> Mapping[str, ShellProgram]:
    """Read the table: each program, and each subcommand as ``git push``, by its name."""
    rows = parse_toml(files(__package__).joinpath("programs.toml").read_text(encoding="utf-8"), "programs.toml")[
        "program"
    ]
    kinds = {one.name: str(one.type) for one in fields(ShellProgram)}
    programs: dict[str, ShellProgram] = {}
    for row in rows:
        names = row.pop("names").split()
        given = {"ins" if key == "in" else key.replace("-", "_"): value for key, value in row.items()}
        sets = {key: frozenset(value.split()) for key, value in given.items() if "frozenset" in kinds[key]}
        # An option whose value is a file takes a value.
        sets["valued"] = sets.get("valued", _NO_OPTIONS) | sets.get("out", _NO_OPTIONS) | sets.get("ins", _NO_OPTIONS)
        program = replace(ShellProgram(), **(given | sets))
        programs.update((name.replace("+", " "), program) for name in names)
    return programs


@dataclass(slots=True)
class ProgramWords:
    """The words of a program, apart.

    Attributes:
        options: its options with their values.
        operands: its operands, up to the words of another program.
        rest: the words of another program, or of a subcommand.
        variables: the variables that are set for the other program.
        doubts: why it may run something that is not listed.
    """

    options: list[tuple[str, ShellWord | None]] = field(default_factory=list)
    operands: list[ShellWord] = field(default_factory=list)
    rest: list[ShellWord] = field(default_factory=list)
    variables: list[ShellWord] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)

    def find_values(self, names: Iterable[str]) -> Iterator[ShellWord]:
        """Find the values of some options."""
        return (value for name, value in self.options if name in names and value is not None)

    def has_option(self, names: Iterable[str]) -> bool:
        """Return whether one of some options is given."""
        return any(name in names for name, _ in self.options)


def split_words(program: ShellProgram, words: list[ShellWord]) -> ProgramWords:
    """Split the words behind the name of a program."""
    found = ProgramWords()
    left = list(words)
    if program.bundle and left and left[0].known and left[0].text[:1].isalpha():
        for letter in left[0].text:  # their values come behind all of them
            _check_option(program, f"-{letter}", found)
        left[0] = ShellWord(f"-{left[0].text}")
    careful = bool(program.unsafe) or program.flags is not None
    while left:
        word = left.pop(0)
        if word.known and word.text == "--":
            found.operands += left if not program.stops_early else []
            found.rest = left if program.stops_early else []
            break
        if word.text[:1] == "-" and len(word.text) > 1:
            _read_option(program, word, left, found)
            if found.options[-1][0] in program.module:
                found.rest = left
                break
        elif program.variables and not found.rest and _ENVIRONMENT.match(word.text):
            found.variables.append(word)
        elif program.stops_early and len(found.operands) >= (program.command or 0):
            found.rest = [word, *left]
            break
        else:
            if careful and not word.known and word.text.lstrip("'\"")[:1] in "$`*?[{":
                found.doubts.append(f"{word.text[:60]} may be an option")
            found.operands.append(word)
    if program.command is not None and found.rest and len(found.operands) < program.command:
        missing = program.command - len(found.operands)  # they are behind "--"
        found.operands += found.rest[:missing]
        found.rest = found.rest[missing:]
    _check_texts(program, found)
    return found


def _read_option(program: ShellProgram, word: ShellWord, left: list[ShellWord], found: ProgramWords) -> None:
    """Read a word of options, and its value from the next word if it has one."""
    text = word.text
    name, sign, value = text.partition("=")
    if program.flags is not None and re.fullmatch(r"-\d+", text) and "-9" in program.flags:
        found.options.append((text, None))
    elif text.startswith("--") or name in program.unsafe | program.valued | program.idle | program.module:
        name = _complete_option(program, name)
        _check_option(program, name, found)
        takes = name in program.valued
        attached = ShellWord(value, word.known) if sign else None
        found.options.append((name, attached or (left.pop(0) if takes and left else None)))
    else:
        for place, letter in enumerate(text[1:], 1):
            name, behind = f"-{letter}", text[place + 1 :]
            _check_option(program, name, found)
            takes = name in program.valued
            if takes or f"{name}?" in program.valued:
                attached = ShellWord(behind, word.known) if behind else None
                found.options.append((name, attached or (left.pop(0) if takes and left else None)))
                break
            found.options.append((name, None))
    if not word.known and program.flags is None and not sign:
        found.doubts.append(f"{text[:60]} is only known when it runs")


def _complete_option(program: ShellProgram, name: str) -> str:
    """Return the whole name of a long option that may be abbreviated, or written with one dash in the table."""
    listed = [*program.unsafe, *program.texts, *program.valued, *program.idle, *program.out, *program.ins]
    names = [one.rstrip("?") for one in listed] + [*(program.flags or ()), *program.writes_if, *program.folder]
    if name in names:
        return name
    return next((one for one in names if len(one) > 2 and one.lstrip("-").startswith(name.lstrip("-"))), name)


def _check_option(program: ShellProgram, name: str, found: ProgramWords) -> None:
    listed = {one.rstrip("?") for one in program.valued} | (program.flags or _NO_OPTIONS) | program.idle
    exact = name in listed
    if name in program.unsafe:
        found.doubts.append(f"its option {name} may run anything")
    elif program.flags is not None and not exact:
        found.doubts.append(f"its option {name} is not listed")


def _check_texts(program: ShellProgram, found: ProgramWords) -> None:
    """Report the texts that do not match the patterns of a program."""
    given = [(name, value) for name, value in found.options if name in program.texts and value is not None]
    if _takes_first_text(program, found):
        given += [("", word) for word in found.operands[:1]]
    if "*" in program.texts:
        given += [("*", word) for word in found.operands]
    for name, word in given:
        pattern = program.texts[name] or program.texts[""]
        if pattern == "(?s).*":
            continue
        if not word.known or re.fullmatch(pattern, word.text) is None:
            found.doubts.append(f"{word.text[:60]!r} may run something")


def _takes_first_text(program: ShellProgram, found: ProgramWords) -> bool:
    """Return whether the first operand is a text of the program: no option gives such a text."""
    same = ("", program.texts.get(""))
    return "" in program.texts and not any(program.texts.get(name, name) in same for name, _ in found.options)


def select_operands(program: ShellProgram, found: ProgramWords, which: str) -> list[ShellWord]:
    """Select the operands that are paths of one kind: ``all``, ``first``, ... as in the table."""
    operands = found.operands
    target = found.has_option(program.out) and bool(program.out & {"-t"})
    match which:
        case "all":
            return operands
        case "first":
            return operands[:1]
        case "last":
            return [] if target else operands[-1:]
        case "init":
            return operands if target else operands[:-1]
        case "rest":
            return operands if "" in program.texts and not _takes_first_text(program, found) else operands[1:]
    if which.endswith("="):
        return [ShellWord(one.text[len(which) :], one.known) for one in operands if one.text.startswith(which)]
    return [ShellWord(one) for one in which.split()]
