"""What can happen."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.guard import Call, Guard, GuardRules, Result
from formal_llm.guard.rules.labels import Labeller
from formal_llm.guard.rules.possible_events import find_possible_events, find_possible_results
from formal_llm.guard.rules.reading import read_rules
from tests.strategies import examples


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


@pytest.mark.parametrize(
    "condition",
    [
        "len(p) > 0", 'not inside(p, ".")', 'reaches(p, ".git")', 'runs(p, "git push")', "overlap(p, q)",
        'len(p) > 0 or runs(q, "a") or not inside(r, ".")',
    ],
)  # fmt: skip
def test_a_call_with_empty_lists_is_known_to_be_possible(condition: str) -> None:
    """So that rules about lists leave a way: what they forbid need not happen."""
    labeller = Labeller(read_rules(f"a: t[{condition}]\nrule r: never a").letters)
    assert frozenset() in find_possible_events(labeller, "call", "t").least


def test_a_condition_that_need_not_be_known_is_tried() -> None:
    labeller = Labeller(read_rules("a: t[holds(p)]\nrule r: never a").letters)
    found = find_possible_events(labeller, "call", "t")
    assert set(found.least) == {frozenset(), frozenset("a")} and not found.doubtful


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


@pytest.mark.parametrize("constants", [
    ("2026-01-09", "2026-01-10", "2026-01-12"),
    ("2026-01-09T10:00:00", "2026-01-09T10:00:01", "2026-01-09T10:00:03"),
    ("9:00:00", "9:00:01", "9:00:03"),
    ("10s", "11s", "13s"),
])  # fmt: skip
@given(st.data())
@examples(30)
def test_all_sets_of_letters_of_dates_and_times(constants: tuple[str, ...], data: st.DataObject) -> None:
    """Tried by hand: every day, or every half second, around the constants."""
    atoms = st.builds("p {} {}".format, st.sampled_from(["<", "<=", "==", "!=", ">"]), st.sampled_from(constants))
    drawn = data.draw(st.lists(st.lists(atoms, min_size=1, max_size=2).map(" and ".join), min_size=1, max_size=3))
    labeller = Labeller(
        read_rules("".join(f"l{n}: t[{one}]\n" for n, one in enumerate(drawn)) + "rule r: never l0").letters
    )
    if constants[0] == "10s":
        tried: list[object] = [number / 2 for number in range(18, 29)]
    elif constants[0] == "2026-01-09":
        tried = [f"2026-01-{day:02}" for day in range(8, 14)]
    else:
        start = datetime(2026, 1, 9, 9 if constants[0] == "9:00:00" else 10)
        moments = [start + timedelta(seconds=half / 2) for half in range(-2, 9)]
        tried = [(one.time() if constants[0] == "9:00:00" else one).isoformat() for one in moments]
    wanted = {frozenset(labeller.label_event(Call("t", {"p": one})).letters) for one in tried}
    found = find_possible_events(labeller, "call", "t")
    assert (set(found.least), found.doubtful) == (wanted, set())


@given(
    st.lists(
        st.builds("{} {}".format, st.sampled_from(["<", ">="]), st.sampled_from(["9:00:00", "9:00:01"])),
        min_size=1,
        max_size=2,
        unique=True,
    ),
    st.sets(st.sampled_from(["Mon", "Sun"]), min_size=1),
)
@examples(20)
def test_all_sets_of_letters_of_the_time_now(times: list[str], days: set[str]) -> None:
    conditions = [*(f"time(now) {one}" for one in times), *(f'weekday(now) == "{day}"' for day in sorted(days))]
    labeller = Labeller(
        read_rules("".join(f"l{n}: t[{one}]\n" for n, one in enumerate(conditions)) + "rule r: never l0").letters
    )
    halves = [
        datetime(2026, 1, day, 8, 59, 59, tzinfo=UTC) + timedelta(seconds=half / 2)
        for day in range(5, 12) for half in range(6)
    ]  # fmt: skip
    wanted = {frozenset(labeller.label_event(Call("t", at=one)).letters) for one in halves}
    assert set(find_possible_events(labeller, "call", "t").least) == wanted


def test_the_least_amount_of_a_call_is_nothing_and_never_less() -> None:
    labeller = Labeller(read_rules("a: t with c = n\nb: t[n > 5] with c = n\nrule r: budget c <= 8\n").letters)
    least = find_possible_events(labeller, "call", "t").least
    assert least[frozenset("a")] == {"c": 0}
    assert 5 < least[frozenset("ab")]["c"] < 5.1
    below = Labeller(read_rules("a: t[n < -2] with c = n\nrule r: budget c <= 8\n").letters)
    assert find_possible_events(below, "call", "t").least[frozenset("a")] == {}  # less than nothing is no amount


def test_a_letter_without_a_condition_is_always_there() -> None:
    """Also where it is not known which other letters the event has: no call of the tool is open."""
    text = (
        "found: find.result[ok]\ndata: get_*\nodd: get_x[not found(n)]\nrule r: found before data\nrule s: never odd\n"
    )
    rules = GuardRules.from_string(text.replace("[ok]", "[ok] with n = n"))
    found = find_possible_events(rules.labeller, "call", "get_x")
    assert {letters for letters in (*found.least, *found.doubtful) if "data" not in letters} == set()
    assert Guard(rules, ["find", "get_x"]).start().allowed_tools() == ("find",)


def test_results_after_all_calls_that_differ_in_what_they_pass_on() -> None:
    text = (
        "small: pay[n < 5]\nodd: pay[m == 3]\nlow: pay.result[n < 5 and done]\nrule r: never low after odd or small\n"
    )
    labeller = GuardRules.from_string(text).labeller
    found = find_possible_results(labeller, "pay")
    wanted: dict[frozenset[str], set[frozenset[str]]] = {}
    for n, m, done in product((4, 6), (2, 3), (True, False)):
        call = Call("pay", {"n": n, "m": m})
        result = Result("pay", call.arguments, {"done": done})
        letters = wanted.setdefault(frozenset(labeller.label_event(call).letters), set())
        letters.add(frozenset(labeller.label_event(result).letters))
    assert {call: set(variants.least) for call, variants in found.items()} == wanted
