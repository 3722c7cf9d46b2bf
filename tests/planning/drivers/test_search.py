"""Search: the most probable plan, samples, forks of walks; against enumeration of all plans by fresh walks."""

from __future__ import annotations

import json
import math
import pickle
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Answer, Budget, Limits, Plan, Planner, Question, RandomLLM, TaskPack, Walk, WeightedLLM
from formal_llm.errors import BudgetExceeded, InvalidAnswer, NoValidPlan
from formal_llm.llms import TokenUsage
from formal_llm.llms.driven import driven
from formal_llm.planning.drivers.search import best_first
from formal_llm.planning.walks.events import Answered, Asked, Finished, Started
from tests import strategies
from tests.planning.wandering import CHAIN, SEASONING


@dataclass(frozen=True)
class Found:
    """A plan of the enumeration, and how many choices of probability 0 and which product of the others it has."""

    numbers: tuple[int, ...]
    word: tuple[str, ...]
    zeros: int
    product: float

    def score(self, alpha: float) -> float:
        return math.log(self.product) / max(len(self.numbers), 1) ** alpha


def enumerate_plans(
    start: Callable[[], Walk], llm: Callable[[Question], Answer], most: int
) -> tuple[list[Found], int] | None:
    """All plans, each with its choices answered on a walk of its own; and how many questions there are in all."""
    plans: list[Found] = []
    questions = 0
    todo: list[tuple[tuple[int, ...], int, float]] = [((), 0, 1.0)]
    while todo:
        numbers, zeros, product = todo.pop()
        try:
            walk = start()
            for number in numbers:
                walk.answer(number)
            question = walk.question
        except BudgetExceeded as error:
            assert error.kind == "backtracks" or (error.kind == "steps" and not numbers), "no plan is short enough"
            continue
        if question is None:
            plans.append(Found(numbers, walk.word, zeros, product))
            continue
        questions += 1
        if questions > most:
            return None
        likely = llm(question).probabilities
        assert likely is not None
        total = sum(likely.values())
        for number in range(1, len(question.options) + 1):
            share = likely.get(number, 0) / total
            todo.append(((*numbers, number), zeros + (share == 0), product * (share or 1)))
    return plans, questions


def sparse(seed: int) -> Callable[[Question], Answer]:
    """A model that gives some options no probability, and does not normalise."""
    model = WeightedLLM(seed)

    def answer(question: Question) -> Answer:
        likely = model.ask(question).probabilities
        assert likely is not None
        kept = {number: 3 * share for number, share in likely.items() if share > 0.15} or dict(likely)
        return Answer((max(kept, key=kept.__getitem__),), kept)

    return answer


# -- the most probable plan -------------------------------------------------------------------------------------------


@strategies.examples(80)
@given(
    strategies.limited_grammars(selections=False) | strategies.tool_grammars(),
    st.integers(0, 1 << 30),
    st.sampled_from([0.0, 0.0, 0.5, 1.0, 2.0]),
    st.sampled_from(["on", "off"]),
    st.booleans(),
)
def test_best_first_finds_what_enumeration_finds(
    cfg: CFG, seed: int, alpha: float, lookahead: str, zeros: bool
) -> None:
    llm = sparse(seed) if zeros else WeightedLLM(seed).ask
    planner = Planner(cfg, llm, lookahead=lookahead, search="best-first", length_penalty=alpha, budget=Budget(steps=9))  # type: ignore[arg-type]
    try:
        planner.start("t")
    except NoValidPlan:
        assume(False)

    def start() -> Walk:
        walk = planner.start("t")
        walk.budget = Budget(steps=9, backtracks=walk.usage.backtracks)
        return walk

    try:
        found = enumerate_plans(start, llm, 120)
    except NoValidPlan:  # all branches below the root are dead
        found = ([], 0)
    assume(found is not None)
    assert found is not None
    plans, questions = found
    if not plans:
        with pytest.raises((NoValidPlan, BudgetExceeded)):
            planner.plan("t")
        return
    plan = planner.plan("t")
    fewest = min(one.zeros for one in plans)
    best = max(one.score(alpha) for one in plans if one.zeros == fewest)
    same = [one for one in plans if one.zeros == fewest and math.isclose(one.score(alpha), best, abs_tol=1e-12)]
    assert plan.word in {one.word for one in same}
    assert plan.usage.questions <= questions
    assert plan.usage.questions - plan.usage.wasted in {len(one.numbers) for one in same}
    assert plan.log_probability is not None
    if fewest:
        assert plan.log_probability == -math.inf
    else:
        assert any(math.isclose(plan.log_probability, math.log(one.product), abs_tol=1e-9) for one in same)
    again = planner.plan("t")
    assert (again, again.usage.questions) == (plan, plan.usage.questions)


