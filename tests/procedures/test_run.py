from __future__ import annotations

import pytest

from formal_llm.procedures.procedure import ToolParameter
from formal_llm.procedures.run import find_misfit, read_values


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
        assert not find_misfit(ToolParameter("p", kind), value)
    assert find_misfit(ToolParameter("p", "integer"), float("nan"))
    for kind, value in {"text": 1, "number": "1", "integer": 1.5, "boolean": 0, "list": "x"}.items():
        assert find_misfit(ToolParameter("p", kind), value)
    assert not find_misfit(ToolParameter("p", ("a", "b")), "a")
    assert find_misfit(ToolParameter("p", ("a", "b")), "c")
