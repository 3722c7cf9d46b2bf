from __future__ import annotations

from hypothesis import assume, given

from formal_llm.procedures import FactNeed, NeedGroup, Procedure, check_evidence, run_procedure, write_evidence
from formal_llm.procedures.assessing import Assessor, CallStep, ValueStep, WayStep
from formal_llm.procedures.procedure import walk_need
from formal_llm.procedures.record import Call, CallHistory, MadeCall
from tests.procedures.procedures_at_random import World, is_allowed, worlds
from tests.strategies import examples

TEXT = """
check stock(item) "How many there are."
check price(item, shop = "main") "What it costs."
action log_in(user, password)
    changes nothing
action log_out(user)
    changes nothing
goal action buy(user, item, money)
    all of
        logged_in(user)
        stock(item) > 0
        affordable(item, money)
fact logged_in(user): log_in(user, password) is ok until log_out(user)
fact affordable(item, money): price(item) <= money
"""


def make_assessor(
    known: dict[str, object] | None = None, *made: MadeCall, absent: frozenset[str] = frozenset()
) -> Assessor:
    procedure = Procedure.from_string(TEXT)
    return Assessor(procedure, CallHistory(procedure.tools, list(made)), known or {}, absent)  # type: ignore[arg-type]


def assess(assessor: Assessor, **values: object):
    return assessor.assess_tool(assessor.procedure.tools["buy"], values)


KNOWN = {"user": "ada", "item": "lamp", "money": 20, "password": "x"}
LOGIN = MadeCall(Call("log_in", {"user": "ada", "password": "x"}), True)
STOCK = MadeCall(Call("stock", {"item": "lamp"}), 3)
PRICE = MadeCall(Call("price", {"item": "lamp", "shop": "main"}), 19.99)


def test_all_that_is_open_is_a_step_and_values_are_asked_for() -> None:
    found = assess(make_assessor())
    assert found.state == "open"
    assert {str(step) for step in found.steps} == {f"ask for {name}" for name in ("user", "item", "money")}
    found = assess(make_assessor(KNOWN))
    assert [type(step) for step in found.steps] == [CallStep] * 3
    assert {step.call.tool for step in found.steps if isinstance(step, CallStep)} == {"log_in", "stock", "price"}


def test_results_establish_and_refute() -> None:
    assert assess(make_assessor(KNOWN, LOGIN, STOCK, PRICE)).state == "holds"
    dear = MadeCall(PRICE.call, 21)
    found = assess(make_assessor(KNOWN, LOGIN, dear))
    assert found.state == "refuted"  # the stock is not looked at any more
    assert [finding.leaf for finding in found.findings] == ["price(item) <= money"]
    assert found.findings[0].calls == (dear,)
    assert found.findings[0].values == {"item": "lamp", "money": 20}


def test_a_fact_of_an_action_ends() -> None:
    out = MadeCall(Call("log_out", {"user": "ada"}), True)
    other = MadeCall(Call("log_out", {"user": "bob"}), True)
    assert assess(make_assessor(KNOWN, LOGIN, STOCK, PRICE, other)).state == "holds"
    ended = assess(make_assessor(KNOWN, LOGIN, STOCK, PRICE, out))
    assert ended.state == "refuted"  # the same call was made, and would not establish it anew by itself
    again = assess(make_assessor(KNOWN, LOGIN, out, LOGIN, STOCK, PRICE))
    assert again.state == "holds"


def test_a_wrong_password_refutes_and_a_missing_one_is_the_reason() -> None:
    wrong = MadeCall(LOGIN.call, False)
    assert assess(make_assessor(KNOWN, wrong)).state == "refuted"
    known = {name: value for name, value in KNOWN.items() if name != "password"}
    found = assess(make_assessor(known, absent=frozenset({"password"})))
    assert found.state == "stuck"
    assert found.findings[0].absent == "password"
    asked = assess(make_assessor(known))
    assert ValueStep("password") in asked.steps


