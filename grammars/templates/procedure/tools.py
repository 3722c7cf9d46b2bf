"""The tools of the procedure. Replace the bodies with calls of your own systems."""

codes = {"ada@example.org": "4711"}
orders = {"A7": {"customer": "ada@example.org", "day": "2026-11-20", "total": 80, "state": "sent", "refunds": []}}


def refund(order_id: str, email: str, amount: float) -> bool:
    """Pay money back for an order."""
    orders[order_id]["refunds"].append((email, amount))
    orders[order_id]["state"] = "refunded"
    return True


toolkit = {
    "today": lambda: "2026-11-26",
    "find_order": lambda order_id: orders.get(order_id),
    "verify_customer": lambda email, code: code == codes.get(email),
    "refund": refund,
}
