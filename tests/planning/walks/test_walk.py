"""Walks: questions, forced choices, going back, ruling out, budgets, snapshots."""

from __future__ import annotations

import inspect
import math
import pickle
import random
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyformlang.cfg import Terminal

from formal_llm import CFG, PDA, Answer, Budget, Limits, Lookahead, Planner, Task, Usage, Walk, Wording
from formal_llm.errors import BudgetExceeded, InvalidAnswer, NoValidPlan, Undecided, WalkError
from formal_llm.planning.drivers.planner import PlannerSettings
from formal_llm.planning.walks.events import Answered, Asked, Backtracked, Event, Failed, Finished, Forced, Started
from formal_llm.planning.walks.journal import normalise_probabilities
from formal_llm.planning.walks.walk import SharedSettings, WalkSettings
from tests import oracles, strategies
from tests.planning.wandering import CHAIN, SEASONING, TOOLS, drive, keeps, texts, wander
from tests.strategies import examples


def derives(cfg: CFG, word: tuple[str, ...]) -> bool:
    """Whether the grammar derives the word, as pyformlang has it."""
    return bool(oracles.to_pyformlang(cfg).contains([Terminal(name) for name in word]))


def test_a_walk_asks_and_ends_with_a_plan() -> None:
    walk = Walk(TOOLS, "a caption in German")
    assert texts(walk) == ['the output of "classify"', 'the output of "caption"', 'the output of "translate"']
    walk.answer(3)
    assert texts(walk) == ['the output of "classify"', 'the output of "caption"']  # translate is used up
    walk.answer(2)
    walk.answer(1)
    walk.answer(2)
    assert walk.done
    assert walk.question is None
    assert walk.plan.word == ("translate", "caption", "colorize", "image")
    assert walk.usage.questions == 4


def test_what_has_one_option_is_not_asked() -> None:
    walk = Walk(CFG.from_string("S -> A b C\nA -> a\nC -> c | d"))
    assert walk.word == ("a", "b")
    assert texts(walk) == ["c", "d"]


def test_options_that_cannot_be_finished_are_left_out_and_counted() -> None:
    events: list[object] = []
    cfg = CFG.from_string("%limit 1 a\n%limit 1 b\nS -> X X | c X\nX -> a | b")
    walk = Walk(cfg, on_event=events.append)
    walk.answer(1)
    assert walk.done
    assert walk.word == ("a", "b")
    assert walk.usage.forced == 1
    assert [event for event in events if isinstance(event, Forced)] == [Forced("b", 1)]
    assert isinstance(events[-1], Finished)


def test_no_plan_is_told_before_the_first_question() -> None:
    with pytest.raises(NoValidPlan) as caught:
        Walk(TOOLS, limits=Limits(at_most={"image": 0}))
    assert caught.value.limits == ("%limit 0 image",)
    with pytest.raises(NoValidPlan, match="clash") as caught:
        Walk(CFG.from_string("S -> a S | b"), limits=Limits({"a": 1}, {"a": 2}))
    assert set(caught.value.limits) == {"%limit 1 a", "%require 2 a"}
    with pytest.raises(NoValidPlan) as caught:
        Walk(CFG([("S", ("a", "X")), ("X", ("X",))]))
    assert set(caught.value.symbols) == {"S", "X"}


@pytest.mark.parametrize("bad", [0, 4, -1, True, [1, 2], [], "2 or 3", "nine", None, 1.0, Answer((7,)), Answer(())])
def test_an_answer_that_is_none_changes_nothing(bad: object) -> None:
    walk = Walk(TOOLS)
    before = walk.snapshot()
    with pytest.raises(InvalidAnswer):
        walk.answer(bad)
    after = walk.snapshot()
    assert before["journal"] == after["journal"]
    walk.answer("Option 2")
    assert walk.word == ("caption",)


def test_a_finished_walk_takes_no_answer() -> None:
    walk = Walk(CFG.from_string("S -> a"))
    assert walk.plan.word == ("a",)
    with pytest.raises(WalkError):
        walk.answer(1)


def test_an_unfinished_walk_has_a_partial_plan_only() -> None:
    walk = Walk(TOOLS, "t")
    walk.answer(3)
    with pytest.raises(WalkError):
        _ = walk.plan
    assert walk.partial.word == ("translate",)
    assert not walk.partial.complete
    assert walk.partial.call is None
    assert [str(step) for step in walk.partial.steps] == ["Step 1: Use translate"]


