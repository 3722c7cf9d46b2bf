"""The calls of many plans as one graph, in which equal sub-plans are one node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from formal_llm.errors import ExecutionError, InputError, ToolkitError
from formal_llm.planning.plans.plan import Plan
from formal_llm.tools.kinds import Kind, Value, kind_of
from formal_llm.tools.result import StepState
from formal_llm.tools.tool import Tool


@dataclass(slots=True, eq=False)
class CallNode:
    """A call that is made once, however many plans have it.

    Attributes:
        number: its place in the order of making.
        name: the tool or input.
        tool: the tool; None for an input.
        arguments: the calls whose results it takes.
        users: the calls that take its result, once for each place.
        jobs: the jobs that need it.
        missing: how many arguments are not there yet.
        value: the result, while somebody needs it.
        uses: how many calls and jobs still need the value.
        state, seconds, tries: as in :class:`~formal_llm.tools.result.StepResult`.
    """

    number: int
    name: str
    tool: Tool | None
    arguments: tuple[CallNode, ...] = ()
    users: list[CallNode] = field(default_factory=list)
    jobs: list[PlanJob] = field(default_factory=list)
    missing: int = 0
    value: Value | None = None
    uses: int = 0
    state: StepState = "not run"
    seconds: float = 0.0
    tries: int = 0

    @property
    def done(self) -> bool:
        """Whether there is, or was, a result."""
        return self.state in ("given", "executed", "cached")


class Given:
    """The inputs of a task, checked and typed.

    Args:
        inputs: by terminal; a tuple gives several values to the places of the terminal, from left to right in the word
            (the last one also to all places after it).
        kinds: the kinds that are known beforehand.

    Raises:
        InputError: a value of no kind, or of another than it should have.
    """

    def __init__(self, inputs: Mapping[str, object], kinds: Mapping[str, Kind]) -> None:
        self.values: dict[str, list[Value]] = {}
        for name, value in inputs.items():
            several = value if isinstance(value, tuple) else (value,)
            if not several:
                raise InputError(f"the input {name} is an empty tuple")
            self.values[name] = [self._to_value(name, one, kinds.get(name)) for one in several]

    @staticmethod
    def _to_value(name: str, value: object, kind: Kind | None) -> Value:
        if isinstance(value, Value):
            if kind is not None and value.kind != kind:
                raise InputError(f"the input {name}: a value of kind {kind} was expected, not of kind {value.kind}")
            return value
        try:
            kind = kind or kind_of(value)
            return Value(kind, kind.accept(value))
        except InputError as error:
            raise InputError(f"the input {name}: {error}") from error


@dataclass(slots=True, eq=False)
class PlanJob:
    """A plan with its inputs.

    Attributes:
        index: its place among the jobs.
        plan: the plan.
        given: its inputs.
        nodes: for each terminal of the word its node.
        labels: for each terminal what a person reads for it.
        arguments: for each terminal the positions of its arguments.
        left: how many of its nodes are not done.
        ended: whether its result has been made.
        error: what went wrong.
    """

    index: int
    plan: Plan
    given: Given
    nodes: list[CallNode] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    arguments: list[tuple[int, ...]] = field(default_factory=list)
    left: int = 0
    ended: bool = False
    error: ExecutionError | None = None


class Graph:
    """The calls of jobs.

    Args:
        tools: the tools by name.
        keep: whether the jobs need every value, or that of the whole plan only.
    """

    def __init__(self, tools: Mapping[str, Tool], *, keep: bool) -> None:
        self.nodes: list[CallNode] = []
        self.jobs: list[PlanJob] = []
        self._tools = tools
        self._keep = keep
        self._known: dict[object, CallNode] = {}

    def add_plan(self, plan: Plan, given: Given, index: int) -> PlanJob:
        """Add a plan.

        Raises:
            ToolkitError: a tool is missing, or the kinds do not fit; before anything runs.
            InputError: an input is missing.
        """
        if plan.call is None:
            raise ToolkitError(
                [f"the plan {' '.join(plan.word) or '(empty)'} is no nesting of calls: only finished plans of grammars "
                 "in which each production is a tool and its arguments can be executed"]
            )  # fmt: skip
        calls = list(plan.call.walk())  # in the order of the word
        uses: dict[str, int] = {}
        places = []
        for call in calls:
            uses[call.name] = uses.get(call.name, -1) + 1
            places.append(uses[call.name])
        job = PlanJob(index, plan, given, labels=[call.label for call in calls])
        made: dict[int, CallNode] = {}
        arguments: list[tuple[int, ...]] = [()] * len(calls)
        stack: list[int] = []  # the roots behind the place, the nearest on top: what the next call is applied to
        problems: list[str] = []
        for position in range(len(calls) - 1, -1, -1):
            call = calls[position]
            arguments[position] = tuple(stack.pop() for _ in call.arguments)
            under = tuple(made[place] for place in arguments[position])
            tool = self._tools.get(call.name)
            if tool is not None and call.name not in given.values:
                made[position] = self._add_tool(tool, under, position, problems)
            else:
                made[position] = self._add_input(call.name, under, places[position], given)
            stack.append(position)
        if problems:
            raise ToolkitError(list(dict.fromkeys(problems)))
        job.nodes, job.arguments = [made[position] for position in range(len(calls))], arguments
        self._enlist_job(job)
        return job

    def _add_tool(self, tool: Tool, under: tuple[CallNode, ...], position: int, problems: list[str]) -> CallNode:
        got = tuple(_kind_of(node) for node in under)
        if got != tool.inputs:
            shown = ", ".join(map(str, got)) or "nothing"
            problems.append(f"{tool} is applied to {shown} at place {position + 1} of the plan")
        key = (tool.name, *(node.number for node in under)) if tool.deterministic else object()
        node = self._known.get(key)
        if node is None:
            node = self._known[key] = CallNode(len(self.nodes), tool.name, tool, under, missing=len(under))
            self.nodes.append(node)
            for argument in under:
                argument.users.append(node)
                argument.uses += 1
        return node

    def _add_input(self, name: str, under: tuple[CallNode, ...], place: int, given: Given) -> CallNode:
        if under:
            raise ToolkitError([f"there is no tool {name}; there are {', '.join(self._tools)}"])
        values = given.values.get(name)
        if values is None:
            there = ", ".join(given.values) or "none"
            raise InputError(f"the plan needs {name}, which is neither an input nor a tool; the inputs are: {there}")
        value = values[min(place, len(values) - 1)]
        node = self._known.get((None, name, value.key))
        if node is None:
            node = CallNode(len(self.nodes), name, None, value=value)
            self._known[None, name, value.key] = node
            self.nodes.append(node)
        return node

    def _enlist_job(self, job: PlanJob) -> None:
        self.jobs.append(job)
        distinct = dict.fromkeys(job.nodes)
        job.left = len(distinct)
        for node in distinct:
            node.jobs.append(job)
            if self._keep or node is job.nodes[0]:
                node.uses += 1


def _kind_of(node: CallNode) -> Kind:
    if node.tool is not None:
        return node.tool.output
    assert node.value is not None
    return node.value.kind
