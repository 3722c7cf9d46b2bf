"""Strategies: a plan for every answer of the world, as a tree (a contingent plan; Russell and Norvig, section 4.3).

At decisions of its own a model has chosen, among options after which a plan can be finished whatever the world answers;
at decisions of the world's every answer is followed. Where two branches come to the same configuration they share what
follows, so a strategy is stored as a graph without circles.

A strategy proves itself: :meth:`Strategy.verify` follows every branch with code that knows nothing of how it was found
(:mod:`formal_llm.planning.checking.strategy_checker`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Generator, Hashable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from textwrap import fill
from typing import Any, NamedTuple

from formal_llm.authored.files import parse_json
from formal_llm.automata import PDA, Limits, Source, Transition, Word
from formal_llm.automata.models.automaton import Move
from formal_llm.errors import Undecided
from formal_llm.llms.llm import Asking
from formal_llm.llms.question import Answer, Question
from formal_llm.pictures.drawable import Drawable
from formal_llm.pictures.parts import cut_around, mark_boxes
from formal_llm.pictures.picture import Arrow, Box, Picture
from formal_llm.planning.checking.strategy_checker import NotProved, check
from formal_llm.planning.json_data import JSON
from formal_llm.planning.plans.certificates import RunNumbers, compiled_rules, parts_of, pda_of, write_claim_head
from formal_llm.planning.walks.walk import Walk

_FORMAT = "formal_llm.strategy/1"
#: The most letters of a line in a picture.
_WIDTH = 36
#: The most decisions of a strategy.
_MOST = 100_000


@dataclass(frozen=True, slots=True)
class StrategyBranch:
    """What follows an answer, up to the next decision or the end.

    Attributes:
        text: the answer.
        steps: the texts of the steps until then.
        word: the terminals that are read until then, answers included.
        run: the numbers of the productions or transitions until then, as in the rules of a certificate.
        node: the number of the decision that it leads to, or of the end.
    """

    text: str
    steps: tuple[str, ...]
    word: Word
    run: tuple[int, ...]
    node: int


@dataclass(frozen=True, slots=True)
class StrategyNode:
    """A decision, or the end of a plan.

    Attributes:
        question: what is decided; at the end, how it ends, or nothing.
        is_world: whether the world decides.
        branches: one for each answer of the world; one for a decision that was made, or one for each that a model may
            make; none at the end.
    """

    question: str
    is_world: bool
    branches: tuple[StrategyBranch, ...]


class StrategyPlan(NamedTuple):
    """One of the plans of a strategy.

    Attributes:
        answers: the answers of the world that lead to it, each with its question.
        steps: the texts of its steps.
        ending: how it ends, where that has a text.
    """

    answers: tuple[tuple[str, str], ...]
    steps: tuple[str, ...]
    word: Word
    ending: str = ""


class StrategyVerification(NamedTuple):
    """Whether a strategy follows rules: every branch is a plan, and no answer of the world lacks a branch."""

    valid: bool
    reason: str


@dataclass(frozen=True)
class Strategy(Drawable):
    """A plan for every answer of the world.

    Args:
        task: the description of the task.
        nodes: the decisions and ends; branches lead to earlier ones.
        start: what comes before the first decision.
        rules: the rules that it was made for, with all their limits; None for one that was read from a file.

    Raises:
        ValueError: a branch leads to no earlier node.
    """

    task: str
    nodes: tuple[StrategyNode, ...]
    start: StrategyBranch
    rules: Source | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        above = [(self.start, len(self.nodes))]
        above += [(branch, number) for number, node in enumerate(self.nodes) for branch in node.branches]
        for branch, number in above:
            if not 0 <= branch.node < number:
                raise ValueError(f"a branch of node {number} leads to node {branch.node}, which is no earlier one")

    def __repr__(self) -> str:
        worlds = sum(node.is_world for node in self.nodes)
        return f"<Strategy: {self.count():,} plans, {worlds:,} decisions of the world's>"

    def count(self) -> int:
        """The number of plans: the ways in which the world can answer."""
        counts: list[int] = []
        for node in self.nodes:
            counts.append(sum(counts[branch.node] for branch in node.branches) if node.branches else 1)
        return counts[self.start.node]

    def plans(self) -> Iterator[StrategyPlan]:
        """Yield the plans, in the order in which the world's answers are listed."""
        todo = [((), self.start.steps, self.start.word, self.start.node)]
        while todo:
            answers, steps, word, number = todo.pop()
            node = self.nodes[number]
            if not node.branches:
                yield StrategyPlan(answers, steps, word, node.question)
            for branch in reversed(node.branches):
                given = (*answers, (node.question, branch.text)) if node.is_world else answers
                todo.append((given, (*steps, *branch.steps), (*word, *branch.word), branch.node))  # type: ignore[arg-type]

    # -- checking -----------------------------------------------------------------------------------------------

    def certificate(self, rules: Source | None = None, *, limits: Limits | None = None) -> dict[str, JSON]:
        """Return the proof that every branch follows the rules, whatever the world answers, as JSON data.

        It refers to the rules as :meth:`compiled_rules` returns them;
        :mod:`~formal_llm.planning.checking.strategy_checker` checks one against the other.

        Args:
            rules: the rules; needed for a strategy that was read from a file.
            limits: more limits.

        Raises:
            ValueError: the rules are not known.
            AutomatonError: they are a custom automaton.
        """

        def write_branch(branch: StrategyBranch) -> JSON:
            return {"run": branch.run, "node": branch.node}

        nodes = [[write_branch(branch) for branch in node.branches] for node in self.nodes]
        head = write_claim_head(pda_of(self._known_rules(rules), limits), "strategy")
        return {**head, "start": write_branch(self.start), "nodes": nodes}

    def compiled_rules(self, rules: Source | None = None, *, limits: Limits | None = None) -> dict[str, JSON]:
        """Return the rules to which :meth:`certificate` refers, as JSON data; arguments and errors as there."""
        return compiled_rules(self._known_rules(rules), limits)

    def _known_rules(self, rules: Source | None) -> Source:
        known = rules if rules is not None else self.rules
        if known is None:
            raise ValueError("this strategy was not made here: name its rules, strategy.verify(rules)")
        return known

    def verify(self, rules: Source | None = None, *, limits: Limits | None = None) -> StrategyVerification:
        """Check that every branch is a plan of the rules, and that the world has no answer without a branch.

        It follows the branches through the productions or transitions, and uses nothing of what found them.

        Args:
            rules: the rules; those that it was made for, if left out.
            limits: more limits.

        Raises:
            ValueError, AutomatonError: as in :meth:`certificate`.
        """
        try:
            return StrategyVerification(True, check(self.compiled_rules(rules, limits=limits),
                                                    self.certificate(rules, limits=limits)))  # fmt: skip
        except NotProved as problem:
            return StrategyVerification(False, str(problem))

    # -- other forms --------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        return self.draw()

    def draw(self, taken: Collection[tuple[int, int]] = ()) -> str:
        """The strategy as a tree of text; what several branches share is written out once, and numbered.

        Args:
            taken: branches to mark, each as the number of its node and its place there.
        """
        shared = Counter(branch.node for node in self.nodes for branch in node.branches)
        numbers: dict[int, int] = {}
        lines: list[str] = []
        todo = [("", "", self.start)]
        while todo:
            answer, inside, branch = todo.pop()
            lines += [answer] if answer else []
            lines += [inside + step for step in branch.steps]
            node = self.nodes[branch.node]
            while len(node.branches) == 1 and not node.is_world:
                [branch] = node.branches
                lines.append(inside + " ".join(filter(None, (node.question, "→", branch.text))))
                lines += [inside + step for step in branch.steps]
                node = self.nodes[branch.node]
            if not node.branches:
                lines += [inside + node.question] if node.question else []
                continue
            if branch.node in numbers:
                lines.append(f"{inside}{node.question} (as at {numbers[branch.node]})")
                continue
            mark = ""
            if shared[branch.node] > 1:
                numbers[branch.node] = len(numbers) + 1
                mark = f" [{numbers[branch.node]}]"
            who = "world" if node.is_world else "model"
            lines.append(f"{inside}{node.question} (the {who} decides){mark}")
            last = len(node.branches) - 1
            todo += [
                (
                    f"{inside}{'└─ ' if at == last else '├─ '}{one.text}{' ◀' * ((branch.node, at) in taken)}",
                    inside + ("   " if at == last else "│  "),
                    one,
                )
                for at, one in reversed(list(enumerate(node.branches)))
            ]
        return "\n".join(lines)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the strategy as JSON, for :meth:`from_json`."""
        data = {"format": _FORMAT, "task": self.task, "start": asdict(self.start), "nodes": [*map(asdict, self.nodes)]}
        return json.dumps(data, indent=indent, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Strategy:
        """Read a strategy that :meth:`to_json` wrote.

        Raises:
            ValueError: the text is not such a strategy.
        """
        try:
            data: Any = parse_json(text)
            if data["format"] != _FORMAT:
                raise ValueError(f"unknown format {data['format']!r}")
            nodes = tuple(
                StrategyNode(node["question"], node["is_world"], tuple(map(_read_branch, node["branches"])))
                for node in data["nodes"]
            )
            return cls(data["task"], nodes, _read_branch(data["start"]))
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"this is not a strategy that to_json wrote: {error}") from None


def _read_branch(data: Any) -> StrategyBranch:
    steps, word = (tuple(map(str, data[name])) for name in ("steps", "word"))
    return StrategyBranch(str(data["text"]), steps, word, tuple(map(int, data["run"])), int(data["node"]))


def strategy_picture(strategy: Strategy) -> Picture:
    """A strategy from the top down: the world's decisions are diamonds, with an arrow for each answer."""
    boxes, arrows = [], []

    def draw_branch(source: str | None, branch: StrategyBranch, key: str) -> None:
        target, text = f"node {branch.node}", branch.text
        if branch.steps:
            boxes.append(Box(key, "\n".join(branch.steps), "tool"))
            arrows.extend([Arrow(source, key, text)] if source is not None else [])
            source, text = key, ""
        if source is not None:
            arrows.append(Arrow(source, target, text))

    for number, node in enumerate(strategy.nodes):
        kind = "decision" if node.is_world else "nonterminal" if node.branches else "result"
        label = fill(node.question or ("choice" if node.branches else "end"), _WIDTH)
        boxes.append(Box(f"node {number}", label, kind))  # type: ignore[arg-type]
        for at, branch in enumerate(node.branches):
            draw_branch(f"node {number}", branch, f"steps {number} {at}")
    draw_branch(None, strategy.start, "start")
    return Picture(tuple(boxes), tuple(arrows), "TB", strategy.task or None)