# -- selections -------------------------------------------------------------------------------------------------------


def test_a_selection_is_one_question_with_several_numbers() -> None:
    walk = Walk(SEASONING)
    walk.answer(1)
    question = walk.question
    assert question is not None
    assert question.several
    assert [option.text for option in question.options] == ["salt", "pepper", "chili"]
    walk.answer([3, 1])
    assert walk.plan.word == ("cook", "salt", "chili", "serve")


def test_a_selection_under_limits_checks_the_whole_subset() -> None:
    walk = Walk(CFG.from_string("%limit hot <= 2\nS -> some(a, b, c)\na hot=1\nb hot=1\nc hot=1"))
    with pytest.raises(InvalidAnswer, match="together"):
        walk.answer([1, 2, 3])
    walk.answer([1, 3])
    assert walk.plan.word == ("a", "c")
    one = Walk(CFG.from_string("S -> some(a, b)"), limits=Limits({"a": 0}))
    assert one.plan.word == ("b",)  # one member is left: no question
    only = Walk(CFG.from_string("%require 1 a b\n%limit 0 c\nS -> some(a, b, c) | d"))
    assert only.plan.word == ("a", "b")  # one set is left: no question
    required = Walk(CFG.from_string("S -> some(a, b)"), limits=Limits({}, {"a": 1}))
    with pytest.raises(InvalidAnswer, match="together"):
        required.answer(2)
    required.answer("1, 2")
    assert required.plan.word == ("a", "b")


def test_ruling_out_selections_goes_through_all_subsets() -> None:
    walk = Walk(SEASONING)
    walk.answer(1)
    words = set()
    with pytest.raises(NoValidPlan):
        while True:
            if walk.question is not None:
                for number in range(1, 8):
                    try:
                        walk.answer([n for n in (1, 2, 3) if number >> n - 1 & 1])
                        break
                    except InvalidAnswer:
                        continue
            words.add(walk.plan.word)
            walk.rule_out()
    assert words == oracles.language(SEASONING, 5)


# -- hand-written automata --------------------------------------------------------------------------------------------


def test_stopping_is_an_option_where_the_automaton_accepts_and_can_go_on() -> None:
    pda = PDA([("q", "a", None, "q")], start="q", accepting=["q"])
    walk = Walk(pda, "some a")
    assert texts(walk) == ["nothing more: the plan is finished", "a"]
    walk.answer(2)
    walk.answer(2)
    walk.answer(1)
    assert walk.plan.word == ("a", "a")


def test_transition_texts_are_options_and_steps() -> None:
    pda = PDA(
        [("q", "tea", None, "r", (), "Drink tea"), ("q", None, None, "r", (), "Skip it"), ("r", "go", None, "s")],
        start="q",
        accepting=["s"],
    )
    walk = Walk(pda)
    assert texts(walk) == ["Drink tea", "Skip it"]
    walk.answer(2)
    assert [step.text for step in walk.plan.steps] == ["Skip it", "Use go"]


def test_tasks_bring_their_own_goal_and_limits() -> None:
    task = Task("an image", goal="I", limits=Limits({"denoise": 0}))
    walk = Walk(TOOLS, task)
    assert texts(walk) == ['the output of "colorize"', "image"]
    walk.answer(1)
    assert Walk.restore(walk.snapshot(), TOOLS, task=task).word == walk.word


def test_long_walks_need_no_recursion() -> None:
    walk = Walk(CFG.from_string("%order prefix\nS -> a S b | c"), budget=Budget(steps=20_000))
    for _ in range(4_000):
        walk.answer(1)
    walk.answer(2)
    assert len(walk.plan.word) == 8_001
    assert walk.plan.call is not None
    assert walk.plan.from_json(walk.plan.to_json()) == walk.plan
    assert len(walk.plan.steps) == 4_000


def test_where_no_plan_exists_the_step_budget_is_not_to_blame() -> None:
    cfg = CFG.from_string(
        "%limit minutes <= 115\nShirt -> Tool Shirt | shirt\nTool -> wash | dry | iron | fold\n"
        "wash minutes=60\ndry minutes=45\niron minutes=10\nfold minutes=1\n"
    )
    required = Limits({}, {"wash": 1, "dry": 1, "iron": 1, "fold": 1})
    for max_states in (1, 20_000):
        with pytest.raises(NoValidPlan):
            Planner(cfg, "test:first", limits=required, max_states=max_states).plan("x")


