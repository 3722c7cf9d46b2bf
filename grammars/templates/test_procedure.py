"""The procedure of NAME does what it should, and declines with the reason."""

from pathlib import Path

from tools import orders, toolkit

from formal_llm.procedures import Procedure, ProcedureOutcome, run_procedure

PROCEDURE = Procedure.from_file(Path(__file__).with_name("NAME.procedure"))


def ask_for(amount: int) -> ProcedureOutcome:
    """A refund of that amount, wanted by the customer of order A7."""
    known = {"order_id": "A7", "email": "ada@example.org", "code": "4711", "amount": amount}
    return run_procedure(PROCEDURE, f"I want {amount} back, now!", None, toolkit, goal="refund", known=known)


def test_too_much_money_is_declined() -> None:
    """The reason names what failed."""
    outcome = ask_for(95)
    assert (outcome.ending, outcome.why[0].leaf) == ("declined", "amount <= find_order(order_id).total")


def test_what_was_paid_goes_back_once() -> None:
    """The second request finds that it was refunded."""
    assert (ask_for(80).ending, ask_for(80).ending) == ("done", "declined")
    assert orders["A7"]["refunds"] == [("ada@example.org", 80)]
