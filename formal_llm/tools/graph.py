"""The calls of many plans as one graph, in which equal sub-plans share a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from formal_llm.errors import ExecutionError, InputError, ToolkitError
from formal_llm.planning.plans.plan import Plan
from formal_llm.planning.plans.vocabulary import write_word
from formal_llm.tools.kinds import Kind, Value, kind_of
from formal_llm.tools.result import StepState
from formal_llm.tools.tool import Tool


@dataclass(slots=True, eq=False)
class CallNode:
    """A call that is executed once for all plans that contain it.

    Attributes:
        number: its number in order of creation.
        name: the tool or input.
        tool: the tool; None for an input.
        arguments: the calls whose results are its arguments.
        users: the calls that use its result, once for each use.
        jobs: the jobs that need it.
        missing: the number of arguments that are not available yet.
        value: the result, as long as it is needed.
        uses: the number of calls and jobs that still need the value.
        state, seconds, tries: see :class:`~formal_llm.tools.result.StepResult`.
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
        """Whether a result is or was available."""
        return self.state in ("given", "executed", "cached")


class Given:
    """The inputs of a task, checked and typed.

    Args:
        inputs: the inputs by terminal; a tuple assigns several values to the occurrences of the terminal, from left to
            right in the word (the last one also to all later occurrences).
        kinds: the kinds that are known in advance.

    Raises:
        InputError: a value has no kind, or not the expected one.
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
        index: its position among the jobs.
        given: its inputs.
        nodes: the node of each terminal of the word.
        labels: the name for people of each terminal.
        arguments: the positions of the arguments of each terminal.
        left: the number of its nodes that are not done.
        ended: whether it has its result.
        error: the error, if there is one.
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
        keep: whether the jobs need every value, or only that of the whole plan.
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
            ToolkitError: a tool is missing, or kinds do not match; raised before anything runs.
            InputError: an input is missing.
        """
        if plan.call is None:
            raise ToolkitError(
                [f"the plan {write_word(plan.word, plan.order)} is no nesting of calls: only finished plans of "
                 "grammars with %order prefix, in which each production is a tool and its arguments, can be executed"]
            )  # fmt: skip
        calls = list(plan.call.walk())  # in the order of the word
        uses: dict[str, int] = {}
        places = []
        for call in calls:
            uses[call.name] = uses.get(call.name, -1) + 1
            places.append(uses[call.name])
        job = PlanJob(index, plan, given, labels=[call.label for call in calls])
        nodes: dict[int, CallNode] = {}
        arguments: list[tuple[int, ...]] = [()] * len(calls)
        stack: list[int] = []  # the roots after the position, the nearest on top: the arguments of the next call
        problems: list[str] = []
        for position in range(len(calls) - 1, -1, -1):
            call = calls[position]
            arguments[position] = tuple(stack.pop() for _ in call.arguments)
            argument_nodes = tuple(nodes[place] for place in arguments[position])
            tool = self._tools.get(call.name)
            if tool is not None and call.name not in given.values:
                nodes[position] = self._add_tool(tool, argument_nodes, len(calls) - position, problems)
            else:
                nodes[position] = self._add_input(call.name, argument_nodes, places[position], given)
            stack.append(position)
        if problems:
            raise ToolkitError(list(dict.fromkeys(problems)))
        job.nodes, job.arguments = [nodes[position] for position in range(len(calls))], arguments
        self._enlist_job(job)
        return job

    def _add_tool(self, tool: Tool, under: tuple[CallNode, ...], place: int, problems: list[str]) -> CallNode:
        received = tuple(_kind_of(node) for node in under)
        if received != tool.inputs:
            kinds = ", ".join(map(str, received)) or "nothing"
            problems.append(f"{tool} is applied to {kinds} at place {place} of the plan")
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
            names = ", ".join(given.values) or "none"
            raise InputError(f"the plan needs {name}, which is neither an input nor a tool; the inputs are: {names}")
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