def mark_way(strategy: Strategy, taken: Collection[tuple[int, int]], most: int) -> Picture:
    """A strategy with a way through it marked; of a large one, ``most`` boxes around the way.

    ``taken`` are the branches of the way, each as the number of its node and its place there.
    """
    ends = (strategy.start, *(strategy.nodes[node].branches[place] for node, place in taken))
    marked = {"start", *(f"steps {node} {place}" for node, place in taken), *(f"node {branch.node}" for branch in ends)}
    picture = cut_around(mark_boxes(strategy_picture(strategy), marked), sorted(marked), most)
    return replace(picture, edges=tuple(
        replace(arrow, tone="marked") if marked >= {arrow.source, arrow.target} else arrow for arrow in picture.edges
    ))  # fmt: skip


# -- making one -------------------------------------------------------------------------------------------------------


@dataclass
class _OpenNode:
    """A decision some of whose branches are still to be followed."""

    configuration: Hashable
    question: str
    is_world: bool
    arrival: tuple[str, Sequence[Move]]  # the answer and the moves that led to it
    todo: list[tuple[str, int, Walk]]  # answers, the moves before each, and the walk after it
    branches: list[StrategyBranch] = field(default_factory=list)


def build_strategy(walk: Walk, ask: Callable[[Walk, Question], Asking]) -> Generator[Question, Answer, Strategy]:
    """Make the strategy of a walk that has just begun, whose choices are offered for whatever the world answers.

    Where a branch comes back to a configuration that it has passed, from there on only choices are offered that bring
    the end nearer, so that no branch goes in circles.

    ``ask`` puts one question of a walk.

    Raises:
        BudgetExceeded: what all branches together used has used up the walk's budget.
        Undecided: the strategy has too many decisions.
    """
    return (yield from _StrategyBuilder(walk, ask).build())