def reduced_openagi() -> CFG:
    """OpenAGI with five of its tools."""
    cfg = TaskPack.load("openagi").cfg
    kept = {"colorization", "captioning", "classification", "translation", "question_answering"}
    none = {name: 0 for name in cfg.terminals if name not in kept and not name.startswith("input")}
    return cfg.with_limits(cfg.limits & Limits({**none, "input_image": 3, "input_text": 3}))


@pytest.mark.parametrize("seed", range(3))
def test_best_first_on_openagi_with_few_tools(seed: int) -> None:
    model = WeightedLLM(seed, sharpness=2)
    planner = Planner(reduced_openagi(), model, search="best-first")
    found = enumerate_plans(lambda: planner.start("t"), model.ask, 5_000)
    assert found is not None
    plans, questions = found
    plan = planner.plan("t")
    best = max(plans, key=lambda one: one.product)
    assert plan.word == best.word
    assert plan.probability == pytest.approx(best.product)
    assert math.fsum(one.product for one in plans) == pytest.approx(1)
    assert plan.usage.questions < questions / 4
    greedy = Planner(reduced_openagi(), model).plan("t")
    assert greedy.probability is not None
    assert greedy.probability <= best.product * (1 + 1e-9)


def test_a_plan_that_begins_badly_may_be_the_most_probable_one() -> None:
    # a: 0.6, then three ways of 1/3 each: 0.2. b: 0.4, and no more questions.
    def llm(question: Question) -> Answer:
        if len(question.options) == 2:
            return Answer((1,), {1: 6, 2: 4})
        return Answer((2,), {1: 1, 2: 1, 3: 1}, usage=TokenUsage(1, 10, 2))

    cfg = CFG.from_string("S -> a X | b\nX -> x | y | z")
    assert Planner(cfg, llm).plan("t").word == ("a", "y")
    plan = Planner(cfg, llm, search="best-first").plan("t")
    assert plan.word == ("b",)
    assert plan.probability == pytest.approx(0.4)
    assert (plan.usage.questions, plan.usage.wasted, plan.usage.input_tokens) == (2, 1, 10)
    # The mean of the logarithms: log 0.4 is less than (log 0.6 + log 1/3) / 2 is: -0.916 < -0.805.
    longer = Planner(cfg, llm, search="best-first", length_penalty=1.0, budget=Budget(steps=10)).plan("t")
    assert longer.word == ("a", "x")  # the first of three equals
    assert longer.probability == pytest.approx(0.2)


def test_ties_fewer_questions_then_the_order_of_options() -> None:
    equal = WeightedLLM(sharpness=0).ask
    cfg = CFG.from_string("S -> a X | b | c\nX -> x | y")
    assert Planner(cfg, equal, search="best-first").plan("t").word == ("b",)

    def first(question: Question) -> Answer:
        return Answer((3,), {1: 0.0, 2: 0.5, 3: 0.5})

    assert Planner(CHAIN, first, search="best-first").plan("t").word == ("c",)


def test_without_probabilities_best_first_is_greedy_until_a_dead_end() -> None:
    greedy = Planner(CHAIN, RandomLLM(3)).plan("t")
    plan = Planner(CHAIN, RandomLLM(3), search="best-first").plan("t")
    assert plan == greedy
    assert plan.usage.questions == greedy.usage.questions
    assert plan.probability is None
    dead = CFG.from_string("%limit 1 a\nS -> a Y | b X\nY -> a | a a\nX -> x | y")
    plan = Planner(dead, "test:first", search="best-first", lookahead="off").plan("t")
    assert plan.word == ("b", "x")
    assert (plan.usage.questions, plan.usage.backtracks, plan.usage.wasted) == (2, 1, 0)


