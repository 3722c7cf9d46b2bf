"""The structure of a plan: its derivation tree, and the nested calls that the tree of a prefix grammar represents.

A derivation tree is built from the moves of a run, which for the automaton of a grammar are a leftmost derivation. A
run of a hand-written automaton has no derivation: its tree is flat. No function here recurses, since plans may be long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from formal_llm.automata import Production, Transition
from formal_llm.automata.models.automaton import Move
from formal_llm.automata.models.repetition import parse_repetition
from formal_llm.automata.models.symbols import selection_members
from formal_llm.pictures.drawable import Drawable
from formal_llm.pictures.picture import Picture
from formal_llm.planning.json_data import JSON

#: A node in a flat list: symbol, label, number of children, terminal, open, text, and of a decision its question.
FlatNode = Sequence[JSON]


@runtime_checkable
class MoveWithText(Protocol):
    """A move that has a text of its own, as moves of a custom automaton may."""

    @property
    def text(self) -> str:
        """Its text as a step or an option; empty to derive it from labels."""


def text_of(move: Move) -> str:
    """Return the text of a move as a step or an option; empty if it has none of its own."""
    return move.text if isinstance(move, (Transition, MoveWithText)) else ""


def production_of(move: Move) -> Production | None:
    """Return the production that a move of a grammar's automaton expands."""
    return move.production if isinstance(move, Transition) else None


@dataclass(slots=True, eq=False, repr=False)
class Node(Drawable):
    """A node of a derivation tree. Treated as immutable once it is built.

    Attributes:
        symbol: the grammar symbol.
        label: the text that a person reads for it.
        children: its children from left to right; a terminal has none.
        terminal: whether it is a terminal of the word.
        open: whether its production has not been chosen yet (in the tree of an unfinished plan).
        text: the text of its production, if it has one.
        question: for a decision, the question that it answers: the progress shows both; the plan has no such step.
    """

    symbol: str
    label: str
    children: list[Node] = field(default_factory=list)
    terminal: bool = False
    open: bool = False
    text: str | None = None
    question: str | None = None

    @property
    def picture(self) -> Picture:
        """The tree, from the root down."""
        from formal_llm.planning.plans.drawing import tree_picture

        return tree_picture(self)

    def walk(self) -> Iterator[Node]:
        """Yield the nodes in preorder: a node, then its children from left to right."""
        todo = [self]
        while todo:
            node = todo.pop()
            yield node
            todo.extend(reversed(node.children))

    @property
    def leaves(self) -> list[Node]:
        """The terminals, from left to right."""
        return [node for node in self.walk() if node.terminal]

    def flat(self) -> list[FlatNode]:
        """Return the tree as a flat list in preorder, for JSON: nesting would limit its depth."""
        rows = ((n.symbol, n.label, len(n.children), n.terminal, n.open, n.text, n.question) for n in self.walk())
        return [row if row[-1] is not None else row[:-1] for row in rows]

    @classmethod
    def from_flat(cls, rows: Iterable[FlatNode]) -> Node:
        """Rebuild a tree from the list of :meth:`flat`."""
        root: Node | None = None
        missing: list[tuple[Node, int]] = []
        row: Any  # its elements come from JSON
        for row in rows:
            symbol, label, count, terminal, is_open, *texts = row
            node = cls(symbol, label, [], terminal, is_open, *texts)
            if root is None:
                root = node
            else:
                parent, left = missing.pop()
                parent.children.append(node)
                if left > 1:
                    missing.append((parent, left - 1))
            if count:
                missing.append((node, count))
        if root is None or missing:
            raise ValueError("the tree is cut off")
        return root

    def __repr__(self) -> str:
        return f"<Node {self.symbol}: {' '.join(leaf.symbol for leaf in self.leaves)}>"

    def __eq__(self, other: object) -> bool:
        return self.flat() == other.flat() if isinstance(other, Node) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self.flat()))

    def __reduce__(self) -> tuple[object, ...]:
        return Node.from_flat, (self.flat(),)  # a tree thousands deep would exhaust the recursion limit


def build_tree(moves: Iterable[Move], label: Callable[[str], str], start: str | None) -> Node:
    """Build the tree of a run; ``start`` is the start symbol of the grammar, None for an automaton without one."""
    if start is None:
        root = Node("plan", "plan")
        for move in moves:
            question = move.question if isinstance(move, Transition) and move.decision else None
            text = text_of(move) or None
            if move.read is not None:
                root.children.append(Node(move.read, label(move.read), terminal=True, text=text, question=question))
            elif text:
                root.children.append(Node("", text, text=text, question=question))
        return root
    root = Node(start, label(start), open=True)
    waiting = [root]
    for move in moves:
        production = production_of(move)
        if production is not None:
            node = waiting.pop()
            node.open = False
            node.text = production.text
            several = takes_several(node.symbol)
            made = []
            for symbol in production.body:
                # The rest of a selection or of a repetition belongs to the same node.
                child = node if several and takes_several(symbol) else Node(symbol, label(symbol), open=True)
                made.append(child)
                if child is not node:
                    node.children.append(child)
            waiting += reversed(made)
        elif move.read is not None:
            node = waiting.pop()
            node.open = False
            node.terminal = True
    for node in waiting:
        if not node.open:  # it may take more: add an open child after those it has
            node.children.append(Node(node.symbol, node.label, open=True))
    return root


