"""Traces under rules: where they break them, against their definition."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.guard import Call, Guard, GuardEvent, GuardRules, Result, Said
from formal_llm.guard.traces import Trace
from formal_llm.guard.verifying import _fill_times, count_by_rule, describe_event, verify_trace
from tests.strategies import examples

TRAP = GuardRules.from_string("""
draft: draft
approve: approve
pay: pay
rule approved: approve before pay
rule no-draft: never approve after draft
rule paid: at least 1 pay
""")


def trace(events: Sequence[GuardEvent | str]) -> Trace:
    made = tuple(Call(one, {}, f"{place}") if isinstance(one, str) else one for place, one in enumerate(events))
    return Trace("t", made, tuple(f"message {place}" for place in range(1, len(made) + 1)))


def test_the_first_step_into_a_trap_is_blamed() -> None:
    report = verify_trace(Guard(TRAP), trace(["draft", "approve", "pay"]))
    assert not report.valid
    first = report.violations[0]
    assert (first.place, first.action) == ("message 1", "block")
    assert "after it" in first.reason
    assert report.to_dict()["valid"] is False


def test_a_trace_that_ends_too_early() -> None:
    report = verify_trace(Guard(TRAP), trace(["approve"]))
    assert [one.place for one in report.violations] == ["the end"]
    assert verify_trace(Guard(TRAP), trace(["approve", "pay"])).valid


def test_milder_rules_do_not_make_a_trace_invalid() -> None:
    rules = GuardRules.from_string("pay: pay\nrule a warn: at most 0 pay\n")
    report = verify_trace(Guard(rules), trace(["pay"]))
    assert report.valid
    assert [one.action for one in report.violations] == ["warn"]
    assert count_by_rule([report, report]) == {"a": (2, 2)}
    asked = GuardRules.from_string("pay: pay\nrule a ask: never pay\n")
    assert not verify_trace(Guard(asked), trace(["pay"])).valid
    assert verify_trace(Guard(asked), trace([Call("pay", {}, "1", approved=True)])).valid


def test_times() -> None:
    rules = GuardRules.from_string("pay: pay\nrule slow: at most 1 pay within 1h\n")
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for hours, valid in ((0.5, False), (2, True)):
        events = [Call("pay", {}, "1", at=begin), Call("pay", {}, "2", at=begin + timedelta(hours=hours))]
        assert verify_trace(Guard(rules), trace(events)).valid is valid
    untold = verify_trace(Guard(rules), trace(["pay", "pay"]))
    assert not untold.valid
    assert "no time" in untold.notes[-1]


def test_events_without_a_time_have_that_of_the_one_before_and_the_first_that_of_the_next() -> None:
    rules = GuardRules.from_string("pay: pay\nrule slow: at most 1 pay within 1h\n")
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    later = Call("pay", {}, "2", at=begin + timedelta(hours=2))
    assert {event.at for event in _fill_times(Guard(rules), [Call("pay"), Call("other"), later])} == {later.at}
    assert not verify_trace(Guard(rules), trace(["pay", later])).valid
    assert verify_trace(Guard(rules), trace([Call("pay", {}, "1", at=begin), "other", later])).valid
    assert not verify_trace(Guard(rules), trace([Call("pay", {}, "1", at=begin), "pay", later])).valid
    assert not verify_trace(Guard(rules), trace([later, "pay"])).valid


def test_events_as_lines() -> None:
    assert describe_event(Said("user", "a\n b")) == "user: a b"
    assert describe_event(Call("f", {"a": 1})) == "f(a=1)"
    assert describe_event(Result("f", {}, "x" * 200)).endswith("...")


@examples(60)
@given(st.lists(st.sampled_from(["draft", "approve", "pay", "other"]), max_size=6))
def test_a_trace_is_valid_where_it_keeps_the_rules(calls: list[str]) -> None:
    assert verify_trace(Guard(TRAP), trace(calls)).valid is keeps(calls)


def keeps(calls: list[str]) -> bool:
    """Written down apart from the guard."""
    paid = [place for place, one in enumerate(calls) if one == "pay"]
    approved = [place for place, one in enumerate(calls) if one == "approve"]
    drafted = [place for place, one in enumerate(calls) if one == "draft"]
    if not paid or not approved or approved[0] > paid[0]:
        return False
    return not drafted or drafted[0] > approved[-1]


DEADLINE = """
begun: begin* with k = k
done: end with k = k | *_end with k = k
told: tell.result[ok] with k = k
rule soon for each k: done or told within 5min after begun
"""


@examples(300)
@given(
    st.lists(
        st.tuples(st.sampled_from(["begin", "end", "begin_end", "tell", "other"]), st.booleans(), st.integers(0, 6)),
        max_size=6,
    )
)
def test_deadlines_against_their_definition(steps: list[tuple[str, bool, int]]) -> None:
    """A trace keeps the rule if and only if behind each begin, at most five minutes later, something of its k is done."""
    events: list[GuardEvent] = []
    begun, done = [], []
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for number, (tool, key, minutes) in enumerate(steps):
        arguments = {} if tool == "other" else {"k": int(key)}
        events.append(Call(tool, arguments, str(number), at=now))
        now += timedelta(minutes=minutes)
        if tool == "tell":
            events.append(Result(tool, arguments, {"ok": True}, str(number), at=now))
        at = events[-1].at
        assert at is not None
        begun += [(len(events), key, at)] if tool.startswith("begin") else []
        done += [(len(events), key, at)] if tool in ("end", "begin_end", "tell") else []
    kept = all(
        any(place > start and one == key and at - since <= timedelta(minutes=5) for place, one, at in done)
        for start, key, since in begun
    )
    guard = Guard(GuardRules.from_string(DEADLINE))
    assert verify_trace(guard, trace(events)).valid is kept
    state = guard.start()
    for event in events:
        assert guard.resume(state.snapshot()).check(Call("other", {}, at=now)) == state.check(Call("other", {}, at=now))
        state = state.after(event)


def test_after_a_deadline_only_what_is_due_may_come_with_a_person() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rules = GuardRules.from_string("tools cancel, notify, search\nrule soon: notify within 10min after cancel\n")
    state = Guard(rules).start().after(Call("cancel", at=start))
    late = start + timedelta(minutes=11)
    assert state.check(Call("search", at=start + timedelta(minutes=10))).action == "allow"
    refused = state.check(Call("search", at=late))
    assert (refused.action, refused.allowed, refused.way) == ("block", ("notify",), ("notify",))
    assert "it was due until 2026-01-01 00:10:00+00:00" in refused.reason
    assert state.check(Call("notify", at=late)).action == "ask"
    assert state.check(Call("notify", approved=True, at=late)).action == "allow"
    assert state.may_stop().action == "block"
    state = state.after(Call("notify", approved=True, at=late))
    assert (state.check(Call("search", at=late)).action, state.may_stop().action) == ("allow", "allow")


def test_results_and_texts_break_rules_as_well() -> None:
    rules = GuardRules.from_string(
        'bad: t.result[error]\nrude: assistant[text contains "no"]\nrule r: never bad\nrule s warn: never rude\n'
    )
    report = verify_trace(Guard(rules), trace([Call("t"), Result("t", error=True), Said("assistant", "no")]))
    assert [one.place for one in report.violations] == ["message 2", "message 3"]
    assert [(one.rule, one.action, one.place) for one in report.violations] == [
        ("r", "block", "message 2"),
        ("s", "warn", "message 3"),
    ]
