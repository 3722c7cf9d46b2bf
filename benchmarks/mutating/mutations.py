"""Small changes of a module's text, one at a time: what a slip of the hand may do to a line of code.

Changed are comparisons, arithmetic signs, ``and``/``or``/``not``, conditions, bounds of slices, the constants 0, 1, 2,
True and False, ``break`` and ``continue``. Left alone is what does not run or only guards: annotations, decorators,
``assert``, ``strict=`` of ``zip``, ``total=`` of typed dictionaries, blocks for type checkers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"), ast.Is: ("is", "is not"), ast.IsNot: (r"is\s+not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}  # fmt: skip
_SIGNS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "+"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "+"), ast.Pow: ("**", "*"), ast.BitOr: ("|", "&"), ast.BitAnd: ("&", "|"),
}  # fmt: skip
_NUMBERS = {0: (1,), 1: (0, 2), 2: (1, 3)}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the bytes from ``start`` to ``end`` of a file become ``text``.

    ``function`` is the dotted name of what encloses it, ``source`` the stripped line on which it begins, ``change`` the
    expression before and after it. A file, a function, a line's text and a change name a mutant in the list of
    equivalent ones, wherever the line moves. ``first`` and ``last`` are the lines of the statement's head.
    """

    file: str
    line: int
    function: str
    source: str
    change: str
    start: int
    end: int
    text: str
    first: int
    last: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What the mutant is recorded by."""
        return self.file, self.function, self.source, self.change

    def apply(self, source: bytes) -> bytes:
        """The file with the change."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def list_mutants(file: str, text: str) -> list[Mutant]:
    """All mutants of a file, in the order of their places.

    Args:
        file: The path that the mutants are reported with.
        text: The text of the file.
    """
    found = {(one.start, one.end, one.text): one for one in _Finder(file, text).find(ast.parse(text))}
    return [found[place] for place in sorted(found)]


def is_change(mutant: Mutant, text: str) -> bool:
    """Whether the text with the change still is Python, and another program."""
    try:
        return ast.dump(ast.parse(mutant.apply(text.encode()))) != ast.dump(ast.parse(text))
    except SyntaxError:
        return False


class _Finder:
    """Goes through the syntax tree of a file and keeps the function and the statement around a node."""

    def __init__(self, file: str, text: str) -> None:
        self._file, self._source = file, text.encode()
        self._lines = text.split("\n")
        self._begins = [0]
        for line in self._source.split(b"\n"):
            self._begins.append(self._begins[-1] + len(line) + 1)

    def find(self, tree: ast.Module) -> Iterator[Mutant]:
        yield from self._visit(tree, "", (1, 1))

    def _at(self, line: int, column: int) -> int:
        return self._begins[line - 1] + column

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, (ast.expr, ast.stmt))
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._at(node.lineno, node.col_offset), self._at(node.end_lineno, node.end_col_offset)

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()

    def _visit(self, node: ast.AST, function: str, head: tuple[int, int]) -> Iterator[Mutant]:
        if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            return
        if isinstance(node, ast.JoinedStr) and not self._has_places(node):
            return
        if isinstance(node, ast.stmt):
            head = self._head(node)
        for start, end, text, around in self._changes(node):
            yield self._mutant(start, end, text, around, function, head)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            function = f"{function}.{node.name}".lstrip(".")
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "type_comment"):
                continue
            for child in value if isinstance(value, list) else [value]:
                aside = isinstance(child, ast.keyword) and child.arg in ("strict", "total")
                if isinstance(child, ast.AST) and not aside:
                    yield from self._visit(child, function, head)

    def _head(self, node: ast.stmt) -> tuple[int, int]:
        """The lines of a statement without the statements inside it."""
        inner = [child.lineno for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
        return node.lineno, max(node.lineno, min(inner) - 1) if inner else node.end_lineno or node.lineno

    def _has_places(self, node: ast.JoinedStr) -> bool:
        """Whether the nodes inside an f-string know where they are; Python before 3.12 often loses them."""
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                try:
                    read = ast.parse(f"({self._text(value.value)})", mode="eval").body
                except (SyntaxError, ValueError):
                    return False
                if ast.dump(read) != ast.dump(value.value):
                    return False
        return True

    def _mutant(self, start: int, end: int, text: str, around: ast.AST, function: str, head: tuple[int, int]) -> Mutant:
        line = self._source.count(b"\n", 0, start) + 1
        low, high = self._span(around)
        before = self._source[low:high].decode()
        after = (self._source[low:start] + text.encode() + self._source[end:high]).decode()
        change = " ".join(f"`{before}` to `{after}`".split())
        source = self._lines[line - 1].strip()
        return Mutant(self._file, line, function, source, change, start, end, text, *head)

    def _changes(self, node: ast.AST) -> Iterator[tuple[int, int, str, ast.AST]]:
        """The changes of one node: from, to, what is put there, and the expression to report them with."""
        if isinstance(node, ast.Compare):
            for left, sign, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                yield from self._between(left, right, *_COMPARISONS[type(sign)], node)
        elif isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
            yield from self._between(node.left, node.right, *_SIGNS[type(node.op)], node)
        elif isinstance(node, ast.BoolOp):
            old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from self._between(left, right, old, new, node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
            yield self._span(node)[0], self._span(node.operand)[0], "", node
        elif isinstance(node, ast.AugAssign) and type(node.op) in _SIGNS:
            old, new = _SIGNS[type(node.op)]
            yield from self._between(node.target, node.value, f"{old}=", f"{new}=", node)
        elif isinstance(node, ast.Constant):
            start, end = self._span(node)
            if isinstance(node.value, bool):
                yield start, end, str(not node.value), node
            elif type(node.value) is int and node.value in _NUMBERS:
                for value in _NUMBERS[node.value]:
                    yield start, end, str(value), node
        elif isinstance(node, ast.Slice):
            for bound in (node.lower, node.upper):
                if isinstance(bound, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
                    end = self._span(bound)[1]
                    yield end, end, " + 1", bound
        elif isinstance(node, (ast.Break, ast.Continue)):
            yield *self._span(node), "continue" if isinstance(node, ast.Break) else "break", node
        for test in self._conditions(node):
            start, end = self._span(test)
            yield start, end, f"(not ({self._text(test)}))", test

    def _conditions(self, node: ast.AST) -> Iterator[ast.expr]:
        """The conditions of a node that have no sign of their own to change."""
        tests = [node.test] if isinstance(node, (ast.If, ast.While, ast.IfExp)) else []
        tests += node.ifs if isinstance(node, ast.comprehension) else []
        tests += [node.guard] if isinstance(node, ast.match_case) and node.guard else []
        for test in tests:
            if not isinstance(test, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant)):
                yield test

    def _between(
        self, left: ast.AST, right: ast.AST, old: str, new: str, around: ast.AST
    ) -> Iterator[tuple[int, int, str, ast.AST]]:
        """The sign between two operands; brackets and comments may lie there, too."""
        start, end = self._span(left)[1], self._span(right)[0]
        pattern = old if old.isalpha() or "\\" in old else re.escape(old)
        gap = re.sub(rb"#[^\n]*", lambda comment: b" " * len(comment[0]), self._source[start:end])
        if sign := re.search(pattern.encode(), gap):
            yield start + sign.start(), start + sign.end(), new, around
