"""A run under a guard: one step for checking and taking, whoever calls, from whichever thread."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from formal_llm.guard import Call, Decision, Guard, GuardRules, Result, Said
from formal_llm.guard.live import SAID_NO, GuardedRun, Noted
from tests.guard.adapters.shop import ASKING, RULES, Person, Record, guard

ONCE = RULES + "rule once: at most 1 pay\n"
APPROVE, PAY = Call("approve", {"order": 7}), Call("pay", {"order": 7, "amount": 500})


def test_a_call_that_may_be_made_is_taken_and_one_that_may_not_is_not() -> None:
    record = Record()
    run = GuardedRun(guard(), audit=record)
    assert run.begin(Call("draft", {"order": 7})).action == "block"
    assert run.begin(PAY).action == "block"
    assert run.stop().action == "block"
    assert run.begin(APPROVE).action == "allow"
    run.result(Result("approve", {"order": 7}, "approved"))
    assert run.begin(PAY).action == "allow"
    run.said(Said("assistant", "paid"))
    assert run.stop().action == "allow"
    assert record.words == [
        "not draft", "not pay", "stop", "call approve", "result approve", "call pay", "said assistant", "stop",
    ]  # fmt: skip


def test_the_told_lines_of_the_record_lead_to_the_same_state() -> None:
    record = Record()
    run = GuardedRun(guard(ASKING), audit=record, approve=Person(True))
    run.begin_all([PAY, APPROVE, PAY])
    run.result(Result("pay", PAY.arguments, "paid"))
    again = GuardedRun(guard(ASKING))
    state = again.state
    for line in record:
        if line.told and line.event is not None:
            state = state.after(line.event)
    assert state.snapshot() == run.state.snapshot()
    went_on = GuardedRun(run.guard, state=run.guard.resume(run.state.snapshot()))
    assert went_on.state.snapshot() == run.state.snapshot()
    assert went_on.stop().runs


def test_the_calls_of_a_turn_are_checked_as_a_sequence() -> None:
    run = GuardedRun(guard())
    calls = [PAY, APPROVE, PAY, Call("draft"), APPROVE]
    assert [decision.action for decision in run.begin_all(calls)] == ["block", "allow", "allow", "allow", "block"]


def test_a_second_try_of_a_call_is_the_same_call_until_the_model_answers_anew() -> None:
    record = Record()
    run = GuardedRun(guard(ONCE), audit=record)
    pay = Call("pay", {"order": 7}, "1")
    run.begin(APPROVE)
    assert run.begin(pay) is run.begin(pay)
    assert run.begin(Call("pay", {"order": 8}, "1")).action == "block"
    run.new_turn()
    assert run.begin(pay).action == "block"
    assert record.called == ["approve", "pay"]


def test_a_second_try_of_a_refused_call_is_refused_even_where_it_would_be_legal_by_now() -> None:
    run = GuardedRun(guard())
    pay = Call("pay", {"order": 7}, "1")
    run.begin_all([pay, Call("approve", {"order": 7}, "2")])
    assert run.begin(pay).action == "block"
    run.new_turn()
    assert run.begin(pay).action == "allow"


@pytest.mark.parametrize("says", [True, False])
def test_a_person_is_asked_and_what_he_says_stands_in_the_record(says: bool) -> None:
    person, record = Person(says), Record()
    run = GuardedRun(guard(ASKING), approve=person, audit=record)
    run.begin(APPROVE)
    decision = run.begin(PAY)
    assert decision.action == ("allow" if says else "block")
    assert (SAID_NO in decision.reason) is not says
    assert person.asked == [PAY]
    last = record[-1]
    assert (last.told, last.approved) == (says, says)
    assert isinstance(last.event, Call)
    assert last.event.approved is says


@pytest.mark.parametrize("says", [True, False])
def test_where_nobody_can_be_asked_here_the_answer_is_brought(says: bool) -> None:
    run = GuardedRun(guard(ASKING))
    run.begin(APPROVE)
    before = run.state
    assert run.begin(PAY).action == "ask"
    assert run.state is before
    assert run.begin(PAY, approved=says).runs is says


def test_a_no_is_a_no_even_where_the_rules_ask_for_nobody() -> None:
    run = GuardedRun(guard())
    decision = run.begin(APPROVE, approved=False)
    assert (decision.action, decision.reason) == ("block", SAID_NO)
    assert len(run.state) == 0


def test_rules_see_the_approval() -> None:
    """With a yes the payment is the one that may happen once; without one it may not happen at all."""
    text = "pay: pay\nyes: pay[approved]\nrule care ask: never pay\nrule once: at most 1 yes\n"
    run = GuardedRun(Guard(GuardRules.from_string(text), tools=["pay"]), approve=Person(True))
    assert [run.begin(Call("pay")).action for _ in range(2)] == ["allow", "block"]


def test_a_person_is_not_asked_about_what_is_forbidden_anyway() -> None:
    person = Person(True)
    assert GuardedRun(guard(ASKING), approve=person).begin(PAY).action == "block"
    assert not person.asked
    assert GuardedRun(guard(ASKING)).begin(PAY, approved=True).action == "block"


def test_what_happens_while_a_person_thinks_counts() -> None:
    """The order is paid from elsewhere meanwhile: then his yes is no longer enough."""

    def slow(call: Call, decision: Decision) -> bool:
        assert run.begin(Call("pay", {"order": 7, "amount": 1}, "other")).runs
        return True

    run = GuardedRun(guard(ASKING + "rule once: at most 1 pay\n"), approve=slow)
    run.begin(APPROVE)
    assert run.begin(PAY).action == "block"


def test_what_was_made_without_asking_is_told_though_it_was_forbidden() -> None:
    record = Record()
    run = GuardedRun(guard(), audit=record)
    run.made(PAY)
    assert record.words == ["call pay"]
    assert run.stop().runs


def test_asking_in_asynchronous_runs() -> None:
    async def both() -> None:
        for approve in (person, person.waits, lambda call, decision: person.waits(call, decision)):
            run = GuardedRun(guard(ASKING), approve=approve)
            decisions = await run.abegin_all([APPROVE, PAY])
            assert [decision.action for decision in decisions] == ["allow", "allow"]

    person = Person(True)
    asyncio.run(both())
    assert len(person.asked) == 3
    run = GuardedRun(guard(ASKING), approve=person.waits)
    run.begin(APPROVE)
    with pytest.raises(TypeError, match="use abegin"):
        run.begin(PAY)


def test_a_record_that_fails_leaves_the_state_as_it_was() -> None:
    def full(line: Noted) -> None:
        raise OSError("the disk is full")

    run = GuardedRun(guard(), audit=full)
    before = run.state
    for tried in (
        lambda: run.begin(APPROVE),
        lambda: run.said(Said("user", "hello")),
        lambda: run.result(Result("look")),
    ):
        with pytest.raises(OSError, match="full"):
            tried()
        assert run.state is before


def test_of_many_threads_that_want_what_may_happen_once_one_gets_it() -> None:
    def wanted(number: int) -> bool:
        met.wait(5)
        return run.begin(Call("pay", {"order": number}, str(number))).runs

    run, met = GuardedRun(guard(ONCE)), Barrier(8)
    run.begin(APPROVE)
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(wanted, range(8))) == 1


@pytest.mark.parametrize(("severity", "level"), [("log", logging.INFO), ("warn", logging.WARNING)])
def test_what_is_only_logged_is_logged(severity: str, level: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "formal_llm.guard")
    run = GuardedRun(guard(severity=severity))
    assert run.begin(PAY).action == severity
    assert [found.levelno for found in caplog.records] == [level]
    assert "pay" in caplog.records[0].getMessage()
