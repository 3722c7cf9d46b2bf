"""A plan drawn over the rules that it follows: what it uses is marked and carries the numbers of its steps."""

from __future__ import annotations

from collections.abc import Sequence

from formal_llm.automata import CFG, PDA, Flowchart, FlowEdge, Source, Transition
from formal_llm.automata.drawing import cfg_picture, flowchart_picture, pda_picture
from formal_llm.automata.lookahead.limited import as_automaton
from formal_llm.automata.models.symbols import selection_members
from formal_llm.errors import AutomatonError
from formal_llm.pictures.drawable import Drawable
from formal_llm.pictures.picture import Picture
from formal_llm.planning.plans.certificates import find_run
from formal_llm.planning.plans.steps import Step, read_steps
from formal_llm.planning.plans.tree import Node, build_tree, only_terminal, takes_several

Numbers = tuple[int, ...]


class Overlay(Drawable):
    """A plan over its rules, as a picture.

    Of a grammar, the productions and terminals that its derivation uses are marked; of an automaton or behaviour, the
    states that it comes by and the transitions that it takes; of a flowchart, the nodes and arrows. The numbers are
    those of the plan's steps: a transition has that of the step that it makes, or where it makes none, of the step that
    it leads to. All else is faded, and in the picture of a large automaton left out.

    Limits are not looked at. Where a word comes about in several ways, a short one is drawn.

    Args:
        word: the plan's word.
        rules: a grammar, flowchart (its placeholders may be filled or not), behaviour, automaton, or one under limits.

    Raises:
        AutomatonError: the word is none of the language; :func:`~formal_llm.planning.checking.verify.verify` explains
            why.
    """

    def __init__(self, word: Sequence[str], rules: Source) -> None:
        self.word = tuple(word)
        self.rules = rules
        self._automaton = _resolve_pda(rules)
        self.moves = find_run(self._automaton, self.word)
        grammar = self._automaton.cfg
        self.tree = build_tree(self.moves, self._automaton.label, grammar.start if grammar is not None else None)
        self.steps = read_steps(self.tree, self._automaton.order)
        #: The steps in the order in which the word is read.
        self._read = self.steps if self._automaton.order == "forward" else self.steps[::-1]

    def __repr__(self) -> str:
        return f"<Overlay: {' '.join(self.word)}>"

    @property
    def picture(self) -> Picture:
        """The picture of the rules with the plan marked."""
        if isinstance(self.rules, CFG):
            return cfg_picture(self.rules, used=self._find_used_productions())
        if isinstance(self.rules, Flowchart):
            nodes, arrows = self._follow_chart(self.rules)
            return flowchart_picture(self.rules, nodes=nodes, arrows=arrows)
        walked: dict[Transition, Numbers] = {}
        for move, number in zip(self.moves, self._number_moves(), strict=True):
            walked[move] = _add_number(walked.get(move, ()), number)
        return pda_picture(self._automaton, walked=walked)

    def _number_moves(self) -> list[int | None]:
        """For each move the step that it makes, or the next one."""
        reads = {step.position: step.number for step in self.steps if step.name}
        silent = [step for step in self._read if not step.name]
        made: list[int | None] = []
        position = 0
        for move in self.moves:
            number = None
            if move.read is not None:
                number = None if move.decision else reads.get(position)
                position += 1
            elif move.text and silent and silent[0].position == position and silent[0].text.startswith(move.text):
                number = silent.pop(0).number
            made.append(number)
        for place in range(len(made) - 2, -1, -1):
            if made[place] is None:
                made[place] = made[place + 1]
        return made

    def _find_used_productions(self) -> dict[tuple[str, tuple[str, ...]], Numbers]:
        """The productions of the derivation, with the steps that they make."""
        made = self._number_nodes()
        used: dict[tuple[str, tuple[str, ...]], Numbers] = {}
        for node in self.tree.walk():
            if node.terminal:
                continue
            key = node.symbol, tuple(child.symbol for child in node.children)
            used[key] = _add_number(used.get(key, ()), made.get(id(node)))
        return used

    def _number_nodes(self) -> dict[int, int]:
        """For each node of the derivation tree the step that it makes; a class has the step of its terminal."""
        made: dict[int, int] = {}
        waiting = [*reversed(self._read)]
        position = 0
        for node in self.tree.walk():
            if waiting and _makes_step(node, waiting[-1], position):
                made[id(node)] = waiting.pop().number
            position += node.terminal
            number = made.get(id(node))
            if number is None or node.terminal:
                continue
            # The head of the step's production only names its tool; a selection names what was chosen.
            heads = [child for n, child in enumerate(node.children) if n == 0 or selection_members(child.symbol)]
            for head in heads:
                if selection_members(head.symbol) or only_terminal(head) is not None:
                    made.setdefault(id(head), number)
        for node in self.tree.walk():
            only = node.children[0] if len(node.children) == 1 else node
            if only.terminal and id(only) in made:
                made.setdefault(id(node), made[id(only)])
        return made

    def _follow_chart(self, chart: Flowchart) -> tuple[dict[str, Numbers], dict[FlowEdge, Numbers]]:
        """The nodes and the arrows on the way through a chart."""
        nodes: dict[str, Numbers] = {}
        arrows: dict[FlowEdge, Numbers] = {}

        def follow_edge(edge: FlowEdge, number: int | None) -> None:
            # An arrow leads on past markers and junctions, which are no states of the automaton, and into all branches.
            todo = [edge]
            for one in todo:
                arrows[one] = _add_number(arrows.get(one, ()), number if one.text else None)
                for target in one.targets:
                    nodes.setdefault(target, ())
                    if chart.kind(target) in ("start", "junction", "end"):
                        todo += [after for after in chart.leaving[target] if after not in todo]

        if len(chart.starts) == 1:
            follow_edge(FlowEdge("", chart.start), None)
        answers = {
            name: edge
            for node in (chart.opening, *(node.id for node in chart.nodes))
            for name, edge in chart.answers(node).items()
        }
        for move, number in zip(self.moves, self._number_moves(), strict=True):
            if move.read in answers:
                follow_edge(answers[move.read], number)
            elif move.read is not None:
                nodes[move.read] = _add_number(nodes.get(move.read, ()), number)
                if not chart.answer_edges(move.read):
                    for edge in chart.leaving[move.read]:
                        follow_edge(edge, None)
        return nodes, arrows


def _makes_step(node: Node, step: Step, position: int) -> bool:
    """Whether a node, before which there are ``position`` terminals, is the one that makes a step."""
    if step.position != position or node.question is not None:
        return False
    if node.terminal:
        return not step.has_own_text and step.name == node.symbol
    if step.has_own_text:
        return bool(node.text) and step.text.startswith(node.text or "")
    tool = only_terminal(node.children[0]) if len(node.children) > 1 and not takes_several(node.symbol) else None
    return tool is not None and tool.symbol == step.name


def _add_number(numbers: Numbers, number: int | None) -> Numbers:
    return numbers if number is None or number in numbers else tuple(sorted((*numbers, number)))


def _resolve_pda(rules: Source) -> PDA:
    if isinstance(rules, Flowchart):
        return rules.pda().without_limits
    inner = as_automaton(rules)
    if not isinstance(inner, PDA):
        raise AutomatonError("a plan is drawn over a grammar, a flowchart, a behaviour or a pushdown automaton")
    return inner.without_limits
