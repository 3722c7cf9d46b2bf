"""A proof without a search."""

from __future__ import annotations

from formal_llm.guard import Call, Guard, GuardRules


def test_relaxation() -> None:
    text = "".join(f"t{n}: t{n}\nrule p{n}: t{n} before z\n" for n in range(30))
    guard = Guard(GuardRules.from_string("z: z\nx: x\n" + text + "rule e: at least 1 z\nrule f: never t7 after x\n"))
    assert set(guard.start().check(Call("x")).rules) == {"p7", "e", "f"}
    ((_, supervisor),) = guard.list_supervisors(frozenset())
    assert guard.start().check(Call("t3")).certain
    assert supervisor.lookouts[0].visited < 10_000  # of 2 to the power of 30


def test_what_a_copy_owes_the_other_rules_forbid() -> None:
    """For one order: a letter after each call, and no letter once there was a payment."""
    text = "c: call with order = order\nl: letter with order = order\np: pay\n"
    rules = "rule r0 for each order: l after each c\nrule r1: never l after p\nrule r2: c before p\n"
    guard = Guard(GuardRules.from_string(text + rules))
    called = guard.start().after(Call("call", {"order": 1}))
    assert called.check(Call("pay")).action == "block" and called.check(Call("pay")).certain
    written = called.after(Call("letter", {"order": 1}))
    assert written.check(Call("pay")).action == "allow"
    ((_, supervisor),) = guard.list_supervisors(frozenset())
    assert supervisor.lookouts[0].visited < 50  # of orders without end
