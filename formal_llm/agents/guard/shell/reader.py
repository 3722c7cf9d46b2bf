"""A reader of shell lines: which simple commands stand in them, each with its words, as bash would read them.

It is made for guards, so it errs on one side: all that bash might run of a line stands in what is read, or the reader
says that it is not sure. It runs nothing, and expands nothing. A word that is only known when the line runs (``$X``,
``*.py``, ``$(...)``) stands as it is written, and is marked; the commands inside ``$(...)`` are read like all others.

The grammar is that of bash (POSIX.1-2024, Shell Command Language, and the bash manual), word by word: operators end a
simple command, reserved words do not begin one.
"""

from __future__ import annotations

import re

from formal_llm.agents.guard.shell.words import (
    ASSIGNMENT,
    COMMAND_IN_TEXT,
    ShellWord,
    ShellWordReader,
    SimpleCommand,
    UnreadableLine,
)

#: A longer line is not read.
MOST_SIGNS = 100_000
_MOST_DEPTH = 25
_CASE_ENDS = (";;&", ";;", ";&")
_OPERATORS = (*_CASE_ENDS, "&&", "||", "|&", "|", ";", "&")
#: Behind these a command may begin; what follows them is read as if they were not there.
_SKIPPED = frozenset(("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "!", "{", "}"))
_REDIRECT = re.compile(r"(?:\d+|\{[A-Za-z_]\w*\})?(&>>|&>|<<<|<<-|<<|<>|<&|>>|>&|>\||<(?!\()|>(?!\())")


def read_simple(line: str, depth: int = 0) -> tuple[list[SimpleCommand], list[str]]:
    """The simple commands of a line, in the order in which they end, and why more may stand in it.

    Args:
        line: the line, or a whole script.
        depth: how deep in other lines it stands.
    """
    reader = _ShellCommandReader(line, depth)
    reader.read_all()
    return reader.found, reader.unsure


class _ShellCommandReader(ShellWordReader):
    """A place in a line, and what was found up to it; reads commands."""

    def __init__(self, text: str, depth: int) -> None:
        super().__init__(text, depth)
        self.here: list[tuple[SimpleCommand, str, bool, bool]] = []  # whose, the last line, whether quoted, whether <<-
        self.inside: list[str] = []  # "(" for a subshell, "case" for a case

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

    def read_commands(self, end: str | None) -> None:
        """Read commands up to the sign that ends them (None: up to the end of the text), and that sign."""
        outer, self.inside = self.inside, []
        simple = SimpleCommand()
        while True:
            self.skip_blanks()
            if self.at >= len(self.text):
                self.finish_command(simple)
                self.read_here_documents()
                if end is not None or self.inside:
                    raise UnreadableLine("something that was opened does not end")
                self.inside = outer
                return
            sign = self.text[self.at]
            operator = None if self.is_ahead("&>") else next((one for one in _OPERATORS if self.is_ahead(one)), None)
            if sign == "#":
                self.skip_comment()
            elif sign == "\n":
                simple = self.finish_command(simple)
                self.at += 1
                self.read_here_documents()
            elif operator is not None:
                simple = self.finish_command(simple)
                self.at += len(operator)
                if operator in _CASE_ENDS:
                    self.read_case_patterns()
            elif found := _REDIRECT.match(self.text, self.at):
                self.read_redirect(simple, found)
            elif sign == "(":
                simple = self.open_bracket(simple)
            elif sign == ")":
                simple = self.finish_command(simple)
                self.at += 1
                if self.inside and self.inside[-1] == "(":
                    self.inside.pop()
                elif not self.inside and end == ")":
                    self.inside = outer
                    return
                else:
                    raise UnreadableLine("a bracket ends that nothing opened")
            else:
                self.read_next_word(simple)

    def read_next_word(self, simple: SimpleCommand) -> None:
        """Read a word of a simple command, or a reserved word in front of one."""
        start = self.at
        word = self.read_word()
        written = self.text[start : self.at].replace("\\\n", "")
        if not simple and self.read_reserved_word(written):
            return
        if not simple.words and (assigned := ASSIGNMENT.match(written)):
            simple.assigned.append(assigned[1])
            if word.known and COMMAND_IN_TEXT.search(word.text):
                self.unsure.append(f"the value of {assigned[1]} holds a command, which arithmetic over it would run")
            return
        if not simple.words and not word.known:
            self.unsure.append(f"which program {word.text[:60]} is, is only known when it runs")
        simple.words.append(word)

    def finish_command(self, simple: SimpleCommand) -> SimpleCommand:
        """Keep a simple command; gives the next one."""
        if simple:
            self.found.append(simple)
        return SimpleCommand()

    def open_bracket(self, simple: SimpleCommand) -> SimpleCommand:
        """An opening bracket: a subshell, arithmetic, or the definition of a function."""
        if not simple:
            if self.is_ahead("((") and self.read_arithmetic(self.at + 2):
                return simple
            self.at += 1
            self.inside.append("(")
            return simple
        if len(simple.words) == 1 and (closed := re.compile(r"\([ \t]*\)").match(self.text, self.at)):
            self.at = closed.end()  # what the function does is read where it is defined
            return SimpleCommand()
        raise UnreadableLine("a bracket stands where none can be read")

    def read_reserved_word(self, written: str) -> bool:
        """Whether a word where a command begins is a reserved one; what belongs to it is read."""
        if written in _SKIPPED:
            return True
        if written in ("time", "coproc"):
            if written == "coproc":
                raise UnreadableLine("coproc is not read")
            while found := re.compile(r"[ \t]+(-p|--)(?=[ \t\n])").match(self.text, self.at):
                self.at = found.end()
        elif written in ("for", "select"):
            self.skip_blanks()
            if self.is_ahead("((") and self.read_arithmetic(self.at + 2, loop=True):
                return True
            self.read_word()
            if self.read_keyword("in"):
                self.skip_blanks()
                while self.at < len(self.text) and self.text[self.at] not in ";\n":
                    self.read_word()
                    self.skip_blanks()
        elif written == "case":
            self.skip_blanks()
            self.read_word()
            if not self.read_keyword("in"):
                raise UnreadableLine("a case has no in")
            self.inside.append("case")
            self.read_case_patterns()
        elif written == "esac":
            if not self.inside or self.inside.pop() != "case":
                raise UnreadableLine("an esac ends no case")
        elif written == "function":
            self.skip_blanks()
            self.read_word()
            if found := re.compile(r"[ \t]*\([ \t]*\)").match(self.text, self.at):
                self.at = found.end()
        elif written == "[[":
            self.read_test()
        else:
            return False
        return True

    def read_keyword(self, name: str) -> bool:
        """Pass blanks, ends of lines and a keyword; False where it is not the keyword that comes."""
        self.skip_lines()
        if not re.compile(rf"{name}(?=[\s;]|$)").match(self.text, self.at):
            return False
        self.at += len(name)
        return True

    def read_case_patterns(self) -> None:
        """The patterns of a case, up to the bracket behind them; none where the case ends."""
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
        """What stands between ``[[`` and ``]]``."""
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
                self.read_word()
                if self.text[start : self.at] == "]]":
                    return

    def read_redirect(self, simple: SimpleCommand, found: re.Match[str]) -> None:
        """A redirection and its word."""
        self.at = found.end()
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
        """The line that begins here, without its end."""
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        line, self.at = self.text[self.at : end], end + 1
        return line

    def read_here_documents(self) -> None:
        """The texts that begin on this line, each up to its last line."""
        waiting, self.here = self.here, []
        for simple, last, quoted, tabs in waiting:
            lines = []
            while True:
                if self.at >= len(self.text):
                    self.unsure.append(f"the text up to {last} does not end")
                    break
                line = self.read_text_line()
                while not quoted and len(line) - len(line.rstrip("\\")) & 1 and self.at < len(self.text):
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
