"""The planner: whatever the LLM answers, a word of the language comes out."""

from __future__ import annotations

import copy
import inspect
import logging
import pickle
import re
import sys

import pytest

from formal_llm import (
    CFG,
    PDA,
    Answer,
    Budget,
    FunctionLLM,
    Limits,
    Plan,
    Planner,
    Question,
    RandomLLM,
    ScriptedLLM,
    Task,
    TaskPack,
    Verifier,
    WeightedLLM,
    Wording,
)
from formal_llm.errors import (
    AutomatonError,
    BudgetExceeded,
    InvalidAnswer,
    NoValidPlan,
    ProviderError,
    ToolError,
    UnknownProvider,
)
from formal_llm.llms import TokenUsage
from formal_llm.planning.drivers.driving import WalkDriver
from formal_llm.planning.drivers.planner import Search
from formal_llm.planning.walks.choices import ChoiceTable
from formal_llm.planning.walks.events import Answered, Asked, Finished, Started, logged
from tests.planning.wandering import CHAIN


def test_plan_with_each_kind_of_llm() -> None:
    assert Planner(CHAIN, "test:first", limits=Limits({"a": 2, "b": 1})).plan("t").word == ("a", "a", "b", "c")
    assert Planner(CHAIN, "test:script=2,1,3").plan("t").word == ("b", "a", "c")
    assert Planner(CHAIN, lambda question: len(question.options)).plan("t").word == ("c",)
    assert Planner(CHAIN, lambda question: Answer((3,))).plan("t").word == ("c",)
    assert Planner(CHAIN, lambda question: "Option 3").plan("t").word == ("c",)
    assert Planner(CHAIN, ScriptedLLM([1, 3])).plan("t").word == ("a", "c")
    assert Planner(CHAIN, RandomLLM(1)).plan("t") == Planner(CHAIN, RandomLLM(1)).plan("t")


def test_bad_settings_are_told_at_once() -> None:
    with pytest.raises(UnknownProvider, match="builtin"):
        Planner(CHAIN, "bultin")
    with pytest.raises(TypeError, match="answer"):
        Planner(CHAIN, 7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lookahead"):
        Planner(CHAIN, lookahead="maybe")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="search"):
        Planner(CHAIN, search="psychic")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tries"):
        Planner(CHAIN, tries=0)
    with pytest.raises(AutomatonError, match=r"did you mean a\b|unknown terminal"):
        Planner(CHAIN, limits=Limits({"aa": 1})).plan("t")
    with pytest.raises(AutomatonError, match="unknown goal of the task: Q; goals are S"):
        Planner(CHAIN).plan(Task("t", goal="Q"))


def test_a_bad_answer_is_asked_again_with_what_was_wrong() -> None:
    prompts: list[str] = []
    answers = iter(["first the stove", "9", "3"])

    def llm(question: Question) -> str:
        prompts.append(question.prompt)
        return next(answers)

    plan = Planner(CHAIN, llm).plan("cook")
    assert plan.word == ("c",)
    assert prompts[0] in prompts[1]
    assert "'first the stove' is not a number" in prompts[1]
    assert "from 1 to 3" in prompts[2]
    assert plan.usage.questions == 1


def test_after_the_last_try_the_transcript_is_raised() -> None:
    with pytest.raises(InvalidAnswer) as caught:
        Planner(CHAIN, lambda question: "no idea", tries=2).plan("t")
    assert [text for _, text in caught.value.transcript] == ["no idea", "no idea"]
    assert "2 tries" in str(caught.value)


def test_usage_adds_up_over_questions_and_tries() -> None:
    answers = iter([Answer((1,), usage=TokenUsage(1, 10, 2)), Answer((9,), usage=TokenUsage(1, 10, 2)), Answer((3,))])
    usage = Planner(CHAIN, lambda question: next(answers)).plan("t").usage
    assert usage.questions == 2
    assert usage.requests == 2, "an answer that cannot be used costs what it costs"
    assert usage.input_tokens == 20
    assert usage.seconds > 0