def test_selections_are_taken_as_given() -> None:
    def llm(question: Question) -> Answer:
        return Answer((1, 3) if question.several else (1,), {1: 0.7, 2: 0.2, 3: 0.1})

    plan = Planner(SEASONING, llm, search="best-first").plan("t")
    assert plan.word == ("cook", "salt", "chili", "serve")
    assert plan.probability is None
    assert Planner(SEASONING, llm, search="sample", seed=1).plan("t").word in (plan.word, ("raw",))


def test_another_set_is_asked_for_where_the_first_is_a_dead_end() -> None:
    cfg = CFG.from_string("%limit 1 a\nS -> some(a, b) X\nX -> a y | a z")
    answers = iter([(1,), (1, 2), (2,), (2,)])

    def llm(question: Question) -> Answer:
        return Answer(next(answers) if question.several else (2,))

    plan = Planner(cfg, llm, search="best-first", lookahead="off").plan("t")
    assert plan.word == ("b", "a", "z")
    gone = Planner(CFG.from_string("S -> some(a, b)"), lambda question: (1, 2), search="best-first").start("t")
    gone.answer((1, 2))
    gone.rule_out()
    asked: list[Question] = []

    def one(question: Question) -> Answer:
        asked.append(question)
        return Answer((2,))

    driven(best_first(gone), one)
    assert (gone.word, len(asked)) == (("b",), 1)


def test_when_every_branch_is_tried_the_reason_is_told() -> None:
    cfg = CFG.from_string("%limit 1 x\nS -> b | x c X | x d X\nX -> x | x x")
    walk = Planner(cfg, "test:first", lookahead="off").start("t")
    walk.answer(1)
    walk.rule_out()
    before = walk.fork()
    with pytest.raises(NoValidPlan, match="tried"):
        driven(best_first(walk), WeightedLLM().ask)
    assert walk.snapshot()["journal"] == before.snapshot()["journal"]
    short = Planner(CFG.from_string("S -> b | a a a a a a | c c c c c c"), lookahead="off", budget=Budget(steps=4))
    walk = short.start("t")
    walk.answer(1)
    walk.rule_out()
    with pytest.raises(BudgetExceeded) as caught:
        driven(best_first(walk), WeightedLLM().ask)
    assert caught.value.kind == "steps"


# -- budgets, events, settings ----------------------------------------------------------------------------------------


def test_a_spent_question_budget_carries_the_best_finished_plan() -> None:
    cfg = CFG.from_string("S -> a X | b | c | d X\nX -> x | y | z")

    def llm(question: Question) -> Answer:
        if len(question.options) == 4:
            return Answer((1,), {1: 0.5, 2: 0.1, 3: 0.3, 4: 0.1})
        return Answer((2,), {1: 0.3, 2: 0.4, 3: 0.3})

    for questions, complete, word in ((0, False, ()), (1, True, ("c",))):
        planner = Planner(cfg, llm, search="best-first", budget=Budget(questions=questions))
        with pytest.raises(BudgetExceeded) as caught:
            planner.plan("t")
        error = caught.value
        assert (error.kind, error.plan.complete, error.plan.word) == ("questions", complete, word)
        assert error.plan.usage.questions == questions
        assert ("error.plan" in str(error)) == complete
    planner.budget = Budget(questions=2)
    assert planner.plan("t").word == ("c",)
    nothing = Planner(CFG.from_string("S -> a X | b X\nX -> x | y"), WeightedLLM(), search="best-first")
    nothing.budget = Budget(questions=1)
    with pytest.raises(BudgetExceeded) as caught:
        nothing.plan("t")
    assert not caught.value.plan.complete
    assert len(caught.value.plan.word) == 1
    assert caught.value.plan.probability is not None
    assert caught.value.plan.probability >= 0.5


def test_a_backtrack_budget_counts_the_dead_ends_of_all_branches() -> None:
    cfg = CFG.from_string("%limit 1 x\nS -> x a X | x b X | c | d\nX -> x | x x")
    for backtracks, fine in ((0, False), (1, False), (2, True)):
        planner = Planner(cfg, "test:first", search="best-first", lookahead="off", budget=Budget(backtracks=backtracks))

        def llm(question: Question) -> Answer:
            return Answer((1,), {1: 4, 2: 3, 3: 2, 4: 1})

        walk = planner.start("t")
        if fine:
            driven(best_first(walk), llm)
            assert (walk.word, walk.usage.backtracks) == (("c",), 2)
        else:
            with pytest.raises(BudgetExceeded, match="backtracks"):
                driven(best_first(walk), llm)


