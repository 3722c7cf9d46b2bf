from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from formal_llm.llms.local.model import TransformersLLM
from formal_llm.llms.local.selections import one_by_one
from formal_llm.llms.local.text_scorer import text_scorer
from formal_llm.llms.question import Question
from formal_llm.planning.packs import TaskPack
from tests.llms.local import token_by_token


def walked(question: Question) -> Iterator[tuple[tuple[int, ...], list[tuple[Question, int]]]]:
    """Each set that can come out, with the questions and answers on the way to it."""
    waiting: list[list[int]] = [[]]
    while waiting:
        answers = waiting.pop()
        steps = one_by_one(question)
        asked = []
        try:
            step = next(steps)
            for answer in answers:
                asked.append((step, answer))
                step = steps.send(answer)
        except StopIteration as end:
            yield end.value, asked
        else:
            waiting += [[*answers, number] for number in range(1, len(step.options) + 1)]


def objecting(bad: set[tuple[int, ...]]) -> Callable[[tuple[int, ...]], str]:
    return lambda numbers: "not these" if tuple(sorted(numbers)) in bad else ""


@given(st.integers(1, 5), st.data())
def test_each_set_comes_from_exactly_one_row_of_questions(count: int, data: st.DataObject) -> None:
    subsets = [some for size in range(1, count + 1) for some in combinations(range(1, count + 1), size)]
    bad = set(data.draw(st.lists(st.sampled_from(subsets), max_size=len(subsets) - 1)))
    question = Question("which", [f"tool {n}" for n in range(count)], several=True, objection=objecting(bad))
    found = list(walked(question))
    sets = [chosen for chosen, _ in found]
    assert len(set(sets)) == len(sets)
    assert all(list(chosen) == sorted(chosen) for chosen in sets)
    assert set(sets) == set(subsets) - bad
    # With any probabilities of the answers, those of the sets sum to 1.
    total = Fraction(0)
    for _, steps in found:
        share = Fraction(1)
        for asked, number in steps:
            assert len(asked.options) > 1
            weights = [len(option.text) + 3 * option.number for option in asked.options]
            share *= Fraction(weights[number - 1], sum(weights))
        total += share
    assert total == 1


def test_where_everything_is_objected_to_nothing_comes_out() -> None:
    question = Question("which", ["a", "b", "c"], several=True, objection=lambda _: "no")
    with pytest.raises(StopIteration) as end:
        next(one_by_one(question))
    assert end.value.value == ()


def test_only_what_leads_on_is_offered() -> None:
    allowed = {(2, 3), (2, 4), (3,)}
    question = Question(
        "which", ["a", "b", "c", "d"], several=True, objection=lambda numbers: "" if numbers in allowed else "no"
    )
    steps = one_by_one(question)
    assert [option.text for option in next(steps).options] == ["b", "c"]
    assert [option.text for option in steps.send(1).options] == ["c", "d"]  # b alone may not be chosen
    with pytest.raises(StopIteration) as end:
        steps.send(2)
    assert end.value.value == (2, 4)


def test_the_distribution_of_a_model_sums_to_1(llama: Any, spoken: Callable[..., Any]) -> None:
    scorer = text_scorer(llama, spoken())
    question = Question("Which?", ["wok", "oven", "pot", "pan"], several=True, objection=objecting({(1,), (1, 4)}))
    total = 0.0
    likely: dict[tuple[int, ...], float] = {}
    with torch.no_grad():
        for chosen, steps in walked(question):
            table = scorer.log_probabilities([asked for asked, _ in steps])
            likely[chosen] = float(sum(table[row, number - 1] for row, (_, number) in enumerate(steps)).exp())
            total += likely[chosen]
    assert total == pytest.approx(1, abs=1e-5)
    assert len(likely) > 8


def test_selections_and_choices_are_answered_together(llama: Any, spoken: Callable[..., Any]) -> None:
    llm = TransformersLLM.of(llama, spoken())
    several = [Question(f"Which? {n}", ["wok", "oven", "pot", "pan"], several=True) for n in range(5)]
    single = [token_by_token.question(9), Question("Which?", ["alone"], several=True)]
    outcomes = llm.answer_all([*several, *single])
    for question, outcome in zip([*several, *single], outcomes, strict=True):
        assert question.check(outcome) is outcome
        assert llm.ask(question).numbers == outcome.numbers
    assert outcomes[0].usage.requests >= 1 and outcomes[0].usage.input_tokens > 10
    assert outcomes[-1].numbers == (1,) and outcomes[-1].usage.requests == 0
    # What a set is made of is what the model thinks likeliest at each step.
    steps = one_by_one(several[0])
    asked = next(steps)
    with pytest.raises(StopIteration) as end:
        while True:
            asked = steps.send(llm.ask(asked).number)
    assert end.value.value == outcomes[0].numbers


def test_plans_of_a_pack_with_selections(llama: Any, spoken: Callable[..., Any]) -> None:
    pack = TaskPack.load("cooking")
    planner = pack.planner(TransformersLLM.of(llama, spoken()))
    outcomes = planner.plan_all([f"{pack.data['task']} Dish {number}." for number in range(6)])
    assert all(outcome.error is None for outcome in outcomes)
    assert all(pack.cfg.accepts(outcome.plan.word) for outcome in outcomes)