def test_events_tell_what_happens() -> None:
    events: list[object] = []
    plan = Planner(CHAIN, "test:script=1,3", on_event=events.append).plan("t")
    assert [type(event) for event in events] == [Started, Asked, Answered, Asked, Answered, Finished]
    assert events[-1] == Finished(plan)


def test_start_and_resume() -> None:
    planner = Planner(CHAIN, "test:first")
    walk = planner.start("t")
    walk.answer(2)
    again = planner.resume(walk.snapshot())
    again.answer(3)
    assert again.plan.word == ("b", "c")
    assert again.plan.task == "t"
    task = Task("x", limits=Limits({"a": 1}))
    limited = planner.start(task)
    limited.answer(1)
    assert planner.resume(limited.snapshot(), task).word == ("a",)


def test_limits_only_narrow() -> None:
    cfg = CHAIN.with_limits(Limits({"a": 1}))
    planner = Planner(cfg, RandomLLM(0), limits=Limits({"a": 5, "b": 0}))
    for _ in range(50):
        word = planner.plan("t").word
        assert word.count("a") <= 1
        assert "b" not in word


def test_no_plan_names_the_clash_between_grammar_task_and_planner() -> None:
    cfg = CHAIN.with_limits(Limits({"a": 1}))
    planner = Planner(cfg, "test:first", limits=Limits({}, {"a": 2}))
    with pytest.raises(NoValidPlan) as caught:
        planner.plan("t")
    assert set(caught.value.limits) == {"%limit 1 a", "%require 2 a"}
    with pytest.raises(NoValidPlan) as caught:
        Planner(CHAIN, "test:first").plan(Task("t", limits=Limits({"c": 0})))
    assert caught.value.limits == ("%limit 0 c",)


def test_constraints_hold_beside_the_grammar() -> None:
    # a and b in turns, beginning with a; anything about c.
    turns = PDA(
        [("x", "a", None, "y"), ("y", "b", None, "x"), ("x", "c", None, "x"), ("y", "c", None, "y")],
        start="x",
        accepting=["x", "y"],
    )
    planner = Planner(CHAIN, RandomLLM(3), constraints=[turns], limits=Limits({"a": 3}))
    seen = {planner.plan("t").word for _ in range(200)}
    assert seen == {("a", "b") * n + tail for n in range(4) for tail in ((("c",), ("a", "c")) if n < 3 else (("c",),))}
    with pytest.raises(AutomatonError, match="stack"):
        Planner(CHAIN, "test:first", constraints=[PDA.from_cfg(CHAIN)]).plan("t")


def test_no_plan_names_the_constraints_that_clash() -> None:
    def repeated(letters: str, name: str = "") -> PDA:
        return PDA([("x", letter, None, "x") for letter in letters], start="x", accepting="x", name=name)

    def never(question: Question) -> int:
        raise AssertionError("nothing is asked where there is no plan")

    with pytest.raises(NoValidPlan) as caught:
        Planner(CHAIN, never, constraints=[repeated("abc"), repeated("ab", "no c")]).plan("t")
    assert str(caught.value) == "no valid plan: no plan keeps constraint 'no c'"
    assert caught.value.constraints == caught.value.remedy == ("no c",)
    assert caught.value.limits == caught.value.symbols == ()
    # The limit is on a terminal that a constraint forbids.
    planner = Planner(CHAIN, never, limits=Limits(at_least={"b": 1}), constraints=[repeated("abc"), repeated("ac")])
    with pytest.raises(NoValidPlan, match="these rules clash: constraint 2; %require 1 b") as caught:
        planner.plan("t")
    assert caught.value.constraints == ("constraint 2",)
    assert caught.value.limits == ("%require 1 b",)
    assert len(caught.value.remedy) == 1
    # Where the grammar has no plan, no rule is to blame.
    with pytest.raises(NoValidPlan, match="no word can be derived from S") as caught:
        Planner(CFG([("S", ("a", "S"))]), never, constraints=[repeated("b")]).plan("t")
    assert caught.value.symbols == ("S",)
    assert caught.value.constraints == caught.value.remedy == ()


