"""Choices: the automaton's moves made into options."""

from __future__ import annotations

import random
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Budget, Limits, Lookahead, Planner, RandomLLM, Task
from formal_llm.automata.lookahead.plain_search import PlainSearch
from formal_llm.errors import BudgetExceeded, NoValidPlan, Undecided
from formal_llm.planning import ChoiceTable
from tests import strategies


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


@settings(max_examples=60)
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
            steps = plain.steps(after)
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


@settings(max_examples=40)
@given(strategies.grammars(), st.integers(1, 14))
def test_near_the_end_of_the_step_budget_only_what_fits_is_offered(cfg: CFG, steps: int) -> None:
    table = ChoiceTable(Lookahead(cfg))
    plain = PlainSearch(table.automaton, 3_000)
    start = table.automaton.start()
    for choice in table.at(start, steps).choices:
        least = plain.steps(table.after(start, choice))
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
