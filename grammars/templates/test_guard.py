"""The rules of NAME keep their examples, and stop the second payment."""

from pathlib import Path

import pytest

from formal_llm.guard import Call, Guard, GuardRules, Result
from formal_llm.guard.examples import TraceExample, load_trace_examples

RULES = Path(__file__).with_name("NAME.guard")
GUARD = Guard(GuardRules.from_file(RULES), tools=["approve", "pay"])


@pytest.mark.parametrize("example", load_trace_examples(RULES), ids=lambda one: one.why)
def test_each_example_is_kept(example: TraceExample) -> None:
    """What is allowed goes through, and what is not allowed is stopped."""
    assert example.describe_mismatch(GUARD) == ""


def test_nobody_is_paid_twice() -> None:
    """A payment needs an approval of its order, and is made once."""
    run = GUARD.start()
    approve, pay = Call("approve", {"order_id": 7}), Call("pay", {"order_id": 7, "amount": 50})
    assert run.check(pay).action == "block"
    run = run.after(approve).after(Result("approve", {"order_id": 7}, True))
    assert run.check(pay).action == "allow"
    assert run.after(pay).check(pay).action == "block"