def test_an_automaton_of_ones_own() -> None:
    class Countdown:
        """Words of 'tick' that end at zero: any object with the protocol's methods will do."""

        terminals = ("tick", "pass")
        fingerprint = "countdown"

        class Move:
            def __init__(self, read: str) -> None:
                self.read = read
                self.text = read
                self.production = None

        def label(self, name: str) -> str:
            return name

        def start(self) -> int:
            return 3

        def moves(self, left: int) -> list[object]:
            return [self.Move("tick"), self.Move("pass")] if left else []

        def step(self, left: int, move: object) -> int:
            return left - 1

        def accepting(self, left: int) -> bool:
            return left == 0

    assert Planner(Countdown(), "test:script=1,2,1").plan("t").word == ("tick", "pass", "tick")
    limited = Planner(Countdown(), "test:first", limits=Limits({"tick": 1}))
    assert limited.plan("t").word == ("tick", "pass", "pass")


def test_budgets_are_the_planner_s_settings() -> None:
    with pytest.raises(BudgetExceeded) as caught:
        Planner(CHAIN, "test:first", budget=Budget(questions=3)).plan("t")
    assert caught.value.plan.word == ("a", "a", "a")
    plan = Planner(CHAIN, "test:first", budget=Budget(steps=12)).plan("t")
    assert plan.word[-1] == "c"


def test_one_conversation_sends_what_came_before() -> None:
    sent: list[list[tuple[str, str]]] = []

    def llm(question: Question) -> int:
        sent.append([(message.role, message.content) for message in question.messages])
        return 1 if len(sent) < 3 else 3

    wording = Wording(conversation=True, system="You plan.", examples=(("Which?", "1"),))
    Planner(CHAIN, llm, wording=wording).plan("the task")
    assert [role for role, _ in sent[0]] == ["system", "user", "assistant", "user"]
    assert [role for role, _ in sent[2]] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
    ]
    assert "the task" in sent[0][-1][1]
    assert "the task" not in sent[1][-1][1]
    assert sent[2][:7] == [*sent[1], ("assistant", "1")]


def test_the_solver_can_be_switched_off() -> None:
    for on in (True, False):
        assert Planner(CFG.from_string("S -> a"), solver=on).table().lookahead.solver is on


def test_one_planner_serves_tasks_with_different_goals() -> None:
    cfg = CFG.from_string("S -> A | B\nA -> a1 | a2\nB -> b1 | b2")
    planner = Planner(cfg, FunctionLLM(lambda question: 2))
    assert planner.plan(Task("x", goal="A")).word == ("a2",)
    assert planner.plan(Task("x", goal="B")).word == ("b2",)
    with pytest.raises(AutomatonError, match="goal"):
        Planner(PDA.from_cfg(cfg), "test:first").plan(Task("x", goal="A"))


def test_a_planner_is_pickled_without_what_it_has_learnt() -> None:
    pack = TaskPack.load("openagi")
    planner = pack.planner(RandomLLM(3), search="sample", seed=7, budget=Budget(questions=50))
    task = pack.task(3)
    fresh = len(pickle.dumps(planner))
    plan = planner.plan(task)
    assert len(pickle.dumps(planner)) < 2 * fresh  # its tables are larger by far
    again = pickle.loads(pickle.dumps(planner))
    assert again.source == planner.source
    assert (again.search, again.seed, again.wording, again.budget) == ("sample", 7, pack.wording, Budget(questions=50))
    assert Verifier(pack.cfg).verify(again.plan(task)).valid
    assert again.plan(task) is not plan
    for copied in (copy.deepcopy(planner), pickle.loads(pickle.dumps(planner))):
        copied.llm = planner.llm = RandomLLM(11)
        first = copied.plan(task)
        planner.llm = RandomLLM(11)
        assert planner.plan(task) == first


