"""The example of ``examples/access/``: each case ends as the policy says, and only what was done changed anything."""

from __future__ import annotations

import importlib.util
import sqlite3
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from formal_llm.planning import Strategy
from formal_llm.procedures import Call, Procedure, check_evidence, run_procedure, write_evidence
from formal_llm.procedures.foreseeing import follow_run

FOLDER = Path(__file__).parents[2] / "examples" / "access"
CASES = tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8"))["case"]
PROCEDURE = Procedure.from_file(FOLDER / "access.procedure")


def load_tools() -> Any:
    """The module ``examples/access/tools.py``, which is in no package."""
    spec = importlib.util.spec_from_file_location("access_tools", FOLDER / "tools.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOLS = load_tools()


@cache
def find_strategy(goal: str, known: tuple[str, ...]) -> Strategy:
    return PROCEDURE.strategy(goal, known)


def content(database: sqlite3.Connection) -> list[str]:
    return list(database.iterdump())


def test_there_are_40_cases_and_half_of_them_succeed() -> None:
    assert Counter(case["ending"] for case in CASES) == {"done": 20, "declined": 17, "handed over": 3}
    assert {case["goal"] for case in CASES} == {tool.name for tool in PROCEDURE.tools.values() if tool.is_goal}


@pytest.mark.parametrize("case", CASES, ids=[f"{case['goal']}-{number}" for number, case in enumerate(CASES, 1)])
def test_a_case_ends_as_the_policy_says(case: dict[str, Any]) -> None:
    database = TOOLS.example_database()
    before = content(database)
    asked: list[Call] = []

    def person(call: Call) -> bool:
        asked.append(call)
        return case["person"] == "yes"

    outcome = run_procedure(
        PROCEDURE,
        case["request"],
        None,
        TOOLS.make_toolkit(database),
        goal=case["goal"],
        known=case["known"],
        approve=person if "person" in case else None,
    )
    assert outcome.ending == case["ending"], str(outcome)
    if outcome.ending != "done":
        assert case["fails"] in [finding.leaf for finding in outcome.why]
    assert (content(database) != before) == (outcome.ending == "done" and case["goal"] != "report_access")
    assert [call.tool for call in asked] == (["sign_exception"] if "person" in case else [])
    assert check_evidence(write_evidence(PROCEDURE, outcome)) == []
    names = tuple(sorted(case["known"].keys() & PROCEDURE.names))
    strategy = find_strategy(case["goal"], names)
    followed = follow_run(PROCEDURE, strategy, outcome, names)
    assert strategy.nodes[followed.node].question.partition(":")[0] == outcome.ending


def test_the_tools_themselves_would_do_it() -> None:
    database = TOOLS.example_database()
    toolkit = TOOLS.make_toolkit(database)
    assert toolkit["grant_access"].function("dot", "payroll", "2099-12-31") is True
    assert ("dot", "2099-12-31") in [
        tuple(row) for row in database.execute("SELECT employee_id, until_day FROM access")
    ]


def test_a_part_of_the_policy_that_is_drawn_asks_for_the_same() -> None:
    drawn = Procedure.from_file(FOLDER / "extend_access.mmd")
    assert drawn.tools["extend_access"].need == PROCEDURE.tools["extend_access"].need
