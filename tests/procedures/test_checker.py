from __future__ import annotations

import ast
from pathlib import Path

from formal_llm.procedures import Procedure, check_evidence, checker, run_procedure, write_evidence

TEXT = """
check look(x)
goal action act(x)
    look(x) >= 3
"""


def make_evidence(value: object) -> dict:
    tools = {"look": lambda x: value, "act": lambda x: True}
    procedure = Procedure.from_string(TEXT)
    return write_evidence(procedure, run_procedure(procedure, "", None, tools, goal="act", known={"x": 1}))


def test_it_imports_nothing_of_the_package() -> None:
    tree = ast.parse(Path(checker.__file__).read_text())
    names = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any(name.startswith("formal_llm") for name in names)


def test_forged_runs_are_found() -> None:
    done, declined = make_evidence(3), make_evidence(2)
    assert check_evidence(done) == check_evidence(declined) == []
    assert done["outcome"]["ending"] == "done"
    done["outcome"]["calls"][0]["value"] = 2
    assert check_evidence(done) == ["act was called before its need was established"]
    declined["outcome"]["calls"][0]["value"] = "4"
    assert check_evidence(declined) == ["the goal was declined, and its need is not refuted"]
    missing = make_evidence(3)
    del missing["outcome"]["calls"][0]
    assert check_evidence(missing) == ["act was called before its need was established"]


def test_a_goal_is_declined_if_the_user_lacks_a_value_that_it_is_called_with() -> None:
    procedure = Procedure.from_string("goal action act(x, y, z = 1)\n    with y = x")
    outcome = run_procedure(procedure, "", None, {"act": lambda **_: True}, goal="act")
    evidence = write_evidence(procedure, outcome)
    assert (outcome.ending, check_evidence(evidence)) == ("declined", [])
    evidence["outcome"]["known"]["x"] = 2
    assert check_evidence(evidence) == ["the goal was declined, and its need is not refuted"]
