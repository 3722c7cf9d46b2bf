"""A plan and its inputs as steps, checked before the first call: what each takes, and which may run side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from formal_llm.automata.models.symbols import turn_word
from formal_llm.errors import InputError, ToolkitError, did_you_mean
from formal_llm.planning.plans.plan import Plan
from formal_llm.tools.kinds import Kind, Value, fits, kind_of
from formal_llm.tools.order import StepOrder
from formal_llm.tools.signature import Parameter
from formal_llm.tools.tool import Tool

#: What a step takes for an argument: the result of the step at a position of the word, or an input.
Argument = int | Value


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A terminal of a plan: a call, an input, or a decision.

    Attributes:
        position: its position in the word of the plan.
        name: the terminal.
        label: its name for people.
        tool: the tool; None for an input or a decision.
        given: the value of an input.
        arguments: what the tool takes for its inputs, in order.
        named: what it takes for parameters with a default.
        asked: the parameters for which a model writes values: those that are None among the arguments.
    """

    position: int
    name: str
    label: str
    tool: Tool | None = None
    given: Value | None = None
    arguments: tuple[Argument | None, ...] = ()
    named: Mapping[str, Argument] = field(default_factory=dict)
    asked: tuple[str, ...] = ()

    @property
    def is_decision(self) -> bool:
        """Whether it is the answer to a decision."""
        return self.tool is None and self.given is None

    @property
    def takes(self) -> list[int]:
        """The positions of the steps whose results it takes."""
        return [one for one in (*self.arguments, *self.named.values()) if isinstance(one, int)]


@dataclass(frozen=True, slots=True)
class PlannedSteps:
    """A plan as steps in the order of carrying out, in groups: those of a group may be carried out side by side."""

    plan: Plan
    groups: tuple[tuple[PlannedStep, ...], ...]
    given: Given

    def __iter__(self) -> Iterator[PlannedStep]:
        return (step for group in self.groups for step in group)


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


class StepReader:
    """Reads plans as steps.

    Args:
        tools: the tools by name.
        fills: whether a model fills the arguments that are not found.
    """

    def __init__(self, tools: Mapping[str, Tool], *, fills: bool = False) -> None:
        self._tools = tools
        self._fills = fills
        self._groups: dict[int, tuple[Plan, tuple[range, ...]]] = {}

    def read_plan(self, plan: Plan, given: Given) -> PlannedSteps:
        """Return the steps of a plan.

        Raises:
            ToolkitError: a tool is missing, or kinds do not match; raised before anything runs.
            InputError: an input is missing.
        """
        if not plan.complete:
            raise ToolkitError(["the plan is not finished"])
        if plan.is_timed and plan.rules is None:
            raise ToolkitError(
                ["the rules of the plan say when its steps may be, and a file of a plan has no rules: "
                 "run plan.with_rules(rules)"]
            )  # fmt: skip
        steps = self._read_sequence(plan, given) if plan.call is None else self._read_nested(plan, given)
        kept = self._groups.get(id(plan))
        if kept is None:  # one plan for many inputs is grouped once
            places = {step.position: place for place, step in enumerate(steps)}
            order = StepOrder(plan.rules, [step.name for step in steps], nested=plan.call is not None)
            shared = [step.given is not None or (step.tool is not None and step.tool.pure) for step in steps]
            needs = [{places[position] for position in step.takes} for step in steps]
            kept = self._groups[id(plan)] = plan, tuple(order.find_groups(shared, needs))
        return PlannedSteps(plan, tuple(tuple(steps[group.start : group.stop]) for group in kept[1]), given)

    # -- nested calls ---------------------------------------------------------------------------------------------

    def _read_nested(self, plan: Plan, given: Given) -> list[PlannedStep]:
        """Return the steps of nested calls: each is carried out after those whose results it takes."""
        assert plan.call is not None
        calls = list(plan.call.walk())
        uses: dict[str, int] = {}
        nth = [uses.setdefault(call.name, 0) for call in calls]
        for place, call in enumerate(calls):
            nth[place], uses[call.name] = uses[call.name], uses[call.name] + 1
        steps: dict[int, PlannedStep] = {}
        stack: list[int] = []  # the roots after the position, the nearest on top: the arguments of the next call
        problems: list[str] = []
        for position in range(len(calls) - 1, -1, -1):
            call = calls[position]
            arguments = tuple(stack.pop() for _ in call.arguments)
            tool = self._tools.get(call.name)
            if tool is not None and call.name not in given.values:
                kinds = tuple(_kind_of(steps[place]) for place in arguments)
                if len(kinds) != len(tool.inputs) or not all(map(fits, kinds, tool.inputs)):
                    shown = ", ".join(map(str, kinds)) or "nothing"
                    problems.append(f"{tool} is applied to {shown} at place {len(calls) - position} of the plan")
                steps[position] = PlannedStep(position, call.name, call.label, tool, None, arguments)
            elif arguments:
                raise ToolkitError([f"there is no tool {call.name}; there are {', '.join(self._tools)}"])
            else:
                value = _find_input(call.name, nth[position], given)
                steps[position] = PlannedStep(position, call.name, call.label, given=value)
            stack.append(position)
        if problems:
            raise ToolkitError(list(dict.fromkeys(problems)))
        return list(steps.values())

    # -- sequences ------------------------------------------------------------------------------------------------

    def _read_sequence(self, plan: Plan, given: Given) -> list[PlannedStep]:
        """Return the steps of a sequence, whose tools find their arguments by name and type."""
        steps: list[PlannedStep] = []
        results: dict[str, tuple[int, Kind]] = {}  # the last result under each name
        problems: list[str] = []
        uses: dict[str, int] = {}
        for position, leaf in turn_word([*enumerate(plan.tree.leaves)], plan.order):
            name, tool = leaf.symbol, self._tools.get(leaf.symbol)
            if leaf.question is not None:  # the answer to a decision
                steps.append(PlannedStep(position, name, leaf.label))
            elif name in given.values:
                uses[name] = uses.get(name, -1) + 1
                steps.append(PlannedStep(position, name, leaf.label, given=_find_input(name, uses[name], given)))
            elif tool is None:
                near = did_you_mean(name, self._tools)
                problems.append(f"no tool for the step {name}" + (f" (did you mean {near}?)" if near else ""))
            else:
                finder = _ArgumentFinder(f"step {len(steps) + 1} ({name})", results, given)
                found = {one.name: finder.find_argument(one) for one in tool.signature.parameters}
                arguments = tuple(found[one.name] for one in tool.signature.required)
                asked = tuple(one.name for one in tool.signature.required if found[one.name] is None)
                named = {
                    one.name: value for one in tool.signature.parameters
                    if not one.required and (value := found[one.name]) is not None
                }  # fmt: skip
                problems += finder.wrong + ([] if self._fills else finder.missing)
                steps.append(PlannedStep(position, name, leaf.label, tool, None, arguments, named, asked))
                results[tool.returns or name] = position, tool.output
        if problems:
            raise ToolkitError(list(dict.fromkeys(problems)))
        return steps


