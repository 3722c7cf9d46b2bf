"""The three real-life packs: the day, the recipe, the legal review."""

from __future__ import annotations

import itertools
import random

import pytest

from formal_llm import Budget, Limits, Lookahead, Planner, RandomLLM, ScriptedLLM, TaskPack, Verifier
from formal_llm.errors import NoValidPlan
from formal_llm.planning.walks.events import Backtracked, Event

HOURS = {
    "breakfast": 1, "lunch": 1, "supper": 1, "basketball": 2, "groceries": 1, "house_cleaning": 1, "homework": 3,
    "nothing": 1,
}  # fmt: skip
MEALS = ("breakfast", "lunch", "supper")
AT_HOME = {"house_cleaning", "homework", "nothing"}


def valid_days() -> set[tuple[str, ...]]:
    """All valid days, first activity first, by trying every order; from the rules in words alone."""
    found = set()
    for left_out in ((), ("nothing",)):
        activities = [name for name in HOURS if name not in left_out]
        if sum(HOURS[name] for name in activities) != 10:
            continue
        for order in itertools.permutations(activities):
            starts, hour = {}, 10
            for name in order:
                starts[name] = hour
                hour += HOURS[name]
            breakfast, lunch, supper = (starts[name] for name in MEALS)
            if starts["basketball"] != 13 or lunch - breakfast - 1 < 3 or supper - lunch - 1 < 3:
                continue
            if any(starts[name] + 1 == 13 for name in MEALS):
                continue
            for place, name in enumerate(order):
                if name in AT_HOME:
                    found.add((*order[:place], "washing", *order[place:]))
    return found


DAYS = valid_days()


@pytest.fixture(scope="module")
def daily() -> TaskPack:
    return TaskPack.load("daily")


def test_there_are_eight_days(daily: TaskPack) -> None:
    assert len(DAYS) == 8
    table = daily.planner().table()
    assert table.lookahead.count() == 8
    drawn = set()
    rng = random.Random(0)
    for _ in range(200):
        word = table.lookahead.sample(rng)
        assert word is not None
        drawn.add(word[::-1])
    assert drawn == DAYS


def test_a_thousand_days_at_random(daily: TaskPack) -> None:
    events: list[Event] = []
    planner = daily.planner(RandomLLM(0), on_event=events.append)
    seen = set()
    for _ in range(1_000):
        plan = planner.plan(daily.task(""))
        assert plan.word[::-1] in DAYS
        assert plan.usage.questions <= 4
        assert plan.usage.backtracks == 0
        seen.add(plan.word)
    assert len(seen) == 8
    assert not any(isinstance(event, Backtracked) for event in events)


def test_without_lookahead_the_day_is_valid_all_the_same(daily: TaskPack) -> None:
    planner = daily.planner(RandomLLM(0), lookahead="off", budget=Budget())
    plans = [planner.plan(daily.task("")) for _ in range(5)]
    assert all(plan.word[::-1] in DAYS for plan in plans)
    assert any(plan.usage.backtracks for plan in plans)


def test_a_day_in_words(daily: TaskPack) -> None:
    plan = daily.planner(RandomLLM(1)).plan(daily.task(""))
    assert [str(step) for step in plan.steps][-1] == "Step 8: 19:00 to 20:00: Eat supper"
    questions: list[str] = []

    def first(question: object) -> int:
        questions.append(question.prompt)  # type: ignore[attr-defined]
        return 1

    daily.planner(first).plan(daily.task(""))
    assert "Decide on the activity ending at 16:00:" in questions[0]


def test_one_rule_too_many_for_a_day(daily: TaskPack) -> None:
    with pytest.raises(NoValidPlan) as caught:
        daily.planner(limits=Limits(at_least={"nothing": 1})).plan(daily.task(""))
    assert "%require 1 nothing" in caught.value.limits
    counts = {}
    for left_out in daily.constraints:
        others = [one for one in daily.constraints if one is not left_out]
        counts[left_out.name] = Planner(daily.source, constraints=others).table().lookahead.count()
    # Basketball right after a meal would leave no room for three hours between the others anyway.
    assert counts.pop("no basketball within an hour after a meal") == 8
    assert min(counts.values()) > 8


def test_a_wrong_day_is_told_why(daily: TaskPack) -> None:
    rules = daily.source
    for one in daily.constraints:
        rules = rules & one
    verifier = Verifier(rules)
    right = min(DAYS)
    assert verifier.verify(right[::-1]).valid
    swapped = {"lunch": "supper", "supper": "lunch"}
    found = verifier.verify(tuple(swapped.get(name, name) for name in right[::-1]))
    assert not found.valid
    assert found.nearest[::-1] in DAYS


RECIPE = [
    "Wash the raw slices of beef with water",
    "Prepare the seasoning: light soy sauce, cooking wine, white pepper",
    "Marinate the clean slices of beef with the seasoning in a bowl",
    "Stir-fry the marinated beef in a wok",
    "Wash the broccoli with water",
    "Blanch the clean broccoli in a cooking pot",
    "Drain the blanched broccoli in a bowl",
    "Combine the lightly cooked beef and the blanched and drained broccoli in a wok",
    "Prepare the seasoning: onions, ginger, garlic, cooking oil, salt",
    "Stir-fry the mixture of beef and broccoli with the seasoning in a wok",
]