@examples(60)
@given(strategies.limited_grammars(), st.integers(0, 1 << 30), st.sampled_from(["on", "off"]))
def test_every_answer_sequence_ends_in_a_word_of_the_language(cfg: CFG, seed: int, lookahead: str) -> None:
    try:
        walk = Walk(cfg, lookahead=lookahead, budget=Budget(steps=70, backtracks=2_000))
        word = drive(walk, random.Random(seed)).plan.word
    except NoValidPlan:
        assert not [word for word in oracles.language(cfg, 5) if keeps(cfg, word)]
        return
    except BudgetExceeded as error:
        # Without lookahead the tree below a wrong turn may be larger than the budget; with it there is no wrong turn.
        assert lookahead == "off" or error.kind == "steps"
        return
    assert derives(cfg, word)
    assert keeps(cfg, word)
    if lookahead == "on":
        assert walk.usage.backtracks == 0


@examples(40)
@given(strategies.automata(), st.integers(0, 1 << 30))
def test_walks_over_hand_written_automata(pda: PDA, seed: int) -> None:
    try:
        walk = drive(Walk(pda, budget=Budget(steps=60)), random.Random(seed))
    except (NoValidPlan, BudgetExceeded):
        assume(False)
    assert oracles.runs(pda, walk.plan.word, max_depth=80, max_seen=60_000) is not False


# -- forks ------------------------------------------------------------------------------------------------------------


@strategies.examples(60)
@given(strategies.limited_grammars(), st.integers(0, 1 << 30), st.sampled_from(["on", "off"]), st.booleans())
def test_what_is_done_to_a_fork_does_not_touch_the_walk(cfg: CFG, seed: int, lookahead: str, chat: bool) -> None:
    rng = random.Random(seed)

    def go_on(walk: Walk) -> None:
        with suppress(NoValidPlan, BudgetExceeded):
            wander(walk, rng, 6)

    def seen(walk: Walk) -> tuple[object, ...]:
        data = walk.snapshot()
        data["usage"].pop("seconds")
        return data, walk.word, walk.configuration, walk.partial

    try:
        walk = Walk(cfg, "t", lookahead=lookahead, wording=Wording(conversation=chat), budget=Budget(40, 40, 40))
    except NoValidPlan:
        assume(False)
    go_on(walk)
    forks = [walk.fork() for _ in range(2)]
    before = seen(walk)
    assert [seen(fork) for fork in forks] == [before, before]
    go_on(forks[0])
    assert seen(walk) == seen(forks[1]) == before
    moved = seen(forks[0])
    go_on(walk)
    assert seen(forks[0]) == moved
    assert seen(forks[1]) == before
    walk.follow(forks[0])
    assert seen(walk) == moved
    go_on(walk)
    assert seen(forks[0]) == moved


def test_a_fork_is_silent_and_a_walk_follows_its_own_forks_only() -> None:
    events: list[object] = []
    walk = Walk(CHAIN, "t", on_event=events.append)
    fork = walk.fork()
    fork.answer(3)
    assert not events
    own: list[object] = []
    heard = walk.fork(on_event=own.append)
    heard.answer(3)
    assert own == [Finished(heard.plan)]
    with pytest.raises(WalkError, match="own forks"):
        walk.follow(Walk(CHAIN, "t"))
    walk.follow(fork)
    assert events == [Finished(fork.plan)]


def keywords(kind: type) -> set[str]:
    return set(inspect.signature(kind).parameters)


def test_the_settings_of_walks_and_of_planners_are_those_of_their_constructors() -> None:
    assert set(WalkSettings.__annotations__) == keywords(Walk) - {"source"}
    assert set(PlannerSettings.__annotations__) == keywords(Planner) - {
        "source",
        "llm",
        "world",
    }  # trips have a world, too


def test_what_is_shared_is_a_setting_of_both() -> None:
    assert set(SharedSettings.__annotations__) <= keywords(Walk) & keywords(Planner)


@pytest.mark.parametrize("llm", ["test:first", "builtin"])
def test_planners_and_walks_are_pickled(llm: str) -> None:
    planner = Planner(CFG.from_string("S -> wash S | iron S | fold\n%limit 1"), llm)
    walk = planner.start("shirts")
    walk.answer(1)
    copies: tuple[Planner, Walk] = pickle.loads(pickle.dumps((planner, walk)))
    assert copies[0].drive(copies[1]).word == planner.drive(walk).word


