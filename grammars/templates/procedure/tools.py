"""The tools of the procedure. Replace the bodies with calls of your own systems."""

from typing import Any

from formal_llm.tools import Toolkit, tool

codes = {"ada@example.org": "4711"}
orders: dict[str, dict[str, Any]] = {
    "A7": {"customer": "ada@example.org", "day": "2026-11-20", "total": 80, "state": "sent", "refunds": []}
}


@tool
def today() -> str:
    """Return the day."""
    return "2026-11-26"


@tool
def find_order(order_id: str) -> dict[str, Any] | None:
    """Look an order up."""
    return orders.get(order_id)


@tool
def verify_customer(email: str, code: str) -> bool:
    """Check the code that a customer got."""
    return code == codes.get(email)


@tool
def refund(order_id: str, email: str, amount: float) -> bool:
    """Pay money back for an order."""
    orders[order_id]["refunds"].append((email, amount))
    orders[order_id]["state"] = "refunded"
    return True


toolkit = Toolkit([today, find_order, verify_customer, refund])
