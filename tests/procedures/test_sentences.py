"""Which facts sentences state: what is clear is read, what is not clear is not."""

from __future__ import annotations

import pytest

from formal_llm.procedures import Hole, Procedure
from formal_llm.procedures.sentences import SentenceReader
from tests.procedures.test_access_example import FOLDER

SHOP = Procedure.from_string("""
constant longest = 30d
constant largest = 500
constant few = 3
constant share = 20

check today() "What day it is."
check find_order(order_id: text) "Looks an order up."
check find_customer(email: text) "Looks a customer up."
check count_returns(email: text) "How many returns a customer has had this year."
check is_fraud_suspect(email: text) "Whether the fraud team has flagged the customer."
action verify_customer(email: text, code: text) "Verifies the code that a customer got."
    changes nothing
goal action refund(order_id: text, email: text, amount: number) "Pays money back for an order."
goal action move_points(email: text, email_to: text) "Moves points to another customer."

fact verified(email): verify_customer(email, code) is ok
fact delivered_recently(order_id) "Delivered not long ago.": date(today()) - date(find_order(order_id).day) <= longest
fact refunded(order_id) "The order has already been paid back.": find_order(order_id).state == "refunded"
fact damaged(order_id): find_order(order_id).condition == "damaged"
fact small(amount): amount <= largest
fact within_total(order_id, amount) "Not larger than the total.": amount <= find_order(order_id).total
fact few_returns(email): count_returns(email) < few
fact gold_member(email): find_customer(email).tier == "gold"
fact no_debts(email): find_customer(email).debts == 0
fact same_country(order_id, email): find_order(order_id).country == find_customer(email).country
fact has_dl(email): find_customer(email).driver_license != null
fact affordable(amount, email): amount <= find_customer(email).income * share / 100
""")
ACCESS = Procedure.from_file(FOLDER / "access.procedure")


def read(text: str, tool: str = "refund", procedure: Procedure = SHOP) -> str:
    need, _ = SentenceReader(procedure).read_sentence(text, procedure.tools[tool])
    return "?" if isinstance(need, Hole) else str(need)


@pytest.mark.parametrize(
    ("text", "need"),
    [
        ("The customer is verified.", "verified(email)"),
        ("The customer has not been verified.", "not verified(email)"),
        ("The item isn't damaged.", "not damaged(order_id)"),
        ("The customer is a gold member.", "gold_member(email)"),
        ("The fraud team has flagged the customer.", "is_fraud_suspect(email)"),
        ("The amount is at most 500.", "small(amount)"),
        ("The amount exceeds 500.", "not small(amount)"),
        ("The amount must be smaller than the order's total.", "within_total(order_id, amount)"),
        ("The total of the order is at least the amount.", "within_total(order_id, amount)"),
        ("The amount must be over the total of the order.", "not within_total(order_id, amount)"),
        ("The order was delivered within the last 30 days.", "delivered_recently(order_id)"),
        ("The order was delivered more than 30 days ago.", "not delivered_recently(order_id)"),
        ("The customer has fewer than three returns.", "few_returns(email)"),
        ('The user "email" **must not have** any debts to proceed.', "no_debts(email)"),
        ("The debts of the customer must be zero.", "no_debts(email)"),
        ("The customer must have debts.", "not no_debts(email)"),
        ("The country of the order is the same as that of the customer.", "same_country(order_id, email)"),
        ("The country of the customer is different from that of the order.", "not same_country(order_id, email)"),
        ('The customer has a "driver_license" that is not null.', "has_dl(email)"),
        ("The driver license of the customer is missing.", "not has_dl(email)"),
        ("The amount must not exceed 20 percent of the customer's income.", "affordable(amount, email)"),
        ("The order must not be refunded already. Refunds are known by their state.", "not refunded(order_id)"),
    ],
)
def test_what_is_clear_is_read(text: str, need: str) -> None:
    assert read(text) == need


@pytest.mark.parametrize(
    "text",
    [
        "The customer seems honest.",
        "The customer has a platinum membership.",
        "The order was delivered more than 60 days ago.",  # another number
        "The order was delivered within the last 30 hours.",  # another unit
        "The amount is 200 or more.",
        'The tier of the customer is "silver".',  # another text
        "The order was delivered.",  # half of a fact
        "The customer is verified and the order is not damaged.",  # two sentences
        "The customer is a gold member or has a coupon.",
        "If the item is damaged, the customer is a gold member.",
        "Neither the item nor the package is damaged, or not.",
        "The customer was verified by a manager.",
        "Orders that were paid by gift card are not damaged.",
        "The customer is verified. A code must be shown to the courier, too.",
    ],
)
def test_what_is_not_clear_stays_a_hole(text: str) -> None:
    assert read(text) == "?"


def test_values_are_those_that_the_sentence_names() -> None:
    assert read('The customer "email_to" is verified.', "move_points") == "verified(email_to)"
    assert read('The customer "email" is verified.', "move_points") == "verified(email)"
    assert read("The customer is verified.", "move_points") == "?"  # which of the two?
    assert read("The order is damaged.", "move_points") == "?"  # the tool has no order
    assert read('The order "order_id" is damaged.', "move_points") == "damaged(order_id)"


def test_a_boundary_that_differs_is_doubtful() -> None:
    reader = SentenceReader(SHOP)
    for text, doubtful in (
        ("The customer has fewer than 3 returns.", False), ("The customer must have no more than 3 returns.", True),
        ("The amount is at most 500.", False), ("The amount is less than 500.", True),
    ):  # fmt: skip
        need, doubt = reader.read_sentence(text, SHOP.tools["refund"])
        assert not isinstance(need, Hole)
        assert bool(doubt) is doubtful


def test_a_fact_that_is_taken_away_is_not_replaced_by_another() -> None:
    text = "The customer is a gold member."
    reader = SentenceReader(SHOP)
    reader.statements = [one for one in reader.statements if one.name != "gold_member"]
    assert isinstance(reader.read_sentence(text, SHOP.tools["refund"])[0], Hole)


def test_a_model_may_choose_from_the_likeliest_facts_and_their_opposites() -> None:
    options = SentenceReader(SHOP).list_options("Nothing at the address is damaged.")
    assert [text for text, _ in options[:2]] == ["damaged(order_id)", "not damaged(order_id)"]
    assert len(options) == 20


@pytest.mark.parametrize(
    ("text", "tool", "need"),
    [
        ("The employee has been verified with their PIN.", "grant_access", "verified(employee_id)"),
        ("The employee has proved who they are with their PIN.", "grant_access", "?"),
        ("The person who asks has been verified with their PIN.", "revoke_access", "?"),
        ("The employee has no access to the system yet.", "grant_access", "not has_access(employee_id, system)"),
        ("The employee has access to a system that conflicts with the new one.", "grant_access", "?"),
        ("The employee had the security training at most 730 days ago.", "extend_access", "trained(employee_id)"),
        ("The last reset was at least one day ago.", "reset_password", "?"),
    ],
)
def test_the_access_policy(text: str, tool: str, need: str) -> None:
    assert read(text, tool, ACCESS) == need
