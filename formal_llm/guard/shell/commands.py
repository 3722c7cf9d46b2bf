"""The commands that a shell line runs, and the files it changes, as data for rules.

::

    >>> shell_data("cd /tmp && sudo -u bob git -C repo push")["commands"][-1]
    ['git', 'push']

A command is listed in every form that a rule may look for: as written, without the folder of its program, without a
program that only runs it (``sudo``, ``env``, ``xargs``, ``timeout`` ...), and, for programs with subcommands, without
the options before the subcommand. So a rule that forbids ``git push`` finds it in one of these forms, and a rule that
allows only some programs has to allow all forms.

What programs do with their words is decided by a table (:mod:`formal_llm.guard.shell.programs`): a program that is not
in it may run anything, so it is reported in ``unknown``.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

from formal_llm.guard.shell.paths import find_project, is_inside_folder, locate_path, shorten_path
from formal_llm.guard.shell.programs import ProgramWords, ShellProgram, read_programs, select_operands, split_words
from formal_llm.guard.shell.reader import COMMAND_IN_TEXT, MOST_SIGNS, ShellWord, SimpleCommand, find_sets, read_simple
from formal_llm.planning.json_data import JSON

_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "rbash"))
#: Where programs with well-known names are well known.
_PROGRAM_FOLDERS = re.compile(
    r"/(?:usr/(?:local/)?|opt/homebrew/)?s?bin/|(?:.*/)?(?:\.?venv|env|\.tox/\w+)/bin/|(?:.*/)?node_modules/\.bin/"
)
_ACTIVATE = re.compile(r"(?:.*/)?(?:\.?venv|env)/bin/activate")
#: Variables that change nothing about what programs run, values that never do, and variables that do where they are
#: exported already.
_SAFE_VARIABLE = re.compile(
    r"(?!GIT|LD|DYLD|BASH|NPM|npm|MAKE|PERL|RUBY|JAVA|TAR|LESS|CARGO_BUILD|RUSTC|CC$|CXX$|AR$|RM$|ENV$|IFS$|PS\d"
    r"|AWS_(?:CONFIG|SHARED)|OMP_TOOL|CUDA_INJECTION|TF_CLI_CONFIG)"
    r"(?:[a-z]\w*|[A-Z]\d?|[A-Z]{2,3}|LANG|LC_\w+|DEBUG|TERM|COLUMNS|LINES|HOST|PORT|NAME|VERSION|NO_COLOR|FORCE_COLOR"
    r"|PYTHON(?:PATH|UNBUFFERED|DONTWRITEBYTECODE|HASHSEED|WARNINGS|UTF8|IOENCODING)|DEBIAN_FRONTEND|CARGO_TERM_\w+"
    r"|(?:RUST|HF|CUDA|OMP|MKL|TOKENIZERS|DJANGO|FLASK|AWS|OPENAI|ANTHROPIC|PYTEST_DISABLE|TF|VITE|NEXT)_\w+"
    r"|\w+_(?:URL|URI|KEY|TOKEN|ENV|PORT|HOST|LEVEL|MODE|DIR|ID|NAME|USER|DEBUG|LOG|SEED|THREADS|TIMEOUT|VERSION))"
)
#: Of a variable that names files, any value may be one, also a number or nothing.
_SAFE_VALUE = re.compile(
    r"(?!(?i:\w*(?:PATH|HOME|ENV|DIR|FILES?|CONFIG|CONF|GLOBAL|SYSTEM|PRELOAD|PREFIX|STARTUP|LIB|RC|BASE)\+?=))"
    r"\w+\+?=(?:\d*|cat|true|false|:|never|auto|always|no|yes|C|C\.UTF-8)"
)
_STRONG_VARIABLE = re.compile(
    r"(?:GIT|LD|DYLD|BASH|NPM|npm|PERL|RUBY|TAR|RUSTC|CARGO|LESS|MAKE|NODE)\w*|PS\d|IFS|ENV|HOME|VISUAL|BROWSER|CC|CXX"
    r"|\w*(?:PATH|PAGER|EDITOR|COMMAND|ASKPASS|OPTIONS|OPTS|FLAGS|SHELL)"
)
#: Builtins that may run hidden commands in a text.
_BUILTINS = frozenset((
    "let", "declare", "typeset", "local", "export", "readonly", "test", "[", "printf", "read", "unset", "mapfile",
    "readarray", "set", "shopt", "getopts", "wait",
))  # fmt: skip
#: Builtins that set the variables they name, and whether other programs get them.
_SETTERS = {
    "export": True, "declare": True, "typeset": True, "readonly": True, "local": True, "printf": False, "read": False,
    "mapfile": False, "readarray": False, "getopts": False, "let": False, "wait": False, "unset": False,
}  # fmt: skip
#: Commands after which the rest of a line need not run, or its status means nothing.
_ENDINGS = frozenset(
    ("exit", "exec", "return", "trap", "kill", "eval", "source", ".", "set", "shopt", "break", "continue")
)
_MOVES = frozenset(("cd", "pushd", "popd"))
#: Builtins that run commands in the same shell.
_SAME_SHELL = frozenset(("eval", "source", ".", "command", "builtin"))
#: Options of a shell with which variables get to programs unseen.
_EXPORTS = re.compile(r"-[a-zA-Z]*[ak]|allexport|keyword")
#: Words with which a command may run again, or later.
_REPEATS = re.compile(r"\b(?:for|while|until|select|trap)\b")
#: Options of find: the words between one of these and ";" or "+" are a command.
_FIND_RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
#: The maximum nesting depth of commands in others, and the maximum number of folders in which one may run.
_MOST_DEPTH, _MOST_FOLDERS = 12, 8
#: Files of a repository in a folder of the project; that of the project itself is for rules to protect.
_REPOSITORY = re.compile(r"[^/]/\.git(?:/|$)|[^/]/HEAD$")
#: Files that keep nothing.
_DEVICES = re.compile(r"/dev/(?:null|zero|u?random|stdin|stdout|stderr|tty|fd/\d+)|-")


@dataclass(slots=True)
class ShellLine:
    """The commands and files of a shell line. Paths are relative to the project's folder if they are inside.

    Attributes:
        commands: the commands, each in all its forms; a word that is only known when the line runs is kept as written.
        unknown: the reasons why more commands may run; empty if there are none.
        scripts: the programs and files that run code of the project, which is not read.
        decisive: the commands, as in ``commands``, that ran and succeeded if the line succeeds.
        expanded: the words that are only known when the line runs.
        assigned: the variables that are set before commands.
        written: the files and folders that are written.
        deleted: the files and folders that are deleted or moved away.
        taken: the files and folders that are read.
    """

    commands: list[list[str]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    decisive: list[list[str]] = field(default_factory=list)
    expanded: list[str] = field(default_factory=list)
    assigned: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)


def shell_line(line: str, cwd: str = "", project: str = "") -> ShellLine:
    """Read a shell line. It never fails: whatever cannot be read reliably is reported in ``unknown``.

    Args:
        line: the line.
        cwd: the folder in which it runs. If it is given, links are resolved, and shell scripts that the line runs are
            read like the line; otherwise no file is looked at.
        project: the folder of the project; the default is that of :func:`find_project`.
    """
    finder = _CommandFinder(cwd, project)
    finder.add_line(line, finder.start)
    return finder.finish_line()


def shell_data(line: str, cwd: str = "", project: str = "") -> dict[str, JSON]:
    """Read a shell line as data for rules: the attributes of a :class:`ShellLine`, and ``programs``."""
    return _to_json_data(shell_line(line, cwd, project))


def shell_argv(words: list[str], cwd: str = "", project: str = "") -> dict[str, JSON]:
    """Do the same as :func:`shell_data` for a program and its arguments that no shell interprets."""
    finder = _CommandFinder(cwd, project)
    finder.add_command([ShellWord(word) for word in words], finder.start)
    return _to_json_data(finder.finish_line())


def _to_json_data(read: ShellLine) -> dict[str, JSON]:
    data: dict[str, JSON] = {one.name: list(getattr(read, one.name)) for one in fields(ShellLine)}
    return {**data, "programs": list({words[0]: None for words in read.commands if words})}


@dataclass(frozen=True, slots=True)
class _CommandPlace:
    """Where a command stands.

    Attributes:
        folders: the folders in which it may run; None stands for one that is unknown.
        depth: its nesting depth in other commands.
        decides: whether it ran and succeeded if the line succeeds.
        simple: the simple command, with its input.
    """

    folders: tuple[str | None, ...]
    depth: int = 0
    decides: bool = True
    simple: SimpleCommand = field(default_factory=SimpleCommand)

    @property
    def inner_place(self) -> _CommandPlace:
        """The place of a command that this one runs."""
        return replace(self, depth=self.depth + 1)


class _CommandFinder:
    """Finds the commands and files of a line."""

    def __init__(self, cwd: str, project: str) -> None:
        self.made = ShellLine()
        self.links = bool(cwd)
        self.project = project or find_project(cwd)
        self.start = _CommandPlace((posixpath.realpath(cwd) if cwd else ".",))
        self.functions: set[str] = set()
        self.size = 0  # the number of characters read
        self.linked = False  # whether a link was made, so that later paths may lead anywhere

    def finish_line(self) -> ShellLine:
        """Return what was found, without duplicates; a line that is not fully known decides nothing."""
        for one in fields(ShellLine):
            distinct = {str(value): value for value in getattr(self.made, one.name)}
            setattr(self.made, one.name, list(distinct.values()))
        if self.made.unknown:
            self.made.decisive.clear()
        return self.made

    def add_line(self, line: str, place: _CommandPlace) -> None:
        """Add the commands of a line."""
        self.size += len(line)
        if self.size > 2 * MOST_SIGNS:
            self.made.unknown.append("the lines in the line are too long")
            return
        commands, unsure = read_simple(line, place.depth)
        self.made.unknown += unsure
        self.functions.update(simple.defines for simple in commands)
        decisive = _find_decisive(commands) if place.decides else set()
        before = now = self.find_all_folders(line, commands, place.folders)
        chained = False
        for simple in commands:
            if not chained:
                folders = tuple(dict.fromkeys((*before, *now)))
                before = now = folders if len(folders) <= _MOST_FOLDERS else (None,)
            here = replace(place, folders=now, decides=id(simple) in decisive, simple=simple)
            self.add_simple(simple, here)
            if _changes_folder(simple):
                before, now = before if chained else now, self.find_folder(simple, now)
            if not simple.defines:
                chained = simple.ends == "&&" and not simple.inner

    def find_all_folders(
        self, line: str, commands: list[SimpleCommand], folders: tuple[str | None, ...]
    ) -> tuple[str | None, ...]:
        """Return the folders in which the first command may run: all of the line if commands may be repeated."""
        moves = [simple for simple in commands if _changes_folder(simple)]
        if not any(simple.defines for simple in commands) and not _REPEATS.search(line):
            return folders
        targets = [self.find_folder(simple, (None,)) for simple in moves]
        return tuple(dict.fromkeys((*folders, *(one for target in targets for one in target))))

    def find_folder(self, simple: SimpleCommand, folders: tuple[str | None, ...]) -> tuple[str | None, ...]:
        """Return the folders to which a change of the folder may lead."""
        operands = [word for word in simple.words[1:] if word.text not in ("-P", "-L", "--", "-q")]
        if simple.words[0].text not in ("cd", "pushd") or len(operands) != 1 or operands[0].text[:1] in "-+":
            return (None,)
        found = (locate_path(one, operands[0], links=self.links) for one in folders)
        return tuple(None if one.startswith("/?/") else one for one in found)

    def add_simple(self, simple: SimpleCommand, place: _CommandPlace) -> None:
        """Add a simple command, with its redirections and variables."""
        words = (*simple.words, *simple.written, *simple.taken)
        self.made.expanded += [word.text for word in words if not word.known]
        self.made.assigned += simple.assigned
        self.add_paths("written", simple.written, place)
        self.add_paths("taken", simple.taken, place)
        for name, word in zip(simple.assigned, simple.values, strict=True):
            self.check_variable(name, word, bool(simple.words))
        self.add_command(simple.words, place)

    def check_variable(self, name: str, word: ShellWord, exported: bool) -> None:
        """Report a variable that may change what programs run."""
        if (exported and _SAFE_VARIABLE.fullmatch(name)) or (word.known and _SAFE_VALUE.fullmatch(word.text)):
            return
        if exported or _STRONG_VARIABLE.fullmatch(name):
            self.made.unknown.append(f"the variable {name} may change what programs run")

    def add_paths(self, kind: str, words: Iterable[ShellWord], place: _CommandPlace) -> None:
        """Add the files that are written, deleted or taken."""
        for word in words:
            if word.known and _DEVICES.fullmatch(word.text):
                continue
            for folder in place.folders:
                hidden = self.linked and kind in ("written", "deleted")
                known = replace(word, known=False, text=f"$/{word.text}") if hidden else word
                path = shorten_path(locate_path(folder, known, links=self.links, entry=kind == "deleted"), self.project)
                getattr(self.made, kind).append(path)
                if kind == "written" and _REPOSITORY.search(path):
                    self.made.unknown.append(f"{path[:60]} may say what git runs")

    def add_command(self, words: list[ShellWord], place: _CommandPlace) -> None:
        """Add a command in all its forms, and the commands that it runs."""
        if not words:
            return
        if place.depth > _MOST_DEPTH:
            self.made.unknown.append("commands are nested too deeply")
            return
        self.add_form([word.text for word in words], place)
        if not words[0].known:
            if place.depth:
                self.made.unknown.append(f"which program {words[0].text[:60]} is, is only known when it runs")
            return
        text = words[0].text
        name = posixpath.basename(text)
        if name and name != text:
            self.add_form([name, *(word.text for word in words[1:])], place)
            if not _PROGRAM_FOLDERS.fullmatch(text[: -len(name)]):
                self.add_script(words[0], place)
                return
            if text[0] != "/":
                self.made.scripts.append(posixpath.normpath(text))  # the link, since its target is outside
        program = read_programs().get(name)
        if name in _SHELLS:
            self.add_shell(name, words[1:], place)
        elif handler := _HANDLERS.get(name):
            handler(self, words[1:], place)
        elif program is not None:
            self.add_program(name, program, words, place)
        elif name not in self.functions or (self.links and shutil.which(name)):  # the function may not be there
            self.made.unknown.append(f"what {name[:60]} runs is not known")

    def add_form(self, words: list[str], place: _CommandPlace) -> None:
        """Add a form of a command."""
        self.made.commands.append(words)
        if place.decides and not {"--version", "--help"} & set(words):
            self.made.decisive.append(words)

    def add_program(self, name: str, program: ShellProgram, words: list[ShellWord], place: _CommandPlace) -> None:
        """Add the commands and files of a program in the table."""
        found = split_words(program, words[1:])
        self.made.unknown += [f"{name}: {doubt}" for doubt in found.doubts]
        if found.has_option(program.idle):
            behind = [word.text for word in words[1:]]
            self.made.decisive = [one for one in self.made.decisive if one[-len(behind) :] != behind]
            if not program.project:
                return
        if program.folder and (folders := list(found.find_values(program.folder))):
            moved = (locate_path(one, folders[-1], links=self.links) for one in place.folders)
            place = replace(place, folders=tuple(None if one.startswith("/?/") else one for one in moved))
        for word in found.variables:
            self.made.assigned.append(word.text.split("=", 1)[0])
            self.check_variable(self.made.assigned[-1], word, True)
        self.add_effects(program, found, place)
        if name in _BUILTINS:
            self.check_builtin(name, words, place)
        elif name == "find":
            self.add_find(words, place)
        codes = [*found.find_values(program.code)] or [ShellWord(one) for one in program.project.split() if one != "."]
        self.add_paths("scripts", codes, place)
        if program.project == ".":
            self.made.scripts.append(name)
        if program.subcommands:
            self.add_subcommand(name, words, found, place)
        elif program.line and (code := next(found.find_values(program.line), None)):
            self.add_code(code, name, place)
        elif found.rest or program.reader or program.file:
            self.add_rest(name, program, found, place)

    def add_effects(self, program: ShellProgram, found: ProgramWords, place: _CommandPlace) -> None:
        """Add the files of a program."""
        self.add_paths(
            "taken", [*select_operands(program, found, program.reads), *found.find_values(program.ins)], place
        )
        if not program.writes_if or found.has_option(program.writes_if):
            targets = select_operands(program, found, program.writes)
            self.add_paths("written", targets, place)
            if program.writes == "last":  # it may be a folder
                names = [posixpath.basename(word.text) for word in found.operands[:-1]]
                inside = [replace(word, text=f"{word.text}/{name}") for word in targets for name in names if name]
                self.add_paths("written", inside, place)
        self.add_paths("written", found.find_values(program.out), place)
        if not program.deletes_if or found.has_option(program.deletes_if):
            self.add_paths("deleted", select_operands(program, found, program.deletes), place)

    def add_subcommand(self, name: str, words: list[ShellWord], found: ProgramWords, place: _CommandPlace) -> None:
        """Add a subcommand, without the options before it."""
        if not found.rest:
            return
        first = found.rest[0]
        if not first.known:
            self.made.unknown.append(f"which command {name} {first.text[:60]} is, is only known when it runs")
        if len(found.rest) < len(words) - 1:
            self.add_form([*name.split(), *(word.text for word in found.rest)], place)
        program = read_programs().get(f"{name} {first.text}")
        if program is not None:
            self.add_program(f"{name} {first.text}", program, found.rest, place)
        else:
            self.made.unknown.append(f"what {name} {first.text[:60]} runs is not known")

    def add_rest(self, name: str, program: ShellProgram, found: ProgramWords, place: _CommandPlace) -> None:
        """Add the command that a program runs, or its file of code."""
        if program.module and found.has_option(program.module):
            module = next(found.find_values(program.module), ShellWord("", False))
            known = read_programs().get(module.text)
            if known is None or not (known.project or known.modules):
                self.made.unknown.append(f"what the module {module.text[:60]} runs is not known")
            self.made.scripts.append(name)  # its imports are looked up in the folder first
            self.add_command([module, *found.rest], place.inner_place)
        elif program.file:
            if found.rest:
                self.add_script(found.rest[0], place)
            elif found.has_option(program.texts):
                self.made.scripts.append(name)
            else:
                self.made.unknown.append(f"{name} runs what it reads")
        elif not found.rest:
            self.made.unknown.append(f"{name} runs what it reads")
        elif found.rest[0].text in program.line:
            self.add_code(found.rest[1] if len(found.rest) > 1 else None, name, place)
        else:
            rest = self.add_input(found) if name == "xargs" else found.rest
            self.add_command(rest, replace(place.inner_place, decides=place.decides and program.status))

    def add_input(self, found: ProgramWords) -> list[ShellWord]:
        """Return the words that xargs runs: they contain, or end with, words of its input."""
        self.made.expanded.append("xargs")
        options = [(name, value) for name, value in found.options if name in ("-I", "-i", "--replace")]
        if not options:
            return [*found.rest, ShellWord("$input", False)]
        sign = next((value.text for _, value in options if value), "{}")
        return [replace(word, known=word.known and sign not in word.text) for word in found.rest]

    def add_find(self, words: list[ShellWord], place: _CommandPlace) -> None:
        """Add the commands that find runs, and what it deletes."""
        count = next((at for at, word in enumerate(words[1:]) if word.text[:1] in ("-", "(", "!")), len(words) - 1)
        starts = words[1 : 1 + count] or [ShellWord(".")]
        named = any(word.text in ("-name", "-iname", "-path", "-regex") for word in words)
        follows = any(word.text in ("-L", "-follow") for word in words)
        each = f"{starts[0].text}/*" if len(starts) == 1 and starts[0].known and not follows else "$found"
        if any(word.text == "-delete" for word in words):
            within = [replace(word, text=f"{word.text}/*") if word.known and named else word for word in starts]
            self.add_paths("deleted", within, place)
        for inner in _find_exec_commands(words):
            run = [ShellWord(each, False) if word.text == "{}" else word for word in inner]
            run = [replace(word, known=False) if "{}" in word.text else word for word in run]
            self.add_command(run, replace(place.inner_place, decides=False))

    def check_builtin(self, name: str, words: list[ShellWord], place: _CommandPlace) -> None:
        """Report the hidden effects of builtins: they evaluate texts as arithmetic, or redefine programs."""
        texts = [word.text for word in words[1:] if word.known]
        here = place.simple.here
        if name in ("read", "mapfile", "readarray") and here is not None:
            texts.append(here.text)
        if any(COMMAND_IN_TEXT.search(text) for text in texts) and (name != "printf" or "-v" in texts):
            self.made.unknown.append(f"{name} would run the command in a text that it is given")
        if name in ("mapfile", "readarray") and any(text.startswith("-") and "C" in text for text in texts):
            self.made.unknown.append(f"{name} -C is not read")
        if name in ("set", "shopt") and any(_EXPORTS.match(text) for text in texts):
            self.made.unknown.append(f"{name} exports variables that are not looked at")
        if name in ("declare", "typeset", "local") and any(re.match(r"-[a-zA-Z]*n", text) for text in texts):
            self.made.unknown.append(f"{name} -n gives a variable another name")
        for text in (word.text for word in words[1:] if re.match(r"\W*\w+\[", word.text)):
            for variable in find_sets(text):
                self.check_variable(variable, ShellWord(variable, False), False)
        if name in _SETTERS:
            for before, word in pairwise(words):
                text = re.sub(r"^-\w[a-z]*", "", word.text)  # as in -vPATH
                if variable := re.split(r"[\[=]", text)[0].strip().rstrip("+-*/%&|^<>"):
                    named = before.text == "-v" or (name == "read" and not re.match(r"-\w*[ptnNdiu]$", before.text))
                    self.check_variable(variable, word, _SETTERS[name] or (named and "$" in variable))

    def add_script(self, word: ShellWord, place: _CommandPlace) -> None:
        """Add a file of code: the commands of a shell script if it can be read."""
        if word.text == "-" or word.text.startswith(("/dev/", "/proc/")):
            self.made.unknown.append(f"code is read from {word.text[:60]}")
            return
        if not word.known:
            self.made.unknown.append(f"which file {word.text[:60]} is, is only known when it runs")
            return
        paths = [locate_path(folder, word, links=self.links) for folder in place.folders]
        shown = [shorten_path(path, self.project) for path in paths]
        written = [one for one in self.made.written if any(is_inside_folder(path, one) for path in shown)]
        self.made.scripts += written  # the line may have written the file
        code = _read_script(paths[0]) if self.links and len(paths) == 1 and not written else None
        if code is None:
            self.made.scripts += shown
        else:
            self.add_line(code, place.inner_place)

    def add_code(self, code: ShellWord | None, name: str, place: _CommandPlace) -> None:
        """Add the commands in a text that a shell receives."""
        if code is not None and code.known:
            self.add_line(code.text, place.inner_place)
        else:
            self.made.unknown.append(f"what {name} runs is only known when it runs")

    def add_eval(self, words: list[ShellWord], place: _CommandPlace) -> None:
        """Add the commands of eval."""
        rest = words[1:] if words and words[0].text == "--" else words
        known = all(word.known for word in rest)
        self.add_code(ShellWord(" ".join(word.text for word in rest), known), "eval", place)

    def add_trap(self, words: list[ShellWord], place: _CommandPlace) -> None:
        """Add the commands of a trap."""
        rest = [word for word in words if word.text not in ("--", "-p", "-l")]
        if len(rest) > 1 and rest[0].text != "-":
            self.add_code(rest[0], "trap", replace(place, folders=(None,), decides=False))

    def add_alias(self, words: list[ShellWord], _place: _CommandPlace) -> None:
        """Report new names of commands."""
        if any("=" in word.text or not word.known for word in words):
            self.made.unknown.append("alias gives commands other names")

    def add_source(self, words: list[ShellWord], place: _CommandPlace) -> None:
        """Add the commands of a file that is sourced."""
        if words and words[0].known and _ACTIVATE.fullmatch(words[0].text):
            self.add_paths("scripts", words[:1], place)
            return
        listed = len(self.made.scripts)
        self.add_script(words[0] if words else ShellWord("", False), place)
        if len(self.made.scripts) > listed:
            self.made.unknown.append("source runs the commands of a file that cannot be read")

    def add_link(self, words: list[ShellWord], place: _CommandPlace) -> None:
        """Add what ln writes; what comes later in the line may go through the link."""
        self.add_program("ln", read_programs()["ln"], [ShellWord("ln"), *words], place)
        self.linked = True

    def add_shell(self, name: str, words: list[ShellWord], place: _CommandPlace) -> None:
        """Add the commands that a shell receives: after ``-c``, from a file, or as its input."""
        rest = list(words)
        code = stdin = False
        while rest and rest[0].known and rest[0].text[:1] in ("-", "+") and len(rest[0].text) > 1:
            option = rest.pop(0).text
            if option == "--":
                break
            if option in ("--version", "--help"):
                return
            if option.startswith("--"):
                if option not in ("--norc", "--noprofile", "--login", "--posix", "--verbose", "--restricted"):
                    self.made.unknown.append(f"what {name} {option[:60]} runs is not known")
                continue
            code |= option[0] == "-" and "c" in option
            stdin |= "s" in option
            names = sum(letter in "oO" for letter in option)  # each takes a word
            if any(_EXPORTS.match(text) for text in (option, *(word.text for word in rest[:names]))):
                self.made.unknown.append(f"{name} exports variables that are not looked at")
            rest = rest[names:]
        if code:
            self.add_code(rest[0] if rest else None, f"{name} -c", place)
        elif not stdin and rest and rest[0].text != "-":
            self.add_script(rest[0], place)
        elif place.simple.here is not None:
            self.add_code(place.simple.here, name, place)
        else:
            self.made.unknown.append(f"{name} runs what it reads")


_HANDLERS = {
    "eval": _CommandFinder.add_eval,
    "trap": _CommandFinder.add_trap,
    "alias": _CommandFinder.add_alias,
    "source": _CommandFinder.add_source,
    ".": _CommandFinder.add_source,
    "ln": _CommandFinder.add_link,
}


def _changes_folder(simple: SimpleCommand) -> bool:
    """Return whether a command may change the folder of those after it."""
    texts = [word.text for word in simple.words]
    if not texts or texts[0] in _MOVES:
        return bool(texts)
    if texts[0] in ("source", ".") and len(texts) > 1:
        return not _ACTIVATE.fullmatch(texts[1])
    return texts[0] in _SAME_SHELL and any(
        re.search(r"\b(?:cd|pushd|popd|source|[.])\b|[.] ", text) for text in texts[1:]
    )


def _find_decisive(commands: Iterable[SimpleCommand]) -> set[int]:
    """Find the commands that ran and succeeded if the line succeeds, by their identity."""
    chain: list[int] = []
    skips = ended = pipefail = False
    for simple in commands:
        if simple.inner:
            continue
        if ended:
            chain, skips = [], False
        if not skips:
            chain.append(id(simple))
        words = [word.text for word in simple.words]
        if words and words[0] == "set" and all(re.fullmatch(r"-[eux]*o?|pipefail|errexit", word) for word in words[1:]):
            pipefail |= "pipefail" in words
        elif words and words[0] in _ENDINGS and not _ACTIVATE.fullmatch(words[-1]):
            break
        ended = simple.ends in (";", "\n")
        if simple.ends in ("||", "&"):
            chain, skips = [], simple.ends == "||"
        elif simple.ends in ("|", "|&") and not (skips or pipefail):
            chain = chain[:-1]
        elif simple.ends == "&&":
            skips = False
    return set(chain)


def _find_exec_commands(words: list[ShellWord]) -> Iterator[list[ShellWord]]:
    inner: list[ShellWord] | None = None
    for word in words:
        if inner is None:
            inner = [] if word.text in _FIND_RUNS else None
        elif word.text in (";", "+"):
            yield inner
            inner = None
        else:
            inner.append(word)
    if inner:
        yield inner


def _read_script(path: str) -> str | None:
    """Read a shell script; None if it is none, or cannot be read."""
    if not Path(path).is_file():  # a pipe would wait
        return None
    try:
        with Path(path).open(encoding="utf-8") as file:
            text = file.read(MOST_SIGNS + 1)
    except (OSError, ValueError):
        return None
    first = text.partition("\n")[0]
    interpreter = re.fullmatch(r"#!\s*(?:/usr/bin/env\s+)?(\S+).*", first)
    name = posixpath.basename(interpreter[1]) if interpreter else "sh"
    return text if name in _SHELLS and (interpreter or path.endswith((".sh", ".bash"))) else None


#: Tools of coding agents that run shell lines: Claude Code, Codex, OpenAI's, Anthropic's and others.
SHELL_TOOLS = frozenset(
    ("Bash", "bash", "shell", "local_shell", "shell_command", "exec_command", "container.exec", "execute_command",
     "run_command", "run_terminal_cmd", "run_shell_command", "terminal")
)  # fmt: skip
#: The arguments of such tools that may contain the line.
_ARGUMENTS = ("command", "cmd", "script", "action")


#: Tools that change a file, and that read one; the arguments that may contain its path.
_WRITERS = frozenset(("Write", "Edit", "MultiEdit", "NotebookEdit", "write_file", "edit_file", "create_file"))
_READERS = frozenset(("Read", "NotebookRead", "read_file"))
_PATHS = ("file_path", "notebook_path", "path")
_PATCHED = re.compile(r"^\s*\*\*\* (?:(Add|Update|Delete) File|Move to): (.*\S)", re.MULTILINE)


def add_effects(tool: str, arguments: Mapping[str, JSON], cwd: str = "", project: str = "") -> Mapping[str, JSON]:
    """Return the arguments of a call, with what it runs, writes, deletes and reads for tools that are known.

    A tool that runs a shell line gets the result of :func:`shell_data`; one that changes or reads files gets
    ``written``, ``deleted`` and ``taken``. An argument of the agent with one of these names is replaced.

    Args:
        tool: the name of the tool.
        arguments: its arguments.
        cwd: the folder in which it works; empty if it is unknown.
        project: the folder of the project; the default is that of :func:`find_project`.
    """
    if tool in SHELL_TOOLS:
        return _add_shell_data(arguments, cwd, project)
    locate = partial(_locate_argument, cwd=cwd, project=project or find_project(cwd))
    # A tool ignores the arguments that it does not know, and which those are is not known here.
    places: list[JSON] = [locate(arguments[name]) for name in _PATHS if isinstance(arguments.get(name), str)]
    if tool == "apply_patch":
        text = str(next((arguments[name] for name in ("command", "input", "patch") if name in arguments), ""))
        paths: dict[str, list[JSON]] = {"written": [], "deleted": [], "taken": []}
        for one in _PATCHED.finditer(text):
            paths["deleted" if one[1] == "Delete" else "written"].append(locate(one[2]))
        if isinstance(operation := arguments.get("operation"), Mapping):  # an item of OpenAI's Responses
            kind = "deleted" if operation.get("type") == "delete_file" else "written"
            paths[kind].append(locate(operation.get("path")))
        return {**arguments, **paths}
    if tool in _WRITERS and places:
        return {**arguments, "written": places, "deleted": [], "taken": []}
    if tool in _READERS and places:
        return {**arguments, "written": [], "deleted": [], "taken": places}
    return arguments


def _locate_argument(path: JSON, cwd: str, project: str) -> str:
    return shorten_path(locate_path(cwd or ".", ShellWord(str(path)), links=bool(cwd)), project)


def _add_shell_data(arguments: Mapping[str, JSON], cwd: str, project: str) -> Mapping[str, JSON]:
    lines = [arguments[name] for name in _ARGUMENTS if name in arguments]
    if len(lines) > 1:
        return {**arguments, **shell_data(""), "unknown": ["which of several lines runs is not known"]}
    line = lines[0] if lines else None
    if isinstance(line, Mapping):  # OpenAI's local shell: an action with its command
        line = line.get("command")
    folder = arguments.get("workdir") or arguments.get("cwd")
    if isinstance(folder, str) and (cwd or folder.startswith("/")):
        cwd, project = posixpath.join(cwd, folder), project or find_project(cwd)
    if isinstance(line, str):
        return {**arguments, **shell_data(line, cwd, project)}
    if isinstance(line, list) and all(isinstance(word, str) for word in line):
        return {**arguments, **shell_argv([str(word) for word in line], cwd, project)}
    return {**arguments, **shell_data(""), "unknown": ["there is no line to read"]} if line is not None else arguments
