"""What plans look like: a picture of the data flow, a networkx graph, and a panel for the terminal.

A plan may be thousands of steps deep, so nothing here recurses.
"""

from __future__ import annotations

import textwrap
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from formal_llm.automata import Word
from formal_llm.pictures.picture import Arrow, Box, BoxKind, Picture, printable, shorten
from formal_llm.planning.plans.steps import Order, Step
from formal_llm.planning.plans.tree import Call, Node, is_nested, only_terminal, root_label, takes_several
from formal_llm.planning.plans.usage import Usage
from formal_llm.planning.plans.vocabulary import write_word

if TYPE_CHECKING:
    import networkx
    from rich.console import RenderableType
    from rich.tree import Tree

_ORDINALS = ("1st", "2nd", "3rd")


class PlanParts(Protocol):
    """What is shown of a plan (see :class:`~formal_llm.planning.plans.plan.Plan`)."""

    task: str
    order: Order
    complete: bool
    usage: Usage

    @property
    def tree(self) -> Node:
        """The derivation tree."""

    @property
    def word(self) -> Word:
        """The terminals."""

    @property
    def call(self) -> Call | None:
        """The nested calls, where it is such."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps from first to last."""


# -- the picture ------------------------------------------------------------------------------------------------


def plan_picture(plan: PlanParts) -> Picture:
    """A plan, its arrows in the direction of execution.

    Where the word nests tools and their arguments, the picture is the flow of data: inputs on the left, each tool a
    box with the number and name of its step, the result on the right. Of a tool with several arguments, the arrows
    name each of them. Any other plan is a chain of its steps. What an unfinished plan leaves open is drawn dashed.
    """
    title = "\n".join(textwrap.wrap(shorten(plan.task, 240), 80)) or None
    if plan.order == "prefix" and is_nested(plan.tree):
        boxes, arrows = _draw_flow(plan)
    else:
        boxes, arrows = _draw_chain(plan)
    # Pages scroll down more easily than sideways.
    return Picture(tuple(boxes), tuple(arrows), "LR" if len(boxes) <= 12 else "TB", title)


def tree_picture(root: Node) -> Picture:
    """A derivation tree, from the root down: a box for each symbol; what is not chosen yet is drawn dashed."""
    nodes = list(root.walk())
    numbers = {id(node): str(number) for number, node in enumerate(nodes)}
    kinds: list[BoxKind] = ["open" if node.open else "terminal" if node.terminal else "nonterminal" for node in nodes]
    boxes = [
        Box(numbers[id(node)], _wrap_text(node.label), kind, (_wrap_text(node.text),) if node.text else ())
        for node, kind in zip(nodes, kinds, strict=True)
    ]
    arrows = [Arrow(numbers[id(node)], numbers[id(child)]) for node in nodes for child in node.children]
    return Picture(tuple(boxes), tuple(arrows), "TB")


def _draw_flow(plan: PlanParts) -> tuple[list[Box], list[Arrow]]:
    leaves = plan.tree.leaves
    boxes = {_name_box(step): _step_box(step, leaves) for step in plan.steps}
    arrows: list[Arrow] = []
    # A prefix plan's steps are numbered against the order in which the tree is walked.
    steps = reversed(plan.steps)
    result = Box("result", _wrap_text(root_label(plan.tree)), "result")
    # The root's value is the result; below it, each step takes the values of its arguments.
    todo: list[tuple[Node, str, str]] = [(plan.tree, "result", "")]
    while todo:
        node, target, ordinal = todo.pop()
        while len(node.children) == 1 and not node.text:
            node = node.children[0]
        head = node.children[0] if node.children else None
        tool = only_terminal(head) if head is not None else None
        if node.terminal:
            # The same input may be used in several places: it is one thing, drawn once.
            box = Box(f"input {node.symbol}", _wrap_text(node.label), "input")
            boxes[box.id] = box
            arrows.append(Arrow(box.id, target, ordinal))
        elif takes_several(node.symbol) and not node.open:
            todo += [(child, target, ordinal) for child in reversed(node.children)]
        elif node.text or tool is not None:
            source = _name_box(next(steps))
            arrows.append(Arrow(source, target, ordinal))
            arguments = [child for child in node.children[tool is not None :] if not _is_empty(child)]
            names = _list_ordinals(len(arguments))
            todo += [(child, source, name) for child, name in zip(reversed(arguments), reversed(names), strict=True)]
        elif node.open or head is not None:
            # Nothing is chosen here yet, or of a production that is, not the tool.
            box = Box(f"open {len(boxes)}", _wrap_text(f"{node.label} …"), "open")
            boxes[box.id] = box
            arrows.append(Arrow(box.id, target, ordinal, "dashed"))
    return [*boxes.values(), result], list(dict.fromkeys(arrows))


def _is_empty(node: Node) -> bool:
    """Whether nothing comes of a node: neither a terminal nor a step."""
    while len(node.children) == 1 and not node.text:
        node = node.children[0]
    return not (node.children or node.text or node.terminal or node.open)


def _draw_chain(plan: PlanParts) -> tuple[list[Box], list[Arrow]]:
    leaves = plan.tree.leaves
    boxes = [_step_box(step, leaves) for step in plan.steps]
    arrows = [Arrow(before.id, after.id) for before, after in pairwise(boxes)]
    if not plan.complete:
        labels = dict.fromkeys(printable(node.label) for node in plan.tree.walk() if node.open)
        rest = Box("open", _wrap_text(f"{', '.join(labels)} …" if labels else "…"), "open")
        # A prefix plan is made from its last step on: what is open comes before the steps there are.
        if boxes and plan.order == "prefix":
            arrows.append(Arrow(rest.id, boxes[0].id, style="dashed"))
        elif boxes:
            arrows.append(Arrow(boxes[-1].id, rest.id, style="dashed"))
        boxes.append(rest)
    return boxes or [Box("empty", "nothing to do", "result")], arrows


