"""Shell lines that are plainly simple, and the files that calls of well-known tools change, as data for rules.

::

    >>> read_plain("cat a 'b c' | wc -l > out").commands
    (('cat', 'a', 'b c'), ('wc', '-l'))
    >>> read_plain("cat $X") is None
    True

A line is plain if it is made of plain or quoted words, joined by ``&&``, ``||``, ``;`` and ``|``, with input and output
in files. Every other line is not read at all, and a rule says what becomes of it: mostly, a person is asked.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass

from formal_llm.planning.json_data import JSON

_TOKEN = re.compile(
    r"""[ \t]*(?:
    (?P<joint>&&|\|\||;|\|)
  | (?P<duplicate>2>&1(?=[ \t;|]|$))
  | (?P<redirect>(?:[12]?>>?|<)(?![&(>]))[ \t]*
  | (?P<word>(?:[\w@%+=:,./-]|(?<=\w)[~^]|'[^'\n]*'|"[^"$`\\!\n]*")+)
)""",
    re.VERBOSE,
)
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")
#: Words that begin compound commands, programs that run their words, and builtins that change what later words mean.
_RUNNERS = frozenset(
    """! [[ { } case coproc do done elif else esac fi for function if in select then time until while
    . source eval exec command builtin trap alias unalias hash enable export declare typeset readonly local unset set
    shopt let read mapfile readarray getopts printf test wait fg bg jobs fc history bind complete pushd popd
    sudo doas env xargs nohup nice timeout watch ssh su bash sh dash zsh ksh busybox find parallel strace script setsid
    flock python python3 node perl ruby php lua awk gawk sed make npx uvx""".split()  # noqa: SIM905
)
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
#: What is added to the arguments of a call, and so never taken from the agent.
_ADDED = frozenset(("plain", "commands", "programs", "decisive", "written", "deleted", "taken"))
#: The folder of paths that are only known at run time; it is in no other folder but the root.
_UNKNOWN_FOLDER = "/?/"


@dataclass(frozen=True, slots=True)
class PlainLine:
    """A shell line that was read.

    Attributes:
        commands: the words of each command.
        decisive: the commands that ran and succeeded if the line succeeds, as far as ``&&`` alone shows it.
        written: the files that output goes to.
        taken: the files that input comes from.
    """

    commands: tuple[tuple[str, ...], ...]
    decisive: tuple[tuple[str, ...], ...] = ()
    written: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()


def read_plain(line: str) -> PlainLine | None:
    """Read a shell line as bash reads it.

    Returns:
        Its commands and files; None if it is not plain: bash might expand, run or define something that is not read.
    """
    line = line.strip(" \t\n")
    commands: list[list[str]] = [[]]
    joints: list[str] = []
    written: list[str] = []
    taken: list[str] = []
    target: list[str] | None = None  # where the next word goes, after a sign of redirection
    place = 0
    while place < len(line):
        found = _TOKEN.match(line, place)
        if found is None or "\0" in found[0]:
            return None
        place = found.end()
        if (text := found["word"]) is None:
            if target is not None or (found["joint"] and not commands[-1]):
                return None
            if found["joint"]:
                joints.append(found["joint"])
                commands.append([])
            elif found["redirect"]:
                target = taken if found["redirect"] == "<" else written
            continue
        if text.isdigit() and line[place : place + 1] in ("<", ">"):
            return None  # the number of a descriptor
        word = _QUOTED.sub(lambda quoted: quoted[1] if quoted[1] is not None else quoted[2], text)
        if target is not None:
            target.append(word)
            target = None
        elif text[0] == "=" or (not commands[-1] and ("=" in text or text[0] == "%" or _is_runner(word))):
            return None  # an assignment, a job, or a program that runs another one; zsh expands =NAME
        else:
            commands[-1].append(word)
    if target is not None or (not commands[-1] and joints[-1:] != [";"]):
        return None
    read = tuple(tuple(words) for words in commands if words)
    return PlainLine(read, _find_decisive(read, joints), tuple(written), tuple(taken))


def _is_runner(word: str) -> bool:
    return posixpath.basename(word) in _RUNNERS


def _find_decisive(commands: tuple[tuple[str, ...], ...], joints: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return the commands joined by && at the end of a line; of a pipe only the last one decides."""
    decisive: list[tuple[str, ...]] = []
    for number in reversed(range(len(commands))):
        joint = joints[number] if number < len(commands) - 1 else "&&"
        if joint in (";", "||"):
            break
        if joint == "&&":
            decisive.append(commands[number])
        if number and joints[number - 1] == "||":
            return ()
    return tuple(reversed(decisive))


def add_effects(tool: str, arguments: Mapping[str, JSON], cwd: str = "", project: str = "") -> Mapping[str, JSON]:
    """Return the arguments of a call, with what it runs, writes, deletes and reads where the tool is known.

    A call that runs a shell line gets ``plain``, whether the line was read, and only then ``commands``, ``programs``
    (their first words), ``decisive``, ``written`` and ``taken`` (see :class:`PlainLine`). A call that changes or reads
    files gets ``written``, ``deleted`` and ``taken``. An argument of the agent with one of these names is dropped.

    Paths are relative to the project where they are inside it.

    Args:
        tool: the name of the tool.
        arguments: its arguments.
        cwd: the folder in which it works, whose links are resolved; if it is empty, no file is looked at.
        project: the folder of the project; the default is that of :func:`find_project`.
    """
    if tool in SHELL_TOOLS:
        return _add_line(arguments, cwd, project)
    project = project or find_project(cwd)
    # A tool ignores the arguments that it does not know, and which those are is not known here.
    places: list[JSON] = [
        _locate(path, cwd or ".", project) for name in _PATHS if isinstance(path := arguments.get(name), str)
    ]
    paths: dict[str, list[JSON]] = {"written": [], "deleted": [], "taken": []}
    if tool == "apply_patch":
        text = str(next((arguments[name] for name in ("command", "input", "patch") if name in arguments), ""))
        for one in _PATCHED.finditer(text):
            paths["deleted" if one[1] == "Delete" else "written"].append(_locate(one[2], cwd or ".", project))
        if isinstance(operation := arguments.get("operation"), Mapping):  # an item of OpenAI's Responses
            kind = "deleted" if operation.get("type") == "delete_file" else "written"
            paths[kind].append(_locate(str(operation.get("path")), cwd or ".", project))
        return {**arguments, **paths}
    if places and tool in _WRITERS | _READERS:
        return {**arguments, **paths, "written" if tool in _WRITERS else "taken": places}
    return arguments


def _add_line(arguments: Mapping[str, JSON], cwd: str, project: str) -> Mapping[str, JSON]:
    given = {name: value for name, value in arguments.items() if name not in _ADDED}
    lines = [arguments[name] for name in _ARGUMENTS if name in arguments]
    line = lines[0] if len(lines) == 1 else None  # which of several runs is not known
    if isinstance(line, Mapping):  # OpenAI's local shell: an action with its command
        line = line.get("command")
    read: PlainLine | None = None
    if isinstance(line, str):
        read = read_plain(line)
    elif isinstance(line, list):  # words that no shell interprets
        words = tuple(word for word in line if isinstance(word, str))
        if words and len(words) == len(line) and not _is_runner(words[0]):
            read = PlainLine((words,), (words,))
    if read is None:
        return {**given, "plain": False}
    folder = arguments.get("workdir") or arguments.get("cwd")
    project = project or find_project(cwd)
    here = posixpath.join(cwd or ".", folder) if isinstance(folder, str) else cwd or "."
    here = posixpath.realpath(here) if cwd else here  # which names a folder that cannot be
    if any(words[0] == "cd" for words in read.commands):
        here = _UNKNOWN_FOLDER
    return {
        **given,
        "plain": True,
        "commands": [list(words) for words in read.commands],
        "programs": list({words[0]: None for words in read.commands}),
        "decisive": [list(words) for words in read.decisive],
        "written": [_locate(path, here, project) for path in read.written],
        "taken": [_locate(path, here, project) for path in read.taken],
    }


def _locate(path: str, folder: str, project: str) -> str:
    """Return where a path leads: relative to the project where it is inside it."""
    if folder == _UNKNOWN_FOLDER and not path.startswith("/"):
        return _UNKNOWN_FOLDER + path.replace("/", "|")
    whole = posixpath.join(folder, path)
    whole = posixpath.realpath(whole) if project else posixpath.normpath(re.sub("^/+", "/", whole))
    return posixpath.relpath(whole, project) if project and inside(whole, project) else whole


def find_project(cwd: str) -> str:
    """Return the folder of the project that a folder belongs to: the nearest one with ``.git``, or else itself."""
    if not cwd:
        return ""
    folder = here = posixpath.realpath(cwd)
    while not posixpath.exists(posixpath.join(folder, ".git")):
        if folder == "/":
            return here
        folder = posixpath.dirname(folder)
    return folder


def inside(path: str, folder: str) -> bool:
    """Return whether a path is in a folder, with ``..`` resolved; a relative path has the same base as the folder."""
    inner, outer = posixpath.normpath(path), posixpath.normpath(folder)
    if outer == ".":
        return not inner.startswith(("/", "../")) and inner != ".."
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")