class _StrategyBuilder:
    def __init__(self, walk: Walk, ask: Callable[[Walk, Question], Asking]) -> None:
        self._walk = walk
        self._ask = ask
        self._table = walk.table
        pda = walk.table.lookahead.pda
        self._numbers = RunNumbers(pda, parts_of(pda)[0]) if isinstance(pda, PDA) else None
        self._nodes: list[StrategyNode] = []
        self._known: dict[Hashable, int] = {}  # the node of each configuration
        self._path: list[_OpenNode] = []
        self._passed: Counter[Hashable] = Counter()  # the configurations on the path where a choice was made

    def build(self) -> Generator[Question, Answer, Strategy]:
        walk, text, before = self._walk, "", 0
        while True:
            yield from self._enter_decision(walk, text, before)
            while self._path and not self._path[-1].todo:
                self._close_node()
            if not self._path:
                [start] = self._last
                return Strategy(walk.task.description, tuple(self._nodes), start, self._table.lookahead.source)
            used = walk.usage
            text, before, walk = self._path[-1].todo.pop(0)
            if walk.usage != used:
                walk.follow(walk, used)  # what other branches have used counts for all

    def _enter_decision(self, walk: Walk, text: str, before: int) -> Generator[Question, Answer, None]:
        """Come to the next decision after an answer, or to the end."""
        question = walk.question
        if question is not None and not question.world and self._passed[walk.configuration]:
            walk.bound_moves(self._table.lookahead.completable(walk.configuration).steps or 0)
            question = walk.question
        key = (walk.configuration, question is None)
        arrival = text, walk.moves[before:]
        if key not in self._known and question is None:
            self._add_node(key, StrategyNode("", False, ()))
        if key in self._known:
            self._add_branch(arrival, self._known[key])
            return
        assert question is not None
        if len(self._nodes) + len(self._path) > _MOST:
            raise Undecided(f"the strategy has more than {_MOST:,} decisions; bound plans by %limit")
        node = _OpenNode(walk.configuration, question.world, bool(question.world), arrival, [])
        if question.world:
            for option in question.options:
                after = walk.fork()
                after.answer(option.number)
                node.todo.append((option.text, len(walk.moves), after))
        else:
            self._passed[walk.configuration] += 1
            node.question = _find_question(walk)
            made = len(walk.moves)
            chosen = yield from self._make_choice(walk, question)
            node.todo.append((chosen, made, walk))
        self._path.append(node)

    def _make_choice(self, walk: Walk, question: Question) -> Generator[Question, Answer, str]:
        """Have one choice made, page by page; the text of what was chosen."""
        made, texts = len(walk.moves), list[str]()
        asked: Question | None = question
        while asked is not None and len(walk.moves) == made and not walk.done:
            answer = yield from self._ask(walk, asked)
            texts = [asked.options[number - 1].text for number in answer.numbers]
            walk.answer(answer)
            asked = walk.question
        return ", ".join(texts)

    def _close_node(self) -> None:
        node = self._path.pop()
        if not node.is_world:
            self._passed[node.configuration] -= 1
        key = (node.configuration, False)
        number = self._add_node(key, StrategyNode(node.question, node.is_world, tuple(node.branches)))
        self._add_branch(node.arrival, number)

    def _add_node(self, key: Hashable, node: StrategyNode) -> int:
        self._nodes.append(node)
        self._known[key] = len(self._nodes) - 1
        return len(self._nodes) - 1

    def _add_branch(self, arrival: tuple[str, Sequence[Move]], node: int) -> None:
        text, moves = arrival
        label = self._table.vocabulary.label
        steps = [
            (isinstance(move, Transition) and move.text) or label(move.read)
            for move in moves
            if move.read is not None and not (isinstance(move, Transition) and move.decision)
        ]
        word = tuple(move.read for move in moves if move.read is not None)
        run = () if self._numbers is None else tuple(self._numbers.number_moves(moves))
        branch = StrategyBranch(text, tuple(steps), word, run, node)
        self._last = [branch]
        if self._path:
            self._path[-1].branches.append(branch)


def _find_question(walk: Walk) -> str:
    """What the rules ask where a walk has a choice; empty where they have no words for it."""
    entry = walk.choice
    first = next((choice.moves[0] for choice in entry.fork.iter_choices() if choice.moves), None) if entry else None
    return first.question if isinstance(first, Transition) else ""
