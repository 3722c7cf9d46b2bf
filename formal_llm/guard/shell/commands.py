"""The commands that a shell line runs, as data for rules, including those after ``sudo`` and ``bash -c``.

::

    >>> shell_data("cd /tmp && sudo -u bob git -C repo push")["commands"][-1]
    ['git', 'push']

A command is listed in every form that a rule may look for: as written, without the folder of its program, without a
program that only runs it (``sudo``, ``env``, ``xargs``, ``timeout`` ...), and, for programs with subcommands, without
the options before the subcommand. So a rule that forbids ``git push`` finds it in one of these forms, and a rule that
allows only some programs has to allow all forms.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from formal_llm.guard.shell.reader import COMMAND_IN_TEXT, ShellWord, SimpleCommand, read_simple
from formal_llm.planning.json_data import JSON

_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash"))
_ENV = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class _WrapperProgram:
    """A program that runs another one: its options with and without values, its own arguments before the other one."""

    valued: str = ""
    flags: str = ""
    long: frozenset[str] = frozenset()
    own: int = 0
    variables: bool = False


_RUNNERS = {
    "sudo": _WrapperProgram(
        "ughpCrtTUDR", "AbEeHiKklnPSsVv", frozenset(("--user", "--group", "--chdir", "--prompt")), 0, True
    ),
    "doas": _WrapperProgram("uCa", "Lns"),
    "env": _WrapperProgram("uC", "i0v", frozenset(("--unset", "--chdir")), 0, True),
    "nohup": _WrapperProgram(),
    "setsid": _WrapperProgram("", "cfw"),
    "nice": _WrapperProgram("n", "", frozenset(("--adjustment",))),
    "ionice": _WrapperProgram("cnpPu", "t", frozenset(("--class", "--classdata"))),
    "chrt": _WrapperProgram("", "bfioradm", own=1),
    "taskset": _WrapperProgram("", "a", own=1),
    "stdbuf": _WrapperProgram("ioe"),
    "timeout": _WrapperProgram("ks", "pfv", frozenset(("--kill-after", "--signal")), own=1),
    "time": _WrapperProgram("fo", "apqvV", frozenset(("--format", "--output"))),
    "command": _WrapperProgram("", "p"),
    "builtin": _WrapperProgram(),
    "exec": _WrapperProgram("a", "cl"),
    "chroot": _WrapperProgram(own=1),
    "xargs": _WrapperProgram(
        "IinPdEeLlsa", "0oprtx", frozenset(("--max-args", "--max-procs", "--replace", "--delimiter"))
    ),
    "strace": _WrapperProgram("abeEIoOpPsSuUX", "cCdDfFhiknqrtTvVwxyYzZ"),
    "uv run": _WrapperProgram(
        "p", "qv", frozenset(("--with", "--python", "--project", "--directory", "--extra", "--group"))
    ),
    "poetry run": _WrapperProgram(),
    "npx": _WrapperProgram("p", "yq", frozenset(("--package",))),
}
#: Programs with subcommands: their options before the subcommand that take a value.
_SUBCOMMANDS = {
    "git": frozenset(("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix",
                      "--config-env", "--attr-source")),
    "docker": frozenset(("-c", "--context", "-H", "--host", "-l", "--log-level", "--config")),
    "podman": frozenset(("--connection", "--log-level", "--root", "--url")),
    "kubectl": frozenset(("-n", "--namespace", "--context", "--cluster", "--kubeconfig", "--user", "-s", "--server")),
    "npm": frozenset(("--prefix", "-C", "-w", "--workspace", "--registry", "--userconfig")),
    "gh": frozenset(("-R", "--repo")),
    "cargo": frozenset(("--color", "--config", "-Z", "-C")),
    "aws": frozenset(("--profile", "--region", "--output", "--endpoint-url")),
    "terraform": frozenset(),
}  # fmt: skip
#: Builtins that may run hidden commands, each with the option that always does.
_BUILTINS = {
    "let": "", "declare": "", "typeset": "", "local": "", "export": "", "readonly": "", "test": "", "[": "",
    "printf": "", "read": "", "unset": "", "mapfile": "C", "readarray": "C", "hash": "p", "enable": "f",
    "complete": "C", "bind": "x",
}  # fmt: skip
#: Options of find: the words between one of these and ";" or "+" are a command.
_FIND_RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))


@dataclass(slots=True)
class ShellLine:
    """The commands and files of a shell line.

    Attributes:
        commands: the commands, each in all its forms; a word that is only known when the line runs is kept as written.
        unknown: the reasons why more commands may run; empty if there are none.
        expanded: the words that are only known when the line runs.
        assigned: the variables that are set before commands.
        written: the files that receive output.
        taken: the files that provide input.
    """

    commands: list[list[str]] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    expanded: list[str] = field(default_factory=list)
    assigned: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)


def shell_line(line: str) -> ShellLine:
    """Read a shell line. It never fails: whatever cannot be read reliably is reported in ``unknown``."""
    result = ShellLine()
    _add_line(result, line, 0)
    return _drop_duplicates(result)


def shell_data(line: str) -> dict[str, JSON]:
    """Read a shell line as data for rules: the attributes of a :class:`ShellLine`, and ``programs``."""
    return _to_json_data(shell_line(line))


def shell_argv(words: list[str]) -> dict[str, JSON]:
    """Do the same as :func:`shell_data` for a program and its arguments that no shell interprets."""
    result = ShellLine()
    _add_forms(result, [ShellWord(word) for word in words], SimpleCommand(), 0)
    return _to_json_data(_drop_duplicates(result))


def _drop_duplicates(made: ShellLine) -> ShellLine:
    for name in ("commands", "unknown", "expanded", "assigned", "written", "taken"):
        distinct = {str(one): one for one in getattr(made, name)}
        setattr(made, name, list(distinct.values()))
    return made


def _to_json_data(read: ShellLine) -> dict[str, JSON]:
    programs = {words[0]: None for words in read.commands if words}
    return {
        "commands": [list(words) for words in read.commands],
        "programs": list(programs),
        "unknown": list(read.unknown),
        "expanded": list(read.expanded),
        "assigned": list(read.assigned),
        "written": list(read.written),
        "taken": list(read.taken),
    }


def _add_line(made: ShellLine, line: str, depth: int) -> None:
    commands, unsure = read_simple(line, depth)
    made.unknown += unsure
    for simple in commands:
        words = simple.words
        made.expanded += [word.text for word in (*words, *simple.written, *simple.taken) if not word.known]
        made.assigned += simple.assigned
        made.written += [word.text for word in simple.written]
        made.taken += [word.text for word in simple.taken]
        _add_forms(made, words, simple, depth)


def _add_forms(made: ShellLine, words: list[ShellWord], simple: SimpleCommand, depth: int) -> None:
    """Add a command in all its forms, and the commands that it runs."""
    if not words:
        return
    if depth > 25:
        made.unknown.append("commands are nested too deeply")
        return
    made.commands.append([word.text for word in words])
    if not words[0].known:
        return
    name = posixpath.basename(words[0].text)
    if name and name != words[0].text:
        made.commands.append([name, *(word.text for word in words[1:])])
    if name in _SHELLS or name in ("eval", "trap", "su", "source", ".", "alias", "watch", "parallel", "script"):
        _add_code(made, name, words, simple, depth)
    elif name in _BUILTINS:
        _add_builtin(made, name, words)
    elif name == "find":
        for inner in _find_exec_commands(words):
            _add_forms(made, inner, simple, depth + 1)
    elif name in _SUBCOMMANDS:
        _add_subcommand(made, name, words)
    for runner in (name, " ".join([name, *(word.text for word in words[1:2])])):
        if runner in _RUNNERS:
            rest = words[1 + runner.count(" ") :]
            _add_wrapped_command(made, runner, rest, simple, depth)


def _add_builtin(made: ShellLine, name: str, words: list[ShellWord]) -> None:
    """Add the hidden effects of builtins: they evaluate texts as arithmetic, or redefine programs."""
    texts = [word.text for word in words[1:] if word.known]
    if any(COMMAND_IN_TEXT.search(text) for text in texts) and (name != "printf" or "-v" in texts):
        made.unknown.append(f"{name} would run the command in a text that it is given")
    if any(text.startswith("-") and _BUILTINS[name] and _BUILTINS[name] in text for text in texts):
        made.unknown.append(f"{name} -{_BUILTINS[name]} is not read")


def _add_wrapped_command(
    made: ShellLine, runner: str, words: list[ShellWord], simple: SimpleCommand, depth: int
) -> None:
    """Add the command that a wrapper program runs."""
    rest = list(words)
    kind = _RUNNERS[runner]
    while rest and rest[0].known and rest[0].text.startswith("-") and rest[0].text != "-":
        option = rest.pop(0).text
        if option == "--":
            break
        if runner == "command" and option in ("-v", "-V"):
            return  # it only prints the location of the program
        if runner == "env" and option.startswith(("-S", "--split-string")):
            made.unknown.append("env -S is not read")
            return
        value = _takes_value(kind, option)
        if value is None:
            made.unknown.append(f"the option {option} of {runner} is not known")
            return
        if value and rest:
            rest.pop(0)
    while kind.variables and rest and rest[0].text and _ENV.match(rest[0].text):
        made.assigned.append(rest.pop(0).text.split("=", 1)[0])
    rest = rest[kind.own :]
    if rest and not rest[0].known:
        made.unknown.append(f"which program {rest[0].text[:60]} is, is only known when it runs")
    if runner == "xargs" and rest:
        made.expanded.append("xargs")  # it appends words from its input
        if (
            rest[0].known
            and posixpath.basename(rest[0].text) in _SHELLS
            and not any(word.text.startswith("-") and "c" in word.text for word in rest[1:])
        ):
            made.unknown.append("xargs gives a shell what it reads")
    _add_forms(made, rest, simple, depth + 1)


def _takes_value(kind: _WrapperProgram, option: str) -> bool | None:
    """Return whether the next word is the value of an option; None if the option is unknown."""
    if option.startswith("--"):
        return False if "=" in option else True if option in kind.long else None
    for place, letter in enumerate(option[1:], 1):
        if letter in kind.valued:
            return place == len(option) - 1
        if letter not in kind.flags:
            return False if option[1:].isdigit() else None  # nice -10
    return False


def _add_subcommand(made: ShellLine, name: str, words: list[ShellWord]) -> None:
    """Add a command without the options before its subcommand."""
    rest = words[1:]
    while rest and rest[0].text.startswith("-"):
        option = rest.pop(0)
        if option.text in _SUBCOMMANDS[name] and rest:
            value = rest.pop(0).text
            if name == "git" and option.text == "-c" and value.lower().startswith("alias."):
                made.unknown.append("git is told another name for a command")
    if rest and not rest[0].known:
        made.unknown.append(f"which command {name} {rest[0].text[:60]} is, is only known when it runs")
    if len(rest) < len(words) - 1:
        made.commands.append([name, *(word.text for word in rest)])


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


def _add_code(made: ShellLine, name: str, words: list[ShellWord], simple: SimpleCommand, depth: int) -> None:
    """Add the commands in a text that a shell receives."""

    def add_code(code: ShellWord | None, otherwise: str) -> None:
        if code is not None and code.known:
            _add_line(made, code.text, depth + 1)
        else:
            made.unknown.append(otherwise)

    rest = words[1:]
    if name == "eval":
        rest = rest[1:] if rest and rest[0].text == "--" else rest
        known = all(word.known for word in rest)
        add_code(ShellWord(" ".join(word.text for word in rest), known), "what eval runs is only known when it runs")
    elif name in ("source", "."):
        made.unknown.append(f"{name} runs the commands of a file")
    elif name == "alias":
        if any("=" in word.text or not word.known for word in rest):
            made.unknown.append("alias gives commands other names")
    elif name == "trap":
        rest = [word for word in rest if word.text not in ("--", "-p", "-l")]
        if len(rest) > 1 and rest[0].text != "-":
            add_code(rest[0], "what trap runs is only known when it runs")
    elif name in ("su", "script"):
        code = next((two for one, two in pairwise(rest) if one.text in ("-c", "--command")), None)
        add_code(code, f"{name} runs what it reads")
    elif name in ("watch", "parallel"):
        made.unknown.append(f"what {name} runs is not read")
    else:
        _add_shell(name, rest, simple, add_code, made)


def _add_shell(
    name: str,
    rest: list[ShellWord],
    simple: SimpleCommand,
    add: Callable[[ShellWord | None, str], None],
    made: ShellLine,
) -> None:
    """Add the commands that a shell receives: after ``-c``, or as its input."""
    rest = list(rest)
    code = stdin = False
    while rest and rest[0].known and rest[0].text[:1] in ("-", "+") and len(rest[0].text) > 1:
        option = rest.pop(0).text
        if option == "--":
            break
        if option.startswith("--"):
            if option in ("--rcfile", "--init-file"):
                made.unknown.append(f"{name} {option} runs the commands of a file")
                rest = rest[1:]
            continue
        code |= option[0] == "-" and "c" in option
        stdin |= "s" in option
        if option[-1] in "oO":
            rest = rest[1:]
    if code:
        add(rest[0] if rest else None, f"what {name} -c runs is only known when it runs")
    elif stdin or not rest or rest[0].text == "-":
        add(simple.here, f"{name} runs what it reads")
    elif not rest[0].known:
        made.unknown.append(f"which file {name} runs is only known when it runs")


#: Tools of coding agents that run shell lines: Claude Code, Codex, OpenAI's, Anthropic's and others.
SHELL_TOOLS = frozenset(
    ("Bash", "bash", "shell", "local_shell", "shell_command", "exec_command", "container.exec", "execute_command",
     "run_command", "run_terminal_cmd", "run_shell_command", "terminal")
)  # fmt: skip
#: The arguments of such tools that may contain the line.
_ARGUMENTS = ("command", "cmd", "script", "action")


def add_shell_commands(tool: str, arguments: Mapping[str, JSON]) -> Mapping[str, JSON]:
    """Return the arguments of a call; for a tool that runs a shell line, add the result of :func:`shell_data`.

    An argument of the agent with one of these names is replaced.
    """
    if tool not in SHELL_TOOLS:
        return arguments
    line = next((arguments[name] for name in _ARGUMENTS if name in arguments), None)
    if isinstance(line, Mapping):  # OpenAI's local shell: an action with its command
        line = line.get("command")
    if isinstance(line, str):
        return {**arguments, **shell_data(line)}
    if isinstance(line, list) and all(isinstance(word, str) for word in line):
        return {**arguments, **shell_argv([str(word) for word in line])}
    nothing = shell_data("")
    return {**arguments, **nothing, "unknown": ["there is no line to read"]} if line is not None else arguments
