"""The readable steps of a plan, derived from its tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from formal_llm.automata.models.repetition import parse_repetition
from formal_llm.automata.models.symbols import Order, selection_members
from formal_llm.planning.plans.tree import Node, is_nested, only_terminal, takes_several

__all__ = ["Order", "Step", "read_steps"]


def one_line(text: str) -> str:
    """Put a text on one line, as steps are printed."""
    return " ".join(text.splitlines())


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a plan, to be carried out in the order of ``number`` (from 1).

    Attributes:
        name: the terminal; empty for a step that is only a text.
        position: the index of the terminal in the word, from 0.
        inputs: what it is applied to, if known: numbers of steps, labels of inputs.
        has_own_text: whether the text was written for this step, so that its inputs need not be mentioned.
    """

    number: int
    name: str
    text: str
    position: int
    inputs: tuple[int | str, ...] = ()
    has_own_text: bool = False

    def __str__(self) -> str:
        return one_line(self._describe_step())  # or the end of a step could not be recognised

    def _describe_step(self) -> str:
        if self.has_own_text:
            return f"Step {self.number}: {self.text}"
        on = [f"the result of step {item}" if isinstance(item, int) else item for item in self.inputs]
        return f"Step {self.number}: {self.text}" + (f" on {' and '.join(on)}" if on else "")


def read_steps(tree: Node, order: Order) -> tuple[Step, ...]:
    """Read the steps of a tree, first to last.

    A production with a text is a step; terminals that were chosen for it are added to the text. The other terminals of
    a plan of nested calls are steps if they are applied to something; in a forward plan, and if the tree is not a
    nesting of calls, all of them are. A decision is not a step.
    """
    nested = order == "prefix" and is_nested(tree)
    rows: list[tuple[int, str, str, int, list[Node], bool]] = []
    covered: set[int] = set()
    position = 0
    for node in tree.walk():
        if node.terminal:
            position += 1
        if node.question is not None:
            continue
        if node.text and not node.terminal:
            # The text speaks for the terminals of the production itself, and for a class at its head.
            heads = [only_terminal(child) if place == 0 else child for place, child in enumerate(node.children)]
            leaves = [leaf for leaf in heads if leaf is not None and leaf.terminal]
            covered.update(map(id, leaves))
            # In a list of steps a terminal after the head is a step of its own, unless it belongs to a selection.
            of = [child for n, child in enumerate(node.children) if nested or n == 0 or selection_members(child.symbol)]
            chosen = [leaf for child in of for leaf in _list_chosen(child)]
            covered.update(map(id, chosen))
            text = f"{node.text}: {', '.join(leaf.label for leaf in chosen)}" if chosen else node.text
            rows.append((id(node), leaves[0].symbol if leaves else "", text, position, node.children[1:], True))
        elif nested and len(node.children) > 1 and not takes_several(node.symbol):
            tool = only_terminal(node.children[0])
            if tool is not None:
                rows.append((id(node), tool.symbol, f"Use {tool.label}", position, node.children[1:], False))
        elif node.terminal and not nested and id(node) not in covered:
            rows.append((id(node), node.symbol, node.text or f"Use {node.label}", position - 1, [], False))
    last = len(rows)
    numbers = {key: last - n if order == "prefix" else n + 1 for n, (key, *_) in enumerate(rows)}
    steps = [
        Step(numbers[key], name, text, place, tuple(_list_inputs(arguments, numbers)) if nested else (), is_written)
        for key, name, text, place, arguments, is_written in rows
    ]
    return tuple(sorted(steps, key=lambda step: step.number))


def _list_chosen(node: Node) -> list[Node]:
    """List the terminals that were chosen for a symbol of a production: those of a selection, or one of several."""
    if selection_members(node.symbol):
        return list(node.children)
    inner = node
    while not inner.terminal and len(inner.children) == 1 and not inner.text and parse_repetition(inner.symbol) is None:
        inner = inner.children[0]
    return [inner] if inner.terminal and inner is not node else []


def _list_inputs(arguments: list[Node], numbers: dict[int, int]) -> Iterator[int | str]:
    todo = arguments[::-1]
    while todo:
        node = todo.pop()
        if id(node) in numbers:
            yield numbers[id(node)]
        elif node.terminal:
            yield node.label
        else:
            todo += reversed(node.children)
