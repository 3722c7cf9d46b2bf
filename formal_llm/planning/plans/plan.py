"""The finished plan: word, derivation tree, nested calls, readable steps, and what it took to make it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from formal_llm.automata.models.symbols import members
from formal_llm.llms.question import TokenUsage
from formal_llm.pictures.drawable import Drawable
from formal_llm.planning.plans.tree import Call, Node, is_nested, only_terminal, read_call

if TYPE_CHECKING:
    from rich.console import RenderableType

    from formal_llm.planning.plans.overlay import Overlay

Order = Literal["backward", "forward"]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a plan took.

    Attributes:
        questions: questions answered.
        forced: choices that the grammar leaves open and the rules do not: taken without a question.
        backtracks: dead ends from which the walk went back.
        wasted: answers that going back undid.
        requests, input_tokens, output_tokens, cached_tokens, cache_write_tokens: as the answerers reported them (see
                :class:`TokenUsage`).
        seconds: wall-clock time from the start of the walk to its end.
        cost: what the tokens cost, in the currency of the prices; None where no prices are given.
    """

    questions: int = 0
    forced: int = 0
    backtracks: int = 0
    wasted: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """Both together; the cost is that of those that have one."""
        costs = [usage.cost for usage in (self, other) if usage.cost is not None]
        summed = {
            field.name: getattr(self, field.name) + getattr(other, field.name)
            for field in fields(self)
            if field.name != "cost"
        }
        return Usage(**summed, cost=sum(costs) if costs else None)

    @property
    def token_usage(self) -> TokenUsage:
        """What the answers took."""
        return TokenUsage(
            self.requests, self.input_tokens, self.output_tokens, self.cached_tokens, self.cache_write_tokens
        )


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a plan, to be carried out in the order of ``number`` (from 1).

    Attributes:
        number: its place.
        name: the terminal; empty for a step that is only a text.
        text: the step in words.
        position: the place of the terminal in the word, from 0.
        inputs: what it is applied to, where that is known: numbers of steps, labels of inputs.
        told: whether the text was written for this step, so that nothing has to be said of its inputs.
    """

    number: int
    name: str
    text: str
    position: int
    inputs: tuple[int | str, ...] = ()
    told: bool = False

    def __str__(self) -> str:
        if self.told:
            return f"Step {self.number}: {self.text}"
        on = [f"the result of step {item}" if isinstance(item, int) else item for item in self.inputs]
        return f"Step {self.number}: {self.text}" + (f" on {' and '.join(on)}" if on else "")


class Plan(Drawable):
    """A plan. Equal when task, tree, order and completeness are; its parts are made when they are looked at.

    Args:
        task: the description of the task.
        tree: the derivation tree, or a function that builds it.
        order: whether the word is written from the last step to the first (``backward``, as the nested calls of a
            prefix grammar are) or from the first to the last.
        usage: what it took.
        complete: False for the partial plan of a walk that stopped on the way.
        log_probability: see there.

    Attributes:
        log_probability: the natural logarithm of the probability that the answerer gave this plan: the sum, over the
            questions that led to it, of the logarithm of what was chosen, its probability normalised over the options
            that were offered. 0.0 where nothing was asked, minus infinity where something of probability 0 was chosen,
            None where an answer came without probabilities (those to selections always do).
    """

    def __init__(
        self,
        task: str,
        tree: Node | Callable[[], Node],
        *,
        order: Order = "backward",
        usage: Usage | None = None,
        complete: bool = True,
        log_probability: float | None = None,
    ) -> None:
        self.task = task
        self._tree = tree
        self.order: Order = order
        self.usage = usage or Usage()
        self.complete = complete
        self.log_probability = log_probability

    @property
    def probability(self) -> float | None:
        """The probability that the answerer gave this plan; None where it is not known (:attr:`log_probability`)."""
        return None if self.log_probability is None else math.exp(self.log_probability)

    @property
    def tree(self) -> Node:
        """The derivation tree; a flat one for an automaton that comes from no grammar."""
        if not isinstance(self._tree, Node):
            self._tree = self._tree()
        return self._tree

    @cached_property
    def word(self) -> tuple[str, ...]:
        """The terminals, in the order of the language."""
        return tuple(leaf.symbol for leaf in self.tree.leaves)

    @cached_property
    def call(self) -> Call | None:
        """The nested calls of a backward plan of a prefix grammar (each production a tool, then its arguments)."""
        return read_call(self.tree) if self.complete and self.order == "backward" else None

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps from first to last."""
        return read_steps(self.tree, self.order)

    def __str__(self) -> str:
        return "\n".join(map(str, self.steps)) if self.steps else " ".join(self.word)

    def __repr__(self) -> str:
        state = "" if self.complete else "unfinished, "
        return f"<Plan: {state}{' '.join(self.word)}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        mine = (self.task, self.order, self.complete, self.tree)
        return mine == (other.task, other.order, other.complete, other.tree)

    def __hash__(self) -> int:
        return hash((self.task, self.word))

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan.from_json, (self.to_json(),)

    # -- other forms --------------------------------------------------------------------------------------------

    def to_json(self, *, indent: int | None = None) -> str:
        """The plan as JSON: ``word``, ``call`` and ``steps`` for readers, ``tree`` for :meth:`from_json`.

        ``probability`` and ``log_probability`` are null where they are not known; of a plan of probability 0 only
        ``log_probability`` is, as JSON has no infinity.
        """
        impossible = self.log_probability == -math.inf
        data = {
            "format": "formal_llm.plan/1",
            "task": self.task,
            "complete": self.complete,
            "order": self.order,
            "word": self.word,
            "call": None if self.call is None else str(self.call),
            "steps": [asdict(step) for step in self.steps],
            "usage": asdict(self.usage),
            "probability": self.probability,
            "log_probability": None if impossible else self.log_probability,
            "tree": self.tree.flat(),
        }
        return json.dumps(data, indent=indent, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan that :meth:`to_json` wrote.

        Raises:
            ValueError: the text is no such plan.
        """
        try:
            data = json.loads(text)
            if data["format"] != "formal_llm.plan/1":
                raise ValueError(f"unknown format {data['format']!r}")
            likely = data.get("log_probability")  # not in the plans of earlier versions
            if likely is None and data.get("probability") is not None:
                likely = -math.inf
            return cls(
                data["task"],
                Node.from_flat(data["tree"]),
                order=data["order"],
                usage=Usage(**data["usage"]),
                complete=data["complete"],
                log_probability=likely,
            )
        except (KeyError, TypeError, IndexError) as error:
            raise ValueError(f"this is no plan: {error!r}") from error

    def over(self, rules: Any) -> Overlay:
        """The plan drawn over the rules that it follows: a picture of the rules with what the plan uses marked.

        Args:
            rules: a grammar, flowchart, behaviour or automaton; see
                :class:`~formal_llm.planning.plans.overlay.Overlay`.

        Raises:
            AutomatonError: the plan is none of these rules.
        """
        from formal_llm.planning.plans.overlay import Overlay

        return Overlay(self.word, rules, order=self.order)

    def __rich__(self) -> RenderableType:
        from formal_llm.planning.plans.drawing import plan_rich

        return plan_rich(self)


def read_steps(tree: Node, order: Order) -> tuple[Step, ...]:
    """The steps of a tree, first to last.

    A production with a text is a step; terminals that were chosen for it are added to the text. Of the other terminals,
    those of a backward plan are steps that are applied to something; in a forward plan, and where the tree is no
    nesting of calls, all are. A decision is none.
    """
    nested = order == "backward" and is_nested(tree)
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
            # In a list of steps a terminal behind the head is a step of its own, unless it is one of a selection.
            of = [child for n, child in enumerate(node.children) if nested or n == 0 or members(child.symbol)]
            chosen = [leaf for child in of for leaf in _chosen(child)]
            covered.update(map(id, chosen))
            text = f"{node.text}: {', '.join(leaf.label for leaf in chosen)}" if chosen else node.text
            rows.append((id(node), leaves[0].symbol if leaves else "", text, position, node.children[1:], True))
        elif nested and len(node.children) > 1 and members(node.symbol) is None:
            tool = only_terminal(node.children[0])
            if tool is not None:
                rows.append((id(node), tool.symbol, f"Use {tool.label}", position, node.children[1:], False))
        elif node.terminal and not nested and id(node) not in covered:
            rows.append((id(node), node.symbol, node.text or f"Use {node.label}", position - 1, [], False))
    last = len(rows)
    numbers = {key: last - n if order == "backward" else n + 1 for n, (key, *_) in enumerate(rows)}
    steps = [
        Step(numbers[key], name, text, place, tuple(_inputs(arguments, numbers)) if nested else (), told)
        for key, name, text, place, arguments, told in rows
    ]
    return tuple(sorted(steps, key=lambda step: step.number))


def _chosen(node: Node) -> list[Node]:
    """The terminals that were chosen for a symbol of a production: those of a selection, or one of several."""
    if members(node.symbol):
        return list(node.children)
    inner = node
    while not inner.terminal and len(inner.children) == 1 and not inner.text:
        inner = inner.children[0]
    return [inner] if inner.terminal and inner is not node else []


def _inputs(arguments: list[Node], numbers: dict[int, int]) -> Iterator[int | str]:
    for node in arguments:
        while id(node) not in numbers and len(node.children) == 1:
            node = node.children[0]
        if id(node) in numbers:
            yield numbers[id(node)]
        elif node.terminal:
            yield node.label
        else:
            yield from (child.label for child in node.children)