def test_a_planner_goes_on_drawing_where_its_copy_does() -> None:
    planner = Planner(CHAIN, WeightedLLM(5), search="sample", seed=3)
    planner.plan("one")
    again = pickle.loads(pickle.dumps(planner))
    assert [again.plan("t").word for _ in range(5)] == [planner.plan("t").word for _ in range(5)]


def test_tries_in_vain_are_paid_for_whatever_ends_them() -> None:
    """An answer that cannot be used, then a provider that is gone: the first one was paid for."""
    given = iter([Answer((9,), usage=TokenUsage(1, 10, 1)), ProviderError("gone")])

    def answer(question: Question) -> Answer:
        one = next(given)
        if isinstance(one, Exception):
            raise one
        return one

    planner = Planner(CHAIN, answer)
    walk = planner.start("t")
    with pytest.raises(ProviderError):
        planner.drive(walk)
    assert walk.usage.requests == 1


@pytest.mark.parametrize("rules", ["S -> a S | b", "%limit 1\nS -> a S | b"])
def test_a_limit_names_a_terminal_that_there_is(rules: str) -> None:
    # Where the rules bound every terminal alike, a limit of the same number is none of its own; its name counts.
    with pytest.raises(AutomatonError, match="unknown terminal in a limit: aa"):
        Planner(CFG.from_string(rules), limits=Limits({"aa": 1})).start("t")


def first(_: Question) -> int:
    return 1


ENDLESS = CFG.from_string("S -> a S | b")


@pytest.mark.parametrize("search", ["greedy", "sample", "best-first"])
def test_without_a_budget_a_plan_takes_at_most_200_questions(search: Search) -> None:
    asked: list[Question] = []

    def llm(question: Question) -> Answer:
        asked.append(question)
        return Answer((1,), {1: 1.0, 2: 0.0})

    planner = Planner(ENDLESS, llm, search=search)
    said = r"budget of 200 questions .* Planner\(budget=Budget\(questions=...\)\)"
    with pytest.raises(BudgetExceeded, match=said) as caught:
        planner.plan("t")
    assert len(asked) == caught.value.plan.usage.questions == 200
    # Each plan of many has its own.
    outcomes = planner.plan_all(["t", "u"])
    assert [type(outcome.error) for outcome in outcomes] == [BudgetExceeded, BudgetExceeded]
    assert [outcome.usage.questions for outcome in outcomes] == [200, 200]


def test_who_says_so_has_another_bound_or_none() -> None:
    few = Planner(ENDLESS, lambda _: 1, budget=Budget(questions=3))
    with pytest.raises(BudgetExceeded, match="budget of 3 questions"):
        few.plan("t")
    long = Planner(ENDLESS, lambda question: 1 + (len(question.outlook.so_far) >= 300), budget=Budget())  # type: ignore[union-attr]
    assert long.plan("t").usage.questions == 301
    # A walk that somebody else takes to its end is not bounded, and neither is one with a budget of its own.
    planner = Planner(ENDLESS, lambda _: 1)
    walk = planner.start("t")
    for _ in range(250):
        assert walk.question is not None
        walk.answer(1)
    walk.budget = Budget(questions=260)
    with pytest.raises(BudgetExceeded, match="budget of 260 questions"):
        planner.drive(walk)
    assert walk.usage.questions == 260


def test_a_walk_that_used_up_the_usual_budget_can_be_driven_on() -> None:
    planner = pickle.loads(pickle.dumps(Planner(ENDLESS, first)))
    walk = planner.start("t")
    for questions in (200, 400):
        with pytest.raises(BudgetExceeded):
            planner.drive(walk)
        assert walk.usage.questions == questions
    assert walk.budget.questions is None


