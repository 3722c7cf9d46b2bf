from __future__ import annotations

import pytest

from formal_llm.errors import InputError
from formal_llm.procedures import Procedure, ProcedureRun, run_procedure
from formal_llm.procedures.procedure import ToolParameter
from formal_llm.procedures.run import find_misfit, is_stated, read_values


@pytest.mark.parametrize(
    ("reply", "names", "values"),
    [
        ({"a": 1}, ["a"], {"a": 1}),
        ('I think {this is it: {"a": [1, 2]} or so', ["a", "b"], {"a": [1, 2]}),
        ("ada", ["user"], {"user": "ada"}),
        ("ada and bob", ["user", "other"], {}),
        (None, ["user"], {}),
        ("", ["user"], {}),
    ],
)
def test_values_are_read_from_what_a_user_replies(reply: object, names: list[str], values: dict) -> None:
    assert read_values(reply, names) == values


def test_a_reply_that_is_nested_too_deeply_has_no_values() -> None:
    assert read_values('{"a": ' + "[" * 200_000, ("a", "b")) == {}


def test_values_fit_types() -> None:
    fitting = {
        "text": "x",
        "number": 1.5,
        "integer": 2,
        "boolean": True,
        "date": "2026-01-01",
        "list": [1],
        "any": None,
    }
    for kind, value in fitting.items():
        assert not find_misfit([ToolParameter("p", kind)], value)
    assert find_misfit([ToolParameter("p", "integer")], float("nan"))
    for kind, value in {"text": 1, "number": "1", "integer": 1.5, "boolean": 0, "list": "x", "date": "soon"}.items():
        assert find_misfit([ToolParameter("p", kind)], value)
    assert not find_misfit([ToolParameter("p", ("a", "b"))], "a")
    assert find_misfit([ToolParameter("p", ("a", "b"))], "c")


TYPED = """
check look(order: integer, unit: text)
goal action pay(order: integer, unit: "EUR" | "USD")
goal action cancel(order: integer, unit: text)
"""


def test_what_is_known_has_a_name_and_a_type() -> None:
    procedure = Procedure.from_string(TYPED)
    with pytest.raises(InputError, match=r"unknown value: ordre \(did you mean order\?\); there are order, unit"):
        ProcedureRun(procedure, "", {"ordre": 1})
    with pytest.raises(InputError, match="the value of order does not fit: '1' is no integer"):
        ProcedureRun(procedure, "", {"order": "1"})
    with pytest.raises(InputError, match="the value of unit does not fit: 'yen' is none of EUR, USD"):
        ProcedureRun(procedure, "", {"unit": "yen"}, "pay")
    assert ProcedureRun(procedure, "", {"unit": "yen"}).known == {"unit": "yen"}  # it fits another tool


def test_a_value_that_does_not_fit_the_goal_that_is_chosen_hands_over() -> None:
    tools = dict.fromkeys(("look", "pay", "cancel"), lambda **_: True)
    procedure, known = Procedure.from_string(TYPED), {"order": 1, "unit": "yen"}
    assert run_procedure(procedure, "", lambda question: 2, tools, known=known).ending == "done"
    outcome = run_procedure(procedure, "", lambda question: 1, tools, known=known)
    assert (outcome.ending, outcome.why[0].reason) == ("handed over", "'yen' is none of EUR, USD")


@pytest.mark.parametrize(
    ("value", "text", "stated"),
    [
        ("A7", "order a7, please", True),
        ("A7", "order A77", False),
        ("my lamp", "It is my\n  lamp.", True),
        ("", "anything", False),
        (95, "I want my 95 back", True),
        (95, "I want 95.50 back", False),
        (95.5, "I want 95.50 back.", True),
        (1200, "pay 1,200, now", True),
        (2, "pay 1,200", False),
        (200, "pay 1,200", False),
        (11, "on 2026-11-20 at 11:30, in room 11a", False),
        (-5, "it is -5", True),
        (5, "it is -5", False),
        (float("nan"), "nan", False),
        (True, "true", False),
        (["A7", 5], "A7 and 5 more", True),
        (["A7", 6], "A7 and 5 more", False),
        ([["A7"]], "A7", False),
        ([], "nothing", False),
        ({"a": 1}, "a 1", False),
        (None, "null", False),
    ],
)
def test_only_what_stands_in_a_text_is_stated(value: object, text: str, stated: bool) -> None:
    assert is_stated(value, text) is stated
