"""Strategies of procedures: real runs follow them, whatever the world answers, and each of their ways is a real run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import InputError, ResourceNotFound, Undecided
from formal_llm.planning.drivers.strategies import Strategy, mark_way
from formal_llm.procedures import Procedure, ProcedureOutcome, run_procedure
from formal_llm.procedures.foreseeing import describe_ending, follow_run, measure_strategy
from formal_llm.procedures.procedure import ConditionNeed, FactNeed, Need, NeedGroup, NotNeed
from formal_llm.procedures.terms import CallValue
from tests.procedures.procedures_at_random import World, worlds
from tests.strategies import examples


def describe(outcome: ProcedureOutcome) -> str:
    return describe_ending(outcome).replace("x=1", "x=x")


def without_reasons(ending: str) -> str:
    return re.sub(r" \(.*?\)(?=; |$)", "", ending)


#: Conditions on what a check returns, as they are written, and as Python decides them.
CONDITIONS: Mapping[str, Callable[[Any], bool]] = {
    'v == "a"': lambda v: v == "a", 'v != "a"': lambda v: v != "a", 'v == "b"': lambda v: v == "b",
    'v in {"a", "b"}': lambda v: v in ("a", "b"), "v == null": lambda v: v is None,
    "v != null": lambda v: v is not None,
}  # fmt: skip
NUMBERS: Mapping[str, Callable[[Any], bool]] = {
    "v < 2": lambda v: v < 2, "v >= 2": lambda v: v >= 2, "v <= 3.5": lambda v: v <= 3.5, "v == 3": lambda v: v == 3,
    "v in 2..3": lambda v: 2 <= v <= 3,
}  # fmt: skip


@st.composite
def valued_worlds(draw: st.DrawFn) -> tuple[Procedure, Mapping[str, list[Any]]]:
    """A procedure with conditions on the same values, actions that make some results obsolete, and values to return."""
    world = draw(worlds())
    checks = [name for name in world.procedure.tools if name.startswith("check")]
    tables = {name: draw(st.sampled_from([CONDITIONS, NUMBERS])) for name in checks}

    def rewrite(need: Need) -> Need:
        match need:
            case NeedGroup(grouping, items):
                return NeedGroup(grouping, tuple(map(rewrite, items)))
            case NotNeed(inner):
                return NotNeed(rewrite(inner))
            case FactNeed(name) if name.startswith("fact_check"):
                return draw_condition(name.removeprefix("fact_"))
            case ConditionNeed(CallValue(tool)) if tool in tables:
                return draw_condition(tool)
        return need

    def draw_condition(tool: str) -> Need:
        text = draw(st.sampled_from([*tables[tool]]))
        procedure = Procedure.from_string(f"check {tool}(x)\ngoal action g(x)\n    {tool}(x).{text}")
        return procedure.tools["g"].need

    changes = st.lists(st.sampled_from(checks), unique=True).map(tuple) if checks else st.just(())
    tools = {
        name: replace(tool, need=rewrite(tool.need), changes=draw(changes) if tool.acts else None)
        for name, tool in world.procedure.tools.items()
    }
    values = {
        name: ["a", "b", "c", None, "missing", "fails"] if tables[name] is CONDITIONS else [1, 2, 2.5, 3, 4, "fails"]
        for name in checks
    }
    return replace(world.procedure, tools=tools), values


@examples(400)
@given(valued_worlds(), st.data())
def test_a_run_follows_the_strategy_whatever_values_it_gets(
    drawn: tuple[Procedure, Mapping[str, list[Any]]], data: st.DataObject
) -> None:
    procedure, values = drawn
    strategy = procedure.strategy("goal", ["x"])
    assert Strategy.from_json(strategy.to_json()) == strategy
    for _ in range(5):
        returned: dict[str, list[object]] = {name: [] for name in procedure.tools}

        def make(name: str, returned: dict[str, list[object]] = returned) -> Callable[..., object]:
            def work(x: object) -> object:
                value = data.draw(st.sampled_from(values.get(name, [True, True, False, "fails"])))
                returned[name].append(value)
                if value == "fails":
                    raise ValueError
                return {} if value == "missing" else {"v": value} if name in values else value

            return work

        tools = {name: make(name) for name in procedure.tools}
        outcome = run_procedure(procedure, "", None, tools, goal="goal", known={"x": 1})
        branch, word = strategy.start, [*strategy.start.word]
        while (node := strategy.nodes[branch.node]).branches:
            answer = answer_in(node.question, returned[node.question.partition("(")[0]], word)
            [branch] = [one for one in node.branches if answer in one.text.split(" or ")]
            word += branch.word
        assert word == [made.call.tool for made in outcome.calls]
        assert without_reasons(node.question) == without_reasons(describe(outcome)), (
            f"{procedure}\n{strategy}\n{outcome}"
        )


def answer_in(question: str, returned: list[object], word: list[str]) -> str:
    """What the world has answered: by the last result of the tool, as it was at that place of the run."""
    value = returned[word.count(question.partition("(")[0]) - 1]
    if question.startswith("goal("):
        return "it fails" if value == "fails" else "yes" if value else "no"
    if question.endswith(" is ok"):
        return "yes" if value is True else "no"
    if value in ("fails", "missing"):
        return "unclear"
    return "yes" if {**CONDITIONS, **NUMBERS}[question.partition(").")[2]](value) else "no"


@examples(200)
@given(worlds())
def test_each_way_of_a_strategy_is_a_run(world: World) -> None:
    strategy = world.procedure.strategy("goal", ["x"])
    plans = list(strategy.plans())
    assert len(plans) == strategy.count()
    for plan in plans[:50]:
        replies = dict.fromkeys(world.procedure.tools, "yes")
        replies |= {question.partition("(")[0]: texts.split(" or ")[0] for question, texts in plan.answers}
        tools = {name: make_tool(reply) for name, reply in replies.items()}
        outcome = run_procedure(world.procedure, "", None, tools, goal="goal", known={"x": 1})
        assert [made.call.tool for made in outcome.calls] == list(plan.word)
        assert without_reasons(plan.ending) == without_reasons(describe(outcome))


def make_tool(reply: str) -> Callable[..., object]:
    def work(x: object) -> object:
        if reply in ("unclear", "it fails"):
            raise ValueError
        return reply == "yes"

    return work


DESK = """
check find(order)
check slow(order)
    cost 3
