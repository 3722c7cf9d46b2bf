from __future__ import annotations

import pytest

from formal_llm.guard.rules.data import Undetermined
from formal_llm.guard.rules.expressions import Constant, FieldPath
from formal_llm.procedures.terms import CallScope, CallSucceeds, CallValue


class Results:
    def get_result(self, call: CallValue, scope: object) -> object:
        return {"a": [{"b": 1}, {"b": 2}], "key": "a"}

    def has_succeeded(self, call: CallValue, scope: object) -> bool:
        return True


def test_values_inside_what_a_call_returned() -> None:
    scope = CallScope({"name": "a"}, {}, results=Results())  # type: ignore[arg-type]
    call = CallValue("look", (Constant("x"),), ("a", None, "b"))
    assert (call.evaluate_in(scope), str(call)) == ([1, 2], 'look("x").a[*].b')
    by_name = CallValue("look", (), (FieldPath(("name",)), 1, "b"))
    assert (by_name.evaluate_in(scope), str(by_name)) == (2, "look()[name][1].b")
    assert CallSucceeds(call).evaluate_in(scope) is True
    with pytest.raises(Undetermined, match=r"look\(\)\.c is missing"):
        CallValue("look", (), ("c",)).evaluate_in(scope)
    with pytest.raises(Undetermined, match="there are no calls here"):
        call.evaluate_in(CallScope({}, {}))
