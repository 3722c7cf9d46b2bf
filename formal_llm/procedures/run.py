"""One run of a procedure, as a generator of requests: it makes no calls and asks nobody by itself.

The model chooses the goal, and between ways that cost the same; the user provides values; tools return results. What is
called when, and how the run ends, the procedure decides. So no text of a user or a model changes the rules.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from formal_llm.errors import InputError
from formal_llm.guard.rules.expressions import FieldPath
from formal_llm.llms.llm import asking
from formal_llm.llms.question import Question
from formal_llm.llms.usage import NO_TOKENS, TokenUsage
from formal_llm.planning.json_data import JSON
from formal_llm.procedures.assessing import Assessment, Assessor, CallStep, NeedFinding, ValueStep, WayStep
from formal_llm.procedures.procedure import Procedure, ProcedureTool, ToolParameter, walk_terms
from formal_llm.procedures.record import Call, CallHistory, MadeCall

Ending = Literal["done", "declined", "handed over"]


@dataclass(frozen=True)
class ValuesRequest:
    """The user is asked for values.

    Attributes:
        names: the names of the values.
        text: the question in words.
    """

    names: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class ToolRequest:
    """A call has to be made; the reply is a :class:`MadeCall`."""

    call: Call


@dataclass(frozen=True)
class ApprovalRequest:
    """A person has to approve a call; the reply is whether it may be made, or the reason why not."""

    call: Call


Request: TypeAlias = Question | ValuesRequest | ToolRequest | ApprovalRequest
Steps: TypeAlias = Generator[Request, Any, "ProcedureOutcome"]


@dataclass(frozen=True)
class ProcedureOutcome:
    """How a run ended.

    Attributes:
        ending: whether the goal was done, declined, or handed to a person.
        goal: the goal; empty if none was chosen.
        arguments: the arguments of the goal, as far as they are known.
        result: what the goal's call returned, if it was made.
        why: the facts that hold (done), that failed (declined), or that cannot be determined (handed over).
        calls: all calls of the run.
        known: the values that the user provided.
        usage: the tokens that the model cost.
    """

    ending: Ending
    goal: str = ""
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    result: JSON = None
    why: tuple[NeedFinding, ...] = ()
    calls: tuple[MadeCall, ...] = ()
    known: Mapping[str, JSON] = field(default_factory=dict)
    usage: TokenUsage = NO_TOKENS

    def to_data(self) -> dict[str, JSON]:
        """Return the outcome as JSON data, which :mod:`formal_llm.procedures.checker` checks by itself."""
        return {
            "ending": self.ending, "goal": self.goal, "arguments": dict(self.arguments), "result": self.result,
            "why": [finding.to_data() for finding in self.why], "calls": [made.to_data() for made in self.calls],
            "known": dict(self.known),
        }  # fmt: skip

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> ProcedureOutcome:
        """Read an outcome, or that in evidence, without its reasons.

        Raises:
            LookupError, TypeError, AttributeError: it is not what :meth:`to_data` returns.
        """
        plain: Any = data.get("outcome", data)
        calls = [
            MadeCall(Call(one["tool"], one["arguments"]), one.get("value"), one.get("error", ""))
            for one in plain["calls"]
        ]
        return cls(
            plain["ending"], plain["goal"], plain["arguments"], plain["result"], (), tuple(calls), plain["known"]
        )

    def __str__(self) -> str:
        lines = [f"{self.ending}: {Call(self.goal, self.arguments)}" if self.goal else self.ending]
        if self.ending == "done" and self.result is not None:
            lines.append(f"  result: {json.dumps(self.result, ensure_ascii=False)}")
        return "\n".join([*lines, *(f"  {finding}" for finding in self.why if self.ending != "done")])


class ProcedureRun:
    """A run of a procedure.

    Args:
        procedure: the procedure.
        request: what the user wants, in words.
        known: values that are known from the start, by name.
        goal: the goal, if it is known.
        has_model: whether a model chooses between ways that cost the same; else the first is taken.
    """

    def __init__(
        self,
        procedure: Procedure,
        request: str,
        known: Mapping[str, JSON] | None = None,
        goal: str | None = None,
        *,
        has_model: bool = True,
    ) -> None:
        if goal is not None and (goal not in procedure.tools or not procedure.tools[goal].is_goal):
            raise InputError(f"{goal} is no goal; goals are {', '.join(tool.name for tool in procedure.goals)}")
        self.procedure = procedure
        self.request = request
        self.goal = goal
        self.has_model = has_model
        self.known: dict[str, JSON] = dict(known or {})
        self.history = CallHistory(procedure.tools)
        self.preferred: dict[str, int] = {}
        self._absent: set[str] = set()
        self._others: dict[str, JSON] = {}
        self._usage = NO_TOKENS

    def steps(self) -> Steps:
        """Yield the requests of the run, and return its outcome."""
        goal = self.procedure.tools[self.goal] if self.goal is not None else (yield from self._choose_goal())
        if goal is None:
            return self._end("handed over", None, (NeedFinding("the request", "stuck", reason="no goal fits it"),))
        while True:
            owned = {
                parameter.name: parameter.default
                for parameter in goal.parameters
                if parameter.optional and parameter.name not in {*self.known, *dict(goal.computed)}
            }
            assessor = self._make_assessor()
            found = assessor.assess_tool(goal, owned)
            if found.state == "holds":
                bound = assessor.bind_arguments(goal, owned)
                if isinstance(bound, Call):
                    return (yield from self._finish(goal, bound, found))
                found = bound
            if found.state != "open":
                declined = found.state == "refuted" or all(finding.is_decided for finding in found.findings)
                return self._end("declined" if declined else "handed over", goal, found.findings)
            refused = yield from self._take_step(found, goal)
            if refused is not None:
                return self._end("handed over", goal, (refused,))

    def _make_assessor(self) -> Assessor:
        return Assessor(self.procedure, self.history, self.known, frozenset(self._absent), self.preferred)

    def _take_step(self, found: Assessment, goal: ProcedureTool) -> Generator[Request, Any, NeedFinding | None]:
        """Do the best next step; return why it was refused, if it was."""
        step = found.steps[0]
        match step:
            case CallStep(call):
                _, refused = yield from self._make_call(call)
                return refused
            case ValueStep():
                yield from self._ask_for_values(goal, step.name)
            case WayStep(key, ways):
                question = Question(
                    f"{self.request}\n\nBefore {goal.name} one of these has to be done. Which?",
                    [text for text, _ in ways],
                )
                self.preferred[key] = (yield from self._choose(question)) - 1 if self.has_model else 0
        return None

    def _finish(self, goal: ProcedureTool, call: Call, found: Assessment) -> Generator[Request, Any, ProcedureOutcome]:
        made, refused = yield from self._make_call(call)
        if refused is not None or made is None:
            return self._end("handed over", goal, (refused,) if refused else (), call)
        if made.succeeded:
            return replace(self._end("done", goal, found.findings, call), result=made.value)
        if made.error:
            return self._end(
                "handed over", goal, (NeedFinding(str(call), "stuck", calls=(made,), reason=made.error),), call
            )
        return self._end("declined", goal, (NeedFinding(f"{goal.name} succeeds", "refuted", calls=(made,)),), call)

    def _make_call(self, call: Call) -> Generator[Request, Any, tuple[MadeCall | None, NeedFinding | None]]:
        tool = self.procedure.tools[call.tool]
        if tool.approved:
            approval = yield ApprovalRequest(call)
            if approval is not True:
                return None, NeedFinding(str(call), "stuck", reason=f"it was not approved: {approval or 'no'}")
        made: MadeCall = yield ToolRequest(call)
        self.history.add(made)
        return made, None

    def _end(
        self, ending: Ending, goal: ProcedureTool | None, why: Sequence[NeedFinding], call: Call | None = None
    ) -> ProcedureOutcome:
        arguments = dict(call.arguments) if call else {}
        if call is None and goal is not None:
            arguments = {one.name: self.known[one.name] for one in goal.parameters if one.name in self.known}
        return ProcedureOutcome(
            ending, goal.name if goal else "", arguments, None, tuple(why),
            tuple(self.history.calls), dict(self.known), self._usage,
        )  # fmt: skip

    # -- the model --------------------------------------------------------------------------------------------------

    def _choose(self, question: Question) -> Generator[Request, Any, int]:
        answer = yield from asking(question)
        self._usage += answer.usage
        return answer.number

    def _choose_goal(self) -> Generator[Request, Any, ProcedureTool | None]:
        goals = self.procedure.goals
        request = f"{self.request} I give: {_list_words(self.known)}." if self.known else self.request
        texts = [*map(_describe_goal, goals), "none of these"]
        question = Question(f"{request}\n\nWhat does the user want?", texts, task=request)
        number = yield from self._choose(question)
        return goals[number - 1] if number <= len(goals) else None

    # -- the user ---------------------------------------------------------------------------------------------------

    def _ask_for_values(self, goal: ProcedureTool, name: str) -> Generator[Request, Any, None]:
        """Ask the user for a value, and for all others that the goal may need; what is not given is absent."""
        others = sorted(self._list_needed_names(goal) - self.known.keys() - self._absent - {name})
        names = (name, *others)
        reply = yield ValuesRequest(names, f"To go on I need: {', '.join(names)}.")
        given = read_values(reply, names)
        for one, value in given.items():
            if one in self.procedure.names:
                problem = find_misfit(self._find_parameter(one), value)
                if not problem:
                    self.known.setdefault(one, value)
            else:
                self._others[one] = value
        for one in names:
            if one not in self.known:
                yield from self._choose_value(one)
        self._absent |= {one for one in names if one not in self.known}

    def _choose_value(self, name: str) -> Generator[Request, Any, None]:
        """Let the model choose among the values of the right type that came under other names."""
        parameter = self._find_parameter(name)
        fitting = {one: value for one, value in self._others.items() if not find_misfit(parameter, value)}
        if not fitting or parameter.kind == "any" or not self.has_model:
            return
        texts = [f"{one}: {value}" for one, value in fitting.items()]
        question = Question(f"{self.request}\n\nWhich of these is the {name}?", [*texts, "none of these"])
        number = yield from self._choose(question)
        if number <= len(fitting):
            self.known[name] = list(fitting.values())[number - 1]

    def _find_parameter(self, name: str) -> ToolParameter:
        for tool in self.procedure.tools.values():
            for parameter in tool.parameters:
                if parameter.name == name:
                    return parameter
        return ToolParameter(name)

    def _list_needed_names(self, goal: ProcedureTool) -> set[str]:
        """List the values that a run with this goal may need from the user."""
        computed = {name for name, _ in goal.computed}
        names = {one.name for one in goal.parameters if not one.optional and one.name not in computed}
        for owner in self.procedure.walk_owners(goal.name):
            own = {getattr(one, "name", one) for one in owner.parameters} | self.procedure.constants.keys()
            paths = (term for term in walk_terms(owner.need) if isinstance(term, FieldPath))
            names |= {str(term.steps[0]) for term in paths if term.steps[0] not in own}
        return names


def _describe_goal(tool: ProcedureTool) -> str:
    """Describe a goal so that an encoder of sentences can compare it with a request: in words, with what it needs."""
    needs = f" Needs: {_list_words(one.name for one in tool.parameters)}." if tool.parameters else ""
    return f"{_list_words([tool.name])}: {tool.description}{needs}"


def _list_words(names: Iterable[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names)


def read_values(reply: object, names: Sequence[str]) -> dict[str, JSON]:
    """Read the values in what a user replied: an object, a text with a JSON object in it, or the one value itself."""
    if isinstance(reply, Mapping):
        return dict(reply)
    text = str(reply) if reply is not None else ""
    decoder = json.JSONDecoder()
    place = text.find("{")
    while place >= 0:
        try:
            found, _ = decoder.raw_decode(text, place)
        except ValueError:
            place = text.find("{", place + 1)
            continue
        if isinstance(found, dict):
            return found
        place = text.find("{", place + 1)
    return {names[0]: text.strip()} if len(names) == 1 and text.strip() else {}


def find_misfit(parameter: ToolParameter, value: JSON) -> str:
    """Return why a value is not of a parameter's type; empty if it is."""
    kind = parameter.kind
    if isinstance(kind, tuple):
        return "" if value in kind else f"{value!r} is none of {', '.join(kind)}"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        "text": isinstance(value, str), "number": is_number, "integer": isinstance(value, int) and is_number,
        "boolean": isinstance(value, bool), "date": isinstance(value, str), "list": isinstance(value, list),
    }  # fmt: skip
    return "" if fits.get(kind, True) else f"{value!r} is no {kind}"
