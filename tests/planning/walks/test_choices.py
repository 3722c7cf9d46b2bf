"""Choices: the automaton's moves made into options."""

from __future__ import annotations

import math
import random
import warnings
from itertools import chain, combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Budget, Limits, Lookahead, Planner, RandomLLM, Task, Walk, constraint
from formal_llm.automata.lookahead.lookahead import PlainSearch
from formal_llm.automata.models.limits import SumLimit
from formal_llm.automata.models.transition import Transition
from formal_llm.errors import BudgetExceeded, NoValidPlan, Undecided
from formal_llm.planning import ChoiceTable
from formal_llm.planning.plans.usage import Verdicts
from formal_llm.planning.walks.choices import Choice, RuledOut, SelectionPart, _warn_missing_solver
from formal_llm.planning.walks.wording import with_questions
from tests import strategies
from tests.planning.wandering import TOOLS, drive, keeps, subset_sum
from tests.strategies import examples


def reads(table: ChoiceTable, configuration: object) -> list[tuple[str, ...]]:
    return [choice.reads for choice in table.at(configuration, 1_000).choices]


def test_a_leading_class_is_replaced_by_its_members() -> None:
    cfg = CFG.from_string("S -> A S | x\nA -> a1 | a2")
    table = ChoiceTable(Lookahead(cfg))
    start = table.after(table.automaton.start(), table.at(table.automaton.start(), 99).choices[0])
    assert reads(table, start) == [("a1",), ("a2",), ("x",)]


def test_a_class_behind_something_else_is_asked_when_its_turn_comes() -> None:
    cfg = CFG.from_string("S -> x A | y A\nA -> a1 | a2")
    table = ChoiceTable(Lookahead(cfg))
    now = table.after(table.automaton.start(), table.at(table.automaton.start(), 99).choices[0])
    assert reads(table, now) == [("x",), ("y",)]
    now = table.after(now, table.at(now, 99).choices[1])
    assert reads(table, now) == [("a1",), ("a2",)]


def test_the_total_counts_what_was_left_out() -> None:
    cfg = CFG.from_string("S -> a S | b S | c S | ε").with_limits(Limits({"b": 0}))
    table = ChoiceTable(Lookahead(cfg))
    now = table.after(table.automaton.start(), table.at(table.automaton.start(), 99).choices[0])
    fork = table.at(now, 99)
    assert [choice.reads for choice in fork.choices] == [("a",), ("c",), ()]
    assert fork.total == 4
    # Indices name a choice whatever is left out, so a journal reads the same under other limits.
    assert [choice.index for choice in fork.choices] == [0, 2, 3]


@examples(60)
@given(strategies.limited_grammars(), st.integers(0, 1 << 30))
def test_choices_are_exactly_those_that_can_be_finished(cfg: CFG, seed: int) -> None:
    rng = random.Random(seed)
    looking = ChoiceTable(Lookahead(cfg))
    blind = ChoiceTable(Lookahead(cfg), look=False)
    plain = PlainSearch(looking.automaton, 3_000)
    now = looking.automaton.start()
    for _ in range(8):
        offered, allowed = looking.at(now, 1_000), blind.at(now, 1_000)
        if offered.several:
            break
        kept = {choice.index for choice in offered.choices}
        for choice in allowed.choices:
            after = blind.after(now, choice)
            # All moves at once lead where they lead one by one.
            stepped = now
            for move in choice.moves:
                stepped = blind.automaton.step(stepped, move)
            assert after == stepped
            steps = plain.least_moves(after)
            if steps >= 0:
                assert (choice.index in kept) == (steps < float("inf"))
        if not offered.choices:
            break
        chosen = rng.choice(offered.choices)
        after = looking.after(now, chosen)
        for move in chosen.moves:
            now = looking.automaton.step(now, move)
        assert after == now
        if not chosen.moves:
            break


@examples(40)
@given(strategies.grammars(), st.integers(1, 14))
def test_near_the_end_of_the_step_budget_only_what_fits_is_offered(cfg: CFG, steps: int) -> None:
    table = ChoiceTable(Lookahead(cfg))
    plain = PlainSearch(table.automaton, 3_000)
    start = table.automaton.start()
    for choice in table.at(start, steps).choices:
        least = plain.least_moves(table.after(start, choice))
        assert least < 0 or len(choice.moves) + least <= steps


