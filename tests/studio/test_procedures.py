"""Procedures in the studio."""

from __future__ import annotations

import json
from pathlib import Path

from formal_llm.procedures import Procedure, run_procedure, write_evidence
from tests.studio.texts import part, parts

TEXT = """
check look(x) "Looks."
goal action act(x)
    look(x) > 1
goal action other(x)
    ? "It seems right."
"""


def test_a_check_shows_the_goals_and_the_strategy_of_one() -> None:
    assert [one["part"] for one in parts("check", TEXT, ".procedure")] == ["problems", "picture"]
    found = part("problems", "check", TEXT, ".procedure")
    assert [row["value"] for row in found["facts"]] == ["act, other", "5 ways; at most 2 calls, cost 2"]
    assert [one["message"] for one in found["problems"]] == ["other: not understood: It seems right."]
    assert "look#40;x#41; #62; 1" in part("picture", "check", TEXT, ".procedure")["mermaid"]
    assert "look" not in part("picture", "picture", TEXT, ".procedure", near="other")["mermaid"]


def test_an_error_has_its_line() -> None:
    (only,) = parts("check", "check look(x)\ngoal act(", ".procedure")
    assert only["problems"][0]["line"] == 2


def test_a_procedure_without_goals_says_so() -> None:
    assert part("undecided", "check", "check look(x)\n", ".procedure")["reason"] == "the procedure has no goal"


def test_a_run_is_shown_where_it_is() -> None:
    procedure = Procedure.from_string(TEXT)
    tools = {"look": lambda x: 1, "act": lambda x: True, "other": lambda x: True}
    outcome = run_procedure(procedure, "", None, tools, goal="act", known={"x": 3})
    for plan in (outcome.to_data(), write_evidence(procedure, outcome)):
        verdict, picture = parts("judge", TEXT, ".procedure", plan=json.dumps(plan))
        assert (verdict["valid"], verdict["reason"]) == (True, "declined: look(x) > 1 does not hold")
        assert verdict["word"] == {"names": ["look"], "labels": ["look(x=3)"]}
        assert "Marked:" in picture["text"]
    for plan in ("[]", "{}", "nonsense", '{"goal": "act"}'):
        assert "act --json" in part("problems", "judge", TEXT, ".procedure", plan=plan)["problems"][0]["message"]


def test_a_run_under_way_is_shown_by_its_journal(tmp_path: Path) -> None:
    text, journal = TEXT.replace('? "It seems right."', "look(x) > 2"), tmp_path / "run.journal"
    tools = {"look": lambda x: 2, "act": lambda x: True, "other": lambda x: True}
    run_procedure(Procedure.from_string(text), "", None, tools, goal="act", known={"x": 3}, journal=journal)
    lines = journal.read_text().splitlines(keepends=True)
    begun, looked, acting, acted = (
        part("verdict", "judge", text, ".procedure", plan="".join(lines[:count])) for count in (2, 3, 4, 5)
    )
    assert [one["word"]["names"] for one in (begun, looked, acting, acted)] == [[], ["look"], ["look"], ["look", "act"]]
    assert begun["reason"].startswith("under way to act or other; now: look(x) > 1")
    assert looked["reason"] == "under way to act or other; now: act(x) succeeds"
    assert acting["reason"] == "under way to act; now: act(x) succeeds"
    assert acted["reason"] == "done: act"
    changed = "".join(lines).replace('"value":2', '"value":1')
    assert "changed" in part("problems", "judge", text, ".procedure", plan=changed)["problems"][0]["message"]