def test_the_recipe_comes_out_of_its_answers() -> None:
    pack = TaskPack.load("cooking")
    llm = ScriptedLLM([(1, 2, 3, 4, 5), 2, 2, (6, 7, 8)])
    plan = pack.planner(llm).plan(pack.task(""))
    assert [step.text for step in plan.steps] == RECIPE
    assert [str(step) for step in plan.steps] == [f"Step {n}: {text}" for n, text in enumerate(RECIPE, 1)]
    assert "Step n-1: ?" in llm.questions[0].prompt or "Step n-2: ?" in llm.questions[0].prompt
    assert llm.questions[0].several
    assert "broccoli" in llm.questions[0].task


def test_every_recipe_is_one() -> None:
    pack = TaskPack.load("cooking")
    planner = pack.planner(RandomLLM(3))
    recognised = Lookahead(pack.source).automaton
    for _ in range(200):
        plan = planner.plan(pack.task(""))
        assert recognised.accepts(plan.word)
        assert plan.steps[-1].text == RECIPE[-1]
        assert plan.word.count("beef") == plan.word.count("broccoli") == 1


def outcomes(subject: str, outcome: str, regions: tuple[str, ...] = ()) -> list[str]:
    """The boxes of the chart that an outcome of a subject leads through."""
    return {
        ("antitrust", "yes"): [*regions, "cleared"],
        ("antitrust", "no"): ["no_filing"],
        ("standing", "yes"): ["bad_standing"],
        ("standing", "no"): ["good_standing"],
        ("standing", "unknown"): ["prove_standing"],
        ("security", "yes"): ["review"],
        ("security", "no"): ["no_review"],
    }[subject, outcome]


def reviews() -> list[list[str]]:
    """The boxes of every legal review, from the rules in words: each order of the subjects, each outcome."""
    regions = ["europe", "the_united_states", "china"]
    names = [f"regions=file_for_antitrust_clearance_in_{region}" for region in regions]
    filings = [subset for size in (1, 2, 3) for subset in itertools.combinations(names, size)]
    answers = {
        "antitrust": [("yes", filing) for filing in filings] + [("no", ())],
        "standing": [("yes", ()), ("no", ()), ("unknown", ())],
        "security": [("yes", ()), ("no", ())],
    }
    found: dict[tuple[str, ...], None] = {}
    for order in itertools.permutations(answers):
        for chosen in itertools.product(*(answers[subject] for subject in order)):
            trace: list[str] = []
            for subject, (outcome, filing) in zip(order, chosen, strict=True):
                trace += [f"[{subject}]", *outcomes(subject, outcome, filing)]
                if trace[-1] == "bad_standing":
                    break
            else:
                trace.append("passed")
            for begin in ("may_sell", "prove_title"):
                found[begin, *trace] = None
    return [["may_not_sell"], *map(list, found)]


def test_every_path_of_the_legal_review_is_walked() -> None:
    pack = TaskPack.load("risk")
    planner = pack.planner()
    assert planner.table().lookahead.count() == 471 == len(reviews())
    subjects = {
        "subject=antitrust_filing": "[antitrust]",
        "subject=liabilities_and_standing": "[standing]",
        "subject=sensitive_industry_and_national_security": "[security]",
    }
    walked = []
    todo = [planner.start(pack.task(""))]
    while todo:
        walk = todo.pop()
        question = walk.question
        if question is None:
            word = [subjects.get(name, name) for name in walk.plan.word]
            walked.append([n for n in word if "=" not in n or n.startswith("regions=")])
            assert walk.usage.backtracks == 0
            continue
        count = len(question.options)
        chosen = [(number,) for number in range(1, count + 1)]
        if question.several:
            chosen = [c for size in range(1, count + 1) for c in itertools.combinations(range(1, count + 1), size)]
        for numbers in chosen:
            fork = walk.fork()
            fork.answer(numbers if question.several else numbers[0])
            todo.append(fork)
    assert sorted(walked) == sorted(reviews())


def test_a_review_in_words() -> None:
    pack = TaskPack.load("risk", {"buyer": "Initech", "company": "Initrode", "seller": "its founder"})
    llm = ScriptedLLM([1, 1, 1, (1, 3), 1, 2, 2])
    plan = pack.planner(llm).plan(pack.task(""))
    assert [step.text for step in plan.steps] == [
        "As far as we know, its founder may sell Initrode.",
        "File for antitrust clearance in Europe",
        "File for antitrust clearance in China",
        "The review goes on as if the purchase were cleared.",
        "Initrode is in good standing, without material outstanding liabilities, as far as we know.",
        "Neither a CFIUS filing nor a foreign investment filing in China is needed, as far as we know.",
        "The preliminary review of Initrode is passed; the documents of the deal settle the rest.",
    ]
    assert "May its founder sell Initrode?" in llm.questions[0].prompt
    assert "Where does Initech have to file?" in llm.questions[3].prompt
    assert llm.questions[3].several
    assert "may sell Initrode" in llm.questions[1].prompt