def test_an_action_makes_results_obsolete() -> None:
    procedure = Procedure.from_string(
        "check a(x)\ncheck b(x)\naction c(x)\n    changes a\naction d(x)\ngoal action g(x)"
    )
    a, b = MadeCall(Call("a", {"x": 1}), True), MadeCall(Call("b", {"x": 1}), True)
    for tool, left in (("c", [None, b]), ("d", [None, None])):
        history = CallHistory(procedure.tools, [a, b, MadeCall(Call(tool, {"x": 1}), True)])
        assert [history.find_result(one.call) for one in (a, b)] == left


def test_equally_cheap_ways_are_a_choice_and_cheaper_ones_are_not() -> None:
    text = "check a(x)\ncheck b(x)\n{cost}goal action g(x)\n    any of\n        a(x)\n        b(x)\n"
    procedure = Procedure.from_string(text.format(cost=""))
    found = Assessor(procedure, CallHistory(procedure.tools), {"x": 1}).assess_tool(procedure.tools["g"], {})
    assert isinstance(found.steps[0], WayStep)
    assert [text for text, _ in found.steps[0].ways] == ["a(x=1)", "b(x=1)"]
    procedure = Procedure.from_string(text.format(cost="").replace("check a(x)", "check a(x)\n    cost 2"))
    found = Assessor(procedure, CallHistory(procedure.tools), {"x": 1}).assess_tool(procedure.tools["g"], {})
    assert str(found.steps[0]) == "b(x=1)"


def test_the_first_source_that_can_be_determined_decides() -> None:
    text = """
check pin(x)
check quick(x)
    pin(x)
check slow(x)
goal action g(x)
    first of
        quick(x)
        slow(x)
"""
    procedure = Procedure.from_string(text)
    no_pin = MadeCall(Call("pin", {"x": 1}), False)
    history = CallHistory(procedure.tools, [no_pin])
    found = Assessor(procedure, history, {"x": 1}).assess_tool(procedure.tools["g"], {})
    assert str(found.steps[0]) == "slow(x=1)"


def _is_monotone(world: World) -> bool:
    """No fact of an action is needed not to hold: then more calls never take an allowance away. No source disagrees."""
    needs = [tool.need for tool in world.procedure.tools.values()]
    return not any(
        (isinstance(one, NeedGroup) and one.grouping in ("none of", "first of")) or _negates_action(one)
        for need in needs
        for one in walk_need(need)
    )


def _negates_action(need: object) -> bool:
    inner = getattr(need, "inner", None)
    return isinstance(inner, FactNeed) and inner.fact.startswith("fact_act")


@examples(200)
@given(worlds())
def test_a_run_does_the_goal_exactly_where_an_oracle_allows_it(world: World) -> None:
    assume(_is_monotone(world))
    tools = {name: (lambda x, name=name: world.answers[name]) for name in world.procedure.tools}
    outcome = run_procedure(world.procedure, "", "test:random", tools, goal="goal", known={"x": 1})
    assert (outcome.ending == "done") is is_allowed(world)
    assert check_evidence(write_evidence(world.procedure, outcome)) == []
    assert len({made.call for made in outcome.calls}) == len(outcome.calls)  # nothing is asked twice


@examples(150)
@given(worlds())
def test_every_run_ends_as_its_evidence_shows(world: World) -> None:
    tools = {name: (lambda x, name=name: world.answers[name]) for name in world.procedure.tools}
    outcome = run_procedure(world.procedure, "", "test:random", tools, goal="goal", known={"x": 1})
    assert outcome.ending in ("done", "declined")
    evidence = write_evidence(world.procedure, outcome)
    assert check_evidence(evidence) == []
    forged = {**outcome.to_data(), "ending": "done" if outcome.ending == "declined" else "declined"}
    assert check_evidence({**evidence, "outcome": forged}) != []
