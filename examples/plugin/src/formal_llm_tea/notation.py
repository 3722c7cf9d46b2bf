"""The notation ``.steps``: the steps in their order; ``or`` between steps is a choice, ``?`` says "or none of them".

::

    boil
    steep
    milk or honey ?
    drink
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from formal_llm import Flowchart, FlowEdge, FlowNode
from formal_llm.errors import NotationError

_STEP = re.compile(r"[a-z]\w*")


def read_steps(text: str, file: str | None) -> Flowchart:
    """The flowchart that a text stands for; ``file`` is where it is from, for errors.

    Raises:
        NotationError: it cannot be read; with the line and the column.
    """
    nodes: list[FlowNode] = []
    edges: list[FlowEdge] = []
    open_arrows: list[tuple[str, str]] = []  # each with the node that it leaves, and what it says

    def add(node: FlowNode) -> None:
        nodes.append(node)
        edges.extend(FlowEdge(source, node.id, said) for source, said in open_arrows)

    for number, steps, optional in _lines(text, file):
        if len(steps) == 1 and not optional:
            add(FlowNode(f"{steps[0]}{number}", steps[0]))
            open_arrows = [(f"{steps[0]}{number}", "")]
            continue
        choice = f"choice{number}"
        add(FlowNode(choice, f"{' or '.join(steps)}?", "diamond"))
        open_arrows = [(choice, "none of them")] if optional else []
        for step in steps:
            nodes.append(FlowNode(f"{step}{number}", step))
            edges.append(FlowEdge(choice, f"{step}{number}"))
            open_arrows.append((f"{step}{number}", ""))
    if not nodes:
        raise NotationError("there are no steps", file=file, suggestion="write a step on each line")
    add(FlowNode("End", "End", "stadium"))
    return Flowchart(tuple(nodes), tuple(edges))


def _lines(text: str, file: str | None) -> Iterator[tuple[int, list[str], bool]]:
    """Each line that says something: its number, its steps, and whether they may be left out."""
    for number, line in enumerate(text.split("\n"), 1):
        said = line.split("#")[0].strip()
        if not said:
            continue
        steps = re.split(r"\s+or\s+", said.removesuffix("?").strip())
        for step in steps:
            if not _STEP.fullmatch(step):
                raise NotationError(
                    f"{step!r} is no step", file=file, line=number, column=line.index(step) + 1, source_line=line,
                    suggestion="a step is one word in small letters; write 'or' between two",
                )  # fmt: skip
        yield number, steps, said.endswith("?")