class _ArgumentFinder:
    """Finds the arguments of one step of a sequence; what it does not find is a problem."""

    def __init__(self, step: str, results: Mapping[str, tuple[int, Kind]], given: Given) -> None:
        self._step = step
        #: The problems that a model can solve, and the others.
        self.missing: list[str] = []
        self.wrong: list[str] = []
        #: What there is, under its name: an input, or the result of an earlier step.
        self._there: list[tuple[str, Argument, Kind]] = [
            (name, value, value.kind) for name, values in given.values.items() for value in values
        ]
        self._there += [(name, position, kind) for name, (position, kind) in results.items()]

    def find_argument(self, parameter: Parameter) -> Argument | None:
        """Return what has the name of a parameter; for a required one otherwise the only thing of its kind."""
        wanted = parameter.kind
        found = [one for one in self._there if one[0] == parameter.name]
        wrong = [kind for _, _, kind in found if not fits(kind, wanted)]
        if not found and parameter.required:
            found = [one for one in self._there if fits(one[2], wanted)]
        if len(found) == 1 and not wrong:
            return found[0][1]
        start = f"{self._step}: no value for {parameter.name}: "
        if wrong:
            self.wrong.append(f"{start}it is a value of kind {wrong[0]}, not {wanted}")
        elif found or parameter.required:
            names = ", ".join(dict.fromkeys(name for name, _, _ in found or self._there)) or "nothing"
            what = f"{names} would fit" if found else f"there is {names}, no {wanted}"
            way_out = f"name an input {parameter.name}, or the result of a tool with returns={parameter.name!r}"
            self.missing.append(f"{start}{what}; {way_out}")
        return None


def _find_input(name: str, place: int, given: Given) -> Value:
    values = given.values.get(name)
    if values is None:
        names = ", ".join(given.values) or "none"
        raise InputError(f"the plan needs {name}, which is neither an input nor a tool; the inputs are: {names}")
    return values[min(place, len(values) - 1)]


def _kind_of(step: PlannedStep) -> Kind:
    if step.tool is not None:
        return step.tool.output
    assert step.given is not None
    return step.given.kind