@strategies.examples(300)
@given(
    strategies.limited_automata() | strategies.limited_automata(finite=True),
    st.sampled_from(["on", "off"]),
    st.integers(0, 1 << 30),
)
def test_plans_of_automata_by_hand_keep_their_limits(made: tuple[PDA, Limits], look: str, seed: int) -> None:
    pda, limits = made
    # Required uses matter most here: a plan may not end before them, and no option may make them impossible.
    both = limits & Limits(at_least=dict.fromkeys(list(pda.terminals)[seed % 3 : seed % 3 + 1], 1))
    lookahead = Lookahead(pda, both)
    budget = Budget(steps=30, backtracks=60, questions=60)
    try:
        planner = Planner(pda, RandomLLM(seed), limits=both, lookahead=look, budget=budget)  # type: ignore[arg-type]
        plan = planner.plan("t")
    except NoValidPlan:
        assert lookahead.completable().value == "no"
        return
    except BudgetExceeded:
        return
    assert lookahead.automaton.accepts(plan.word)
    if look == "on":
        assert plan.usage.backtracks == 0


@strategies.examples(150)
@given(strategies.limited_grammars(), st.integers(0, 1 << 16))
def test_how_a_selection_may_begin_is_what_trying_all_sets_finds(cfg: CFG, seed: int) -> None:
    rng = random.Random(seed)
    try:
        walk = Planner(cfg, "test:first").start(Task("t"))
    except (NoValidPlan, Undecided):
        return
    for _ in range(12):
        question = walk.question
        if question is None:
            return
        if not question.several:
            walk.answer(rng.randint(1, len(question.options)))
            continue
        numbers = range(1, len(question.options) + 1)
        sets = [some for size in numbers for some in combinations(numbers, size)]
        allowed = [some for some in sets if not question.problem(some)]
        for some in sets:
            begun = any(one[: len(some)] == some for one in allowed)
            assert question.leads_on(some) == begun
        walk.answer(rng.choice(allowed))


# -- selections -------------------------------------------------------------------------------------------------------


def at_selection(table: ChoiceTable) -> object:
    """The first configuration of a table whose choices are the members of a selection."""
    now = table.automaton.start()
    while not (fork := table.at(now, math.inf)).several:
        now = table.after(now, fork.choices[0])
    return now


def all_sets(names: tuple[str, ...]) -> list[frozenset[str]]:
    sizes = (combinations(names, size) for size in range(1, len(names) + 1))
    return [frozenset(names) for names in chain.from_iterable(sizes)]


@given(
    costs=st.lists(st.integers(0, 3), min_size=2, max_size=5),
    most=st.integers(0, 6),
    least=st.integers(0, 4),
    formula=st.sampled_from(
        ["", "(eventually a)", "(or (eventually a) (eventually c))", "(not (next (until any b) any))"]
    ),
    steps=st.sampled_from([math.inf, *range(4, 14)]),
    look=st.sampled_from(["on", "off"]),
    forced=st.sampled_from(["", "a", "b"]),
)
@examples(150)
def test_the_sets_that_can_be_chosen_are_those_of_trying_all(
    costs: list[int], most: int, least: int, formula: str, steps: float, look: str, forced: str
) -> None:
    names = tuple("abcde"[: len(costs)])
    lines = [f"{name} cost={cost}" for name, cost in zip(names, costs, strict=True)]
    source = CFG.from_string(f"S -> some({', '.join(names)}) T\nT -> x | y T\n" + "\n".join(lines))
    bounds = Limits(sums=(SumLimit("cost", most, least),))
    rules = [constraint(formula, source)] if formula and "c" in names else []
    table = ChoiceTable.of(source, limits=bounds, constraints=rules, lookahead=look)
    now = table.automaton.start()
    for _ in range(4):
        if table.lookahead.selection(now):
            break
        now = table.automaton.step(now, table.automaton.moves(now)[0])
    tried = [names_ for names_ in all_sets(names) if table.subset(now, names_, steps) is not None]
    members = frozenset(table.lookahead.selection(now) or ())
    found = [way.names for way in table._iter_subsets(now, frozenset(), members, steps) if way is not None]
    assert len(found) == len(set(found))
    assert set(found) == set(tried)
    if look == "on" and steps == math.inf and not rules:
        paid = dict(zip(names, costs, strict=True))
        assert set(found) == {one for one in all_sets(names) if least <= sum(paid[name] for name in one) <= most}
    must = frozenset(forced) & frozenset(names)
    for may in all_sets(names):
        assert table.some_subset(now, must, may, steps) == any(must <= one <= may for one in tried)


