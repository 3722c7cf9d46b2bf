"""The rules of an agent with its tools: calls are events, and looked ahead to."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import PDA, Behaviour, Limits
from formal_llm.agents import Segment
from formal_llm.agents.acting import NO_TOOL, AgentRules, InnerRules, StatesMonitor
from formal_llm.automata.notation.formula import read_formula
from formal_llm.errors import AutomatonError, NotAllowed, NotationError
from tests.oracles import all_words
from tests.strategies import examples

REACT = Behaviour.load("react")
TOOLS = ("search", "lookup")
ROUND = ["Tht", "Act"]


def test_without_rules_on_tools_calls_are_no_events() -> None:
    rules = AgentRules(REACT, "Act", TOOLS, limits=Limits(default=3))
    assert rules.action is None
    assert [*rules.get_monitor().after_all(["Ques", "Tht", "Act"]).allowed()] == ["Act-Inp"]
    assert [event.name for event in rules.list_events([Segment("Ques"), Segment("Act", "x")])] == ["Ques", "Act"]


def test_behind_an_action_comes_its_tool() -> None:
    rules = AgentRules(REACT, "Act", TOOLS, limits=Limits({"search": 1}))
    now = rules.get_monitor().after_all(["Ques", "Tht", "Act"])
    assert [*now.allowed()] == ["search", "lookup"]
    again = now.after_all(["search", "Act-Inp", "Obs", "Tht", "Act"])
    assert [*again.allowed()] == ["lookup"]
    with pytest.raises(NotAllowed):
        rules.get_monitor().after_all(["Ques", "Tht", "Act", NO_TOOL])
    assert rules.get_monitor(1).after_all(["Ques", "Tht", "Act", NO_TOOL, "Act-Inp", "Obs"]).allowed()
    names = [event.name for event in rules.list_events([Segment("Act", " search\n"), Segment("Act", "serch")])]
    assert names == ["Act", "search", "Act", NO_TOOL]


def test_a_rule_that_names_tools_only_is_about_calls_alone() -> None:
    """Against the calls of all short runs."""
    forms = ["(not (eventually (next search search)))", "(next search (until any lookup))"]
    others = [read_formula(forms[1], TOOLS), Behaviour("b", TOOLS, read_formula(forms[1], TOOLS))]
    others.append(Behaviour.from_string("steps: search, lookup\nfirst search\nlast lookup"))
    whole = PDA([("s", "search", None, "e"), ("e", "lookup", None, "e")], start="s", accepting=["e"])

    def between(calls):  # type: ignore[no-untyped-def]
        return len(calls) > 1 and calls[0] == "search" and calls[-1] == "lookup"

    cases = [
        (forms[0], lambda calls: ("search", "search") not in pairwise(calls)),
        ("never search directly after search", lambda calls: ("search", "search") not in pairwise(calls)),
        *((rule, between) for rule in [forms[1], *others]),
        (whole, lambda calls: calls[:1] == ("search",) and set(calls[1:]) <= {"lookup"}),
    ]  # fmt: skip
    for rule, right in cases:
        rules = AgentRules(REACT, "Act", TOOLS, [rule])
        for size in range(4):
            for calls in product(TOOLS, repeat=size):
                word = [
                    "Ques",
                    *(name for call in calls for name in (*ROUND, call, "Act-Inp", "Obs")),
                    "Final-Tht",
                    "Ans",
                ]
                assert rules.get_monitor().verify(word, repair=False).valid == right(calls), (rule, calls)


def test_a_sentence_of_the_behaviour_is_about_its_states_alone() -> None:
    behaviour = REACT.with_rules("never Tht after Obs", "Act-Inp directly after each Act")
    rules = AgentRules(behaviour, "Act", TOOLS, limits=Limits({"search": 1}))
    now = rules.get_monitor().after_all(["Ques", "Tht", "Act", "search", "Act-Inp", "Obs"])
    assert [*now.allowed()] == ["Final-Tht"]


def test_sentences_among_rules_are_named() -> None:
    rules = AgentRules(REACT, "Act", TOOLS, [Behaviour.from_string("steps: search, lookup\nlast lookup\nfirst search")])
    with pytest.raises(NotAllowed) as caught:
        rules.get_monitor().after_all(["Ques", "Tht", "Act", "lookup"])
    assert caught.value.refusal.constraints == ("first search",)


def test_a_rule_may_name_states_and_tools() -> None:
    rules = AgentRules(REACT, "Act", TOOLS, ["(not (eventually (next search Act-Inp Obs Final-Tht)))"])
    now = rules.get_monitor().after_all(["Ques", "Tht", "Act", "search", "Act-Inp", "Obs"])
    assert [*now.allowed()] == ["Tht"]


def test_what_a_writer_sees_is_what_some_tool_allows() -> None:
    rules = AgentRules(
        REACT, "Act", TOOLS, ["(not (eventually (next search Act-Inp Obs Final-Tht)))"], Limits({"Tht": 1})
    )
    now = StatesMonitor(rules, [rules.get_monitor()]).after("Ques").after("Tht").after("Act")
    assert [*now.allowed()] == ["Act-Inp"] and not now.may_stop() and now.why() is not None
    behind = now.after("Act-Inp").after("Obs")
    assert [*behind.allowed()] == ["Final-Tht"] and behind.allows("Final-Tht") and not behind.allows("Tht")
    with pytest.raises(NotAllowed):
        behind.after("Tht")
    assert behind.why("Tht") is not None and behind.why("Final-Tht") is None
    assert behind.after("Final-Tht").after("Ans").may_stop()
    assert len(now) == 4 and "StatesMonitor" in repr(now)


def test_places_that_are_equal_are_followed_once() -> None:
    rules = AgentRules(REACT, "Act", tuple(f"t{number}" for number in range(30)), limits=Limits({"t0": 2}))
    now = StatesMonitor(rules, [rules.get_monitor()]).after("Ques")
    for _ in range(6):
        for state in ("Tht", "Act", "Act-Inp", "Obs"):
            now = now.after(state)
        assert len(now._now) <= 3


def test_wrong_rules_are_told() -> None:
    with pytest.raises(AutomatonError, match="the tool Obs has the name of a state"):
        AgentRules(REACT, "Act", ("Obs",))
    with pytest.raises(NotationError, match="serch"):
        AgentRules(REACT, "Act", TOOLS, ["(eventually serch)"])
    with pytest.raises(AutomatonError, match="serch"):
        AgentRules(REACT, "Act", TOOLS, limits=Limits({"serch": 1}))
    with pytest.raises(NotAllowed, match="nothing keeps the rules"):
        AgentRules(REACT, "Act", TOOLS, ["(eventually search)"], Limits({"search": 0}))


@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        ("(not (eventually lookup))", ["search"]),
        ("(until search search)", ["search"]),
        (Behaviour("b", TOOLS, read_formula("(until search search)", TOOLS)), ["search"]),
        ("(not (eventually (next Act lookup)))", ["search"]),
        ("(eventually Act)", ["search", "lookup"]),
        ("(next Ques (until (or Tht Act Act-Inp Obs Final-Tht) Ans))", ["search", "lookup"]),  # not about tools
    ],
)
def test_a_tool_that_a_rule_never_allows_is_forbidden(rule: str | Behaviour, allowed: list[str]) -> None:
    rules = AgentRules(REACT, "Act", TOOLS, [rule])
    assert [*rules.get_monitor().after_all(["Ques", "Tht", "Act"]).allowed()] == allowed
    slipped = rules.get_monitor(1).after_all(["Ques", "Tht", "Act", NO_TOOL, "Act-Inp", "Obs", "Tht", "Act"])
    assert [*slipped.allowed()] == [*allowed, NO_TOOL] or [*slipped.allowed()] == allowed


def test_rules_are_narrowed_and_stay_as_they_were() -> None:
    rules = AgentRules(REACT, "Act", TOOLS, limits=Limits({"search": 1}, default=4))
    one = ["Ques", "Tht", "Act", "search", "Act-Inp", "Obs"]
    narrower, now = rules.narrow(Limits({"Tht": 1}), rules.get_monitor().after_all(one))
    assert [*now.allowed()] == ["Final-Tht"]
    slipped = rules.get_monitor(1).after_all([*one[:3], NO_TOOL])
    assert [*rules.narrow(Limits({"Tht": 1}), slipped)[1].allowed()] == ["Act-Inp"]
    with pytest.raises(NotAllowed):
        rules.narrow(Limits({"Tht": 0}), now)
    assert [*rules.get_monitor().after_all(one).allowed()] == ["Tht", "Final-Tht"]
    assert [*narrower.get_monitor().after_all(one[:3]).allowed()] == ["search", "lookup"]  # the old limits stay


def test_a_writer_does_not_end_what_never_ends_by_itself() -> None:
    rules = AgentRules(Behaviour.load("chat-bot-endless"), limits=Limits({"Chat-Bot": 2}))
    now = StatesMonitor(rules, [rules.get_monitor()])
    for name in ("Chat-Bot", "User", "Chat-Bot"):
        assert not now.may_stop() and [*now.allowed()] == [name]
        now = now.after(name)
    assert rules.get_monitor().may_stop() and not now.may_stop()
    assert now.after("User").may_stop()  # the limit is reached: nothing more may come


# -- agents as tools -------------------------------------------------------------------------------------------------

#: A behaviour of up to two calls.
SHORT = """(define short
  (:states (Ask (:text "[Question]")) (Act (:text "[Action]")) (Obs (:text "[Observation]") (:flags :env-input))
    (Ans (:text "[Answer]")))
  (:behavior (next Ask (until (next Act Obs) Ans))))"""
#: Rules of calls, and whether calls keep them.
CALLS = {
    "(eventually a)": lambda calls: "a" in calls,
    "(eventually b)": lambda calls: "b" in calls,
    "(not (eventually (next a (eventually b))))": lambda calls: "b" not in calls[(*calls, "a").index("a") :],
    "(eventually (next b (eventually a)))": lambda calls: "a" in calls[(*calls, "b").index("b") :],
}
counts = st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), max_size=2)
bounds = st.tuples(counts, counts, st.lists(st.sampled_from([*CALLS]), max_size=2, unique=True))


def make_rules(tools, given_bounds, inner=None, **most):  # type: ignore[no-untyped-def]
    at_most, at_least, rules = given_bounds
    limits = Limits({"Act": 2, **at_most, **most}, at_least)
    return AgentRules(Behaviour.from_string(SHORT), "Act", tools, rules, limits, inner or {})


def keeps(given_bounds, calls) -> bool:  # type: ignore[no-untyped-def]
    at_most, at_least, rules = given_bounds
    return (
        all(calls.count(name) <= most for name, most in at_most.items())
        and all(calls.count(name) >= least for name, least in at_least.items())
        and all(CALLS[rule](calls) for rule in rules)
    )


@given(bounds, bounds, st.integers(1, 2))
@examples(60)
def test_what_an_inner_run_may_call_is_what_leaves_both_a_way_to_an_end(own, outer, times) -> None:  # type: ignore[no-untyped-def]
    """Against all pairs of runs: two calls of the outer agent at most, and two calls of the inner one in each."""
    runs = [run for run in all_words("ab", 2) if keeps(own, run)]
    #: The runs of the outer agent: its calls, each with those of the inner run.
    ways = [(), *((one,) for one in (("a",), *(("sub", *run) for run in runs)))]
    ways += [(one, two) for one in [way[0] for way in ways[1:]] for two in [way[0] for way in ways[1:]]]
    ways = [way for way in ways if sum(call[0] == "sub" for call in way) <= times and keeps(outer, sum(way, ()))]
    try:
        inner_rules = make_rules("ab", own)
        rules = make_rules(("a", "sub"), outer, {"sub": inner_rules}, sub=times)
    except NotAllowed:
        # The outer rules do not know of limits within an inner run, so they may be made in vain, but not the reverse.
        assert not runs or not ways
        return
    for past in [(), ("a",)]:
        now = rules.start.after("Ask")
        if past and (not now.allows("Act") or "a" not in rules.list_callable(now.after("Act"))):
            assert not any(way[:1] == (past,) for way in ways)
            continue
        now = now.after_all(["Act", "a", "Obs"]) if past else now
        begun = [way[bool(past)] for way in ways if way[: bool(past)] == (past,) * bool(past) and len(way) > bool(past)]
        begun = [call for call in begun if call[0] == "sub"]
        offered = now.allows("Act") and "sub" in rules.list_callable(now.after("Act"))
        assert offered or not begun
        if not offered or (times == 2 and not past):
            continue  # a second inner run is foreseen without its limits
        entered = rules.enter("sub", now.after_all(["Act", "sub"]))
        assert isinstance(entered, InnerRules) and begun
        for calls in {run[:size] for run in runs for size in range(3)}:
            try:
                inside = entered.start.after_all(["Ask", *(name for call in calls for name in ("Act", call, "Obs"))])
            except NotAllowed:
                assert not any(call[1 : 1 + len(calls)] == calls for call in begun)
                continue
            after = {
                call[1 + len(calls)] for call in begun if call[1 : 1 + len(calls)] == calls and call[1 + len(calls) :]
            }
            assert {*(inside.after("Act").allowed() if inside.allows("Act") else ())} == after
            assert inside.allows("Ans") == (("sub", *calls) in begun)