def test_events_of_a_best_first_search() -> None:
    events: list[object] = []
    planner = Planner(reduced_openagi(), WeightedLLM(1), search="best-first", on_event=events.append)
    plan = planner.plan("t")
    kinds = Counter(map(type, events))
    assert kinds == {Started: 1, Asked: plan.usage.questions, Answered: plan.usage.questions, Finished: 1}
    assert isinstance(events[-1], Finished)
    assert events[-1].plan == plan
    assert events[-1].plan.usage.questions == plan.usage.questions


def test_a_search_goes_on_from_a_walk_that_has_begun() -> None:
    model = WeightedLLM(2)
    planner = Planner(CHAIN, model, search="best-first", limits=Limits({"a": 2, "b": 1}))
    walk = planner.start("t")
    walk.answer(2)
    plan = planner.drive(walk)
    assert plan.word[0] == "b"
    assert plan.probability is None  # the first answer was a number only
    assert plan.usage.questions > 1
    walk.rule_out()  # the walk stands where the plan ends, and can go on as any other
    other = planner.drive(walk)
    assert other.word != plan.word
    assert planner.drive(walk) == other  # nothing is left to do


def test_bad_settings_of_a_search() -> None:
    with pytest.raises(ValueError, match="'greedy', 'best-first', 'sample'"):
        Planner(CHAIN, search="worst-first")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="best-first"):
        Planner(CHAIN, length_penalty=1.0)
    with pytest.raises(ValueError, match="0 or more"):
        Planner(CHAIN, search="best-first", length_penalty=-1.0)
    with pytest.raises(ValueError, match="steps"):
        Planner(CHAIN, WeightedLLM(), search="best-first", length_penalty=1.0, budget=Budget(steps=None)).plan("t")
    with pytest.raises(ValueError, match="0 or more"):
        driven(best_first(Walk(CHAIN), length_penalty=math.nan), WeightedLLM().ask)


# -- samples ----------------------------------------------------------------------------------------------------------


def test_samples_come_up_with_their_probabilities() -> None:
    cfg = CFG.from_string("%order forward\n%limit 2 a\nS -> a S X | b | c\nX -> x | y")
    model = WeightedLLM(4)
    planner = Planner(cfg, model, search="sample", seed=11)
    found = enumerate_plans(lambda: planner.start("t"), model.ask, 1_000)
    assert found is not None
    expected: dict[tuple[str, ...], float] = {}
    for one in found[0]:
        expected[one.word] = expected.get(one.word, 0.0) + one.product
    total = 6_000
    made = [planner.plan("t") for _ in range(total)]
    for plan in made[:50]:
        assert plan.probability == pytest.approx(expected[plan.word])
    drawn = Counter(plan.word for plan in made)
    assert set(drawn) <= set(expected)
    often = {word: p for word, p in expected.items() if p * total >= 5}
    assert len(often) >= 8
    cells = [(drawn[word], p * total) for word, p in often.items()]
    rare = sum(p for word, p in expected.items() if word not in often) * total
    cells.append((total - sum(count for count, _ in cells), rare))
    squared = sum((count - mean) ** 2 / mean for count, mean in cells if mean > 0)
    freedom = len(cells) - 1
    # The 99.9th percentile of the chi-squared distribution, after Wilson and Hilferty.
    assert squared < freedom * (1 - 2 / (9 * freedom) + 3.09 * math.sqrt(2 / (9 * freedom))) ** 3


def test_samples_depend_on_the_seed_only() -> None:
    words = [[Planner(CHAIN, WeightedLLM(1), search="sample", seed=seed).plan("t").word] for seed in (5, 5, 6, 7, 8)]
    assert words[0] == words[1]
    assert len({word[0] for word in words}) > 1
    never = Planner(CHAIN, lambda question: Answer((1,), {1: 0, 2: 0, 3: 1}), search="sample")
    assert {never.plan("t").word for _ in range(20)} == {("c",)}
    assert Planner(CHAIN, lambda question: 3, search="sample").plan("t").word == ("c",)


