"""Questions with many options, asked page by page: nothing is lost, nothing is larger than what was set."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from itertools import combinations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formal_llm import CFG, Answer, Budget, Planner, Question, RandomLLM, Walk, WeightedLLM, Wording
from formal_llm.errors import BudgetExceeded, NoValidPlan
from formal_llm.llms.llm import LLM
from formal_llm.planning.walks.pages import Offer, Pages
from tests import strategies
from tests.planning.wandering import wander


def rooms(count: int, rules: str = "S -> X X | X", more: str = "") -> CFG:
    """Rooms with prices and ratings."""
    names = [f"room_{n}" for n in range(count)]
    lines = [f'{name} "Room {n}" cost={n % 7} rating={n % 3}' for n, name in enumerate(names)]
    return CFG.from_string("\n".join([rules, f"X -> {' | '.join(names)}", more, *lines]))


def selection(count: int, more: str = "") -> CFG:
    names = [f"sight_{n}" for n in range(count)]
    lines = [f"{name} cost={n + 1}" for n, name in enumerate(names)]
    return CFG.from_string("\n".join(["%order forward", f"S -> go some({', '.join(names)}) home", more, *lines]))


def texts(walk: Walk) -> list[str]:
    assert walk.question is not None
    return [option.text for option in walk.question.options]


def legal(question: Question) -> Iterator[tuple[int, ...]]:
    """All answers to a question."""
    numbers = range(1, len(question.options) + 1)
    for size in numbers if question.several else (1,):
        yield from (some for some in combinations(numbers, size) if not question.problem(some))


def weight(seed: int, name: str) -> float:
    return random.Random(f"{seed} {name}").choice([0.5, 1.0, 2.0, 3.0])


def every_plan(start: Walk, seed: int, most: int) -> dict[tuple[object, ...], float]:
    """All plans by their moves, each with its probability for a model that weighs the options."""
    plans: dict[tuple[object, ...], float] = {}
    todo = [start]
    asked = 0
    while todo:
        walk = todo.pop()
        question, entry = walk.question, walk.choice
        if question is None:
            if walk.usage.backtracks:
                continue  # it went over the budget of steps and backed out, to a plan that is counted already
            moves = tuple(walk.moves)
            assert moves not in plans, "reached in two ways"
            plans[moves] = walk.log_probability or 0.0
            continue
        asked += 1
        if asked > most:
            raise BudgetExceeded("questions", most, walk.partial)
        assert entry is not None and len(question.options) > 1
        shares = [sum(weight(seed, str(c.moves)) for c in choice.iter_choices()) for choice in entry.offered_choices]
        answers = list(legal(question))
        assert answers
        for numbers in answers:
            twin = walk.fork()
            likely = None if question.several else dict(enumerate(shares, 1))
            twin.answer(Answer(numbers, likely))
            todo.append(twin)
    return plans


BYS = [(), ("name",), (lambda offer: offer.text[-1],), ("name", lambda offer: str(len(offer.text)))]


@strategies.examples(60)
@given(
    strategies.limited_grammars() | strategies.tool_grammars(),
    st.integers(2, 4),
    st.sampled_from(BYS),
    st.integers(0, 99),
)
def test_pages_lead_to_the_same_plans_with_the_same_probabilities(cfg: CFG, size: int, by: object, seed: int) -> None:
    budget = Budget(steps=9)
    pages = Pages(size, by=by)  # type: ignore[arg-type]
    try:
        plain = every_plan(Walk(cfg, "a task", budget=budget), seed, 60)
        paged = every_plan(Walk(cfg, "a task", budget=budget, pages=pages), seed, 400)
    except (NoValidPlan, BudgetExceeded):
        assume(False)
    assert paged.keys() == plain.keys()
    assert all(math.isclose(paged[moves], plain[moves], abs_tol=1e-9) for moves in plain)


@pytest.mark.parametrize("size", [2, 3, 5, 8])
@pytest.mark.parametrize("more", ["", "%limit 1", "%limit 4 <= cost <= 9", "%require 1 sight_4", "%limit cost = 15"])
def test_every_set_of_a_selection_can_be_chosen_page_by_page(size: int, more: str) -> None:
    cfg = selection(6, more)
    plain, paged = every_plan(Walk(cfg), 0, 99), every_plan(Walk(cfg, pages=size), 0, 999)
    assert paged.keys() == plain.keys()
    assert len(plain) == {"": 63, "%limit 1": 63, "%require 1 sight_4": 32}.get(more, len(plain))


@pytest.mark.parametrize("by", [(), ("cost",), ("cost", "name"), ("rating", "cost"), (lambda o: o.text[-1],)])
@pytest.mark.parametrize("size", [2, 5, 20])
def test_no_question_is_larger_than_what_was_set(by: object, size: int) -> None:
    cfg = rooms(150)
    pages = Pages(size, characters=120, by=by)  # type: ignore[arg-type]
    rng = random.Random(1)
    for _ in range(4):
        walk = Walk(cfg, "Stay in room 77", pages=pages)
        while (question := walk.question) is not None:
            lines = [f"{option.number}: {option.text}\n" for option in question.options]
            assert 2 <= len(lines) <= size
            assert sum(map(len, lines)) <= 120 or len(lines) == 2
            assert question.outlook is not None and len(question.outlook.prospects) == len(lines)
            walk.answer(rng.choice(range(1, len(lines) + 1)))


def test_pages_in_the_words_of_the_task() -> None:
    walk = Walk(rooms(50, "S -> X"), "I want room 33, else room 7", pages=4)
    assert texts(walk) == ["Room 7", "Room 33", "Room 0", "more: 47 other options"]
    walk.answer(4)
    assert texts(walk) == ["Room 1", "Room 2", "Room 3", "more: 44 other options"]
    walk.back()
    walk.answer(2)
    assert walk.word == ("room_33",)
    assert walk.usage.questions == 2


def test_what_fits_on_one_page_is_asked_as_ever() -> None:
    walk = Walk(rooms(5, "S -> X"), "room 3", pages=5)
    assert texts(walk) == [f"Room {n}" for n in range(5)]


def test_groups_by_a_number_by_name_and_by_a_function() -> None:
    cfg = rooms(21, "S -> X")
    walk = Walk(cfg, "", pages=Pages(8, by=("cost",)))
    assert texts(walk) == ["cost 0 to 2: 9 options", "cost 3 to 4: 6 options", "cost 5 to 6: 6 options"]
    walk.answer(1)
    assert texts(walk)[:2] == ["Room 0", "Room 1"]
    assert texts(walk)[-1] == "more: 2 other options"
    walk = Walk(cfg, "", pages=Pages(4, by="name"))
    assert texts(walk)[0] == "Room 0 to Room 12: 5 options"

    def stars(offer: Offer) -> str:
        return f"{offer.numbers['rating']} stars"

    walk = Walk(cfg, "", pages=Pages(7, by=stars, order=lambda offer: -offer.numbers["rating"]))
    assert texts(walk) == ["2 stars: 7 options", "1 stars: 7 options", "0 stars: 7 options"]
    walk.answer(1)
    assert texts(walk) == [f"Room {n}" for n in range(2, 21, 3)]


def test_what_comes_first_may_be_a_number() -> None:
    walk = Walk(rooms(9, "S -> X"), "", pages=Pages(4, order="cost"))
    assert texts(walk)[:3] == ["Room 0", "Room 7", "Room 1"]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"options": 1}, "2 options or more, not 1"),
        ({"characters": 0}, "1 character or more"),
        ({"by": ("prize",)}, "unknown number of options for pages: prize"),
        ({"order": "costs"}, "did you mean cost"),
    ],
)
def test_settings_that_are_none(settings: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Walk(rooms(9), pages=Pages(**settings))  # type: ignore[arg-type]


def test_a_question_about_a_selection_tells_what_was_chosen_before() -> None:
    walk = Walk(selection(9, "%limit 30 <= cost <= 31"), "", pages=4)
    assert walk.question is not None
    assert texts(walk) == ["sight 0", "sight 1", "sight 2", "more: 6 other options"]
    assert "some of 9 options" in walk.question.prompt
    assert walk.question.problem((1, 2)) == "these cannot be chosen together under the rules"
    walk.answer([1, 3, 4])
    assert walk.question is not None
    assert "You have chosen before: sight 0, sight 2." in walk.question.prompt
    walk.back()
    walk.answer([4])
    assert "chosen before" not in walk.question.prompt


def test_ruling_out_empties_pages_and_then_the_way_to_them() -> None:
    walk = Walk(rooms(7, "S -> X"), "", pages=3)
    seen = set()
    with pytest.raises(NoValidPlan):
        while True:
            while (question := walk.question) is not None:
                walk.answer(len(question.options))
            seen.add(walk.word)
            walk.rule_out()
    assert len(seen) == 7


def test_sets_are_ruled_out_one_by_one() -> None:
    walk = Walk(selection(4), "", pages=2)
    seen = set()
    rng = random.Random(3)
    with pytest.raises(NoValidPlan):
        while True:
            while (question := walk.question) is not None:
                walk.answer(rng.choice(list(legal(question))))
            assert walk.word not in seen
            seen.add(walk.word)
            walk.rule_out()
    assert len(seen) == 15


# -- snapshots ----------------------------------------------------------------------------------------------------


@strategies.examples(40)
@given(strategies.grammars(), st.integers(0, 1 << 30), st.integers(2, 3), st.sampled_from(["on", "off"]), st.booleans())
def test_a_snapshot_restores_the_page(cfg: CFG, seed: int, size: int, lookahead: str, conversation: bool) -> None:
    rng = random.Random(seed)
    settings = {
        "wording": Wording(conversation=conversation), "budget": Budget(steps=120, backtracks=500), "pages": size,
    }  # fmt: skip
    try:
        walk = Walk(cfg, "task", lookahead=lookahead, **settings)  # type: ignore[arg-type]
        wander(walk, rng, 12)
        copy = Walk.restore(json.dumps(walk.snapshot()), cfg, **settings)  # type: ignore[arg-type]
        assert (copy.word, copy.question) == (walk.word, walk.question)
        assert copy.usage.wasted == walk.usage.wasted
        seed = rng.randrange(99)
        for one in (walk, copy):
            llm = RandomLLM(seed)
            while (question := one.question) is not None:
                one.answer(llm.ask(question))
        assert copy.plan == walk.plan
    except (NoValidPlan, BudgetExceeded):
        assume(False)


@strategies.examples(40)
@given(strategies.limited_grammars(), st.integers(0, 1 << 30), st.sampled_from([2, 3, None]), st.sampled_from([2, 4]))
def test_a_snapshot_is_good_with_other_pages(cfg: CFG, seed: int, then: int | None, now: int) -> None:
    rng = random.Random(seed)
    try:
        walk = Walk(cfg, "task", budget=Budget(steps=9), pages=then)
        for _ in range(rng.randrange(6)):
            if (question := walk.question) is not None:
                answer = RandomLLM(rng.randrange(99)).ask(question)
                walk.answer(answer if question.several else Answer(answer.numbers, {answer.number: 0.5, 99: 0.5}))
        copy = Walk.restore(walk.snapshot(), cfg, budget=Budget(steps=9), pages=now)
        done = walk.done
    except (NoValidPlan, BudgetExceeded):
        assume(False)
    assert copy.word == walk.word
    if done:
        assert copy.plan == walk.plan
        assert copy.log_probability == walk.log_probability


# -- whoever drives the walk --------------------------------------------------------------------------------------


def test_a_draft_passes_by_all_pages() -> None:
    class Model(LLM):
        can = frozenset({"choose", "write"})

        def __init__(self, draft: str) -> None:
            self.draft = draft

        def answer(self, request: Question) -> Answer:
            return Answer((), text=self.draft) if request.kind == "write" else Answer((len(request.options),))

    cfg = rooms(40, "%order forward\nS -> go X home X")
    plan = Planner(cfg, Model("go\nRoom 35\nhome\nRoom 2"), search="draft", pages=5).plan("t")
    assert plan.word == ("go", "room_35", "home", "room_2")
    assert (plan.usage.questions, plan.usage.drafted) == (0, 2)
    plan = Planner(cfg, Model("go\nRoom 350\nhome\nRoom 2"), search="draft", pages=5).plan("t")
    assert plan.word[2:] == ("home", "room_2")
    assert plan.usage.questions == 10
    cfg = selection(30)
    plan = Planner(cfg, Model("go\nsight 3\nsight 22\nhome"), search="draft", pages=5).plan("t")
    assert (plan.word, plan.usage.questions) == (("go", "sight_3", "sight_22", "home"), 0)


def test_the_best_plan_of_pages_is_the_best_plan() -> None:
    cfg = rooms(12, "S -> X X")

    def model(question: Question) -> Answer:
        likely = {
            o.number: 2.0 * int(o.text.split()[1]) if o.text.startswith("more") else 1.0 + len(o.text) * o.number % 7
            for o in question.options
        }
        return Answer((1,), likely)

    plan = Planner(cfg, model, pages=5, search="best-first", length_penalty=1.0, budget=Budget(steps=20)).plan("t")
    found = []
    todo = [Walk(cfg, "t", pages=5)]
    while todo:
        walk = todo.pop()
        if walk.question is None:
            found.append((walk.log_probability or 0.0, walk.word))
            continue
        answer = model(walk.question)
        for number in range(1, len(walk.question.options) + 1):
            twin = walk.fork()
            twin.answer(Answer((number,), answer.probabilities))
            todo.append(twin)
    assert plan.log_probability == pytest.approx(max(found)[0])


@strategies.examples(40)
@given(
    strategies.limited_grammars(),
    st.integers(0, 1 << 30),
    st.sampled_from(["greedy", "best-first", "sample"]),
    st.sampled_from(["on", "off"]),
)
def test_every_search_finds_a_plan_page_by_page_where_there_is_one(
    cfg: CFG, seed: int, search: str, lookahead: str
) -> None:
    settings: dict[str, object] = {
        "search": search, "lookahead": lookahead, "budget": Budget(questions=400, steps=9, backtracks=200),
    }  # fmt: skip
    found = []
    for pages in (None, 2):
        llm = RandomLLM(seed) if search == "greedy" else WeightedLLM(seed)
        try:
            plan = Planner(cfg, llm, pages=pages, **settings).plan("t")  # type: ignore[arg-type]
        except NoValidPlan:
            found.append("none")
        except BudgetExceeded as error:
            assume(error.kind == "steps")
            found.append("none so short")
        else:
            assert cfg.accepts(plan.word)
            found.append("a plan")
    assert found[0] == found[1]
