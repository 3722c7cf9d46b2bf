from __future__ import annotations

import pytest
from hypothesis import given

from formal_llm.errors import NotationError
from formal_llm.procedures import Hole, Procedure
from tests.procedures.procedures_at_random import World, worlds
from tests.strategies import examples

TEXT = """constant longest = 30d
check find_order(order_id: text) "Looks an order up."
check now()
    cost 3
action verify(email: text, code: text)
    changes nothing
action log_out(email)
    changes find_order
goal action refund(order_id: text, email: text, amount: number = 5, unit: "EUR" | "USD" = "EUR") "Pays back."
    idempotent
    approved
    with amount = sum(find_order(order_id).items[*].price)
    all of
        verified(email)
        any of
            now() - find_order(order_id).date <= longest
            find_order(order_id).states[email].last == "lost"
            find_order(order_id).items[.id == order_id and .price > 3].count == 2
            len(find_order(order_id).items[* where not .price < 3].parts[*]) == 2
        none of
            find_order(order_id).state in {"refunded", "closed"}
        ? "The customer seems honest."
fact verified(email) "The customer is known.": verify(email, code) is ok until log_out(email)
"""


def test_printing_and_reading_is_the_identity() -> None:
    procedure = Procedure.from_string(TEXT)
    assert str(procedure) == TEXT
    again = Procedure.from_string(str(procedure))
    assert (again.tools, again.facts, again.constants) == (procedure.tools, procedure.facts, procedure.constants)
    assert procedure.holes == (("refund", "The customer seems honest."),)
    assert isinstance(procedure.tools["refund"].need.parts[3], Hole)


@examples(100)
@given(worlds())
def test_random_procedures_print_and_read(world: World) -> None:
    again = Procedure.from_string(str(world.procedure))
    assert str(again) == str(world.procedure)
    assert again.facts == world.procedure.facts


def test_a_condition_goes_on_in_lines_that_are_indented_further() -> None:
    procedure = Procedure.from_string("check a(x)\ngoal action g(x)\n    a(x) +\n        2\n        > 3  # so\n")
    assert str(procedure.tools["g"].need) == "a(x) + 2 > 3"


WRONG = [
    ("", "there are no tools", None),
    ("goal actoin f(a)", "unexpected 'actoin'", "did you mean action?"),
    (
        "goal action f(a)\n    vrified(a)\nfact verified(b): b == 3",
        "unknown tool, fact or function: vrified",
        "verified",
    ),
    ("goal action f(a: txt)", "unknown type: txt", "text"),
    ("goal action f(a)\n    amout > 3\ncheck g(amount)", "unknown name in f: amout", "amount"),
    ("goal action f(a)\n    a = 3", "unexpected '='", "=="),
    ("goal action f(a)\n    a ==", "the line ends too early", None),
    ("goal action f(a)\ngoal action f(b)", "a second f; the first is in line 1", None),
    ("goal action f(a, a)", "f has a parameter twice", None),
    ("goal action f(a)\n    x(a)\nfact x(a): f(a) is ok", "f needs itself before it can be established", None),
    ("goal action f(a)\n    g(a)\naction g(a)", "g is an action, which only a fact may name", "is ok"),
    ("goal action f(a)\n    g(a, 1)\ncheck g(a)", "g takes 1 value, not 2", None),
    ("goal action f(a)\n    x(a, 1)\nfact x(a): a > 1", "x is about 1 value, not 2", None),
    ("goal action f(a)\n    x(a) + 1 > 2\nfact x(a): a > 1", "x(a) is a yes or no within a value", "groups"),
    ("goal action f(a)\n    all of", "a group without parts", "indent"),
    ("    all of", "this line belongs to no tool and no fact", None),
    ("goal action f(a)\n\ta > 1", "a line that is indented by a tab", "spaces"),
    ("check f(a)\nfact x(a): f(a) until f(a)", "only a fact that an action establishes ends by 'until'", None),
    ("goal action f(a)\n    changes g", "g is no check", None),
    ("goal action f(a)\n    with b = 3", "f has no parameter b", None),
    ("check f(a)\nfact x(a):", "x has no condition", None),
    ("check f(a)\n    a > 1 until f", "'until' belongs to a fact", None),
    ("check f(a)\n    f(.b)[.a == 2] == 1", "b of which item?", "items[.b == 1]"),
    ("check f(a)\n    a[.x == f(.y)] == 1", "what is called cannot depend on the items", None),
    ("check f(a)\n    a[* where x(.y)] == 1\nfact x(a): a > 1", "what is called cannot depend on the items", None),
    ("check f(a)\n    a[* where .y and x(a)] == 1\nfact x(a): a > 1", "x(a) is a yes or no within a value", None),
    ("check f(a)\n    a is ok", "'is ok' follows a call of a tool", None),
    ("check f(a)\n    a[a] > 1\nconstant c = f(3)", "a constant is a number", None),
]


@pytest.mark.parametrize(("text", "problem", "suggestion"), WRONG)
def test_errors_name_the_place_and_the_way_out(text: str, problem: str, suggestion: str | None) -> None:
    with pytest.raises(NotationError) as caught:
        Procedure.from_string(text, file="my.procedure")
    assert problem in str(caught.value)
    assert (suggestion or "") in str(caught.value)
    if text:
        assert caught.value.line is not None
        assert str(caught.value).startswith(f"my.procedure:{caught.value.line}:")


def test_places_are_those_of_the_file() -> None:
    with pytest.raises(NotationError) as caught:
        Procedure.from_string("# first\n\ncheck a(x)\ngoal action g(x)\n    all of\n        a(x)\n        b(x)\n")
    assert (caught.value.line, caught.value.column) == (7, 9)


PLACES = {
    "check a(x)\ngoal action g(x)\n    all of\n        a(x)\n        xx > 2": (5, 9),
    "action a(x)\ngoal action g(x)\n    x > 1\n    a(x)": (4, 5),
    "check a(x)\ngoal action g(x)\n    with x = a(y)": (3, 5),
    "action a(x)\ngoal action g(x)\n    with x = a(x)": (3, 5),
    "check a(x)\ngoal action g(x)\n    a(x)\n    f(x)\nfact f(x): not f(x)": (4, 5),
    "check a(x)\n    g(x)\n    x > 1\ncheck g(x)\n    x > 3\n    a(x)": (2, 5),
    "action a(x)\ncheck b(x)\nfact f(x):\n    any of\n        b(x)\n        a(x) is ok": (6, 9),
    "check a(x)\nfact f(x):\n    any of\n        x > 2\n        a(z)": (5, 9),
}


@pytest.mark.parametrize("text", PLACES)
def test_what_is_wrong_with_a_need_is_placed_at_its_line(text: str) -> None:
    with pytest.raises(NotationError) as caught:
        Procedure.from_string(text)
    assert (caught.value.line, caught.value.column) == PLACES[text], caught.value
