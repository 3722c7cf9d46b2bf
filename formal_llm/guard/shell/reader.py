"""A reader of shell lines: it finds the simple commands in them, each with its words, as bash would read them.

It is written for guards, so it is conservative: it finds every command of a line that bash might run, or reports that
it is unsure. It runs nothing, and expands nothing. A word that is only known when the line runs (``$X``, ``*.py``,
``$(...)``) is kept as written, and marked; the commands inside ``$(...)`` are read like all others.

The grammar is that of bash (POSIX.1-2024, Shell Command Language, and the bash manual), word by word: operators end a
simple command, reserved words do not begin one.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

_BLANKS = " \t"
_ENDS = frozenset(" \t\n|&;()<>")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=")
#: A text of this form runs a command if it is evaluated as arithmetic or as an array index.
COMMAND_IN_TEXT = re.compile(r"\$\(|`")
#: A value with one of these characters may become such a text when others are appended.
_COMMAND_SIGN = re.compile(r"[$`]")
_ARITHMETIC_TESTS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"))
_SETS = r"\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)"
_NAME = r"(?<![\w$`{})])(?!\d)([\w$`{})]+)"
_SET_IN_ARITHMETIC = re.compile(rf"{_NAME}{_SETS}|(?:\+\+|--)\s*{_NAME}")
_SET_ITEM, _NAME_OF_ITEM = re.compile(rf"\]{_SETS}"), re.compile(rf"{_NAME}\s*\[")
#: The start and length in ``${x:start:length}``, and the index in ``${x[index]}``.
_BRACED_ARITHMETIC = re.compile(r"\$\{[#!]?(?:\w+|[@*])(?:\[|:(?![-=?+]))(.*)", re.DOTALL)
#: Commands that evaluate the values of variables as arithmetic.
_EVALUATES = re.compile(r"(?:builtin |command )*(?:let |(?:declare|typeset|local|export|readonly) (?:.* )?-[a-zA-Z]*i)")
_BRACES = re.compile(r"\{[^{}]*(?:,|\.\.)")
#: The escapes in $'...' of bash: those of C, and \c before a control character.
_NAMED = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\",
    "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(.)|(.))", re.DOTALL
)


class UnreadableLine(Exception):
    """The rest of the line cannot be read; the message explains why."""


@dataclass(frozen=True, slots=True)
class ShellWord:
    """A word: the value passed to the program if it is known before the line runs, otherwise the text as written."""

    text: str
    known: bool = True


@dataclass(slots=True)
class SimpleCommand:
    """A simple command.

    Attributes:
        words: the program and its arguments.
        assigned: the variables that are set before it.
        values: the words that set them, ``NAME=value``.
        written: the files that receive its output.
        taken: the files that provide its input.
        here: its input text, from ``<<`` or ``<<<``.
        redirected: whether it contains a redirection.
        defines: the function that is defined here instead of a command; its body follows.
        ends: the operator that ends it; empty at the end of the line.
        inner: whether it is in brackets, in a compound command, or in an expansion, so that it need not run.
    """

    words: list[ShellWord] = field(default_factory=list)
    assigned: list[str] = field(default_factory=list)
    values: list[ShellWord] = field(default_factory=list)
    written: list[ShellWord] = field(default_factory=list)
    taken: list[ShellWord] = field(default_factory=list)
    here: ShellWord | None = None
    redirected: bool = False
    defines: str = ""
    ends: str = ""
    inner: bool = False

    def __bool__(self) -> bool:
        return bool(self.words or self.assigned or self.written or self.taken or self.redirected)


class ShellWordReader(ABC):
    """A reader of words: a position in a line, and the commands found before it. A subclass reads commands."""

    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.at = 0
        self.depth = depth
        self.found: list[SimpleCommand] = []
        self.unsure: list[str] = []
        self.arithmetic = False  # whether there is arithmetic
        self.repeated = 0  # the number of characters that were read again because they are no arithmetic

    @abstractmethod
    def read_commands(self, end: str | None) -> None:
        """Read commands up to and including the character that ends them (None: up to the end of the text)."""

    @abstractmethod
    def read_all(self) -> None:
        """Read the whole text; problems are appended to ``unsure``."""

    @abstractmethod
    def read_here_documents(self) -> None:
        """Read the here-documents that begin on this line, if any were announced."""

    def set_variable(self, name: str) -> None:
        """Note that a variable gets a value that is not known."""
        self.found.append(SimpleCommand(assigned=[name], values=[ShellWord(name, False)]))

    def set_in_arithmetic(self, text: str) -> None:
        """Note the variables that get a value where a text is evaluated as arithmetic."""
        for name in find_sets(text):
            if name.isidentifier():
                self.set_variable(name)
            else:
                self.unsure.append("which variable arithmetic sets, is only known when it runs")

    def read_word(self) -> ShellWord:
        """Read the word at the current position."""
        start = self.at
        parts: list[str] = []
        known, bare = True, []  # bare: the unquoted characters, for braces and patterns
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign in "<>" and self.text[self.at + 1 : self.at + 2] == "(" and self.at == start:
                self.at += 2
                self.read_commands(")")
                known = False
            elif sign == "(" and ASSIGNMENT.fullmatch(self.text[start : self.at]):
                self.read_array()
                known = False
            elif sign in _ENDS:
                break
            elif sign == "\\":
                escaped = self.text[self.at + 1 : self.at + 2]
                self.at += 2
                parts.append("" if escaped == "\n" else escaped or "\\")
            elif sign == "'":
                parts.append(self.read_single_quoted())
            elif sign == '"':
                self.at += 1
                known &= self.read_double_quoted('"', parts)
            elif sign in "$`":
                known &= self.read_expansion(parts, False)
            else:
                self.at += 1
                parts.append(sign)
                bare.append(sign)
        if self.at == start:
            raise UnreadableLine(f"a word is missing before {self.text[start : start + 10]!r}")
        plain = "".join(bare)
        if known and (plain[:1] == "~" or any(sign in plain for sign in "*?[") or _BRACES.search(plain)):
            known = plain == "["  # the program of that name
        return ShellWord("".join(parts) if known else self.text[start : self.at], known)

    def read_array(self) -> None:
        """Read the values of an array, up to the closing bracket."""
        self.at += 1
        while True:
            self.skip_lines()
            if self.is_ahead(")"):
                self.at += 1
                return
            self.set_in_arithmetic(self.read_word().text.rpartition("]")[0])

    def read_single_quoted(self) -> str:
        """Read a text in single quotes."""
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise UnreadableLine("a single quote does not end")
        text, self.at = self.text[self.at + 1 : end], end + 1
        return text

    def read_double_quoted(self, end: str, parts: list[str]) -> bool:
        """Read up to a double quote (or the end of the text); return whether the value is known."""
        known = True
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign == end:
                self.at += 1
                return known
            if sign == "\\":
                escaped = self.text[self.at + 1 : self.at + 2]
                self.at += 2
                parts.append("" if escaped == "\n" else escaped if escaped and escaped in '$`"\\' else sign + escaped)
            elif sign in "$`":
                known &= self.read_expansion(parts, True)
            else:
                self.at += 1
                parts.append(sign)
        if end:
            raise UnreadableLine("a double quote does not end")
        return known

    def read_expansion(self, parts: list[str], in_quotes: bool) -> bool:
        """Read an expansion that begins with a dollar or a backquote; return whether its value is known."""
        after = self.text[self.at + 1 : self.at + 2]
        if self.text[self.at] == "`":
            self.read_backquoted(in_quotes)
        elif after == "'" and not in_quotes:
            parts.append(self.read_ansi_quoted())
            return True
        elif after == '"' and not in_quotes:
            self.at += 2
            return self.read_double_quoted('"', parts)
        elif after == "(":
            if not (self.is_ahead("$((") and self.read_arithmetic(self.at + 3)):
                self.at += 2
                self.read_commands(")")
        elif after == "{":
            self.read_braced(in_quotes)
        elif after == "[":
            raise UnreadableLine("$[...] is not read; write $((...))")
        elif found := re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])").match(self.text, self.at):
            self.at = found.end()
        else:
            self.at += 1
            parts.append("$")
            return True
        return False

    def read_ansi_quoted(self) -> str:
        """Read a text in ``$'...'``."""
        match = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.at)
        if match is None:
            raise UnreadableLine("a single quote does not end")
        self.at = match.end()
        return decode_ansi_c(match[1])

    def read_backquoted(self, in_quotes: bool) -> None:
        """Read a command in backquotes, after removing its backslashes."""
        match = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL).match(self.text, self.at)
        if match is None:
            raise UnreadableLine("a backquote does not end")
        self.at = match.end()
        escapes = r'\\([$`\\"])' if in_quotes else r"\\([$`\\])"
        inner = type(self)(re.sub(escapes, r"\1", match[1]), self.depth + 1)
        inner.read_all()
        self.found += inner.found
        self.unsure += inner.unsure

    def read_braced(self, in_quotes: bool) -> None:
        """Read a variable in braces with everything inside them."""
        start = self.at
        self.at += 2
        if self.text[self.at : self.at + 1] in (" ", "\t", "\n", "|"):
            raise UnreadableLine("a command in ${ ...; } is not read")
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign == "}":
                self.at += 1
                self.check_braced(self.text[start : self.at])
                return
            if sign == "\\":
                self.at += 2
            elif sign == "'" and not in_quotes:
                self.read_single_quoted()
            elif sign == '"':
                self.at += 1
                self.read_double_quoted('"', [])
            elif sign in "$`":
                self.read_expansion([], in_quotes)
            elif sign in "<>" and self.text[self.at + 1 : self.at + 2] == "(":
                self.at += 2
                self.read_commands(")")
            else:
                self.at += 1
        raise UnreadableLine("${ does not end")

    def check_braced(self, written: str) -> None:
        """Note what a variable in braces runs, and what it sets."""
        if written.endswith("@P}"):
            self.unsure.append("${...@P} runs what its variable holds")
        if found := re.match(r"\$\{([A-Za-z_]\w*)(?:\[[^]]*\])?:?=", written):
            self.set_variable(found[1])
        if found := _BRACED_ARITHMETIC.match(written):
            self.set_in_arithmetic(found[1])
        if re.search(r"\[.*(?:'[^']*|\\)[$`]", written):
            self.unsure.append("${...[...]} runs the command in the text of its index")

    def read_arithmetic(self, start: int, loop: bool = False) -> bool:
        """Read arithmetic up to ``))``; return False and read nothing if it is brackets in brackets."""
        before, kept, doubts, open_ = self.at, len(self.found), len(self.unsure), 0
        self.at = start
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign == ")" and not open_:
                if self.is_ahead("))"):
                    self.set_in_arithmetic(self.text[start : self.at])
                    self.at += 2
                    self.arithmetic = True
                    return True
                break
            open_ += (sign == "(") - (sign == ")")
            if sign == "'" or (sign == ";" and not loop):
                raise UnreadableLine("(( is arithmetic, or brackets in brackets: write a blank between them")
            if sign == "\\":
                self.at += 2
            elif sign == '"':
                self.at += 1
                self.read_double_quoted('"', [])
            elif sign in "$`":
                self.read_expansion([], True)
            else:
                self.at += 1
        self.repeated += self.at - before
        if self.repeated > len(self.text) + 1_000:
            raise UnreadableLine("too many brackets are nested")
        self.at = before
        del self.found[kept:], self.unsure[doubts:]
        return False

    # -- characters ---------------------------------------------------------------------------------------------

    def is_ahead(self, text: str) -> bool:
        """Return whether a text begins at the current position."""
        return self.text.startswith(text, self.at)

    def skip_blanks(self) -> None:
        """Skip blanks, and line ends escaped by a backslash."""
        while self.at < len(self.text):
            if self.text[self.at] in _BLANKS:
                self.at += 1
            elif self.is_ahead("\\\n"):
                self.at += 2
            else:
                return

    def skip_lines(self) -> None:
        """Skip blanks, line ends, and comments."""
        while True:
            self.skip_blanks()
            if self.is_ahead("\n"):
                self.at += 1
                self.read_here_documents()
            elif self.is_ahead("#"):
                self.skip_comment()
            else:
                return

    def skip_comment(self) -> None:
        """Skip a comment."""
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end


def find_sets(text: str) -> list[str]:
    """Find the variables that a text sets if it is evaluated as arithmetic; a name may contain an expansion."""
    text = re.sub(r"[\"'\\]", "", text)
    names = [one or other for one, other in _SET_IN_ARITHMETIC.findall(text)]
    return names + (_NAME_OF_ITEM.findall(text) if _SET_ITEM.search(text) else [])


def decode_ansi_c(text: str) -> str:
    """Decode the escapes in a text; as in bash, a zero byte ends it."""
    # Several bytes above 127 may form one UTF-8 character: they are combined at the end.
    decoded = _ESCAPE.sub(_decode_escape, text)
    decoded = decoded.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    return decoded.split("\0", 1)[0]


def _decode_escape(found: re.Match[str]) -> str:
    octal, byte, short, long, control, other = found.groups()
    if octal or byte:
        number = int(octal, 8) & 255 if octal else int(byte, 16)
        return chr(number) if number < 128 else bytes([number]).decode("utf-8", "surrogateescape")
    if short or long:
        number = int(short or long, 16)
        return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else found[0]
    if control:
        return chr(ord(control) & 31) if control != "?" else "\x7f"
    return _NAMED.get(other, found[0])


#: The maximum length of a line.
MOST_SIGNS = 100_000
_MOST_DEPTH = 25
#: The maximum number of brackets and compound commands that are open at the same time.
_MOST_OPEN = 200
_CASE_ENDS = (";;&", ";;", ";&")
_OPERATORS = (*_CASE_ENDS, "&&", "||", "|&", "|", ";", "&")
#: A command may begin after these words; the text after them is read as if they were absent.
_SKIPPED = frozenset(("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "!", "{", "}"))
_REDIRECT = re.compile(r"(?:\d+|\{[A-Za-z_]\w*\})?(&>>|&>|<<<|<<-|<<|<>|<&|>>|>&|>\||<(?!\()|>(?!\())")


def read_simple(line: str, depth: int = 0) -> tuple[list[SimpleCommand], list[str]]:
    """Read the simple commands of a line, in the order in which they end, and the reasons why there may be more.

    Args:
        line: the line, or a whole script.
        depth: its nesting depth in other lines.
    """
    reader = _ShellCommandReader(line, depth)
    reader.read_all()
    return reader.found, reader.unsure


class _ShellCommandReader(ShellWordReader):
    """A reader of commands: a position in a line, and the commands found before it."""

    def __init__(self, text: str, depth: int) -> None:
        super().__init__(text, depth)
        self.here: list[tuple[SimpleCommand, str, bool, bool]] = []  # command, last line, whether quoted, whether <<-
        self.inside: list[str] = []  # "(" for a subshell, "case" for a case
        self.level = 0  # the number of expansions around the current position
        self.compound = False  # whether there is anything but simple commands

    def read_all(self) -> None:
        try:
            if self.depth > _MOST_DEPTH or len(self.text) > MOST_SIGNS:
                raise UnreadableLine(
                    "the line is too long" if self.depth <= _MOST_DEPTH else "commands are nested too deeply"
                )
            if "\0" in self.text:
                raise UnreadableLine("there is a zero byte in the line")
            self.read_commands(None)
        except UnreadableLine as error:
            self.unsure.append(str(error))
        except RecursionError:
            self.unsure.append("the line is nested too deeply")
        for simple in self.found:
            simple.inner |= self.compound
        texts = [word for simple in self.found for word in (*simple.words, simple.here) if word is not None]
        self.arithmetic |= any(_EVALUATES.match(" ".join(word.text for word in one.words)) for one in self.found)
        if self.arithmetic:  # a variable in it may hold another expression
            values = [word.text.partition("=")[2] for simple in self.found for word in simple.values]
            for text in (*values, *(word.text for word in texts if word.known)):
                self.set_in_arithmetic(text)
        if self.arithmetic and any(word.known and COMMAND_IN_TEXT.search(word.text) for word in texts):
            self.unsure.append("arithmetic may run the command in a text of the line")

    def read_commands(self, end: str | None) -> None:
        """Read commands up to and including the character that ends them (None: up to the end of the text)."""
        outer, self.inside = self.inside, []
        self.level += 1
        simple = SimpleCommand()
        while True:
            self.skip_blanks()
            if self.at >= len(self.text):
                self.finish_command(simple)
                self.read_here_documents()
                if end is not None or self.inside:
                    raise UnreadableLine("something that was opened does not end")
                break
            sign = self.text[self.at]
            operator = None if self.is_ahead("&>") else next((one for one in _OPERATORS if self.is_ahead(one)), None)
            if sign == "#":
                self.skip_comment()
            elif sign == "\n":
                simple = self.finish_command(simple, sign)
                self.at += 1
                self.read_here_documents()
            elif operator is not None:
                simple = self.finish_command(simple, operator)
                self.at += len(operator)
                if operator in _CASE_ENDS:
                    self.read_case_patterns()
            elif found := _REDIRECT.match(self.text, self.at):
                self.read_redirect(simple, found)
            elif sign == "(":
                simple = self.open_bracket(simple)
            elif sign == ")":
                simple = self.finish_command(simple)
                if self.close_bracket(end):
                    break
            else:
                self.read_next_word(simple)
        self.inside = outer
        self.level -= 1

    def read_next_word(self, simple: SimpleCommand) -> None:
        """Read a word of a simple command, or a reserved word before one."""
        start = self.at
        word = self.read_word()
        written = self.text[start : self.at].replace("\\\n", "")
        if not simple and self.read_reserved_word(written):
            return
        if not simple.words and (assigned := ASSIGNMENT.match(written)):
            simple.assigned.append(assigned[1])
            simple.values.append(word)
            self.set_in_arithmetic(assigned[0].partition("[")[2])
            self.check_value(word, assigned[1])
            return
        if not simple.words and not word.known:
            self.unsure.append(f"which program {word.text[:60]} is, is only known when it runs")
        simple.words.append(word)

    def check_value(self, word: ShellWord, name: str) -> None:
        """Report a value that arithmetic over its variable would run."""
        if word.known and _COMMAND_SIGN.search(word.text):
            self.unsure.append(f"the value of {name} holds a command, which arithmetic over it would run")

    def finish_command(self, simple: SimpleCommand, operator: str = "") -> SimpleCommand:
        """Add a simple command to the found ones, and return a new one."""
        if simple:
            simple.ends, simple.inner = operator, self.level > 1
            self.found.append(simple)
        return SimpleCommand()

    def define_function(self, name: str) -> None:
        """Note a function; the body is read at its definition."""
        self.compound = True
        self.found.append(SimpleCommand(defines=name))

    def open_bracket(self, simple: SimpleCommand) -> SimpleCommand:
        """Read an opening bracket: a subshell, arithmetic, or a function definition."""
        self.compound = True
        if len(self.inside) > _MOST_OPEN:
            raise UnreadableLine("too many brackets are nested")
        if not simple:
            if self.is_ahead("((") and self.read_arithmetic(self.at + 2):
                return simple
            self.at += 1
            self.inside.append("(")
            return simple
        if len(simple.words) == 1 and (closed := re.compile(r"\([ \t]*\)").match(self.text, self.at)):
            self.at = closed.end()
            self.define_function(simple.words[0].text)
            return SimpleCommand()
        raise UnreadableLine("a bracket stands where none can be read")

    def close_bracket(self, end: str | None) -> bool:
        """Pass a closing bracket; whether it ends the commands that are being read."""
        self.at += 1
        if self.inside and self.inside[-1] == "(":
            self.inside.pop()
            return False
        if not self.inside and end == ")":
            return True
        raise UnreadableLine("a bracket ends that nothing opened")

    def read_reserved_word(self, written: str) -> bool:
        """Return whether the first word of a command is reserved, and read everything that belongs to it."""
        if written in _SKIPPED:
            self.compound = True
            return True
        match written:
            case "time":
                while found := re.compile(r"[ \t]+(-p|--)(?=[ \t\n])").match(self.text, self.at):
                    self.at = found.end()
            case "coproc":
                raise UnreadableLine("coproc is not read")
            case "for" | "select":
                self.read_loop_head()
            case "case":
                self.skip_blanks()
                self.read_word()
                if not self.read_keyword("in"):
                    raise UnreadableLine("a case has no in")
                self.inside.append("case")
                self.read_case_patterns()
            case "esac":
                if not self.inside or self.inside.pop() != "case":
                    raise UnreadableLine("an esac ends no case")
            case "function":
                self.read_function_head()
            case "[[":
                self.read_test()
            case _:
                return False
        self.compound |= written != "time"
        return True

    def read_loop_head(self) -> None:
        """Read what follows ``for`` or ``select``, up to the end of the values."""
        self.skip_blanks()
        if self.is_ahead("((") and self.read_arithmetic(self.at + 2, loop=True):
            return
        name = self.read_word()
        self.set_variable(name.text)
        if self.read_keyword("in"):
            self.skip_blanks()
            while self.at < len(self.text) and self.text[self.at] not in ";\n":
                self.check_value(self.read_word(), name.text)
                self.skip_blanks()

    def read_function_head(self) -> None:
        """Read the name behind ``function``, and its empty brackets."""
        self.skip_blanks()
        self.define_function(self.read_word().text)
        if found := re.compile(r"[ \t]*\([ \t]*\)").match(self.text, self.at):
            self.at = found.end()

    def read_keyword(self, name: str) -> bool:
        """Skip blanks, line ends and a keyword; return False if something else follows."""
        self.skip_lines()
        if not re.compile(rf"{name}(?=[\s;]|$)").match(self.text, self.at):
            return False
        self.at += len(name)
        return True

    def read_case_patterns(self) -> None:
        """Read the patterns of a case up to the closing bracket; read nothing if the case ends."""
        if not self.inside or self.inside[-1] != "case":
            raise UnreadableLine("what parts the branches of a case stands outside of one")
        self.skip_lines()
        if re.compile(r"esac(?=[\s;&|)<>]|$)").match(self.text, self.at):
            return
        if self.is_ahead("("):
            self.at += 1
        while True:
            self.skip_blanks()
            self.read_word()
            self.skip_blanks()
            sign = self.text[self.at : self.at + 1]
            self.at += 1
            if sign == ")":
                return
            if sign != "|":
                raise UnreadableLine("the pattern of a case does not end")

    def read_test(self) -> None:
        """Read the text between ``[[`` and ``]]``."""
        texts: list[str] = []
        while True:
            self.skip_lines()
            if self.at >= len(self.text):
                raise UnreadableLine("[[ does not end")
            if self.is_ahead("<(") or self.is_ahead(">("):
                self.read_word()
            elif self.text[self.at] in "<>()&|;":
                self.at += 1
            else:
                start = self.at
                word = self.read_word()
                if self.text[start : self.at] == "]]":
                    self.set_in_arithmetic(";".join(texts) if self.arithmetic else "")
                    return
                self.arithmetic |= word.text in _ARITHMETIC_TESTS
                texts.append(word.text)
                if word.known and COMMAND_IN_TEXT.search(word.text):
                    self.unsure.append("[[ would run the command in a text that it is given")

    def read_redirect(self, simple: SimpleCommand, found: re.Match[str]) -> None:
        """Read a redirection and its word."""
        self.at = found.end()
        if found[0][0] == "{":
            self.set_variable(found[0][1 : found[0].index("}")])
        simple.redirected = True
        kind = found[1]
        self.skip_blanks()
        start = self.at
        word = self.read_word()
        written = self.text[start : self.at]
        if kind in ("<<", "<<-"):
            quoted = any(sign in written for sign in "\\'\"")
            self.here.append((simple, word.text if quoted else written, quoted, kind == "<<-"))
            simple.here = ShellWord("")
        elif kind == "<<<":
            simple.here = ShellWord(word.text + "\n", word.known)
        elif kind in ("<", "<&"):
            simple.taken.append(word)
        elif not (kind == ">&" and re.fullmatch(r"\d*-?", word.text)):
            simple.written.append(word)

    def read_text_line(self) -> str:
        """Read the line at the current position, and return it without its end."""
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        line, self.at = self.text[self.at : end], end + 1
        return line

    def read_here_documents(self) -> None:
        """Read the here-documents that begin on this line, each up to its last line."""
        waiting, self.here = self.here, []
        for simple, last, quoted, tabs in waiting:
            lines = []
            while True:
                if self.at >= len(self.text):
                    self.unsure.append(f"the text up to {last} does not end")
                    break
                line = self.read_text_line()
                while not quoted and len(line) - len(line.rstrip("\\")) & 1 and self.at <= len(self.text):
                    line = line[:-1] + self.read_text_line()
                line = line.lstrip("\t") if tabs else line
                if line == last:
                    break
                lines.append(line)
            text = "".join(f"{line}\n" for line in lines)
            simple.here = ShellWord(text)
            if not quoted:
                inner = _ShellCommandReader(text, self.depth)
                known = inner.read_double_quoted("", [])
                simple.here = ShellWord(text, known and "\\" not in text)
                self.found += inner.found
                self.unsure += inner.unsure