def test_solving_gives_each_plan_its_questions() -> None:
    class World:
        def __init__(self) -> None:
            self.plans = 0

        def limits(self, source: object, given: object = None) -> Limits:
            return Limits()

        def run(self, plan: Plan, inputs: object) -> str:
            self.plans += 1
            if self.plans < 3:
                raise ToolError("b", "is on strike", position=len(plan.word) - 1)
            return "done"

    turns = iter([150, 150, 150])
    left = next(turns)

    def llm(_: Question) -> int:
        nonlocal left
        if left:
            left -= 1
            return 1
        left = next(turns, 0)
        return 2

    solution = Planner(CFG.from_string("S -> a S | b | c"), llm).solve("t", {}, World(), patience=9)
    assert solution.result == "done"
    assert solution.usage.questions > 200


def test_a_question_takes_few_calls_where_nothing_is_hard() -> None:
    """A bound on the work of a question; most of it goes into options at places that were not met before."""
    pack = TaskPack.load("openagi")
    planner = Planner(pack.cfg, RandomLLM(1), wording=pack.wording)
    tasks = pack.split("test")
    for _ in range(20):
        for task in tasks:
            planner.plan(task)
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        questions = sum(planner.plan(task).usage.questions for _ in range(4) for task in tasks)
    finally:
        sys.setprofile(None)
    assert calls < 400 * questions


def test_of_many_goals_and_limits_those_asked_for_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formal_llm.planning.drivers.planner._TABLES", 3)
    planner = Planner(CFG.from_string("S -> a S | b"), "test:first")

    def table(most: int) -> ChoiceTable:
        return planner.table(Task("t", limits=Limits({"a": most})))

    first, second, third = (table(most) for most in range(3))
    assert table(0) is first
    table(3)
    assert (table(0), table(2)) == (first, third)
    assert table(1) is not second
    assert len(planner._tables) == 3


@pytest.mark.parametrize("name", ["aplan_all", "plan_each", "aplan_each"])
def test_they_have_the_arguments_of_plan_all(name: str) -> None:
    expected = dict(inspect.signature(Planner.plan_all).parameters)
    if name.endswith("each"):
        del expected["on_outcome"]  # the outcomes are handed out
    found = dict(inspect.signature(getattr(Planner, name)).parameters)
    if name.endswith("each"):
        del found["keeping"]  # who hands out the outcomes can keep them, too
    assert [(one.name, one.default) for one in found.values()] == [(o.name, o.default) for o in expected.values()]


def test_a_planner_is_a_driver() -> None:
    driver: WalkDriver = Planner(CHAIN, RandomLLM(5))
    assert driver.drive(driver.start("t")) == Planner(CHAIN, RandomLLM(5)).plan("t")
    assert (driver.seed, driver.prices, driver.source) == (0, None, CHAIN)


SECRET = "Sell the company to Mallory"


@pytest.mark.parametrize("content", [False, True])
def test_log_lines(caplog: pytest.LogCaptureFixture, content: bool) -> None:
    with caplog.at_level(logging.DEBUG, logger="formal_llm"):
        Planner(CHAIN, "test:first", limits=Limits({"a": 2, "b": 2}), on_event=logged(content=content)).plan(SECRET)
        with pytest.raises(BudgetExceeded):
            Planner(CHAIN, "test:first", budget=Budget(questions=1), on_event=logged(content=content)).plan("t")
    levels = [record.levelname for record in caplog.records]
    assert {"INFO", "DEBUG", "WARNING"} == set(levels)
    assert (SECRET in caplog.text) == content
    forced = [record.getMessage() for record in caplog.records if "a choice left one option" in record.getMessage()]
    assert forced and all(
        re.search(r"one option of \d+: " if content else r"one option of \d+$", one) for one in forced
    )
    assert "BudgetExceeded" in caplog.text
