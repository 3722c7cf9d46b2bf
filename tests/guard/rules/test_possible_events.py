"""What can happen."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.guard import Call, Guard, GuardRules
from formal_llm.guard.rules.labels import Labeller
from formal_llm.guard.rules.possible_events import find_possible_events
from formal_llm.guard.rules.reading import read_rules
from tests.guard.short_runs import test_guards_against_all_short_runs as test_guards_against_all_short_runs
from tests.guard.whole_product import test_as_the_whole_product as test_as_the_whole_product


def test_plant() -> None:
    rules = GuardRules.from_string("a: web_*\nb: a.result[ok]\nrule r: a before b\n")
    assert Guard(rules).plant.tools == ("web_…", "a")
    assert Guard(rules, ["web_get", "x"]).plant.tools == ("web_get",)


@pytest.mark.parametrize(("name", "tool"), [("web_*", "web_…"), ("get_?", "get_…"), ("*_?", "…_…"), ("plain", "plain")])
def test_a_tool_that_a_name_with_stars_may_mean(name: str, tool: str) -> None:
    assert Guard(GuardRules.from_string(f"a: {name}\nrule r: never a\n")).plant.tools == (tool,)


def test_what_is_only_perhaps_is_doubtful() -> None:
    for kind in ("t", "t.result"):
        plant = Guard(GuardRules.from_string(f"a: {kind}[p * q == 7]\nrule r: never a\n")).plant
        of_kind = [one for one in plant.symbols if one.kind == ("result" if "." in kind else "call")]
        assert {(one.doubtful, one.letters) for one in of_kind} == {(False, frozenset()), (True, frozenset("a"))}


ATOMS = st.builds(
    "{} {} {}".format, st.sampled_from("pq"), st.sampled_from(["<", "<=", "==", "!=", ">"]), st.integers(0, 3)
)


@given(st.lists(st.lists(ATOMS, min_size=1, max_size=2).map(" and ".join), min_size=1, max_size=3))
def test_all_sets_of_letters(conditions: list[str]) -> None:
    text = "".join(f"l{place}: t[{one}]\n" for place, one in enumerate(conditions))
    labeller = Labeller(read_rules(text + "rule r: never l0").letters)
    halves = [number / 2 for number in range(-2, 9)]
    wanted = {frozenset(labeller.label_event(Call("t", {"p": p, "q": q})).letters) for p, q in product(halves, halves)}
    found = find_possible_events(labeller, "call", "t")
    assert not found.doubtful
    assert set(found.least) == wanted


def test_the_least_amount_of_a_call_is_nothing_and_never_less() -> None:
    labeller = Labeller(read_rules("a: t with c = n\nb: t[n > 5] with c = n\nrule r: budget c <= 8\n").letters)
    least = find_possible_events(labeller, "call", "t").least
    assert least[frozenset("a")] == {"c": 0}
    assert 5 < least[frozenset("ab")]["c"] < 5.1
    below = Labeller(read_rules("a: t[n < -2] with c = n\nrule r: budget c <= 8\n").letters)
    assert find_possible_events(below, "call", "t").least[frozenset("a")] == {}  # less than nothing is no amount