# -- probabilities of plans -------------------------------------------------------------------------------------------


def test_the_probability_of_a_plan_is_the_product_of_its_choices() -> None:
    answers = [
        Answer((1,), {1: 2.0, 2: 1.0, 3: 1.0}),  # 1/2
        Answer((2,), {1: 0.1, 2: 0.3}),  # 3/4; what is left out has none
        Answer((3,), {1: 0.5, 2: 0.25, 3: 0.25, 9: 7.0}),  # 1/4; what is not offered does not count
    ]
    plan = Planner(CHAIN, lambda question: answers.pop(0)).plan("t")
    assert plan.word == ("a", "b", "c")
    assert plan.probability == pytest.approx(0.5 * 0.75 * 0.25)
    assert plan.log_probability == pytest.approx(math.log(0.09375))


@pytest.mark.parametrize("bad", [{1: -0.1, 2: 1}, {1: math.nan}, {3: math.inf}])
def test_probabilities_that_are_none(bad: dict[int, float]) -> None:
    walk = Walk(CHAIN)
    with pytest.raises(InvalidAnswer, match="probability of option"):
        walk.answer(Answer((1,), bad))
    walk.answer(3)
    assert walk.plan.word == ("c",)


def test_plans_without_known_probability() -> None:
    assert Planner(CHAIN, lambda question: 3).plan("t").probability is None
    assert Planner(CHAIN, lambda question: Answer((3,), {1: 0.0})).plan("t").probability is None
    assert Planner(CFG.from_string("S -> a"), "test:first").plan("t").probability == 1.0
    answers = [Answer((1,), {1: 1.0}), Answer((3,))]
    assert Planner(CHAIN, lambda question: answers.pop(0)).plan("t").probability is None


@pytest.mark.parametrize("likely", [None, {1: 1.0, 3: 3.0}, {1: 1.0}, {1: 1.0, 3: 1e-300}])
def test_probabilities_survive_json_and_pickle(likely: dict[int, float] | None) -> None:
    plan = Planner(CHAIN, lambda question: Answer((3,), likely)).plan("t")
    for copy in (Plan.from_json(plan.to_json()), pickle.loads(pickle.dumps(plan))):
        assert copy == plan
        assert copy.log_probability == plan.log_probability
        assert copy.probability == plan.probability
    data = json.loads(plan.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert data["probability"] == plan.probability
    del data["probability"], data["log_probability"]  # as earlier versions wrote it
    assert Plan.from_json(json.dumps(data)).probability is None


# -- the double -------------------------------------------------------------------------------------------------------


def test_weighted_answers_are_a_function_of_the_question() -> None:
    question = Question("Which?", ["a", "b", "c"], task="t")
    one, other = WeightedLLM(1), WeightedLLM(1)
    other.ask(Question("Another?", ["a", "b"]))
    assert one.ask(question) == other.ask(question) == one.ask(question)
    answer = one.ask(question)
    assert answer.probabilities is not None
    assert math.fsum(answer.probabilities.values()) == pytest.approx(1)
    assert answer.probabilities[answer.number] == max(answer.probabilities.values())
    assert answer != WeightedLLM(2).ask(question)
    assert answer != one.ask(Question("Which?", ["a", "b", "d"], task="t"))
    assert answer != one.ask(Question("Which?", ["a", "b", "c"], task="u"))
    even = WeightedLLM(1, sharpness=0).ask(question).probabilities
    assert even == pytest.approx({1: 1 / 3, 2: 1 / 3, 3: 1 / 3})
    tops = [
        max((WeightedLLM(seed, sharpness=sharp).ask(question).probabilities or {}).values())
        for sharp in (1, 4)
        for seed in range(200)
    ]
    assert sum(tops[:200]) / 200 == pytest.approx(11 / 18, abs=0.03)  # the mean of the largest of three, flat Dirichlet
    assert sum(tops[200:]) > sum(tops[:200]) + 30
    several = Question("?", ["a", "b"], several=True, objection=lambda numbers: "no" if 1 in numbers else "")
    assert WeightedLLM(3).ask(several) == Answer((2,))