CFG_OF_TEA = CFG.from_string(
    "Tea -> boil Rest\nRest -> green cup | black cup | Deep\nDeep -> hot Leaf\nLeaf -> mint | sage"
)


def test_a_plan_from_its_start_to_its_end() -> None:
    seen: list[Event] = []
    planner = Planner(CFG_OF_TEA, "test:script=2,1", limits=Limits({"green": 0}), on_event=seen.append)
    plan = planner.drive(planner.start(Task("tea"), name="7"))
    kinds = [type(event) for event in seen]
    assert kinds == [Started, Asked, Answered, Asked, Answered, Finished]
    assert {event.walk for event in seen} == {"7"}
    assert isinstance(seen[0], Started)
    assert seen[0].task == Task("tea")
    assert isinstance(seen[-1], Finished)
    assert seen[-1].plan == plan
    answered = [event for event in seen if isinstance(event, Answered)]
    assert [event.answer.number for event in answered] == [2, 1]
    assert answered[0].question is next(event.question for event in seen if isinstance(event, Asked))


def test_what_is_forced_and_what_goes_back() -> None:
    seen: list[Event] = []
    cfg = CFG.from_string("%order prefix\nS -> a Y | b Z\nY -> a | a a\nZ -> c | d")
    planner = Planner(cfg, "test:first", limits=Limits({"a": 1, "d": 0}), lookahead="off", on_event=seen.append)
    assert planner.plan("t").word == ("b", "c")
    backtracked = [event for event in seen if isinstance(event, Backtracked)]
    assert [(event.text, event.word) for event in backtracked] == [('the output of "a"', ())]
    seen.clear()
    planner = Planner(cfg, "test:first", limits=Limits({"a": 1, "d": 0}), on_event=seen.append)
    assert planner.plan("t").word == ("b", "c")
    forced = [event for event in seen if isinstance(event, Forced)]
    assert [(event.text, event.left_out) for event in forced] == [('the output of "b"', 1), ("c", 1)]


def test_a_plan_that_fails_ends_with_why() -> None:
    seen: list[Event] = []
    planner = Planner(CFG_OF_TEA, "test:first", budget=Budget(questions=0), on_event=seen.append)
    with pytest.raises(BudgetExceeded) as caught:
        planner.plan("t")
    assert seen == [Started(Task("t")), Failed(caught.value, seen[-1].usage)]  # type: ignore[union-attr]


def test_a_question_budget_stops_with_the_partial_plan_and_can_be_raised() -> None:
    walk = Walk(TOOLS, budget=Budget(questions=1))
    walk.answer(3)
    with pytest.raises(BudgetExceeded) as caught:
        _ = walk.question
    assert caught.value.kind == "questions"
    assert caught.value.plan.word == ("translate",)
    walk.budget = Budget()
    walk.answer(1)
    assert walk.word == ("translate", "classify")


@pytest.mark.parametrize("lookahead", ["on", "off"])
@pytest.mark.filterwarnings("ignore:.*can become")
def test_a_step_budget_bounds_the_plan_whatever_is_answered(lookahead: str) -> None:
    cfg = CFG.from_string("S -> S S | a | ε")
    walk = Walk(cfg, lookahead=lookahead, budget=Budget(steps=30))
    while walk.question is not None:
        walk.answer(1)  # always the branch that grows
    assert walk.done
    assert walk.left >= 0


def test_a_step_budget_that_is_too_small_can_be_raised() -> None:
    walk = Walk(CFG.from_string("S -> a a a a a | b b b b b"), budget=Budget(steps=4))
    with pytest.raises(BudgetExceeded) as caught:
        _ = walk.question
    assert caught.value.kind == "steps"
    assert caught.value.needed == 8
    assert "at least 8 are needed" in str(caught.value)
    walk.budget = Budget(steps=8)
    walk.answer(2)
    assert walk.plan.word == ("b",) * 5


