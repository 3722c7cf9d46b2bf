from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

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
        look(x).items[.price == 0.2 and not .gone].price * 2 == 0.4
        not look(x).missing == 1 or look(x).names contains "z" or has(look(x).day)
"""
    result = {
        "day": "2026-05-01",
        "items": [{"price": 0.1}, {"price": 0.2, "gone": False}],
        "names": {"a": "nine"},
        "missing": 2,
    }
    procedure = Procedure.from_string(text)
    tools = {"look": lambda x, y: result, "act": lambda x, word: True}
    outcome = run_procedure(procedure, "", None, tools, goal="act", known={"x": 1, "word": "a"})
    assert outcome.ending == "done"
    assert check_evidence(json.dumps(write_evidence(procedure, outcome))) == []


CLAIMS = """
check claims(user)
goal action pay(user, number, amount)
    all of
        claims(user)[.number == number].amount >= amount
        sum(claims(user)[* where .state == "open" or .amount < 2].amount) <= 5
"""
claims = st.fixed_dictionaries(
    {}, optional={"number": st.integers(0, 2), "amount": st.integers(0, 4), "state": st.sampled_from(["open", "shut"])}
)


@given(st.lists(claims, max_size=4), st.integers(0, 2))
def test_items_chosen_by_their_fields_are_those_of_an_oracle(rows: list[dict], number: int) -> None:
    procedure = Procedure.from_string(CLAIMS)
    tools = {"claims": lambda user: rows, "pay": lambda **_: True}
    known = {"user": "ada", "number": number, "amount": 1}
    outcome = run_procedure(procedure, "", None, tools, goal="pay", known=known)
    assert check_evidence(json.dumps(write_evidence(procedure, outcome))) == []
    own = [row.get("amount") for row in rows if row.get("number", number) == number]
    has_one = len(own) == 1 and all("number" in row for row in rows) and own[0] is not None
    counts = [row.get("state") == "open" or row.get("amount", 9) < 2 for row in rows]
    known_counts = all(counts[place] or {"state", "amount"} <= row.keys() for place, row in enumerate(rows))
    amounts = [row.get("amount") for row, is_in in zip(rows, counts, strict=True) if is_in]
    has_sum = known_counts and None not in amounts
    holds = [own[0] >= 1 if has_one else None, sum(amounts) <= 5 if has_sum else None]
    wanted = "declined" if False in holds else "handed over" if None in holds else "done"
    assert outcome.ending == wanted