def takes_several(symbol: str) -> bool:
    """Return whether a symbol is a selection or a repetition, whose node has any number of children."""
    return selection_members(symbol) is not None or parse_repetition(symbol) is not None


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A tool applied to its arguments; an input if there are none.

    Attributes:
        name: the terminal.
        label: the text that a person reads for it.
        arguments: the calls whose results it takes.
        result: the name of the result; set on the outermost call.
    """

    name: str
    label: str
    arguments: tuple[Call, ...] = ()
    result: str = ""

    def walk(self) -> Iterator[Call]:
        """Yield this call, then those of its arguments, from left to right (the order of the word)."""
        todo = [self]
        while todo:
            call = todo.pop()
            yield call
            todo.extend(reversed(call.arguments))

    def __str__(self) -> str:
        pieces = [f"{self.result} = "] if self.result else []
        todo: list[Call | str] = [self]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                pieces.append(item)
                continue
            pieces.append(item.name)
            if item.arguments:
                pieces.append("(")
                todo.append(")")
                todo += [piece for argument in reversed(item.arguments) for piece in (argument, ", ")][:-1]
        return "".join(pieces)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_call, ([(call.name, call.label, len(call.arguments), call.result) for call in self.walk()],)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Call) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


def _rebuild_call(rows: list[tuple[str, str, int, str]]) -> Call:
    """Rebuild a call from a flat list in preorder: name, label, number of arguments, result."""
    made: list[Call] = []
    for name, label, count, result in reversed(rows):
        arguments = [made.pop() for _ in range(count)]
        made.append(Call(name, label, tuple(arguments), result))
    return made[0]


def only_terminal(node: Node) -> Node | None:
    """Return the terminal that a node is, or only renames (as a class does); else None."""
    while not node.terminal:
        if len(node.children) != 1 or node.text or parse_repetition(node.symbol):
            return None
        node = node.children[0]
    return node


def root_label(root: Node) -> str:
    """Return the label of a whole tree: that of the lowest of the nodes that only rename it."""
    while len(root.children) == 1 and not root.children[0].terminal and not takes_several(root.children[0].symbol):
        root = root.children[0]
    return root.label


def is_flat(root: Node) -> bool:
    """Return whether a tree comes from an automaton without a grammar; a grammar may also start with "plan"."""
    return root.symbol == "plan" and all(child.terminal or not child.symbol for child in root.children)


def is_nested(root: Node) -> bool:
    """Return whether the tree, finished or not, is a nesting of calls: each branching begins with a tool.

    Repetitions in such a tree are arguments of a tool.
    """
    if is_flat(root) or _is_repeated(root):
        return False
    return all(
        len(node.children) < 2
        or takes_several(node.symbol)
        or (node.children[0].open and parse_repetition(node.children[0].symbol) is None)
        or only_terminal(node.children[0]) is not None
        for node in root.walk()
    )


def _is_repeated(root: Node) -> bool:
    """Return whether a tree, or what it only renames, is a repetition."""
    while parse_repetition(root.symbol) is None:
        if len(root.children) != 1 or root.text:
            return False
        root = root.children[0]
    return True


def read_call(root: Node) -> Call | None:
    """Read the nested calls of a tree in which every production is ``tool argument ...``, an input, or a renaming.

    Return None for a tree of another shape, or an unfinished one.
    """
    if is_flat(root) or _is_repeated(root):
        return None
    made: dict[int, tuple[Call, ...]] = {}
    for node in reversed(list(root.walk())):
        if node.open:
            return None
        if node.terminal:
            made[id(node)] = (Call(node.symbol, node.label),)
        elif len(node.children) < 2 or takes_several(node.symbol):
            # A renaming, an empty production, a selection or a repetition: any number of values.
            made[id(node)] = tuple(call for child in node.children for call in made[id(child)])
        else:
            if _is_repeated(node.children[0]):
                return None
            tool, *arguments = (made[id(child)] for child in node.children)
            if len(tool) != 1 or tool[0].arguments:
                return None
            made[id(node)] = (Call(tool[0].name, tool[0].label, tuple(call for part in arguments for call in part)),)
    if len(made[id(root)]) != 1:
        return None
    call = made[id(root)][0]
    return Call(call.name, call.label, call.arguments, result_name(root_label(root)))


def result_name(label: str) -> str:
    """Return the name of a plan's result, as written before its call."""
    result = "".join(c if c.isalnum() else "_" for c in label).strip("_").lower()
    return result if result.isidentifier() else "result"


def path_to_open(tree: Node) -> list[Node] | None:
    """Return the nodes from the root to the leftmost open one."""
    path: list[Node] = []
    todo: list[tuple[Node, int]] = [(tree, 0)]
    while todo:
        node, depth = todo.pop()
        del path[depth:]
        path.append(node)
        if node.open:
            return path
        todo.extend((child, depth + 1) for child in reversed(node.children))
    return None
