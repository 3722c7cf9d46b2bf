"""Walks: questions, forced choices, going back, ruling out, budgets, snapshots."""

from __future__ import annotations

import inspect
import pickle
import random
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyformlang.cfg import Terminal

from formal_llm import CFG, PDA, Answer, Budget, Limits, Planner, Task, Walk, Wording
from formal_llm.errors import BudgetExceeded, InvalidAnswer, NoValidPlan, WalkError
from formal_llm.planning.drivers.planner import PlannerSettings
from formal_llm.planning.walks.events import Finished, Forced
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
    walk = Walk(pda, wording=Wording(order="forward"))
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
    walk = Walk(CFG.from_string("S -> a S b | c"), budget=Budget(steps=20_000))
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