def test_a_backtrack_budget_can_be_raised() -> None:
    cfg = CFG.from_string("%limit 0 x\nS -> A A A | b\nA -> a | x")
    walk = Walk(cfg, lookahead="off", limits=Limits({"a": 2}), budget=Budget(backtracks=0))
    with pytest.raises(BudgetExceeded) as caught:
        walk.answer(1)
    assert caught.value.kind == "backtracks"
    assert caught.value.plan.word == ("a", "a")
    with pytest.raises(BudgetExceeded):
        _ = walk.question
    walk.budget = Budget()
    assert walk.plan.word == ("b",)


def test_the_first_bound_that_is_reached_is_told() -> None:
    budget = Budget(questions=5, requests=4, tokens=30, cost=0.5)
    assert budget.spent(Usage(questions=4, requests=3, input_tokens=20, output_tokens=9, cost=0.4)) is None
    assert budget.spent(Usage(questions=5, requests=9)) == ("questions", 5)
    assert budget.spent(Usage(input_tokens=20, output_tokens=10)) == ("tokens", 30)
    assert budget.spent(Usage(cost=0.5)) == ("cost", 0.5)
    assert Budget().spent(Usage(questions=10**9)) is None
    assert (Budget().metered, Budget(steps=1, backtracks=1).metered, Budget(cost=0).metered) == (False, False, True)


def test_what_the_questions_tell_alone_is_what_the_whole_usage_tells() -> None:
    for budget in (Budget(), Budget(questions=2), Budget(questions=2, tokens=10), Budget(requests=3), Budget(cost=1.0)):
        for questions in range(4):
            usage = Usage(questions=questions)
            assert not (budget.allows_question(questions) and budget.spent(usage) is not None)
            if not (budget.requests or budget.tokens or budget.cost):
                assert budget.allows_question(questions) == (budget.spent(usage) is None)


def test_how_many_steps_are_needed_is_looked_for_within_the_search_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def undecided(_: object, __: object, *, search_time: float | None) -> int:
        assert search_time == 1.0
        raise Undecided("not found")

    monkeypatch.setattr(Lookahead, "fewest_moves", undecided)
    walk = Walk(CFG.from_string("S -> a a a a a | b b b b b"), budget=Budget(steps=4))
    with pytest.raises(BudgetExceeded, match="how many are needed was not found within the search time") as caught:
        _ = walk.question
    assert (caught.value.needed, caught.value.decided) == (None, False)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({1: 0.5, 2: 0.5}, (0.5, 0.5, 0.0)),
        ({1: 3, 3: 1}, (0.75, 0.0, 0.25)),
        ({2: 1e-300}, (0.0, 1.0, 0.0)),
        ({7: 1.0}, None),
        ({}, None),
        (None, None),
    ],
)
def test_shares_are_normalised_over_what_is_offered(given, expected) -> None:  # type: ignore[no-untyped-def]
    assert normalise_probabilities(Answer((1,), given), 3) == expected


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_numbers_that_are_no_probabilities(bad: float) -> None:
    with pytest.raises(InvalidAnswer, match="the probability of option 2"):
        normalise_probabilities(Answer((1,), {1: 0.5, 2: bad}), 3)


def test_questions_tell_the_numbers_that_led_here() -> None:
    walk = Walk(CFG.from_string("S -> a S | b S | c"))
    walk.answer(2)
    walk.answer(1)
    assert [question.options[number - 1].text for question, number in zip(walk.questions, (2, 1), strict=True)] == [
        "b, S", "a, S",
    ]  # fmt: skip


@pytest.mark.parametrize("conversation", [False, True])
def test_questions_share_their_past_and_say_the_same_when_they_are_let_go(conversation: bool) -> None:
    rules = CFG.from_string("S -> a T S | b\nT -> c T | d")
    walk = Walk(rules, "a task", wording=Wording(conversation=conversation))
    told = []
    for number in (1, 1, 2, 1, 2, 2):
        assert walk.question is not None
        told.append((walk.question.prompt, walk.question.messages, walk.question.outlook))
        if len(told) == 3:  # what is left of a walk that went back and of one that parted says nothing here
            twin = walk.fork()
            twin.answer(1)
            walk.answer(1)
            walk.back()
        walk.answer(number)
    assert walk.done
    assert [(one.prompt, one.messages, one.outlook) for one in walk.questions] == told
    entries = walk._trail.journal
    assert sum(len(entry.past.since) for entry in entries if entry.past is not None) <= len(walk._trail.moves)
    assert entries[-1].past is not None and entries[-1].past.moves == walk._trail.moves[: entries[-1].moves]
