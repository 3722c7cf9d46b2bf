"""A guard in the studio."""

from __future__ import annotations

import json

from formal_llm.guard import Guard, GuardRules
from formal_llm.guard.traces import traces_of
from formal_llm.guard.verifying import verify_trace
from tests.studio.texts import part, parts

TEXT = """
approved: approve
pay: pay
rule first: approved before pay
    "Somebody approves before it is paid."
rule once: at most 1 pay
"""


def trace(*tools: str) -> list[object]:
    return [
        {"role": "assistant", "tool_calls": [{"id": str(n), "function": {"name": tool, "arguments": "{}"}}]}
        for n, tool in enumerate(tools)
    ]


def test_a_check_shows_what_each_rule_means() -> None:
    (found,) = parts("check", TEXT, ".guard")
    assert found["facts"] == [
        {"name": "first", "value": "Somebody approves before it is paid."}, {"name": "once", "value": "at most 1 pay"},
    ]  # fmt: skip
    assert found["problems"] == []


def test_problems_of_a_guard_have_their_place() -> None:
    (found,) = parts("check", "pay: pay\nrule first: aproved before pay\n", ".guard")
    assert (found["problems"][0]["kind"], found["problems"][0]["line"]) == ("error", 2)
    (found,) = parts("check", TEXT + "rule never: never pay\nrule must: at least 1 pay\n", ".guard")
    assert {one["kind"] for one in found["problems"]} == {"warning"}


def test_each_event_of_a_trace_has_its_decision() -> None:
    for tools in ((), ("approve", "pay"), ("pay",), ("approve", "pay", "pay"), ("other", "pay", "approve", "pay")):
        text = json.dumps({"messages": trace(*tools)})
        report = verify_trace(Guard(GuardRules.from_string(TEXT)), traces_of(text)[0])
        found = part("verdict", "judge", TEXT, ".guard", plan=text)
        assert found["valid"] == report.valid
        assert [one["text"] for one in found["events"]] == [f"{tool}()" for tool in tools]
        told = [(one["place"], one["action"], one["why"]) for one in found["events"] if one["action"]]
        assert told == [(one.place, one.action, one.reason) for one in report.violations]


def test_what_is_still_owed_is_shown_at_the_end() -> None:
    found = part("verdict", "judge", "pay: pay\nrule must: at least 1 pay\n", ".guard", plan=json.dumps(trace("other")))
    assert [(one["place"], bool(one["action"])) for one in found["events"]] == [("message 1", False), ("the end", True)]
    assert not found["valid"]


def test_what_is_no_trace_says_what_is_wanted() -> None:
    for plan in ("", "nonsense", "3"):
        assert "OpenTelemetry" in part("problems", "judge", TEXT, ".guard", plan=plan)["problems"][0]["message"]


def test_of_many_traces_it_says_how_many_were_left_out() -> None:
    found = parts("judge", TEXT, ".guard", plan=json.dumps([trace("approve")] * 23))
    assert [one["part"] for one in found] == ["verdict"] * 20 + ["problems"]
    assert found[-1]["problems"][0]["message"].startswith("3 more traces")
