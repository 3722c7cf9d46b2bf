from __future__ import annotations

from formal_llm.procedures.record import Call, MadeCall, matches_arguments


def test_equal_calls_are_equal_whatever_the_order_of_their_arguments() -> None:
    one, other = Call("f", {"a": 1, "b": [2]}), Call("f", {"b": [2], "a": 1})
    assert one == other
    assert hash(one) == hash(other)
    assert one != Call("f", {"a": 1, "b": [3]})


def test_a_call_succeeded_if_it_returned_something() -> None:
    call = Call("f", {})
    assert [MadeCall(call, value).succeeded for value in (True, 0, "", {}, False, None)] == [True] * 4 + [False] * 2
    failed = MadeCall(call, error="it broke")
    assert not failed.succeeded
    assert failed.to_data() == {"tool": "f", "arguments": {}, "error": "it broke"}


def test_arguments_match_as_the_notation_compares() -> None:
    call = Call("f", {"a": 5, "b": "x"})
    assert matches_arguments(call, {"a": "5"})
    assert not matches_arguments(call, {"a": 6})
    assert not matches_arguments(call, {"a": True})
    assert not matches_arguments(call, {"c": 1})


def test_a_made_call_is_read_back_as_it_was() -> None:
    call = Call("pay", {"amount": 5})
    for made in (MadeCall(call, {"a": [1]}), MadeCall(call, error="broke"), MadeCall(call, error="slow", unclear=True)):
        again = MadeCall.from_data(made.to_data())
        assert (again.call, again.value, again.error, again.unclear) == (call, made.value, made.error, made.unclear)
