"""``search="exact"``: one question about all steps, and the best plan by its answer."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Answer, Limits, Planner, Question, RandomLLM
from formal_llm.errors import InfiniteLanguage, InvalidAnswer, NoValidPlan, Undecided
from formal_llm.llms.llm import LLM
from formal_llm.planning.drivers.exact import ask_for_steps, find_steps, read_scores
from tests.oracles import keeps, language
from tests.strategies import examples, limited_grammars, tool_grammars

DISH = CFG.from_string("%limit 1\nDish -> wok Food | Food\nFood -> wash Food | cut Food | fry Food | beef | tofu")


class Knows(LLM):
    """Gives each step its probability; what is not named has one half."""

    def __init__(self, likely: Mapping[str, float]) -> None:
        self.likely = likely
        self.asked: list[Question] = []

    def knows_steps(self, names: Iterable[str]) -> bool:
        return self.likely.keys() <= set(names)

    def answer(self, question: Question) -> Answer:
        self.asked.append(question)
        if not question.several:
            return Answer((1,))
        assert question.outlook is not None
        names = [prospect.uses[0].name for prospect in question.outlook.prospects]
        return Answer((1,), {number: self.likely.get(name, 0.5) for number, name in enumerate(names, 1)})


def test_the_best_plan_is_found_with_one_question() -> None:
    llm = Knows({"wok": 0.1, "wash": 0.9, "cut": 0.8, "fry": 0.2, "beef": 0.3, "tofu": 0.7})
    plan = Planner(DISH, llm, search="exact").plan("a healthy dish")
    assert set(plan.word) == {"wash", "cut", "tofu"}
    assert len(llm.asked) == 1
    assert (plan.usage.questions, plan.usage.drafts) == (0, 1)
    (question,) = llm.asked
    assert question.several
    assert question.prompt.endswith("Task description: a healthy dish")
    assert [option.text for option in question.options] == ["wok", "wash", "cut", "fry", "beef", "tofu"]


def test_what_was_chosen_without_probabilities_is_kept_to_as_far_as_the_rules_allow() -> None:
    chosen = Planner(DISH, lambda question: [2, 5, 6], search="exact").plan(
        "both, please"
    )  # beef and tofu: one of them
    assert set(chosen.word) in ({"wash", "beef"}, {"wash", "tofu"})
    assert read_scores(Answer((2,)), 3) == [-2.0, 2.0, -2.0]
    assert read_scores(Answer((1,), {1: 0.9, 2: 0.5, 3: 0.0}), 3) == pytest.approx(
        [math.log(9), 0, math.log(1e-9)], rel=1e-6
    )


@given(limited_grammars() | tool_grammars(), st.integers(0, 2**32))
@examples(80)
def test_no_valid_plan_has_a_higher_score(cfg: CFG, seed: int) -> None:
    rng = random.Random(seed)
    likely = {name: rng.choice([0.1, 0.3, 0.6, 0.95]) for name in cfg.terminals}
    once = Limits(default=1)
    try:
        planner = Planner(cfg, Knows(likely), limits=once, search="exact")
        word = planner.plan("x").word
    except (NoValidPlan, Undecided, InfiniteLanguage):
        assume(False)
    valid = [
        one for one in language(cfg, len(cfg.terminals)) if keeps(one, cfg.limits & once, cfg.terminals, cfg.symbols)
    ]
    assert word in valid

    def score(one: Iterable[str]) -> float:
        return math.fsum(math.log(likely[name] / (1 - likely[name])) for name in one)

    assert score(word) == pytest.approx(max(map(score, valid)), abs=1e-9)


def test_a_step_that_may_be_repeated_is_used_once_if_it_is_wanted() -> None:
    walks = CFG.from_string("Day -> walk Day | swim Day | read Day | sleep\n%limit 6")
    wanted = Knows({"walk": 0.9, "swim": 0.8, "read": 0.1, "sleep": 0.9})
    assert sorted(Planner(walks, wanted, search="exact").plan("a day").word) == ["sleep", "swim", "walk"]
    endless = CFG.from_string("Day -> walk Day | swim Day | read Day | sleep")
    assert sorted(Planner(endless, wanted, search="exact").plan("a day").word) == ["sleep", "swim", "walk"]
    # What cannot be together with more wanted steps is left out.
    either = CFG.from_string("Day -> Walks | Swims\nWalks -> walk Walks | sleep\nSwims -> swim Swims | sleep")
    assert sorted(Planner(either, wanted, search="exact").plan("a day").word) == ["sleep", "walk"]


def test_an_llm_that_knows_the_steps_is_asked_at_once() -> None:
    likely = {"wash": 0.9, "tofu": 0.9, "beef": 0.1, "wok": 0.1, "cut": 0.1, "fry": 0.1}
    llm = Knows(likely)
    assert set(Planner(DISH, llm).plan("x").word) == {"wash", "tofu"}
    assert len(llm.asked) == 1
    other = Knows({**likely, "unknown step": 0.5})
    Planner(DISH, other).plan("x")
    assert len(other.asked) > 1 and not other.asked[0].several


@pytest.mark.filterwarnings("ignore:.*can become")
def test_rules_that_cannot_be_weighed() -> None:
    ambiguous = CFG.from_string("S -> S | T\nT -> a | b")  # infinitely many derivations of each word
    with pytest.raises(InfiniteLanguage):
        Planner(ambiguous, RandomLLM(0), search="exact").plan("x")
    llm = Knows({"a": 0.9, "b": 0.1})
    walk = Planner(ambiguous, llm).start("x")
    assert walk.question is not None


def test_bad_answers_are_asked_for_again_and_then_refused() -> None:
    answers = iter(["nonsense", "2, 6"])
    assert set(Planner(DISH, lambda question: next(answers), search="exact").plan("x").word) == {"wash", "tofu"}
    with pytest.raises(InvalidAnswer):
        Planner(DISH, lambda question: "nonsense", search="exact", tries=2).plan("x")


def test_without_a_choice_nothing_is_asked() -> None:
    llm = Knows({})
    assert Planner(CFG.from_string("S -> a b"), llm, search="exact").plan("x").word == ("a", "b")
    assert not llm.asked


def test_a_walk_that_has_begun_goes_on_question_by_question() -> None:
    planner = Planner(DISH, RandomLLM(1), search="exact")
    walk = planner.start("x")
    walk.answer(1)
    plan = planner.drive(planner.resume(walk.snapshot()))
    assert plan.word[0] == "wok"
    assert plan.usage.questions > 1


def test_many_tasks_and_awaited() -> None:
    planner = Planner(DISH, Knows({"wash": 0.9, "tofu": 0.9, "beef": 0.1}), search="exact")
    assert [set(one.unwrap().word) >= {"wash", "tofu"} for one in planner.plan_all(["a", "b", "c"])] == [True] * 3
    assert {"wash", "tofu"} <= set(asyncio.run(planner.aplan("x")).word)


def test_the_distribution_over_plans() -> None:
    llm = Knows({"wok": 0.1, "wash": 0.9, "cut": 0.8, "fry": 0.2, "beef": 0.3, "tofu": 0.7})
    planner = Planner(DISH, llm, search="exact")
    rules = planner.weigh("x")
    assert len(llm.asked) == 1
    best = rules.best()
    assert best is not None and set(best.word) == {"wash", "cut", "tofu"}
    assert len({*rules.sample(random.Random(0), 50)}) > 5


def test_steps_that_no_plan_has_are_not_asked_about() -> None:
    planner = Planner(DISH, RandomLLM(0), limits=Limits({"beef": 0}))
    walk = planner.start("x")
    assert find_steps(walk.table) == ["wok", "wash", "cut", "fry", "tofu"]
    assert ask_for_steps(walk).names == ("wok", "wash", "cut", "fry", "tofu")
