"""Looking ahead: both guarantees against an oracle that multiplies everything out."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from formal_llm.control.plant import PlantSymbol
from formal_llm.control.search import Edge, find_controllable_set
from formal_llm.guard import Call, Guard, GuardRules
from tests.control.test_whole_product import RULES, SAID, event, oracle_of, rules_over, text
from tests.guard.oracle import EVENTS, Oracle
from tests.strategies import examples


@examples(100)
@given(
    rules=RULES,
    events=st.lists(st.sampled_from(EVENTS), max_size=4),
    guarantee=st.sampled_from(["some", "whatever"]),
    most=st.integers(1, 20),
)
def test_what_is_certain_within_a_small_bound_is_right(
    rules: list[tuple[str, str, str, int]], events: list[str], guarantee: str, most: int
) -> None:
    oracle = oracle_of(rules)
    good = oracle.some if guarantee == "some" else oracle.whatever
    rules_read = GuardRules.from_string(text(rules))
    state, place = Guard(rules_read, ("a", "b", "t"), guarantee, max_states=most).start(), oracle.start
    for name in [*events, ""]:
        if oracle.empty or place not in good:
            return
        for tool in ("a", "b", "t"):
            decision = state.check(Call(tool))
            if oracle.comes(place, tool) and decision.certain:
                assert decision.runs is (oracle.step(place, tool) in good)
        if not name or not oracle.comes(place, name):
            return
        state, place = state.after(event(name)), oracle.step(place, name)


def count_events_to_an_end(oracle: Oracle, start: tuple[int, ...], good: set[tuple[int, ...]]) -> int:
    todo, seen = deque([(start, 0)]), {start}
    while todo:
        place, count = todo.popleft()
        if oracle.accepting(place):
            return count
        for name in EVENTS:
            after = oracle.step(place, name) if oracle.comes(place, name) else None
            if after in good and after not in seen:
                seen.add(after)
                todo.append((after, count + 1))
    raise AssertionError("no end can be reached")


#: Without results: a way leaves those out that no rule distinguishes.
WITHOUT_RESULTS = rules_over("a", "b", "ab", "u")


@pytest.mark.parametrize("guarantee", ["some", "whatever"])
@given(rules=WITHOUT_RESULTS, picks=st.lists(st.sampled_from(["a", "b", "u"]), max_size=5))
@example(rules=[("never after", "u", "a", 1), ("at least", "ab", "a", 1)], picks=[])  # "a" ends it, too, at a risk
@examples(60)
def test_a_way_on_is_a_shortest_one(guarantee: str, rules: list[tuple[str, str, str, int]], picks: list[str]) -> None:
    oracle = oracle_of(rules)
    good = oracle.some if guarantee == "some" else oracle.whatever
    state, place = Guard(GuardRules.from_string(text(rules)), ("a", "b", "t"), guarantee).start(), oracle.start
    for name in [*picks, ""]:
        if oracle.empty or place not in good:
            return
        decision = state.may_stop()
        if decision.action != "allow":
            assert len(decision.way) == count_events_to_an_end(oracle, place, good)
            end = place
            for one in decision.way:
                end = oracle.step(end, {"user": "u"}.get(one, one))
                assert end in good
            assert oracle.accepting(end)
        if name:
            state, place = state.after(event(name)), oracle.step(place, name)


#: Grammars, some of them ambiguous and left recursive, with all their words up to seven letters, found by rewriting.
GRAMMARS = (
    "S -> a S b | c",
    "S -> a S b | S S | c",
    "S -> S S | a | b c",
    "S -> a S a | b S b | c",
    "S -> S a S | b | c",
)
LEFT_RECURSIVE = {GRAMMARS[1], GRAMMARS[2], GRAMMARS[4]}
MOST_LETTERS = 7


def list_words(grammar: str) -> set[str]:
    bodies = [body.replace(" ", "") for body in grammar.partition("->")[2].split("|")]
    forms, words, todo = {"S"}, set[str](), ["S"]
    for form in todo:
        before, nonterminal, after = form.partition("S")
        if not nonterminal:
            words.add(form)
            continue
        new = {f"{before}{body}{after}" for body in bodies} - forms
        todo += [one for one in new if len(one) <= MOST_LETTERS]
        forms |= new
    return words


def keeps(word: str, rules: list[tuple[str, str, str, int]]) -> bool:
    """Whether a word keeps rules, read off the whole word."""
    return all(
        {
            "at most": word.count(one) <= count,
            "at least": word.count(one) >= count,
            "before": word.partition(other)[0].count(one) >= count or other not in word,
            "never after": one not in word.partition(other)[2],
            "after each": other not in word or one in word.rpartition(other)[2],
            "at most since": all(part.count(one) <= count for part in word.split(other)),
        }[kind]
        for kind, one, other, count in rules
    )


@examples(60)
@given(
    st.sampled_from(GRAMMARS),
    st.lists(
        st.tuples(
            st.sampled_from(["at least", "before", "never after", "after each", "at most since"]),
            st.sampled_from(["ab", "bc", "ca", "ba"]),
            st.integers(1, 2),
        ),
        max_size=2,
    ),
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)),
)
def test_words_that_nest_against_all_words(
    grammar: str, drawn: list[tuple[str, str, int]], most: tuple[int, ...]
) -> None:
    """Limits keep all words short, so all can be listed; each decision is certain, but for left recursion."""
    rules = [(kind, *pair, count) for kind, pair, count in drawn]
    limits = [("at most", letter, "-", count) for letter, count in zip("abc", most, strict=True)]
    words = [word for word in list_words(grammar) if keeps(word, [*rules, *limits])]
    prefixes = {word[:size] for word in words for size in range(len(word) + 1)}
    lines = [
        f"rule r{n}: {SAID[kind].format(one, other, count)}"
        for n, (kind, one, other, count) in enumerate([*rules, *limits])
    ]
    head = f'tools a, b, c\nrule g: grammar """\n%order forward\n{grammar}\n"""\n'
    todo = [("", Guard(GuardRules.from_string(head + "\n".join(lines)), ["a", "b", "c"]).start())]
    if not prefixes:
        return
    for word, state in todo:
        for name in "abc":
            decision = state.check(Call(name))
            # Left recursion leads to infinitely many configurations, and what is not decided is marked.
            if not decision.certain:
                assert grammar in LEFT_RECURSIVE and not decision.runs
                continue
            assert decision.runs is (word + name in prefixes), (rules, limits, word + name)
            if decision.runs:
                todo.append((word + name, state.after(Call(name))))


@examples(60)
@given(
    st.sampled_from(GRAMMARS),
    st.sampled_from(["never {} after no", "no before {}", "{} after each no", "at most 1 {} since no"]),
    st.sampled_from("abc"),
    st.integers(1, 30),
)
def test_small_bounds_decide_nothing_else_about_words(grammar: str, rule: str, letter: str, most: int) -> None:
    """With errors that may come any time, a small bound leaves open what a large one decides, but never contradicts."""
    text = f'tools a, b, c\nno: a.result[error]\nrule g: grammar """\n%order forward\n{grammar}\n"""\nrule r: {rule.format(letter)}\n'
    small, large = (
        Guard(GuardRules.from_string(text), ["a", "b", "c"], "whatever", max_states=number).start()
        for number in (most, 3_000)
    )
    for name in ("a", "c", "b"):
        for tool in "abc":
            one, other = small.check(Call(tool)), large.check(Call(tool))
            assert not (one.certain and other.certain) or one.runs is other.runs
        if not large.check(Call(name)).runs:
            return
        small, large = small.after(Call(name)), large.after(Call(name))


@examples(60)
@given(st.sampled_from([None, 0, 1, 2, 4]), st.integers(1, 2), st.lists(st.integers(0, 6), min_size=1, max_size=3))
def test_budgets_reserve_what_required_letters_cost_at_least(least: int | None, count: int, spent: list[int]) -> None:
    """Of 10, calls of ``a`` may take all but the least of what is required; without a least, that is not known."""
    condition = "" if least is None else f"[amount >= {least}]"
    text = f"a: a with cost = amount\nb: b{condition} with cost = amount\nrule s: budget cost <= 10\nrule n: at least {count} b\n"
    state, left = Guard(GuardRules.from_string(text)).start(), 10
    for amount in spent:
        decision = state.check(Call("a", {"amount": amount}))
        if amount > left:
            assert not decision.runs and decision.certain
        elif least is None:
            assert decision.certain is decision.runs is (count == 1 and left - amount == 10)
            decision = replace(decision, action="allow")  # a person says yes
        else:
            assert decision.certain and decision.runs is (left - amount >= count * least)
        if decision.runs:
            state, left = state.after(Call("a", {"amount": amount})), left - amount


def test_control() -> None:
    text = "a: a\nbad: a.result[not ok]\nrule r: never bad\nrule s: at least 1 a\n"
    assert Guard(GuardRules.from_string(text), guarantee="whatever").start().check(Call("a")).action == "block"
    assert Guard(GuardRules.from_string(text)).start().check(Call("a")).action == "allow"


class Ends:
    """What :func:`find_controllable_set` asks of rules: where a run may end."""

    def __init__(self, nodes: set[int]) -> None:
        self.nodes = nodes

    def is_accepting(self, node: int) -> bool:
        return node in self.nodes


def by_definition(
    ends: set[int], edges: dict[int, list[tuple[PlantSymbol, int | None]]], bad: set[int], *, hopeful: bool
) -> set[int]:
    """The largest set, found by leaving out what breaks its definition till nothing does."""

    def is_good(target: int | None, inside: set[int]) -> bool:
        return target is not None and (target in inside if target in edges else hopeful and target not in bad)

    counted = {
        node: [(symbol, target) for symbol, target in found if not symbol.doubtful or symbol.is_controllable == hopeful]
        for node, found in edges.items()
    }
    inside = set(edges)
    while True:
        kept = {
            node for node in inside
            if all(is_good(target, inside) for symbol, target in counted[node] if not symbol.is_controllable)
        }  # fmt: skip
        reaching: set[int] = set()
        for _ in edges:
            reaching |= {
                node for node in kept
                if node in ends
                or any(is_good(target, kept) and (target in reaching or target not in edges)
                       for _, target in counted[node])
            }  # fmt: skip
        if reaching == inside:
            return inside
        inside = reaching


def test_the_largest_set_by_its_definition() -> None:
    sizes = set()
    for seed in range(600):
        rng = random.Random(seed)
        nodes, known = range(8), rng.randint(3, 8)  # from the known number on, nodes were not looked at
        symbols = [
            PlantSymbol(kind, "", frozenset(), {}, doubtful)
            for kind in ("call", "assistant", "result", "user") for doubtful in (False, False, True)
        ]  # fmt: skip
        edges = {
            node: [
                Edge(rng.choice(symbols), rng.choice([*nodes, *nodes, None]))
                for _ in range(rng.choice([0, 1, 1, 2, 3]))
            ]
            for node in range(known)
        }
        ends = {node for node in nodes if rng.random() < 0.4}
        some = {node: rng.choice([True, False, None]) for node in nodes if rng.random() < 0.5}
        bad = {node for node, value in some.items() if value is False}
        for hopeful in (False, True):
            found = find_controllable_set(Ends(ends), edges, some, hopeful=hopeful)  # type: ignore[arg-type]
            assert found == by_definition(ends, edges, bad, hopeful=hopeful), seed  # type: ignore[arg-type]
            sizes.add(len(found))
    assert sizes >= {0, 1, 2, 3, 4, 5}


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
