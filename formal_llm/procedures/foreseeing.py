"""The strategy of a goal: what a run does next, whatever calls return and whatever people answer.

A run is carried out with calls that return nothing yet. Where it depends on a result, the world decides: a condition
holds, does not hold, or cannot be determined. Each answer is followed with a copy of the run, so a strategy has the
steps of real runs. Conditions on the same value that cannot hold together are not both answered yes. Names stand for
different values: that two of them happen to be the same is not foreseen.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any, Self, TypeAlias

from formal_llm.errors import ResourceNotFound, Undecided
from formal_llm.guard.rules.data import Undetermined, Value, to_number
from formal_llm.guard.rules.expressions import BinaryOperation, Constant, Expression, FieldPath, FunctionCall, Scope
from formal_llm.llms.question import Question
from formal_llm.planning.drivers.strategies import Strategy, StrategyBranch, StrategyNode
from formal_llm.planning.json_data import JSON
from formal_llm.procedures.assessing import AbsentValue, Assessment, Assessor, NeedScope, ValueStep
from formal_llm.procedures.procedure import (
    ConditionNeed,
    FactNeed,
    Need,
    NeedGroup,
    NotNeed,
    Procedure,
    ProcedureTool,
    list_owners,
    walk_need,
)
from formal_llm.procedures.record import Call, CallHistory, MadeCall
from formal_llm.procedures.run import (
    ApprovalRequest,
    ProcedureOutcome,
    ProcedureRun,
    Request,
    ToolRequest,
    ValuesRequest,
)
from formal_llm.procedures.terms import CallSucceeds, CallValue, bind_names

#: The answers of the world: of a condition that it holds, does not hold, or cannot be determined.
YES, NO, UNCLEAR = "yes", "no", "unclear"
UNCLEAR_REASON = "a value is missing or cannot be compared"
#: The signs that :meth:`_Foresight._list_answers` understands.
_SIGNS = ("==", "!=", "<", "<=", ">", ">=", "in")


#: A call of a run: its tool, what equal calls share, and how many equal calls there were with it.
_CallKey: TypeAlias = tuple[str, str, int]
#: What identifies a decision: its kind or its condition, and the calls or names that it is about.
_DecisionKey: TypeAlias = tuple[str, tuple[tuple[Any, ...], ...]]
_GOAL_KEY: _DecisionKey = ("goal", ())


class ForeseenValue(str):
    """A value that is not known yet: an expression of the values that a user gives and of the results of calls."""

    def __new__(cls, expression: Expression, calls: Sequence[_CallKey] = ()) -> Self:
        """Foresee a value that may depend on the results of calls."""
        self = super().__new__(cls, f"‹{expression}›{sorted(one for one in calls if one[2] > 1) or ''}")
        self.expression = expression
        return self

    expression: Expression

    def __repr__(self) -> str:
        return str(self.expression)


@dataclass(frozen=True)
class Decision:
    """What others decide in a run.

    Attributes:
        key: identifies it in the run.
        question: what is decided.
        answers: the possible answers.
        is_world: whether the world decides, and not the model.
        subject: what it is about: a condition, the name of a value, or a call.
    """

    key: _DecisionKey
    question: str
    answers: tuple[str, ...] = (YES, NO)
    is_world: bool = True
    subject: Expression | str | Call | None = None


class _Undecided(Exception):
    def __init__(self, decision: Decision) -> None:
        self.decision = decision


class ForeseenRun(ProcedureRun):
    """A run in which all that others decide is given beforehand, and what is not yet given is a :class:`Decision`.

    Args:
        known: the names of the values that are known from the start.
        has_model: whether a model chooses between ways that cost the same; else the first is taken.
    """

    def __init__(self, procedure: Procedure, goal: str, known: Collection[str], *, has_model: bool = False) -> None:
        for name in known:
            if name not in procedure.names:
                raise ResourceNotFound("value", name, sorted(procedure.names))
        super().__init__(procedure, "", None, goal, has_model=has_model)
        self.known.update({name: ForeseenValue(FieldPath((name,))) for name in known})
        self.world: dict[_DecisionKey, str] = {}
        self.conditions: dict[_DecisionKey, Expression] = {}
        self.asked: frozenset[str] = frozenset()

    def _find_misfit(self, name: str, value: JSON, goal: str | None = None) -> str:
        # A value that is not known yet is taken to fit.
        return "" if isinstance(value, ForeseenValue) else super()._find_misfit(name, value, goal)

    def fork(self, decision: Decision, answer: str) -> ForeseenRun:
        """Return a copy in which a decision is made."""
        other = copy(self)
        other.known, other.preferred = dict(self.known), dict(self.preferred)
        other.history = CallHistory(self.history.tools, list(self.history.calls))
        other.conditions = dict(self.conditions)
        if isinstance(decision.subject, Expression):
            other.conditions[decision.key] = decision.subject
        other.world = {**self.world, decision.key: answer}
        return other

    def decide(self, decision: Decision) -> str:
        """Return the answer to a decision."""
        if len(decision.answers) == 1:
            self.world[decision.key] = decision.answers[0]
        if decision.key not in self.world:
            raise _Undecided(decision)
        return self.world[decision.key]

    @property
    def state(self) -> Hashable:
        """What decides how it goes on: of what was found only what open parts of the need may depend on."""
        traced = _TracingForesight(self)
        goal = self.procedure.tools[str(self.goal)]
        traced.assess_tool(goal, {})
        needs = [*traced.needs, *(ConditionNeed(one) for _, one in goal.computed)]
        owners = [*self.procedure.walk_owners(*traced.tools, *(name for need in needs for name in list_owners(need)))]
        tools = {one.name for one in owners}
        made, ways = tuple(map(self.identify, self.history.calls)), tuple(self.preferred.items())
        if self._may_forget(tools):
            return made, self.asked, frozenset(self.world.items()), ways
        leaves = [leaf for need in (*needs, *(one.need for one in owners)) for leaf in walk_need(need)]
        is_plain = any(isinstance(leaf, ConditionNeed) and not list_owners(leaf) for leaf in leaves)
        findings = frozenset(
            (key, answer)
            for key, answer in self.world.items()
            if key[0] == "value" or (is_plain and not key[1]) or any(call[0] in tools for call in key[1])
        )
        return tuple(traced.trace), frozenset(call for call in made if call[0] in tools), self.asked, findings, ways

    def _may_forget(self, names: Collection[str]) -> bool:
        """Return whether an action among the tools that may still be called makes a result or a fact obsolete."""
        tools = [self.procedure.tools[name] for name in names if name in self.procedure.tools and name != self.goal]
        ends = {
            one.tool
            for fact in self.procedure.facts.values()
            if (action := self.procedure.find_action(fact))
            and any(made.call.tool == action.tool for made in self.history.calls)
            for one in fact.until
        }
        return any(one.acts and (one.changes != () or one.name in ends) for one in tools)

    def identify(self, made: MadeCall) -> _CallKey:
        """Identify a call of the run, whatever other calls came before it."""
        place = next(place for place, one in enumerate(self.history.calls) if one is made)
        times = sum(one.call == made.call for one in self.history.calls[: place + 1])
        return made.call.tool, made.call.key, times

    def has_value(self, name: str) -> bool:
        """Return whether the user gives a value."""
        return self.decide(Decision(("value", ((name,),)), f"the user gives {name}", subject=name)) == YES

    def advance(self) -> tuple[list[Request], Decision | ProcedureOutcome]:
        """Go on to the next decision or the end; return what was done until then, and that decision or the outcome."""
        done: list[Request] = []
        steps = self.steps()
        reply: object = None
        try:
            while True:
                asked = steps.send(reply)
                if isinstance(asked, ApprovalRequest):
                    times = sum(made.call == asked.call for made in self.history.calls)
                    key = ("approved", ((asked.call.tool, asked.call.key, times),))
                    answer = self.decide(Decision(key, f"{_format_call(asked.call)} is approved", subject=asked.call))
                    reply = True if answer == YES else "no"
                    continue
                is_goal = isinstance(asked, ToolRequest) and asked.call.tool == self.goal
                if not is_goal or _GOAL_KEY not in self.world:
                    done.append(asked)
                if isinstance(asked, ToolRequest):
                    reply = self._foresee_result(asked.call)
        except _Undecided as undecided:
            return done, undecided.decision
        except StopIteration as stopped:
            return done, stopped.value

    def _foresee_result(self, call: Call) -> MadeCall:
        if call.tool != self.goal:
            return MadeCall(call, "foreseen")
        answer = self.decide(Decision(_GOAL_KEY, f"{_format_call(call)} succeeds", (YES, NO, "it fails"), subject=call))
        return MadeCall(call, answer == YES, "it fails" if answer == "it fails" else "")

    def _make_assessor(self) -> Assessor:
        return _Foresight(self)

    def _ask_for_values(self, goal: ProcedureTool, name: str) -> Generator[Request, Any, None]:
        others = sorted(self._list_needed_names(goal) - self.known.keys() - self.asked - {name})
        names = (name, *others)
        optional = [one.name for one in goal.parameters if one.optional and one.name in names]
        given = [one for one in optional if self.has_value(one)]
        yield ValuesRequest(names, f"ask for {', '.join(names)}")
        self.asked |= set(names)
        self.known |= {one: ForeseenValue(FieldPath((one,))) for one in given}

    def _choose(self, question: Question) -> Generator[Request, Any, int]:
        texts = tuple(option.text for option in question.options)
        answer = self.decide(Decision(("way", (texts,)), "the model chooses", texts, is_world=False))
        yield from ()  # it asks nobody
        return texts.index(answer) + 1


class _Foresight(Assessor):
    """Determines what is known about needs where calls have been made whose results the world has yet to decide."""

    def __init__(self, run: ForeseenRun) -> None:
        super().__init__(run.procedure, run.history, run.known, frozenset(), run.preferred)
        self._run = run
        self._condition: Expression | None = None

    def look_up(self, name: str, owned: Mapping[str, Value]) -> Value:
        if name not in owned and name not in self.procedure.constants:
            if name in self._computed:
                return self._compute(self._computed[name], self._make_scope(owned))
            if name not in self.known and name in self._run.asked:
                if not self._run.has_value(name):
                    raise AbsentValue(name)
                return ForeseenValue(FieldPath((name,)))
        return super().look_up(name, owned)

    def _assess_condition(self, condition: Expression, owned: Mapping[str, Value], leaf: str) -> Assessment:
        self._condition = condition
        return super()._assess_condition(condition, owned, leaf)

    def _is_shown_by(self, condition: Expression, values: Mapping[str, Value], made: MadeCall) -> bool:
        self._fixed, self._condition = made, condition
        try:
            return self._compute(condition, self._make_scope(values)) is True
        except Undetermined:
            return False
        finally:
            self._fixed = None

    def _compute(self, expression: Expression, scope: Scope) -> Value:
        assert isinstance(scope, NeedScope)
        before, self._used = self._used, []
        try:
            absent = self._find_absent(expression, scope)
            calls = tuple(sorted({self._run.identify(made) for made in self._used}))
        finally:
            self._used = [*before, *self._used]
        if isinstance(expression, CallSucceeds) and expression is self._condition:
            return self._has_worked(self._find_made(expression.call, scope))
        bound = self._bind(expression, scope.owned)
        if not any(isinstance(term, CallValue | FieldPath) and not self._is_constant(term) for term in bound.walk()):
            return bound.evaluate_in(self._make_scope({}))
        if expression is not self._condition:
            if absent is not None:
                raise absent
            return ForeseenValue(bound, calls)
        return self._judge(bound, calls, absent)

    def _find_absent(self, expression: Expression, scope: NeedScope) -> AbsentValue | None:
        """Look up all terms; return the error of a value that the user does not have."""
        found = None
        for term in expression.walk():
            try:
                if isinstance(term, CallValue):
                    self._find_made(term, scope)
                elif isinstance(term, FieldPath):
                    self.look_up(str(term.steps[0]), scope.owned)
            except AbsentValue as error:
                found = error
        return found

    def _bind(self, expression: Expression, owned: Mapping[str, Value]) -> Expression:
        bound = bind_names(expression, {name: _as_expression(value) for name, value in owned.items()})
        own = {name: one for name, one in self._computed.items() if name not in owned}
        return bind_names(bound, own) if own else bound

    def _is_constant(self, term: Expression) -> bool:
        return isinstance(term, FieldPath) and term.steps[0] in self.procedure.constants

    def _judge(self, condition: Expression, calls: tuple[_CallKey, ...], absent: AbsentValue | None) -> bool:
        """Return whether a condition holds.

        Raises:
            Undetermined: that cannot be determined.
        """
        allows_absence = [
            one for one in condition.walk() if isinstance(one, FunctionCall) and one.name in _ABSENCE_TESTS
        ]
        if absent is not None and not allows_absence:
            raise absent
        if absent is not None and condition in allows_absence:
            return condition == allows_absence[0] and allows_absence[0].name == "missing"
        key = (str(condition), calls)
        answer = self._run.world.get(key)
        if answer is None:
            answers = (YES, NO) if condition in allows_absence else self._list_answers(condition, calls)
            answer = self._run.decide(Decision(key, key[0], answers, subject=condition))
        if answer == UNCLEAR:
            raise absent or Undetermined(UNCLEAR_REASON)
        return answer == YES

    def _has_worked(self, made: MadeCall) -> bool:
        key = ("ok", (self._run.identify(made),))
        text = f"{_format_call(made.call)} is ok"
        return self._run.decide(Decision(key, text, subject=made.call)) == YES

    def _list_answers(self, condition: Expression, calls: tuple[_CallKey, ...]) -> tuple[str, ...]:
        """List the answers that do not contradict earlier ones about the same value.

        Values are tried out for it: those that conditions compare it with, those in between, and others.
        """
        left = _find_left(condition)
        others = [
            (one, self._run.world[key])
            for key, one in self._run.conditions.items()
            if key == (str(one), calls) and _find_left(one) == left
        ]
        values = self._find_constants([condition, *(one for one, _ in others)]) if others else None
        if values is None:
            return (YES, NO, UNCLEAR)
        tried = [*_spread_values(values), "\0", True, False, None, [], _MISSING]
        found = {
            self._try_value(condition, value)
            for value in tried
            if all(self._try_value(one, value) == answer for one, answer in others)
        }
        return tuple(one for one in (YES, NO, UNCLEAR) if one in found) or (YES, NO, UNCLEAR)

    def _find_constants(self, conditions: Sequence[Expression]) -> list[Value] | None:
        """Find the values that conditions compare with; None if one compares in another way."""
        found: list[Value] = []
        for one in conditions:
            if isinstance(one, BinaryOperation):
                leaves = [term for term in one.right.walk() if not term.parts]
                if one.sign not in _SIGNS or not all(
                    isinstance(term, Constant) or self._is_constant(term) for term in leaves
                ):
                    return None
                found += [term.evaluate_in(self._make_scope({})) for term in leaves]
        return (
            found if all(map(_is_plain, found)) and len({type(one) for one in found if one is not None}) < 2 else None
        )

    def _try_value(self, condition: Expression, value: Value) -> str:
        """Answer a condition as if its left side had a value."""
        if value is _MISSING:
            return UNCLEAR
        constant = Constant(value)
        tried = replace(condition, left=constant) if isinstance(condition, BinaryOperation) else constant
        found = tried.is_satisfied(self._make_scope({}))
        return UNCLEAR if found is None else YES if found else NO


class _TracingForesight(_Foresight):
    """Records which parts of a need are still open, and what the others have shown."""

    def __init__(self, run: ForeseenRun) -> None:
        super().__init__(run)
        self.trace: list[Hashable] = []
        self.needs: list[Need] = []
        self.tools: set[str] = set()
        self._undecided = 0

    def assess(self, need: Need, owned: Mapping[str, Value], *, negated: bool = False) -> Assessment:
        before, undecided = len(self.trace), self._undecided
        try:
            found = super().assess(need, owned, negated=negated)
        except _Undecided:
            found = Assessment("open", (ValueStep(""),))
            self._undecided += 1
        if found.state != "open" and undecided == self._undecided:
            shown = () if found.state == "holds" else tuple((one.leaf, one.absent) for one in found.findings)
            self.trace[before:] = [(found.state, shown)]
        elif isinstance(need, NeedGroup):
            self.trace.append((need.grouping, negated, len(self.trace) - before))
            self.needs += [need] if need.grouping in ("in order", "first of") else []
        elif not isinstance(need, NotNeed) and (len(self.trace) == before or not self._is_looked_up(need)):
            self.trace[before:] = [(str(need), tuple((name, str(value)) for name, value in owned.items()), negated)]
            self.needs.append(need)
            terms = (term for value in owned.values() for term in _as_expression(value).walk())
            self.tools |= {term.tool for term in terms if isinstance(term, CallValue)}
        return found

    def _is_looked_up(self, need: Need) -> bool:
        return isinstance(need, FactNeed) and self.procedure.find_action(self.procedure.facts[need.fact]) is None


_MISSING = object()
_ABSENCE_TESTS = ("has", "missing", "holds")


def _find_left(condition: Expression) -> Expression:
    return condition.left if isinstance(condition, BinaryOperation) else condition


def _is_plain(value: Value) -> bool:
    """Return whether a value is compared like itself only: a text that is a number is compared like one."""
    if isinstance(value, str):
        try:
            to_number(value)
        except Undetermined:
            return True
        return False
    return value is None or (isinstance(value, bool | Fraction | timedelta | date) and not isinstance(value, datetime))


def _spread_values(values: Sequence[Value]) -> list[Value]:
    """Return values, and for those that have an order values before, between and after them."""
    steps: dict[type, Any] = {Fraction: 1, timedelta: timedelta(microseconds=1), date: timedelta(days=1)}
    found = list(values)
    ordered: list[Any] = sorted({one for one in values if type(one) in steps})
    for place, one in enumerate(ordered):
        step = steps[type(one)]
        if isinstance(one, Fraction) and place + 1 < len(ordered):
            found.append((one + ordered[place + 1]) / 2)
        found += [one - step, one + step]
    return found


def _as_expression(value: Value) -> Expression:
    return value.expression if isinstance(value, ForeseenValue) else Constant(value)


def _format_call(call: Call) -> str:
    return f"{call.tool}({', '.join(str(_as_expression(value)) for value in call.arguments.values())})"


def describe_step(asked: Request) -> str:
    """Describe what is done in a step of a strategy."""
    return _format_call(asked.call) if isinstance(asked, ToolRequest) else getattr(asked, "text", "")


def describe_ending(outcome: ProcedureOutcome) -> str:
    """Describe how a run ends, and why: what failed, or the first that cannot be established."""
    if outcome.ending == "done":
        return f"done: {outcome.goal}"
    failed = [one for one in outcome.why if one.state == "refuted" and outcome.ending == "declined"]
    failed = failed or [one for one in outcome.why if one.state != "refuted"][:1]
    why = dict.fromkeys(str(replace(one, values={}, calls=())) for one in failed)
    return f"{outcome.ending}: {'; '.join(why)}"


# -- the strategy ------------------------------------------------------------------------------------------------------


def build_strategy(
    procedure: Procedure, goal: str, known: Collection[str], has_model: bool = False, most: int = 10_000
) -> Strategy:
    """Build the strategy of a goal; see :meth:`Procedure.strategy`."""
    builder = _GoalStrategyBuilder(most)
    start = builder.follow(ForeseenRun(procedure, goal, known, has_model=has_model), "")
    given = f" (known: {', '.join(known)})" if known else ""
    return Strategy(f"{goal}{given}", tuple(builder.nodes), start)


def measure_strategy(procedure: Procedure, strategy: Strategy) -> tuple[int, float]:
    """Return the most calls of a way of a strategy, and the greatest cost of one."""
    calls: list[int] = []
    costs: list[float] = []
    for node in (*strategy.nodes, StrategyNode("", False, (strategy.start,))):
        words = [[procedure.tools[name].cost for name in branch.word] for branch in node.branches]
        ends = [branch.node for branch in node.branches]
        calls.append(max((len(word) + calls[end] for word, end in zip(words, ends, strict=True)), default=0))
        costs.append(max((sum(word) + costs[end] for word, end in zip(words, ends, strict=True)), default=0))
    return calls[-1], costs[-1]


@dataclass(frozen=True)
class FollowedRun:
    """Where a run is in a strategy.

    Attributes:
        answers: what was decided, with the answer and the numbers of the calls that showed it.
        taken: the branches taken, each as the number of its node and its place there.
        node: the node that was reached.
    """

    answers: tuple[tuple[str, str, tuple[int, ...]], ...]
    taken: tuple[tuple[int, int], ...]
    node: int


def follow_run(
    procedure: Procedure,
    strategy: Strategy,
    outcome: ProcedureOutcome,
    known: Collection[str],
    *,
    has_model: bool = False,
) -> FollowedRun:
    """Find the way of a run through the strategy of its goal, as far as its calls reach.

    Args:
        procedure: the procedure.
        strategy: its strategy for the goal, with these ``known`` and ``has_model``.
        outcome: the run.
        known: the names of the values that were known from its start.
        has_model: whether a model chose between ways.
    """
    run = ForeseenRun(procedure, outcome.goal, known, has_model=has_model)
    answers, branch, taken = [], strategy.start, []
    while isinstance(decision := run.advance()[1], Decision):
        answer = _answer_decision(run, decision, outcome)
        if answer is None:
            break
        made = [run.identify(one) for one in run.history.calls]
        answers.append((decision.question, answer, tuple(made.index(one) for one in decision.key[1] if one in made)))
        run = run.fork(decision, answer)
        node = strategy.nodes[branch.node]
        if node.question == decision.question:  # else the answer does not matter
            place = next(at for at, one in enumerate(node.branches) if answer in one.text.split(" or "))
            taken.append((branch.node, place))
            branch = node.branches[place]
    return FollowedRun(tuple(answers), tuple(taken), branch.node)


def _answer_decision(run: ForeseenRun, decision: Decision, outcome: ProcedureOutcome) -> str | None:
    """Answer a decision as a run did; None if it had not come so far."""
    place, kind = len(run.history.calls), decision.key[0]
    made = outcome.calls[place] if place < len(outcome.calls) else None
    if isinstance(decision.subject, Expression):
        history = CallHistory(run.procedure.tools, list(outcome.calls[:place]))
        absent = run.procedure.names - outcome.known.keys() - run.known.keys()
        assessor = Assessor(run.procedure, history, outcome.known, absent)
        found = assessor.assess(ConditionNeed(decision.subject), {})
        return {"holds": YES, "refuted": NO, "stuck": UNCLEAR}.get(found.state)
    if kind == "ok":
        at = next(at for at, one in enumerate(run.history.calls) if run.identify(one) == decision.key[1][0])
        return None if at >= len(outcome.calls) else YES if outcome.calls[at].succeeded else NO
    if kind == "value":
        return YES if decision.subject in outcome.known else NO
    if kind == "approved":
        return YES if made is not None else NO
    if made is None:
        return None
    if kind == "way":
        return next((one for one in decision.answers if one.partition("(")[0] == made.call.tool), None)
    return YES if made.succeeded else "it fails" if made.error else NO


class _GoalStrategyBuilder:
    def __init__(self, most: int) -> None:
        self.nodes: list[StrategyNode] = []
        self._most = most
        self._numbers: dict[StrategyNode, int] = {}
        self._followed: dict[Hashable, StrategyBranch] = {}

    def follow(self, run: ForeseenRun, text: str) -> StrategyBranch:
        """Follow a run to its ends; return what follows the answer with this text."""
        done, found = run.advance()
        steps = map(describe_step, done)
        word = (asked.call.tool for asked in done if isinstance(asked, ToolRequest))
        after = self._add_end(found) if isinstance(found, ProcedureOutcome) else self._decide(run, found)
        return StrategyBranch(text, (*steps, *after.steps), (*word, *after.word), (), after.node)

    def _decide(self, run: ForeseenRun, decision: Decision) -> StrategyBranch:
        key = (decision.key, run.state)
        if key not in self._followed:
            if len(self._followed) >= self._most:
                raise Undecided(
                    f"the strategy of {run.goal} has more than {self._most:,} decisions; name more of the values that "
                    "are known, or divide the goal"
                )
            self._followed[key] = StrategyBranch("", (), (), (), 0)
            merged: dict[StrategyBranch, list[str]] = {}
            for answer in decision.answers:
                branch = self.follow(run.fork(decision, answer), "")
                merged.setdefault(branch, []).append(answer)
            branches = tuple(replace(branch, text=" or ".join(texts)) for branch, texts in merged.items())
            if len(branches) == 1:  # it does not matter
                self._followed[key] = replace(branches[0], text="")
            else:
                node = self._add_node(StrategyNode(decision.question, decision.is_world, branches))
                self._followed[key] = StrategyBranch("", (), (), (), node)
        return self._followed[key]

    def _add_end(self, outcome: ProcedureOutcome) -> StrategyBranch:
        return StrategyBranch("", (), (), (), self._add_node(StrategyNode(describe_ending(outcome), False, ())))

    def _add_node(self, node: StrategyNode) -> int:
        if node not in self._numbers:
            self._numbers[node] = len(self.nodes)
            self.nodes.append(node)
        return self._numbers[node]
