"""A proof without a search."""

from __future__ import annotations

from formal_llm.agents.guard import Call, Guard, GuardRules


def test_relaxation() -> None:
    text = "".join(f"t{n}: t{n}\nrule p{n}: t{n} before z\n" for n in range(30))
    guard = Guard(GuardRules.from_string("z: z\nx: x\n" + text + "rule e: at least 1 z\nrule f: never t7 after x\n"))
    assert set(guard.start().check(Call("x")).rules) == {"p7", "e", "f"}
    ((_, supervisor),) = guard.tiers(frozenset())
    assert guard.start().check(Call("t3")).certain
    assert supervisor.lookouts[0].visited < 10_000  # of 2 to the power of 30
