"""Rules compiled."""

from __future__ import annotations

from datetime import UTC, datetime

from formal_llm.guard import Call, Guard, GuardRules


def test_core() -> None:
    text = "tools a, b\nrule r: a before b\n"
    assert GuardRules.from_string(text) == GuardRules.from_string("# again\n" + text)
    assert GuardRules.from_string(text).names == ("r",)


SHOP = (
    "tools approve, draft, pay\nrule a: approve before pay\nrule b: never approve after draft\nrule c: at least 1 pay\n"
)


def test_a_conflict_names_the_fewest_rules() -> None:
    rules = GuardRules.from_string(SHOP + "rule d: never pay\nrule e: at most 2 draft\n")
    found = rules.check()
    assert [(one.kind, one.rules) for one in found] == [("empty", ("c", "d"))]


def test_what_comes_from_outside() -> None:
    text = "ask: ask\nno: ask.result[not ok]\npay: pay\nrule a: ask before pay\nrule b: never pay after no\nrule c: at least 1 pay\n"
    assert GuardRules.from_string(text).check() == ()
    (found,) = GuardRules.from_string(text).check(guarantee="whatever")
    assert found.by_environment
    assert found.trace == ("ask", "no")


def test_a_tool_that_there_is_not() -> None:
    rules = GuardRules.from_string(SHOP)
    assert {one.name for one in rules.check(["pay", "draft"]) if one.kind == "never"} >= {"approve"}


def test_a_condition_that_nothing_meets() -> None:
    rules = GuardRules.from_string("big: pay[amount > 100 and amount < 50]\npay: pay\nrule a: never big after pay\n")
    assert [one.name for one in rules.check() if one.kind == "never"] == ["big"]


def test_nothing_wrong() -> None:
    assert GuardRules.from_string("tools read, write\nrule a: read before write\n").check() == ()


def test_letters_that_nobody_declared_are_not_listed() -> None:
    text = "tools read, write\nrule a: read within 2 calls after write\nrule b: only read or write\n"
    assert GuardRules.from_string(text).check() == ()


def test_what_has_to_wait_is_not_said_to_be_allowed() -> None:
    rules = GuardRules.from_string("tools a, b\nlarge: a[n > 9]\nrule r: at most 1 a within 1h\nrule s: never large\n")
    now = datetime(2026, 1, 1, tzinfo=UTC)
    state = Guard(rules, ["a", "b"]).start()
    assert state.check(Call("a", {"n": 10}, at=now)).allowed == ("a", "b")
    refused = state.after(Call("a", {"n": 1}, at=now)).check(Call("a", {"n": 1}, at=now))
    assert (refused.action, refused.allowed) == ("block", ("b",))


def test_what_is_not_known_is_asked_about_and_needs_no_time() -> None:
    assert Guard(GuardRules.from_string("tools a\nrule r: at most 1 a\n")).unsure == "ask"
    assert not GuardRules.from_string("tools known\nrule known: at most 1 known\n").needs_time
    assert GuardRules.from_string("old: a[date(at) < now]\nrule r: never old\n").needs_time
