"""Flowcharts: plans as people draw them.

A flowchart is read from Mermaid. Its nodes mean:

- a *decision* is a node of the shape ``{..}`` or ``{{..}}``, or any node with more than one arrow out of it. It is a
  question, and the texts of its arrows are the answers;
- a *selection* is a hexagon ``{{..}}`` whose arrows all lead to one node: any of its answers may be chosen together, in
  the order of the chart, and each that is chosen is a step of the plan;
- every other node is a *step* of the plan, its text the text of the step, but for
- *markers*, which are no steps: the first node where it is a stadium ``([..])`` or circle ``((..))``, since it states
  when the chart applies, or has only a word such as "Start"; a last node that has only a word such as
  "End"; and nodes without any text. A last node that names an outcome, ``([Refuse])``, is a step.

An arrow to several nodes, ``A --> B & C``, has all of them done, side by side; one from several, ``B & C --> D``, waits
for all of them that can still come. So a place in a chart is a marking, a multiset of nodes
(:mod:`formal_llm.automata.models.markings`).

A flowchart is a finite automaton, and :meth:`Flowchart.pda` shows it as one: its words are the ways through the chart.
(Where it has selections, they are worked off on the stack of a pushdown automaton.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, Literal, NamedTuple

from formal_llm.automata.models.flowgraph import (
    END,
    ID,
    PLACEHOLDER,
    RESERVED,
    SHAPES,
    FlowEdge,
    FlowGraph,
    one_line,
)
from formal_llm.automata.models.frozen import FrozenDict, Written
from formal_llm.automata.models.limits import Limits
from formal_llm.automata.models.markings import TokenGame, find_endless, find_meeting, find_waiting, make_transitions
from formal_llm.automata.models.pda import PDA
from formal_llm.automata.models.quantities import Number
from formal_llm.automata.models.symbols import Symbol
from formal_llm.errors import AutomatonError, did_you_mean, unknown
from formal_llm.pictures.drawable import Drawable
from formal_llm.pictures.picture import Picture, printable


class ChartProblem(NamedTuple):
    """Something wrong with a chart: what, at which node or arrow, and the way out."""

    message: str
    node: str | None = None
    edge: int | None = None
    suggestion: str | None = None


def find_problem(chart: FlowGraph) -> ChartProblem | None:
    """The first thing that keeps a chart from describing plans; None where nothing does."""
    return next(chain(_list_part_problems(chart), _list_way_problems(chart)), None)


def _list_part_problems(chart: FlowGraph) -> Iterator[ChartProblem]:
    if not chart.nodes:
        yield ChartProblem("the flowchart has no nodes", suggestion="write, for instance: A[Do this] --> B[Do that]")
    if len({node.id for node in chart.nodes}) < len(chart.nodes):
        yield ChartProblem("two nodes have the same name")
    for node in chart.nodes:
        if not ID.fullmatch(node.id) or node.id in RESERVED:
            yield ChartProblem(f"{node.id!r} cannot be the name of a node; names are single words")
        if node.shape not in SHAPES:
            near = did_you_mean(node.shape, SHAPES)
            yield ChartProblem(f"unknown shape {node.shape}", suggestion=f"did you mean {near}?" if near else None)
    known = {node.id for node in chart.nodes}
    for edge in chart.edges:
        if not edge.sources or not edge.targets or not known >= {*edge.sources, *edge.targets}:
            yield ChartProblem(f"an arrow leads from {edge.source} to {edge.target}: there is no such node")
    if chart.direction not in ("TB", "BT", "LR", "RL"):
        yield ChartProblem(f"unknown direction {chart.direction!r}; there are TB, BT, LR and RL")


def _list_way_problems(chart: FlowGraph) -> Iterator[ChartProblem]:
    """What is wrong with the start, the decisions and the ways of a chart whose parts are all right."""
    marked = [name for name in chart.starts if chart.is_start_marker(name)]
    for name in chart.starts if marked else ():
        if name not in marked:
            yield ChartProblem(
                f"no arrow leads to {_describe_node(chart, name)}: it cannot be reached from the start {marked[0]}",
                name,
                suggestion="draw an arrow to it, or leave it out",
            )
    for node in chart.nodes:
        if chart.kind(node.id) == "decision":
            yield from _list_answer_problems(chart, node.id)
    for name in find_endless(chart):
        yield ChartProblem(
            f"no end can be reached from {_describe_node(chart, name)}: every way from it goes round in a circle",
            name,
            suggestion="draw a way out of the circle",
        )
    met = find_meeting(chart)
    if met is not None:
        fork, name = met
        into = dict.fromkeys(source for edge in chart.edges if name in edge.targets for source in edge.sources)
        yield ChartProblem(
            f"the branches of {fork} run side by side and meet at {_describe_node(chart, name)} without '&'",
            edge=chart.edges.index(fork),
            suggestion=f"let one arrow wait for all of them: {' & '.join(into)} --> {name}; where only one of them is "
            "followed, draw a decision (arrows of their own instead of '&')",
        )
    waiting = find_waiting(chart)
    if waiting is not None:
        yield ChartProblem(
            f"the arrow {waiting} can wait for ever, for another arrow that waits for it",
            edge=chart.edges.index(waiting),
            suggestion="give each '&' before an arrow the branches of one '&' behind an arrow",
        )


def _list_answer_problems(chart: FlowGraph, name: str) -> Iterator[ChartProblem]:
    decision = f"the decision {_describe_node(chart, name)}"
    if not chart.leaving[name]:
        yield ChartProblem(
            f"{decision} has no answers: no arrow leads out of it",
            name,
            suggestion=f"draw its answers: {name} -->|yes| A, or make it a step: {name}[...]",
        )
    seen: dict[str, FlowEdge] = {}
    for edge in chart.leaving[name]:
        answer = one_line(edge.text).casefold()
        if answer and answer in seen:
            yield ChartProblem(
                f"{decision} has two answers {edge.text!r}",
                edge=chart.edges.index(edge),
                suggestion=f"the other one leads to {seen[answer].target}; give each a text of its own, or "
                "draw them as branches of one answer: A -->|answer| B & C",
            )
        seen[answer] = edge


def _describe_node(chart: FlowGraph, name: str) -> str:
    text = one_line(chart.node[name].text)
    text = text if len(text) <= 40 else f"{text[:39]}…"
    return name if text in (name, "") else f"{name} ({text!r})"


@dataclass(frozen=True)
class Flowchart(FlowGraph, Written, Drawable):
    """A flowchart. Two are equal when they are drawn alike.

    Args:
        nodes: its nodes.
        edges: the arrows between them; those out of a decision in the order in which its answers are shown.
        direction: where it runs to: ``TB``, ``BT``, ``LR`` or ``RL``.
        title: a line above it.
        limits: how often steps, and answers by names such as ``entitled=yes``, may be or must be on a way through it;
            bounds on sums of their numbers, and when they may be.
        numbers: amounts that steps and answers carry (minutes, money), by name.
        order: that of the steps in the branches of a fork: ``any``, or ``drawn``, each branch as a whole in the order
            of the arrows.
        places: line and column of the nodes in the text that was read, by name; they mean nothing.
        filled: whether braces in its texts are no placeholders: values stand in their place.

    Raises:
        AutomatonError: it describes no plans: no node or several to start from, a node that cannot be reached, a
            decision with an answer missing or given twice, a place from which no end can be reached; or a limit names
            what it does not have.
    """

    limits: Limits = field(default_factory=Limits)
    numbers: Mapping[str, Mapping[str, Number]] = field(default_factory=FrozenDict)
    order: Literal["any", "drawn"] = "any"
    places: Mapping[str, tuple[int, int]] = field(default=FrozenDict(), compare=False, repr=False)
    filled: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "edges", tuple(self.edges))
        object.__setattr__(self, "title", one_line(printable(self.title)))
        wrong = find_problem(self)
        if wrong is not None:
            raise AutomatonError(wrong.message + (f"; {wrong.suggestion}" if wrong.suggestion else ""))
        if self.order not in ("any", "drawn"):
            raise AutomatonError(f"the order of branches is 'any' or 'drawn', not {self.order!r}")
        for name in (*self.limits.at_most, *self.limits.at_least, *self.numbers):
            if name not in self.terminals:
                what = "with numbers" if name in self.numbers else "in a limit"
                raise AutomatonError(unknown(f"step or answer {what}", name, self.terminals))
        carried = {name: Symbol(numbers=amounts) for name, amounts in self.numbers.items() if amounts}
        object.__setattr__(self, "numbers", FrozenDict({name: one.numbers for name, one in carried.items()}))
        problem = self.limits.problem(self.terminals, carried)
        if problem is not None:
            raise AutomatonError(problem)

    @staticmethod
    def _notation() -> tuple[Callable[..., Any], Callable[[Any], str]]:
        from formal_llm.automata.notation.flowchart import read_flowchart, write_flowchart

        return read_flowchart, write_flowchart

    @classmethod
    def from_mermaid(cls, text: str, *, file: str | None = None) -> Flowchart:
        """Read a Mermaid flowchart; the same as :meth:`from_string`."""
        return cls.from_string(text, file=file)

    @property
    def picture(self) -> Picture:
        """The chart as it is written, its texts wrapped."""
        from formal_llm.automata.drawing import flowchart_picture

        return flowchart_picture(self)

    def to_mermaid(self) -> str:
        """The flowchart in Mermaid; :meth:`from_mermaid` reads an equal one from it."""
        return str(self)

    def __repr__(self) -> str:
        kinds = [self.kind(node.id) for node in self.nodes]
        title = f"{self.title!r}, " if self.title else ""
        return f"<Flowchart: {title}{kinds.count('decision')} decisions, {kinds.count('step')} steps>"

    @cached_property
    def terminals(self) -> tuple[str, ...]:
        """What limits may count: the names of its steps, and of the answers to its decisions."""
        found = list(self.answers(self.opening))
        for node in self.nodes:
            found += [node.id] if self.kind(node.id) == "step" else []
            found += self.answers(node.id)
        return tuple(found)

    @cached_property
    def placeholders(self) -> tuple[str, ...]:
        """The names in braces in its texts, in order of appearance; none where they are filled."""
        texts = [self.title, *(node.text for node in self.nodes), *(edge.text for edge in self.edges)]
        found = dict.fromkeys(name for text in texts for name in PLACEHOLDER.findall(text))
        return () if self.filled else tuple(found)

    def fill(self, values: Mapping[str, object]) -> Flowchart:
        """The flowchart with the ``{names}`` in its texts replaced. Braces in a value are no placeholders any more.

        Raises:
            AutomatonError: a name has no value, or there is no such name; all of them are listed.
        """
        missing = [f"{{{name}}}" for name in self.placeholders if name not in values]
        odd = [f"{{{name}}}" for name in values if name not in self.placeholders]
        wrong = [f"no value for {', '.join(missing)}"] if missing else []
        wrong += [f"the flowchart has no {', '.join(odd)}"] if odd else []
        if wrong:
            there = ", ".join(f"{{{name}}}" for name in self.placeholders) or "none"
            raise AutomatonError(f"{'; '.join(wrong)}; its names are: {there}")
        if not self.placeholders:
            return self

        def fill_text(text: str) -> str:
            return PLACEHOLDER.sub(lambda match: str(values[match[1]]), text)

        chart = Flowchart(
            tuple(replace(node, text=fill_text(node.text)) for node in self.nodes),
            tuple(replace(edge, text=fill_text(edge.text)) for edge in self.edges),
            self.direction,
            fill_text(self.title),
            order=self.order,
        )
        # The names of answers are made of their texts.
        names = dict(zip(self.terminals, chart.terminals, strict=True))
        numbers = {names[name]: amounts for name, amounts in self.numbers.items()}
        return replace(chart, limits=self.limits.renamed(names), numbers=numbers, filled=bool(chart.placeholders))

    # -- as an automaton ----------------------------------------------------------------------------------------

    def pda(self, *, decisions: bool = True) -> PDA:
        """The chart as a finite automaton (its transitions leave the stack alone).

        A step is read by the name of its node; its text is the text of the step. A decision is no step of a plan: its
        transitions ask its question, and only the progress of a plan shows the answer.

        Args:
            decisions: True: a word contains every decision too, as ``name=answer``, and the automaton is deterministic.
                False: a word is made of steps only, and decisions are moves without input; so the chart can constrain
                another automaton over the names of its steps.

        Raises:
            AutomatonError: without decisions, where a limit counts an answer (but for those that may never be given).
        """
        limits, never = self.limits, frozenset[str]()
        if not decisions:
            never = frozenset(name for name, most in limits.at_most.items() if most == 0 and "=" in name)
            most = {name: count for name, count in limits.at_most.items() if name not in never}
            limits = replace(limits, at_most=most) if never else limits
            ruled = (name for rule in limits.rules for name in rule.names)
            named = (*most, *limits.at_least, *limits.times.names, *ruled)
            if counted := [name for name in named if "=" in name]:
                raise AutomatonError(f"a word without decisions has no answers to count: {', '.join(counted)}")
        game = TokenGame(self, drawn=self.order == "drawn", never=never)
        symbols, transitions, start = make_transitions(game, decisions=decisions)
        symbols = {name: replace(known, numbers=self.numbers.get(name, {})) for name, known in symbols.items()}
        return PDA(transitions, start=start, accepting=(END,), symbols=symbols, name=self.title,
                   limits=limits, check=False)  # fmt: skip
