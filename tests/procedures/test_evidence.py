from __future__ import annotations

import json

from formal_llm.procedures import Procedure, check_evidence, run_procedure, write_evidence


def test_all_kinds_of_expressions_are_written_and_checked() -> None:
    text = """
constant window = 30d
constant first = 2026-01-01
check look(x, y = null)
goal action act(x, word)
    all of
        date(look(x).day) in first..2026-12-31
        date(look(x).day) + window > first
        word in {"a", "b"}
        len(look(x).items) * 2 - 1 >= 3 / 3
        sum(look(x).items[*].price) == 0.3
        look(x).names[word] starts with "n"
        not look(x).missing == 1 or look(x).names contains "z" or has(look(x).day)
"""
    result = {"day": "2026-05-01", "items": [{"price": 0.1}, {"price": 0.2}], "names": {"a": "nine"}, "missing": 2}
    procedure = Procedure.from_string(text)
    tools = {"look": lambda x, y: result, "act": lambda x, word: True}
    outcome = run_procedure(procedure, "", None, tools, goal="act", known={"x": 1, "word": "a"})
    assert outcome.ending == "done"
    assert check_evidence(json.dumps(write_evidence(procedure, outcome))) == []