action sign(order)
    changes nothing
    approved
action close(order, code)
    changes find
goal action pay(order, amount)
    all of
        any of
            find(order).state == "new"
            slow(order) contains "new"
        closed(order)
        signed(order)
        amount <= find(order).total
goal action never(order)
    all of
        find(order).state == "a"
        find(order).state == "b"
fact closed(order): close(order, code) is ok
fact signed(order): sign(order) is ok
fact unused(order): find(order) is ok
"""


def test_an_action_makes_results_obsolete_and_people_decide() -> None:
    strategy = Procedure.from_string(DESK).strategy("pay", ["order"])
    plans = [*strategy.plans()]
    done = [plan for plan in plans if plan.ending == "done: pay"]
    # What another source has shown is not looked up again for the state, but for the total.
    assert ("find", "slow", "close", "find", "slow", "sign", "pay") not in {plan.word for plan in done}
    assert all(plan.word.count("find") == 2 for plan in done)
    assert {(question, answer) for plan in plans for question, answer in plan.answers} >= {
        ("the user gives code", "no"), ("sign(order) is approved", "no"), ("pay(order, amount) succeeds", "it fails"),
    }  # fmt: skip
    assert "declined: close(order, code) cannot be established (code is not known)" in {plan.ending for plan in plans}


def test_what_an_action_will_make_obsolete_is_not_forgotten() -> None:
    text = """
check a(x)
check b(x)
    cost 2
check c(x)
    cost 9
action act(x)
    changes b
goal action g(x)
    all of
        any of
            a(x)
            b(x)
        c(x)
        acted(x)
fact acted(x): act(x) is ok
"""
    plans = Procedure.from_string(text).strategy("g", ["x"]).plans()
    words = {plan.word for plan in plans if plan.ending == "done: g"}
    assert words == {("a", "c", "act", "g"), ("a", "b", "c", "act", "b", "g")}


def test_conditions_on_one_value_do_not_contradict_each_other() -> None:
    strategy = Procedure.from_string(DESK).strategy("never", ["order"])
    assert not any(plan.ending.startswith("done") for plan in strategy.plans())
    assert str(strategy).count("(the world decides)") == 1


def test_a_model_decides_between_ways_where_there_is_one() -> None:
    procedure = Procedure.from_string(
        "check a(x)\ncheck b(x)\ngoal action g(x)\n    any of\n        a(x)\n        b(x)"
    )
    assert "the model chooses (the model decides)" in str(procedure.strategy("g", ["x"], has_model=True))
    assert str(procedure.strategy("g", ["x"])).startswith("a(x)\n")


def test_the_most_calls_and_the_greatest_cost() -> None:
    procedure = Procedure.from_string(DESK)
    assert measure_strategy(procedure, procedure.strategy("never", ["order"])) == (1, 1)
    calls, cost = measure_strategy(procedure, procedure.strategy("pay", ["order"]))
    words = [plan.word for plan in procedure.strategy("pay", ["order"]).plans()]
    assert calls == max(map(len, words))
    assert cost == max(sum(procedure.tools[name].cost for name in word) for word in words)


def test_a_run_is_found_in_its_strategy() -> None:
    procedure = Procedure.from_string(DESK)
    tools: dict[str, Callable[..., object]] = {
             "find": lambda order: {"state": "new", "total": 5}, "slow": lambda order: [], "pay": lambda **_: True,
             "sign": lambda order: True, "close": lambda order, code: True, "never": lambda order: True}  # fmt: skip
    known = {"order": 1, "amount": 7, "code": 3}
    outcome = run_procedure(procedure, "", None, tools, goal="pay", known=known, approve=lambda _: True)
    strategy = procedure.strategy("pay", known)
    followed = follow_run(procedure, strategy, outcome, known)
    assert strategy.nodes[followed.node].question == describe_ending(outcome)
    assert ("amount <= find(order).total", "no", (0,)) in followed.answers
    begun = follow_run(procedure, strategy, replace(outcome, calls=()), known)
    assert begun.taken == ()
    assert begun.node == strategy.start.node
    assert strategy.draw(followed.taken).count("◀") == len(followed.taken)
    marked = [box.id for box in mark_way(strategy, followed.taken, 60).nodes if box.tone == "marked"]
    assert f"node {followed.node}" in marked


def test_what_cannot_be_foreseen_is_an_error() -> None:
    procedure = Procedure.from_string(DESK)
    with pytest.raises(InputError, match="goals are pay, never"):
        procedure.strategy("close")
    with pytest.raises(ResourceNotFound):
        procedure.strategy("pay", ["ordre"])
    with pytest.raises(Undecided, match="more than 3 decisions"):
        procedure.strategy("pay", most=3)
