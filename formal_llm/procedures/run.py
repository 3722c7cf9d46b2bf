"""One run of a procedure, as a generator of requests: it makes no calls and asks nobody by itself.

The model chooses the goal, and between ways that cost the same; the user provides values; tools return results. What is
called when, and how the run ends, the procedure decides. So no text of a user or a model changes the rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from math import isfinite
from reprlib import repr as shorten
from typing import Any, Literal, TypeAlias

from formal_llm.errors import InputError, unknown
from formal_llm.llms.llm import asking
from formal_llm.llms.question import Message, Question
from formal_llm.llms.schemas import close_schema, open_value
from formal_llm.llms.text_request import TextRequest, ToolOffer
from formal_llm.llms.usage import NO_TOKENS, TokenUsage
from formal_llm.planning.json_data import JSON
from formal_llm.procedures.assessing import Assessment, Assessor, CallStep, NeedFinding, ValueStep, WayStep
from formal_llm.procedures.procedure import Procedure, ProcedureTool, ToolParameter, walk_terms
from formal_llm.procedures.record import Call, CallHistory, MadeCall
from formal_llm.procedures.terms import list_names

Ending = Literal["done", "declined", "handed over"]
#: What a model is told that calls a goal.
_CALL_INSTRUCTION = Message(
    "system", "Call the tool that does what the user wants, once; call none if none does it. "
    "Give only values that the user states, and null for all others. Do not guess.",
)  # fmt: skip
#: Numbers in a text, of at most 30 digits, with thousands apart by commas or not; no parts of dates, times and names.
_NUMBER = re.compile(r"(?<![\w./:,-])-?(?:\d{1,3}(?:,\d{3}){1,9}|\d{1,30})(?:\.\d{1,30})?(?![\w/:-]|[.,]\d)")
_JSON_TYPES: Mapping[str, Mapping[str, JSON]] = {
    "text": {"type": "string"}, "number": {"type": "number"}, "integer": {"type": "integer"}, "list": {"type": "array"},
    "boolean": {"type": "boolean"}, "date": {"type": "string", "description": "a date, YYYY-MM-DD"}, "any": {},
}  # fmt: skip


@dataclass(frozen=True)
class ValuesRequest:
    """The user is asked for values.

    Attributes:
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
        known: the values that the user provided.
        dropped: what the user or the model gave and was not taken over, with the reason.
        usage: the tokens that the model cost.
    """

    ending: Ending
    goal: str = ""
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    result: JSON = None
    why: tuple[NeedFinding, ...] = ()
    calls: tuple[MadeCall, ...] = ()
    known: Mapping[str, JSON] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    usage: TokenUsage = NO_TOKENS

    def to_data(self) -> dict[str, JSON]:
        """Return the outcome as JSON data, which :mod:`formal_llm.procedures.checker` checks by itself."""
        return {
            "ending": self.ending, "goal": self.goal, "arguments": dict(self.arguments), "result": self.result,
            "why": [finding.to_data() for finding in self.why], "calls": [made.to_data() for made in self.calls],
            "known": dict(self.known), "dropped": list(self.dropped),
        }  # fmt: skip

    @classmethod
    def from_data(cls, data: Mapping[str, object]) -> ProcedureOutcome:
        """Read an outcome, or that in evidence, without its reasons.

        Raises:
            LookupError, TypeError, AttributeError: it is not what :meth:`to_data` returns.
        """
        plain: Any = data.get("outcome", data)
        calls = tuple(map(MadeCall.from_data, plain["calls"]))
        return cls(plain["ending"], plain["goal"], plain["arguments"], plain["result"], (), calls, plain["known"])

    def __str__(self) -> str:
        lines = [f"{self.ending}: {Call(self.goal, self.arguments)}" if self.goal else self.ending]
        if self.ending == "done" and self.result is not None:
            lines.append(f"  result: {json.dumps(self.result, ensure_ascii=False)}")
        lines += dict.fromkeys(f"  {finding}" for finding in self.why if self.ending != "done")
        return "\n".join([*lines, *(f"  not taken over: {one}" for one in self.dropped)])


class ProcedureRun:
    """A run of a procedure.

    Args:
        request: what the user wants, in words.
        known: values that are known from the start, by name.
        goal: the goal, if it is known.
        has_model: whether a model chooses between ways that cost the same; else the first is taken.
        native: whether the model chooses the goal by a call of it, with values; only those that are in the request
            are taken over.

    Raises:
        InputError: there is no such goal, or no value of a name in ``known``, or it is not of its type.
    """

    def __init__(
        self,
        procedure: Procedure,
        request: str,
        known: Mapping[str, JSON] | None = None,
        goal: str | None = None,
        *,
        has_model: bool = True,
        native: bool = False,
    ) -> None:
        if goal is not None and (goal not in procedure.tools or not procedure.tools[goal].is_goal):
            raise InputError(f"{goal} is no goal; goals are {', '.join(tool.name for tool in procedure.goals)}")
        for name, value in (known or {}).items():
            if name not in procedure.names:
                names = sorted(procedure.names)
                raise InputError(f"{unknown('value', name, names)}; there are {', '.join(names) or 'none'}")
            if problem := find_misfit(find_parameters(procedure, name, goal), value):
                raise InputError(f"the value of {name} does not fit: {problem}")
        self.procedure = procedure
        self.request = request
        self.goal = goal
        self.has_model = has_model
        self.native = native
        self.known: dict[str, JSON] = dict(known or {})
        self.history = CallHistory(procedure.tools)
        self.preferred: dict[str, int] = {}
        self._chosen = goal
        self._absent: set[str] = set()
        self._others: dict[str, JSON] = {}
        self._dropped: list[str] = []
        self._usage = NO_TOKENS

    def steps(self) -> Steps:
        """Yield the requests of the run, and return its outcome."""
        goal = self.procedure.tools[self.goal] if self.goal is not None else (yield from self._choose_goal())
        if goal is None:
            return self._end("handed over", None, (NeedFinding("the request", "stuck", reason="no goal fits it"),))
        self._chosen = goal.name
        for name, value in self.known.items():
            if problem := self._find_misfit(name, value):
                return self._end("handed over", goal, (NeedFinding(name, "stuck", {name: value}, reason=problem),))
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
        if made.unclear and not tool.may_repeat():
            reason = f"whether it was done is not known: {made.error}"
            return made, NeedFinding(str(call), "stuck", calls=(made,), reason=reason)
        return made, None

    def _end(
        self, ending: Ending, goal: ProcedureTool | None, why: Sequence[NeedFinding], call: Call | None = None
    ) -> ProcedureOutcome:
        arguments = dict(call.arguments) if call else {}
        if call is None and goal is not None:
            arguments = {one.name: self.known[one.name] for one in goal.parameters if one.name in self.known}
        return ProcedureOutcome(
            ending, goal.name if goal else "", arguments, None, tuple(why),
            tuple(self.history.calls), dict(self.known), tuple(self._dropped), self._usage,
        )  # fmt: skip

    # -- the model --------------------------------------------------------------------------------------------------

    def _choose(self, question: Question) -> Generator[Request, Any, int]:
        answer = yield from asking(question)
        self._usage += answer.usage
        return answer.number

    def _choose_goal(self) -> Generator[Request, Any, ProcedureTool | None]:
        goals = self.procedure.goals
        request = f"{self.request} I give: {_list_words(self.known)}." if self.known else self.request
        if self.native:
            return (yield from self._take_call(request))
        texts = [*map(_describe_goal, goals), "none of these"]
        question = Question(f"{request}\n\nWhat does the user want?", texts, task=request)
        number = yield from self._choose(question)
        return goals[number - 1] if number <= len(goals) else None

    def _take_call(self, request: str) -> Generator[Request, Any, ProcedureTool | None]:
        """Let the model call a goal. A call of anything else is dropped, and so is a second one."""
        goals = {goal.name: goal for goal in self.procedure.goals}
        offers = [ToolOffer(goal.name, goal.description, close_schema(_write_schema(goal))) for goal in goals.values()]
        answer = yield from asking(TextRequest((_CALL_INSTRUCTION, Message("user", request)), tools=offers))
        self._usage += answer.usage
        chosen = None
        for call in answer.calls:
            if chosen is None and call.name in goals:
                chosen = goals[call.name]
                self._take_arguments(chosen, call.arguments)
            else:
                reason = "a run has one goal" if call.name in goals else "it is no goal"
                self._dropped.append(f"{call.name}({call.arguments}): {reason}")
        return chosen

    def _take_arguments(self, goal: ProcedureTool, written: str) -> None:
        """Take the arguments of a goal over that fit and that the user has stated."""
        schema = _write_schema(goal)
        try:
            given = open_value(json.loads(written or "{}"), schema)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, Mapping):
            self._dropped.append(f"{written}: it is no JSON object")
            return
        for name, value in given.items():
            if value is None or (name in self.known and self.known[name] == value):
                continue
            problem = self._find_misfit(name, value, goal.name)
            if name not in schema["properties"]:
                problem = f"{goal.name} takes no such value"
            elif name in self.known:
                problem = "it is known to be another"
            elif not problem and not is_stated(value, self.request):
                problem = "the user did not state it"
            if problem:
                self._dropped.append(f"{name}={shorten(value)}: {problem}")
            else:
                self.known[name] = value

    # -- the user ---------------------------------------------------------------------------------------------------

    def _ask_for_values(self, goal: ProcedureTool, name: str) -> Generator[Request, Any, None]:
        """Ask the user for a value, and for all others that the goal may need; what is not given is absent."""
        others = sorted(self._list_needed_names(goal) - self.known.keys() - self._absent - {name})
        names = (name, *others)
        reply = yield ValuesRequest(names, f"To go on I need: {', '.join(names)}.")
        given = read_values(reply, names)
        for one, value in given.items():
            if one in self.procedure.names:
                if problem := self._find_misfit(one, value):
                    self._dropped.append(f"{one}={shorten(value)}: {problem}")
                else:
                    self.known.setdefault(one, value)
            else:
                self._others[one] = value
        for one in names:
            if one not in self.known:
                yield from self._choose_value(one)
        self._absent |= {one for one in names if one not in self.known}

    def _choose_value(self, name: str) -> Generator[Request, Any, None]:
        """Let the model choose among the values of the right type that came under other names."""
        kinds = [one.kind for one in find_parameters(self.procedure, name, self._chosen)]
        fitting = {one: value for one, value in self._others.items() if not self._find_misfit(name, value)}
        if not fitting or set(kinds) <= {"any"} or not self.has_model:
            return
        texts = [f"{one}: {value}" for one, value in fitting.items()]
        question = Question(f"{self.request}\n\nWhich of these is the {name}?", [*texts, "none of these"])
        number = yield from self._choose(question)
        if number <= len(fitting):
            self.known[name] = list(fitting.values())[number - 1]

    def _find_misfit(self, name: str, value: JSON, goal: str | None = None) -> str:
        return find_misfit(find_parameters(self.procedure, name, goal or self._chosen), value)

    def _list_needed_names(self, goal: ProcedureTool) -> set[str]:
        """List the values that a run with this goal may need from the user."""
        computed = {name for name, _ in goal.computed}
        names = {one.name for one in goal.parameters if not one.optional and one.name not in computed}
        for owner in self.procedure.walk_owners(goal.name):
            own = {getattr(one, "name", one) for one in owner.parameters} | self.procedure.constants.keys()
            names |= list_names(walk_terms(owner.need)) - own
        return names


def _describe_goal(tool: ProcedureTool) -> str:
    """Describe a goal so that an encoder of sentences can compare it with a request: in words, with what it needs."""
    needs = f" Needs: {_list_words(one.name for one in tool.parameters)}." if tool.parameters else ""
    return f"{_list_words([tool.name])}: {tool.description}{needs}"


def _write_schema(goal: ProcedureTool) -> dict[str, Any]:
    """Write the JSON schema of the arguments of a goal, all of which may be left out."""
    computed = dict(goal.computed)
    types = {one.name: one.kind for one in goal.parameters if one.name not in computed}
    return {
        "type": "object",
        "properties": {
            name: _JSON_TYPES[kind] if isinstance(kind, str) else {"enum": list(kind)} for name, kind in types.items()
        },
    }


def is_stated(value: JSON, text: str) -> bool:
    """Return whether a value is in a text: a text as whole words, a number as a number, a list with all items."""
    if isinstance(value, str):
        words, plain = (" ".join(one.split()).casefold() for one in (value, text))
        return bool(words) and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", plain) is not None
    if isinstance(value, list):
        return bool(value) and all(not isinstance(one, list) and is_stated(one, text) for one in value)
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
        return False
    return Fraction(str(value)) in [Fraction(one.replace(",", "")) for one in _NUMBER.findall(text)]


def _list_words(names: Iterable[str]) -> str:
    return ", ".join(name.replace("_", " ") for name in names)


def read_values(reply: object, names: Sequence[str]) -> dict[str, JSON]:
    """Read the values in what a user replied: an object, a text with a JSON object in it, or the one value itself."""
    if isinstance(reply, Mapping):
        return dict(reply)
    text = str(reply) if reply is not None else ""
    for brace in re.finditer(r"\{", text):
        try:
            return dict(json.JSONDecoder().raw_decode(text, brace.start())[0])
        except ValueError:
            continue
        except RecursionError:  # and so for each brace inside
            break
    return {names[0]: text.strip()} if len(names) == 1 and text.strip() else {}


def find_parameters(procedure: Procedure, name: str, goal: str | None) -> list[ToolParameter]:
    """Return the parameter of a goal with some name; if it has none, those of all tools."""
    own = procedure.tools[goal].parameters if goal is not None and goal in procedure.tools else ()
    every = (one for tool in procedure.tools.values() for one in tool.parameters if one.name == name)
    return [one for one in own if one.name == name] or list(every)


def find_misfit(parameters: Sequence[ToolParameter], value: JSON) -> str:
    """Return why a value is of the type of none of some parameters; empty if it is of one, or there are none."""
    problems = [_find_problem(parameter.kind, value) for parameter in parameters]
    return "" if "" in problems else "; ".join(dict.fromkeys(problems))


def _find_problem(kind: str | tuple[str, ...], value: JSON) -> str:
    if isinstance(kind, tuple):
        return "" if value in kind else f"{shorten(value)} is none of {', '.join(kind)}"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        "text": isinstance(value, str), "number": is_number, "integer": isinstance(value, int) and is_number,
        "boolean": isinstance(value, bool), "date": _is_date(value), "list": isinstance(value, list),
    }  # fmt: skip
    return "" if fits.get(kind, True) else f"{shorten(value)} is no {kind}"


def _is_date(value: JSON) -> bool:
    try:
        return isinstance(value, str) and bool(datetime.fromisoformat(value))
    except ValueError:
        return False