def _name_box(step: Step) -> str:
    return f"step {step.number}"


def _step_box(step: Step, leaves: list[Node]) -> Box:
    """The step's text; for a step that only names a tool to use, the tool's label."""
    leaf = leaves[step.position] if step.position < len(leaves) else None
    text = leaf.label if leaf is not None and step.text == f"Use {leaf.label}" else step.text
    return Box(_name_box(step), _wrap_text(f"{step.number}  {printable(text)}"), "tool")


def _wrap_text(text: str) -> str:
    return "\n".join(textwrap.wrap(shorten(text, 160), 30, break_on_hyphens=False)) or " "


def _list_ordinals(count: int) -> list[str]:
    if count < 2:
        return [""] * count
    return [_ORDINALS[n] if n < len(_ORDINALS) else f"{n + 1}th" for n in range(count)]


def plan_graph(plan: PlanParts) -> networkx.DiGraph:
    """Build the graph of a plan, see :meth:`~formal_llm.planning.plans.plan.Plan.to_networkx`."""
    import networkx

    graph = networkx.DiGraph()
    # The word of a forward plan is in the order of execution: to read it as nested calls would turn it around.
    call = plan.call if plan.order == "prefix" else None
    todo: list[tuple[Call | Node, int | None, int]] = [(plan.tree if call is None else call, None, 0)]
    while todo:
        item, parent, position = todo.pop()
        number = graph.number_of_nodes()
        if isinstance(item, Call):
            kind = "tool" if item.arguments else "input"
            graph.add_node(number, name=item.name, label=item.label, kind=kind)
            if parent is not None:
                graph.add_edge(number, parent, position=position)
            below: tuple[Call | Node, ...] = item.arguments
        else:
            kind = "terminal" if item.terminal else "open" if item.open else "nonterminal"
            graph.add_node(number, name=item.symbol, label=item.label, kind=kind)
            if parent is not None:
                graph.add_edge(parent, number, position=position)
            below = tuple(item.children)
        todo.extend((child, number, place) for place, child in reversed(list(enumerate(below))))
    return graph


# -- the terminal -----------------------------------------------------------------------------------------------


def plan_rich(plan: PlanParts, *, deepest: int = 24, most: int = 200) -> RenderableType:
    """A plan for the terminal: its steps, its nested calls, its derivation tree, and what it took.

    Of the tree the first ``deepest`` levels are shown, and ``most`` nodes.
    """
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    parts: list[RenderableType] = [Text(shorten(plan.task, 1000), style="bold"), ""] if plan.task else []
    parts.append(_steps_text(plan))
    call = plan.call if plan.order == "prefix" else None
    if call is not None:
        parts += ["", Text(shorten(str(call), 1000), style="green")]
    parts += ["", _rich_tree(plan.tree, deepest, most), "", Text(_usage_line(plan.usage), style="dim")]
    title = Text("plan" if plan.complete else "unfinished plan", style="blue")
    return Panel(Group(*parts), title=title, title_align="left", border_style="blue", padding=(1, 2))


def _steps_text(plan: PlanParts) -> RenderableType:
    from rich.table import Table
    from rich.text import Text

    if not plan.steps:
        return Text(printable(write_word(plan.word, plan.order)) if plan.word else "nothing to do")
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right", style="bold blue", no_wrap=True)
    table.add_column()
    for step in plan.steps:
        number, _, text = str(step).partition(": ")
        table.add_row(Text(number.removeprefix("Step ")), Text(printable(text)))
    return table


def _rich_tree(root: Node, deepest: int, most: int) -> Tree:
    from rich.text import Text
    from rich.tree import Tree

    def render_line(nodes: list[Node]) -> Text:
        text = Text()
        for node in nodes:
            text.append(" › " if text else "", style="dim")
            text.append(shorten(node.label), style="bold" if node.terminal else "yellow" if node.open else "blue")
            text.append(" …" if node.open else "", style="yellow")
        return text

    def collect_chain(node: Node) -> list[Node]:
        # A node with one child shares its line with it; of a long run of them the ends are shown.
        nodes = [node]
        while len(nodes[-1].children) == 1:
            nodes.append(nodes[-1].children[0])
        return nodes if len(nodes) <= 6 else [*nodes[:3], Node("", "…"), *nodes[-2:]]

    shown = collect_chain(root)
    tree = Tree(render_line(shown), guide_style="dim")
    todo: list[tuple[Node, Tree, int]] = [(child, tree, 1) for child in reversed(shown[-1].children)]
    added = 0
    while todo:
        node, branch, depth = todo.pop()
        if added >= most:
            break
        added += 1
        shown = collect_chain(node)
        below = branch.add(render_line(shown))
        if depth >= deepest and shown[-1].children:
            below.add(Text("… deeper", style="dim"))
        else:
            todo += [(child, below, depth + 1) for child in reversed(shown[-1].children)]
    else:
        return tree
    tree.add(Text("… and more: the tree is cut here", style="dim"))
    return tree


def _usage_line(usage: Usage) -> str:
    counts = {
        "question": usage.questions, "forced choice": usage.forced, "backtrack": usage.backtracks,
        "wasted answer": usage.wasted, "request": usage.requests, "input token": usage.input_tokens,
        "output token": usage.output_tokens,
    }  # fmt: skip
    parts = [f"{n:,} {one}{'s' * (n != 1)}" for one, n in counts.items() if n or one == "question"]
    return ", ".join([*parts, f"{usage.seconds:.1f} s"])