class TestInTime:
    def table(self, seconds: float | None) -> ChoiceTable:
        return ChoiceTable.of(subset_sum(9), search_time=seconds, solver=False)

    def test_what_is_not_decided_in_time_is_offered(self) -> None:
        start = Walk(self.table(None)).configuration
        exact, hasty = (table.at(start, 99) for table in (self.table(None), self.table(0.0)))
        assert not exact.unknown
        assert {choice.index for choice in exact.choices} < {choice.index for choice in hasty.choices}
        assert hasty.open == hasty.unknown == {choice.index for choice in hasty.choices}
        assert Verdicts.unpack(hasty.tally).unknown == len(hasty.unknown)
        assert Verdicts.unpack(exact.tally).program > 0

    def test_asked_again_the_search_goes_on_until_all_is_decided(self) -> None:
        exact, hasty = self.table(None), self.table(0.001)
        start = Walk(self.table(None)).configuration
        wanted = {choice.index for choice in exact.at(start, 99).choices}
        unknown = [len(hasty.at(start, 99).unknown) for _ in range(300)]
        assert unknown[0] > 0 == unknown[-1]
        assert {choice.index for choice in hasty.at(start, 99).choices} == wanted

    def test_a_second_look_depends_on_nothing_else(self) -> None:
        table, other = self.table(0.0), self.table(0.0)
        start = Walk(self.table(None)).configuration
        choices = table.at(start, 99).choices
        table.search_time = other.search_time = 0.1
        looks = [table.second_look(start, choice) for choice in choices]
        table.at(start, 99)
        assert looks == [table.second_look(start, choice) for choice in choices]
        assert looks[::-1] == [other.second_look(start, choice) for choice in choices[::-1]]
        assert {verdict.value for verdict in looks} >= {"no"}

    def test_a_table_looks_no_time_at_all_or_some(self) -> None:
        with pytest.raises(ValueError, match="search_time"):
            ChoiceTable.of(TOOLS, search_time=-1.0)


@given(strategies.limited_grammars(), st.sampled_from([0.0, 0.0002, 0.002]), st.integers(0, 1 << 30))
@strategies.examples(60)
def test_with_little_time_plans_are_valid_all_the_same(cfg: CFG, seconds: float, seed: int) -> None:
    possible = Lookahead(cfg).completable().possible
    try:
        table = ChoiceTable.of(cfg, search_time=seconds)
        walk = drive(Walk(table, budget=Budget(steps=60, backtracks=200)), random.Random(seed))
    except NoValidPlan:
        assert not possible
    except BudgetExceeded:
        assume(False)
    else:
        assert keeps(cfg, walk.plan.word)
        assert PDA.from_cfg(cfg).accepts(walk.plan.word)


def test_without_any_time_it_is_found_that_all_sets_are_ruled_out_or_that_one_is_left() -> None:
    # Dead ends rule out one set after the other; a question whose answers are all ruled out cannot be answered.
    table = ChoiceTable.of(CFG.from_string("%limit cost >= 3\nS -> some(a, b, c)\na cost=3"), search_time=0.0)
    sets = [frozenset(names) for size in (1, 2, 3) for names in combinations("abc", size)]
    start = Walk(table).configuration
    assert table.few_subsets(start, 60, 0, set(sets)) == ([], True)
    for left in sets:
        found, all_of_them = table.few_subsets(start, 60, 0, set(sets) - {left})
        assert [one.names for one in found] == [left] if "a" in left else not found
        assert all_of_them == (not found)


def test_a_missing_solver_is_told_of_once_and_only_where_it_would_have_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_start(search_time: float, solver: bool = True) -> None:
        table = ChoiceTable.of(subset_sum(9), search_time=search_time, solver=solver)
        table.at(Walk(table).configuration, 99)

    _warn_missing_solver.cache_clear()
    monkeypatch.setattr("formal_llm.automata.lookahead.search.is_solver_installed", lambda: False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        at_start(10.0)  # all is decided
        at_start(0.0005, solver=False)  # nobody wanted one
    with pytest.warns(UserWarning, match=r"formal-llm\[solver\]") as told:
        at_start(0.0005)
        at_start(0.0005)
    assert len(told) == 1


def test_answers_to_several_questions_tell_which_one_they_answer() -> None:
    def choice(question: str, *, decision: bool = True) -> Choice:
        return Choice(0, (Transition("p", "a", None, "q", question=question, decision=decision),))

    assert with_questions([choice("Good?"), choice("Good?")], ["yes", "no"]) == ["yes", "no"]
    both = [choice("Good?"), choice("Late?"), choice("", decision=False), Choice(0, ())]
    assert with_questions(both, ["yes", "yes", "Go", "stop"]) == ["Good? yes", "Late? yes", "Go", "stop"]


def test_what_is_ruled_out_on_a_page_of_a_selection() -> None:
    """Sets by themselves, and all sets that one answer leads to, which goes on to another page."""
    a, b, c, d = (frozenset(name) for name in "abcd")
    part = SelectionPart(here=a | b, later=c | d, marker=">")
    assert part.all_members == a | b | c | d
    assert part.make_answer(a) == a
    assert part.make_answer(a | c) == frozenset("a>") == part.make_answer(a | c | d)
    assert part.make_answer(c) == frozenset(">")
    assert SelectionPart(here=a | b).make_answer(a | c) == a | c  # there is no page to go on to
    out = RuledOut(frozenset((b, frozenset("a>"), a | b | c)), part)
    assert b in out
    assert a | c in out and a | d in out and a | b | c in out
    assert a not in out and a | b not in out and a | b | d not in out and b | c not in out and c not in out
    assert 3 not in out and "b" not in out
