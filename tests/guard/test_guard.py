"""Guards: what they are made of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.errors import RecordError
from formal_llm.guard import Call, Guard, GuardRules, Result, Said
from formal_llm.guard.events import ALLOW
from tests.strategies import examples

RULES = GuardRules.from_string("tools a, b\nrule r: a before b\nrule e: at least 1 b\n")


def test_without_a_tool_there_is_no_way() -> None:
    assert Guard(RULES, ["b"]).start().check(Call("b")).way == ()
    assert Guard(RULES, ["a", "b"]).start().may_stop().way == ("a", "b")


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="some"):
        Guard(RULES, guarantee="strong")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="several names"):
        Guard(RULES, "ab")


def test_refusing() -> None:
    state = Guard(GuardRules.from_string('tools a, b\nrule r: a before b\n    "First a."\n')).start()
    assert state.check(Call("b")).reason == "b cannot be called now: First a."


SHOP = (
    "tools approve, draft, pay\nrule a: approve before pay\nrule b: never approve after draft\nrule c: at least 1 pay\n"
)


def guard(text: str, *tools: str, **options: object) -> Guard:
    return Guard(GuardRules.from_string(text), tools, **options)  # type: ignore[arg-type]


def test_the_refusal_tells_the_rule_what_is_allowed_and_the_way() -> None:
    decision = guard(SHOP, "approve", "draft", "pay", "log").start().check(Call("draft"))
    assert (decision.action, decision.allowed, decision.way) == ("block", ("approve", "log"), ("approve", "pay"))
    assert set(decision.rules) == {"a", "b", "c"}
    assert "The shortest way on: approve, then pay." in decision.message


def test_an_argument_hides_no_fact_of_its_call() -> None:
    """Arguments come from a model, which would approve its own call by one with that name."""
    for name, forged in (("approved", True), ("tool", "look"), ("arguments", {"tool": "look"}), ("now", "2020-01-01")):
        rules = {
            "approved": "pay[not approved]", "tool": 'pay[tool == "pay"]', "arguments": "pay[has(arguments.arguments)]",
            "now": "pay[now > 2021-01-01]",
        }  # fmt: skip
        run = Guard(GuardRules.from_string(f"bad: {rules[name]}\nrule r: never bad")).start()
        assert not run.check(Call("pay", {name: forged})).runs, name
    own = Guard(GuardRules.from_string('bad: pay[arguments.tool == "axe"]\nrule r: never bad')).start()
    assert [own.check(Call("pay", {"tool": tool})).runs for tool in ("axe", "saw")] == [False, True]


def test_parallel_calls_are_a_sequence() -> None:
    found = guard(SHOP).start().check_all([Call("pay"), Call("approve"), Call("pay"), Call("approve")])
    assert [one.action for one in found] == ["block", "allow", "allow", "allow"]


def test_a_budget_keeps_what_is_needed() -> None:
    state = guard("s: search with c = 1\nr: report with c = 5\nrule b: budget c <= 8\nrule e: at least 1 r\n").start()
    for _ in range(3):
        assert state.check(Call("search")).runs
        state = state.after(Call("search"))
    assert state.check(Call("search")).rules == ("b", "e")
    assert state.check(Call("report")).runs


@pytest.mark.parametrize("action", ["block", "ask", "warn", "log"])
def test_severities(action: str) -> None:
    state = guard(f"tools a, b\nrule r {action}: a before b\n").start()
    decision = state.check(Call("b"))
    assert (decision.action, decision.rule) == (action, "r")
    assert decision.runs is (action in ("warn", "log"))
    assert state.check(Call("b", approved=True)).action == ("allow" if action == "ask" else action)
    # What breaks a rule leaves it where it was.
    assert state.after(Call("b")).check(Call("b")).action == action


def test_rules_that_are_lost() -> None:
    state = guard(SHOP).start().after(Call("draft"))
    assert state.lost_rules == ("c",)
    assert state.check(Call("pay")).rule == "a"
    assert state.check(Call("draft")).action == "allow"


def test_each_order_by_itself() -> None:
    text = "ok: approve.result[ok] with o = id\npay: pay with o = id\nrule r for each o: ok before each pay\nrule e for each o: pay after each ok\n"
    state = guard(text).start()
    for number in (1, 2):
        state = state.after(Call("approve", {"id": number})).after(Result("approve", {"id": number}, {"ok": True}))
    assert state.check(Call("pay", {"id": "1"})).runs
    assert state.check(Call("pay", {"id": 3})).action == "block"
    assert state.check(Call("pay")).action == "block"
    state = state.after(Call("pay", {"id": 1}))
    assert state.check(Call("pay", {"id": 1})).action == "block"
    assert state.may_stop().rule == "e"
    assert state.after(Call("pay", {"id": 2})).may_stop().action == "allow"


def test_rates_and_times() -> None:
    state = guard("tools a\nrule r: at most 2 a within 1h\n").start()
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for minute in (0, 10):
        assert state.check(Call("a", at=start + timedelta(minutes=minute))).runs
        state = state.after(Call("a", at=start + timedelta(minutes=minute)))
    refused = state.check(Call("a", at=start + timedelta(minutes=59)))
    assert "wait until 2026-01-01 01:00:00" in refused.reason
    assert state.check(Call("a", at=start + timedelta(minutes=60))).runs


def test_waiting_for_the_user() -> None:
    text = 'yes: user[text contains "yes"]\npay: pay\nrule a: yes before pay\nrule b: at least 1 pay\n'
    state = guard(text).start()
    assert state.may_stop().action == "block"
    assert state.may_stop(final=False).action == "allow"
    assert state.after(Said("user", "yes")).may_stop(final=False).action == "block"


def test_snapshots() -> None:
    one = guard(SHOP)
    state = (
        one.start()
        .after(Call("approve", {"x": 1}, "id7"))
        .after(Result("approve", {"x": 1}, [1], "id7"))
        .after(Said("user", "hi"))
    )
    again = one.resume(json.dumps(state.snapshot()))
    assert again.history == ()  # what happened is in the position
    assert again.position == state.position
    with pytest.raises(RecordError, match="other rules"):
        guard(SHOP, guarantee="whatever").resume(state.snapshot())
    with pytest.raises(RecordError, match="damaged"):
        one.resume("{")
    with pytest.raises(RecordError, match="event 1"):
        one.resume({**one.start().snapshot(), "events": [{"call": 3}]})


REMEMBERING = """
a: a with k = k
b: b with k = k, cost = cost
c: c[not a(k)]
d: d[last(b(k).cost) > 3]
e: e.result
rule r for each k: at most 2 a since b
rule s for each k: budget cost <= 10
rule t ask: never c
rule u: never d
rule v: at most 9 a within 1h
rule w: formula "(always (-> a (eventually b)))"
rule x warn: at most 3 e
"""
CALLS = st.tuples(st.sampled_from("abcde"), st.integers(0, 2), st.sampled_from([0, 1, 2.5, "4", None]), st.booleans())


@examples(60)
@given(st.lists(CALLS, max_size=25), st.lists(CALLS, max_size=6))
def test_a_resumed_state_decides_like_the_one_before(past: list[Any], later: list[Any]) -> None:
    one = guard(REMEMBERING)
    state = one.start()
    begin = datetime(2026, 1, 1, tzinfo=UTC)

    def list_events(drawn: list[Any], first: int) -> Iterator[Call | Result]:
        for number, (tool, key, cost, returned) in enumerate(drawn, first):
            arguments = {"k": key, **({} if cost is None else {"cost": cost})}
            yield Call(tool, arguments, f"{number}", at=begin + timedelta(minutes=7 * number))
            if returned:
                yield Result(tool, arguments, None, f"{number}", at=begin + timedelta(minutes=7 * number))

    for event in list_events(past, 0):
        state = state.after(event)
    snapshot = state.snapshot()
    assert [list(row) for row in snapshot["events"]] == [["state"]]  # type: ignore[union-attr,arg-type]
    again = one.resume(json.dumps(snapshot))
    assert again.snapshot() == snapshot
    assert state.without_history().snapshot() == snapshot
    for event in list_events(later, len(past)):
        if isinstance(event, Call):
            assert again.check(event) == state.check(event)
        again, state = again.after(event), state.after(event)
        assert (again.position, again.lost, again.may_stop()) == (state.position, state.lost, state.may_stop())


def test_a_snapshot_does_not_grow_with_the_events() -> None:
    state = guard("a: a with k = k\nb: b\nrule r for each k: a before b\nrule s: at most 9999 a\n").start()
    sizes = []
    for number in range(60):
        state = state.after(Call("a", {"k": number % 3}, f"{number}"))
        sizes.append(len(json.dumps(state.snapshot())))
    assert max(sizes[3:]) == sizes[3]


@pytest.mark.parametrize(
    "changed",
    [
        {"states": ["x", 1]},
        {"states": [1]},
        {"states": [{"number": "y"}, 1]},
        {"live": []},
        {"calls": [1]},
        {"times": 1},
    ],
)
def test_a_damaged_position_is_no_snapshot(changed: dict[str, Any]) -> None:
    one = guard("a: a with k = k\nb: b\nrule r for each k: a before b\nrule s: at most 9 a\n")
    snapshot: Any = one.start().after(Call("a", {"k": 1})).snapshot()
    snapshot["events"][0]["state"]["position"].update(changed)
    with pytest.raises(RecordError, match="damaged: event 1"):
        one.resume(snapshot)


def test_rules_in_another_notation_need_all_events() -> None:
    text = 'tools a, b\nrule g: grammar """\n%order forward\nS -> a S b | a b\n"""\n'
    state = guard(text).start().after(Call("a")).after(Call("a"))
    snapshot = state.snapshot()
    assert [list(row) for row in snapshot["events"]] == [["call", "arguments"]] * 2  # type: ignore[union-attr,arg-type]
    assert guard(text).resume(snapshot).may_stop().way == state.may_stop().way


def test_other_notations() -> None:
    text = 'tools a, b, c\nrule g: grammar """\n%order forward\nS -> a S b | c\n"""\n'
    state = guard(text).start()
    assert state.check(Call("b")).action == "block"
    for tool in ("a", "a", "c", "b"):
        assert state.check(Call(tool)).runs
        state = state.after(Call(tool))
    assert state.may_stop().way == ("b",)
    assert state.check(Call("c")).action == "block"
    assert guard('tools a, b\nrule f: formula "(until a b)"\n').start().after(Call("a")).may_stop().way == ("b",)


def test_grammars_under_the_stronger_promise() -> None:
    """There are infinitely many places, but whether a word can be completed is tabulated: an error may follow ``a``."""
    text = 'a: a\nb: b\nno: a.result[error]\nrule g: grammar """\n%order forward\nS -> a S b | b\n"""\nrule n: never b after no\n'
    strong, weak = guard(text, guarantee="whatever", max_states=300), guard(text)
    assert weak.start().check(Call("a")).certain
    decision = strong.start().check(Call("a"))
    assert (decision.action, decision.certain) == ("block", True)
    assert strong.start().check(Call("b")).action == "allow"


#: Here the search reaches its bound after ``a``; the grammar's severity is filled in.
ENDLESS = 'tools a, b, c\nrule g{}: grammar """\n%order forward\nS -> a S b | b\n"""\nrule n{}: grammar """\n%order forward\nS -> b | T\nT -> a T b b | b b\n"""\n'
UNKNOWN: dict[str, Any] = {"guarantee": "whatever", "max_states": 300}


@pytest.mark.parametrize(
    ("severity", "unsure", "action"),
    [("", "allow", "allow"), ("", "ask", "ask"), ("", "block", "block"),
     (" ask", "allow", "allow"), (" ask", "ask", "ask"), (" ask", "block", "ask"),  # it would only ask if it knew
     (" warn", "block", "allow")],
)  # fmt: skip
def test_what_is_not_known_is_allowed_asked_or_blocked(severity: str, unsure: str, action: str) -> None:
    text = ENDLESS.format(severity, severity)
    for state in (
        guard(text, "a", "b", unsure=unsure, **UNKNOWN).start(),
        guard(f"%unsure {unsure}\n{text}", "a", "b", **UNKNOWN).start(),
        guard(f"%unsure allow\n{text}", "a", "b", unsure=unsure, **UNKNOWN).start(),
    ):
        decision = state.check(Call("a"))
        assert decision.action == action
        if severity != " warn":
            assert not decision.certain
            assert "raise max_states, now 300" in decision.reason
            assert decision.rules == (() if action == "allow" else ("g", "n"))
            assert state.check(Call("a", approved=True)).action == ("block" if action == "block" else "allow")
        assert state.check(Call("b")) == ALLOW
        assert state.allowed_tools() == (("b",) if action == "block" else ("a", "b"))
    assert guard(text).start().check(Call("b")).certain
    with pytest.raises(ValueError, match="block, ask, allow"):
        guard(text, unsure="refuse")


@pytest.mark.parametrize(
    ("more", "unsure", "action", "certain"),
    [("", "ask", "ask", False), ("warn", "allow", "warn", False), ("warn", "ask", "ask", False),
     ("ask", "allow", "ask", False), ("ask", "block", "block", False), ("block", "allow", "block", True)],
)  # fmt: skip
def test_the_stricter_of_what_is_known_and_what_is_not_counts(
    more: str, unsure: str, action: str, certain: bool
) -> None:
    text = ENDLESS.format("", "") + (f"rule known {more}: c before a\n" if more else "")
    decision = guard(text, unsure=unsure, **UNKNOWN).start().check(Call("a"))
    assert (decision.action, decision.certain) == (action, certain)


def test_an_argument_that_is_missing_blocks_though_the_rest_is_not_known() -> None:
    text = ENDLESS.format("", "") + "big: a[amount > 1]\nrule never-big: never big\n"
    decision = guard(text, **UNKNOWN).start().check(Call("a"))
    assert (decision.action, decision.certain, decision.rules) == ("block", True, ("never-big",))


@pytest.mark.parametrize(
    ("severity", "rules"),
    # What is blocked for sure needs no more reasons; an approval is not enough for what may have to be blocked.
    [("block", ("r",)), ("ask", ("s",)), ("warn", ("s",))],
)
def test_a_call_that_lacks_an_argument_keeps_the_rules_on_both_sides(severity: str, rules: tuple[str, ...]) -> None:
    text = f"a: pay\nbig: pay[amount > 100]\nok: approve\nrule r {severity}: ok before a\nrule s: ok before big\n"
    state = guard(text).start()
    unsure = state.check(Call("pay"))
    assert (unsure.action, unsure.rules) == ("block", rules)
    assert ("cannot be told" in unsure.reason) is (severity != "block")
    assert state.check(Call("pay", {"amount": 5})).action == severity
    assert "cannot be told" not in state.check(Call("pay", {"amount": 5})).reason
    assert state.after(Call("approve")).check(Call("pay")).action == "allow"


def test_how_long_a_run_is_and_which_tools_are_allowed() -> None:
    state = guard(SHOP, "approve", "draft", "pay").start()
    assert (len(state), bool(state), repr(state)) == (0, True, "<GuardState after 0 events>")
    assert state.allowed_tools() == ("approve",)
    assert [state.allows_tool(tool) for tool in ("approve", "draft", "pay", "other")] == [True, False, False, True]
    later = state.after(Call("approve")).after(Call("pay")).after(Said("user", "thanks"))
    assert (len(later), bool(later), repr(later)) == (3, True, "<GuardState after 3 events>")
    assert guard(SHOP).start().allowed_tools() == ()


def test_a_time_without_a_zone_is_in_utc() -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    state = guard("tools a\nrule r: at most 1 a within 1h\n", clock=lambda: noon.replace(tzinfo=None)).start()
    state = state.after(Call("a", at=noon.replace(tzinfo=None)))
    assert state.history[0].at == noon
    assert not state.check(Call("a")).runs
    assert not state.check(Call("a", at=noon + timedelta(minutes=59))).runs
    assert state.check(Call("a", at=(noon + timedelta(minutes=61)).replace(tzinfo=None))).runs


def test_the_clock_is_asked_where_rules_are_about_time() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    timed = guard("tools a\nrule r: at most 2 a within 1h\n", clock=lambda: now).start()
    assert timed.after(Call("a")).history[0].at == now
    other = now + timedelta(days=1)
    assert timed.after(Call("a", at=other)).history[0].at == other
    assert guard("tools a\nrule r: at most 2 a\n", clock=lambda: now).start().after(Call("a")).history[0].at is None


def test_what_two_rules_together_forbid_is_told_and_an_approval_is_for_milder_rules_too() -> None:
    text = "tools a, b\nrule r ask: never a after b\nrule s ask: at least 1 a\nrule t warn: at most 9 b\n"
    decision = guard(text).start().check(Call("b"))
    assert (decision.action, decision.rules) == ("ask", ("r", "s"))
    assert "after it these rules could not be kept any more" in decision.reason
    assert guard(text).start().check(Call("b", approved=True)).action == "allow"


def test_only_rules_that_are_to_blame_are_lost() -> None:
    state = guard(SHOP + "other: other\nrule d: at least 1 other\nrule e log: at most 3 other\n").start()
    assert state.after(Call("draft")).lost_rules == ("c",)
    assert state.lost_rules == ()


def test_what_came_before_is_remembered_for_conditions() -> None:
    text = "ok: approve with o = id\nplain: pay[not ok(id)]\nrule r: never plain\n"
    state = guard(text).start()
    assert state.check(Call("pay", {"id": 1})).action == "block"
    state = state.after(Call("approve", {"id": 1}))
    assert state.check(Call("pay", {"id": 1})).action == "allow"
    assert state.check(Call("pay", {"id": 2})).action == "block"


@given(
    st.lists(st.sets(st.sampled_from(["small", "big", "read"]), min_size=1), min_size=1, max_size=3),
    st.integers(0, 3),
    st.integers(0, 3),
)
def test_only_calls_with_one_of_these_letters(allowed: list[set[str]], low: int, high: int) -> None:
    """Several rules, of which a call has to keep each, against the letters read off each call."""
    text = f"small: pay[n < {low}]\nbig: pay[n > {high}]\ntools read\n"
    text += "".join(f"rule r{n}: only {' or '.join(sorted(one))}\n" for n, one in enumerate(allowed))
    assert GuardRules.from_string(str(GuardRules.from_string(text))) == GuardRules.from_string(text)
    calls = [Call("pay", {"n": half / 2}) for half in range(-2, 9)] + [Call("read"), Call("x")]
    for tools in (["pay", "read", "x"], []):
        state = Guard(GuardRules.from_string(text), tools).start()
        open_ = set()
        for call in calls:
            letters = {"read"} if call.tool == "read" else set()
            if call.tool == "pay":
                letters = {
                    name
                    for name, fits in (("small", call.arguments["n"] < low), ("big", call.arguments["n"] > high))
                    if fits
                }
            decision = state.check(call)
            assert decision.certain
            assert (decision.action == "allow") is all(letters & one for one in allowed)
            open_ |= {call.tool} if decision.action == "allow" else set()
        assert {tool for tool in ("pay", "read", "x") if state.allows_tool(tool)} == open_
        assert not tools or set(state.allowed_tools()) == open_


def test_only_is_as_strict_as_its_severity_and_a_call_of_which_it_is_not_known_counts_on_both_sides() -> None:
    text = "small: pay[n < 5]\nrule r {}: only small\n"
    for severity in ("block", "ask", "warn", "log"):
        state = Guard(GuardRules.from_string(text.format(severity)), ["pay", "x"]).start()
        assert [state.check(call).action for call in (Call("pay", {"n": 1}), Call("pay"), Call("x"))] == [
            "allow", severity, severity,
        ]  # fmt: skip
        assert state.allowed_tools() == (("pay",) if severity == "block" else ("pay", "x"))
        assert state.may_stop() == ALLOW


def test_what_only_allows_is_looked_ahead_for() -> None:
    text = "tools ask, pay, log\nrule a: ask before pay\nrule b: at least 1 pay\nrule c: only pay or log\n"
    assert [one.kind for one in GuardRules.from_string(text).check()] == ["empty"]
    text = "tools ask, pay, log\nrule a: log after each pay\nrule c: only ask or pay\n"
    assert not Guard(GuardRules.from_string(text), ["ask", "pay"]).start().allows_tool("pay")


def test_a_deadline_counts_calls_of_all_tools() -> None:
    rules = GuardRules.from_string("tools read, log\nrule r: log within 2 calls after read\n")
    state = Guard(rules).start().after(Call("read")).after(Call("other"))
    decision = state.check(Call("other"))
    assert (decision.action, decision.allowed, decision.way) == ("block", ("log",), ('"log"',))
    assert state.may_stop().action == "block" and state.allowed_tools() == ()
    assert state.after(Call("log")).may_stop() == ALLOW
    assert Guard(rules).resume(json.dumps(state.snapshot())).check(Call("other")) == decision


def test_a_deadline_of_each_order_counts_its_calls_and_those_without_an_order() -> None:
    text = "pay: pay with order = order\nship: ship with order = order\nrule r for each order: ship within 2 calls after pay\n"
    paid = Guard(GuardRules.from_string(text), ["pay", "ship", "x"]).start().after(Call("pay", {"order": 1}))
    later = paid.after(Call("pay", {"order": 2})).after(Call("x"))
    assert [later.check(call).action for call in (Call("x"), Call("pay", {"order": 1}), Call("pay", {"order": 3}))] == [
        "block", "block", "allow",
    ]  # fmt: skip
    assert later.check(Call("ship", {"order": 1})).action == "allow"


def test_a_result_may_come_after_the_last_call() -> None:
    text = "read: read\nseen: look.result[ok]\nrule r: seen within 1 call after read\n"
    state = Guard(GuardRules.from_string(text), ["read", "look", "x"]).start().after(Call("read"))
    assert state.allowed_tools() == ("look",)
    state = state.after(Call("look"))
    assert state.allowed_tools() == () and state.may_stop().action == "block"
    assert state.after(Result("look", {}, 1)).may_stop() == ALLOW


def test_a_tool_of_which_only_some_calls_are_forbidden_is_open() -> None:
    state = Guard(GuardRules.from_string("large: pay[n > 100]\nrule r: never large\n"), ["pay"]).start()
    assert state.allowed_tools() == ("pay",) and state.allows_tool("pay")
    answered = Guard(GuardRules.from_string("large: pay[n > 9]\nok: pay.result\nrule r: never large or ok\n"), ["pay"])
    assert answered.start().allowed_tools() == ("pay",)
