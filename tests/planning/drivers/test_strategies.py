"""Strategies: random ones are proved and complete, changed ones are refused; the choices, the budget, the forms."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from formal_llm import CFG, Budget, Flowchart, Limits, Planner, Question, RandomLLM, Task
from formal_llm.control.world import WhateverLookahead
from formal_llm.errors import AutomatonError, BudgetExceeded, NoValidPlan, Undecided, WorldUnanswered
from formal_llm.planning.checking import strategy_checker
from formal_llm.planning.drivers.strategies import Strategy
from tests.world_oracles import plain_of, random_rules, wins_by_plays

REPAIR = """flowchart TD
    %% %world Healthy?
    A[Probe] --> H{Healthy?}
    H -->|yes| B[Deploy]
    H -->|no| D{Again?}
    D -->|yes| C[Fix]
    D -->|no| E[Give up]
    C --> A
"""
CHART = Flowchart.from_string(REPAIR)


def first(question: Question) -> int:
    assert not question.world
    return 1


@pytest.mark.parametrize("begin", range(0, 300, 30))
def test_random_strategies_are_there_where_the_oracle_says_so_and_are_proved(begin: int) -> None:
    for seed in range(begin, begin + 30):
        rules = random_rules(seed)
        plain = plain_of(rules)
        try:
            strategy = Planner(rules, RandomLLM(seed)).strategy("")
        except NoValidPlan:
            assert not wins_by_plays(plain, (*plain.start, ())), seed
            continue
        assert wins_by_plays(plain, (*plain.start, ())), seed
        assert strategy.verify() == strategy.verify(rules)
        assert strategy.verify().valid, (seed, strategy.verify().reason)
        plans = list(strategy.plans())
        assert len(plans) == strategy.count()
        accepting = WhateverLookahead(rules).source
        assert all(accepting.accepts(plan.word) for plan in plans)
        assert Strategy.from_json(strategy.to_json()) == strategy
        for changed in changed_strategies(strategy, rules):
            assert not changed.verify(rules).valid, seed


def changed_strategies(strategy: Strategy, rules: object) -> list[Strategy]:
    """Each lacks an answer of the world's, or the last production of a plan."""
    found = []
    for number, node in enumerate(strategy.nodes):
        others = [
            replace(node, branches=node.branches[:at] + node.branches[at + 1 :]) for at in range(len(node.branches))
        ]
        others = others if len(node.branches) > 1 else []
        for branch in node.branches:
            if branch.run and isinstance(rules, CFG) and not strategy.nodes[branch.node].branches:
                cut = [replace(one, run=one.run[:-1]) if one is branch else one for one in node.branches]
                others.append(replace(node, branches=tuple(cut)))
        for other in others:
            nodes = (*strategy.nodes[:number], other, *strategy.nodes[number + 1 :])
            found.append(replace(strategy, nodes=nodes))
    return found


def test_a_strategy_follows_every_answer() -> None:
    strategy = Planner(CHART, lambda question: 2).strategy("Bring it back")
    assert str(strategy) == strategy.draw() == """\
Probe
Healthy? (the world decides)
├─ yes
│  Deploy
└─ no
   Again? → no
   Give up"""  # fmt: skip
    assert repr(strategy) == "<Strategy: 2 plans, 1 decisions of the world's>"
    assert [plan.answers for plan in strategy.plans()] == [(("Healthy?", "yes"),), (("Healthy?", "no"),)]
    assert [plan.steps for plan in strategy.plans()] == [("Probe", "Deploy"), ("Probe", "Give up")]
    assert [box.kind for box in strategy.picture.nodes].count("decision") == 1
    assert "yes" in strategy.to_mermaid()
    assert "Probe" in strategy.to_dot()


def test_a_branch_that_comes_back_makes_progress_from_then_on() -> None:
    """The model would try again for ever."""
    strategy = Planner(CHART, first).strategy("")
    assert strategy.verify().valid
    assert strategy.count() == 3


def test_branches_that_meet_share_what_follows() -> None:
    weather = "%start S\n%world W\nS -> look W pack W leave\nW -> sun | rain | snow"
    strategy = Planner(CFG.from_string(weather), first).strategy("")
    assert strategy.count() == 9
    assert sum(node.is_world for node in strategy.nodes) == 2
    assert "W (the world decides) [1]" in strategy.draw()
    assert "W (as at 1)" in strategy.draw()


def test_limits_and_clocks_hold_in_every_branch() -> None:
    clocked = Flowchart.from_string(
        REPAIR.replace("flowchart TD\n", "flowchart TD\n %% %numbers A time=1h\n %% %numbers C time=2h\n"
                       " %% %clock time 8:00-12:00\n")
    )  # fmt: skip
    strategy = Planner(clocked, first).strategy("")
    assert strategy.verify().valid
    assert {plan.word.count("A") for plan in strategy.plans()} == {1, 2}
    assert "8:00 to 9:00: Probe" in strategy.draw()
    with pytest.raises(NoValidPlan, match="Healthy\\? no: nothing leads to an end, after A"):
        Planner(CHART, first, limits=Limits({"E": 0, "C": 0})).strategy("")
    assert not strategy.verify(clocked, limits=Limits({"C": 0})).valid


def test_the_goal_and_limits_of_a_task_hold() -> None:
    cfg = CFG.from_string("%start S\n%world W\nS -> T | x\nT -> a W\nW -> b | c T | d")
    strategy = Planner(cfg, first).strategy(Task("", goal="S", limits=Limits({"a": 5})))
    assert [plan.word for plan in strategy.plans()] == [("x",)]
    with pytest.raises(NoValidPlan):
        Planner(cfg, first).strategy(Task("", goal="T"))


def test_the_budget_is_that_of_all_branches_together() -> None:
    cfg = CFG.from_string("%start S\n%world W\nS -> look W\nW -> sun T a | rain T b | snow T c\nT -> walk | ride")
    assert Planner(cfg, first, budget=Budget(3)).strategy("").count() == 3
    with pytest.raises(BudgetExceeded, match="2 questions"):
        Planner(cfg, first, budget=Budget(2)).strategy("")


def test_questions_in_pages_make_one_decision() -> None:
    cfg = CFG.from_string("%start S\n%world W\nS -> T W\nT -> a | b | c | d | e | f\nW -> x | y")
    strategy = Planner(cfg, lambda question: len(question.options), pages=3).strategy("")
    assert strategy.verify().valid
    assert [len(node.branches) for node in strategy.nodes if not node.is_world and node.branches] == [1]


def test_it_is_awaited_too() -> None:
    async def choose(question: Question) -> int:
        return 2

    assert asyncio.run(Planner(CHART, choose).astrategy("")) == Planner(CHART, lambda question: 2).strategy("")


def test_what_cannot_be_a_strategy() -> None:
    for settings in ({"lookahead": "off"}, {"search": "best-first"}):
        with pytest.raises(ValueError, match="a strategy is made with"):
            Planner(CHART, first, **settings).strategy("")
    with pytest.raises(Undecided, match="raise max_states"):
        Planner(CFG.from_string("%world W\nS -> W\nW -> a W b | c"), first, max_states=30).strategy("")
    strategy = Planner(CHART, first).strategy("")
    with pytest.raises(ValueError, match="no earlier one"):
        replace(strategy, start=replace(strategy.start, node=99))
    read = Strategy.from_json(strategy.to_json())
    with pytest.raises(ValueError, match="name its rules"):
        read.verify()
    assert read.verify(CHART).valid
    for text in ("{}", '{"format": "other"}', "no JSON"):
        with pytest.raises(ValueError, match="not a strategy that to_json wrote"):
            Strategy.from_json(text)


def test_the_proof_is_checked_without_this_library(tmp_path) -> None:
    strategy = Planner(CHART, first).strategy("")
    for name, data in (("rules", strategy.compiled_rules()), ("certificate", strategy.certificate())):
        (tmp_path / f"{name}.json").write_text(json.dumps(data))
    command = [sys.executable, "-I", strategy_checker.__file__, tmp_path / "rules.json", tmp_path / "certificate.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout[:7]) == (0, "proved:")
    (tmp_path / "rules.json").write_text(json.dumps({**strategy.compiled_rules(), "world": []}))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "refused: the certificate is about other rules\n")


# -- one plan in a world that moves -----------------------------------------------------------------------------------


def test_the_world_is_asked_and_no_model() -> None:
    planner = Planner(CHART, first, guarantee="whatever", world=lambda question: "yes")
    plan = planner.plan("")
    assert plan.word == ("A", "H=yes", "B")
    assert plan.usage.questions == 0
    assert Planner(CHART, lambda question: 2, world=lambda question: 2).plan("").word[-1] == "E"
    with pytest.raises(WorldUnanswered, match="the world decides 'Healthy\\?' \\(yes, no\\)") as caught:
        Planner(CHART, first).plan("")
    assert caught.value.outcomes == ("yes", "no")


def test_the_world_is_awaited() -> None:
    async def answer(question: Question) -> str:
        await asyncio.sleep(0)
        return "yes"

    async def plan_with(world: Callable[[Question], object]) -> Sequence[str]:
        return (await Planner(CHART, first, guarantee="whatever", world=world).aplan("")).word

    assert asyncio.run(plan_with(answer)) == ("A", "H=yes", "B")
    assert asyncio.run(plan_with(lambda question: "yes")) == ("A", "H=yes", "B")
    assert Planner(CHART, first, guarantee="whatever", world=answer).plan("").word == ("A", "H=yes", "B")

    async def meet() -> Sequence[str]:
        """The world's answer depends on what else runs on the loop."""
        asked, told, answers = asyncio.Event(), asyncio.Event(), iter((2, 1))

        async def wait(question: Question) -> int:
            asked.set()
            await told.wait()
            return next(answers)

        work = asyncio.create_task(plan_with(wait))
        await asked.wait()
        told.set()
        return await work

    assert asyncio.run(meet())[:2] == ("A", "H=no")
    with pytest.raises(WorldUnanswered):
        asyncio.run(Planner(CHART, first).aplan(""))


def test_only_what_can_be_finished_whatever_comes_is_offered() -> None:
    cfg = CFG.from_string("%start S\n%world W\nS -> risky W | safe | sound\nW -> lucky | unlucky S\n%limit 0 unlucky")
    offered: list[list[str]] = []

    def answer(question: Question) -> int:
        offered.append([option.text for option in question.options])
        return 1

    assert Planner(cfg, answer, guarantee="whatever").plan("").word == ("safe",)
    assert Planner(cfg, answer, world=lambda question: 1).plan("").word == ("risky", "lucky")
    assert [len(texts) for texts in offered] == [2, 3]
    with pytest.raises(NoValidPlan, match=r"the world answers .* and then no plan can be finished"):
        Planner(cfg, answer, world=lambda question: 2).plan("")


def test_settings_that_contradict_each_other() -> None:
    with pytest.raises(ValueError, match="guarantee is 'some' or 'whatever'"):
        Planner(CHART, first, guarantee="always")
    with pytest.raises(ValueError, match="needs lookahead='on'"):
        Planner(CHART, first, guarantee="whatever", lookahead="off")
    with pytest.raises(ValueError, match="makes the world's moves, too"):
        Planner(CHART, first, search="exact").plan("")


def test_a_grammar_with_the_worlds_moves_runs_forward() -> None:
    assert CFG.from_string("%world W\nS -> a W\nW -> b | c").order == "forward"


def test_a_strategy_of_an_automaton_of_ones_own_has_no_proof() -> None:
    class Coin:
        terminals = ("heads", "tails")

        def start(self) -> str:
            return "toss"

        def moves(self, configuration: str) -> list:
            return [Toss("heads"), Toss("tails")] if configuration == "toss" else []

        def step(self, configuration: str, move: object) -> str:
            return "done"

        def accepting(self, configuration: str) -> bool:
            return configuration == "done"

        def is_world_decision(self, configuration: str) -> bool:
            return configuration == "toss"

        def label(self, name: str) -> str:
            return name

    class Toss:
        def __init__(self, read: str) -> None:
            self.read = read

        def __str__(self) -> str:
            return self.read

    strategy = Planner(Coin(), first).strategy("")
    assert [plan.word for plan in strategy.plans()] == [("heads",), ("tails",)]
    with pytest.raises(AutomatonError, match="no certificate"):
        strategy.verify()


def test_a_walk_through_the_worlds_moves_is_kept_and_taken_back() -> None:
    planner = Planner(CHART, first, guarantee="whatever", world=lambda question: "no")
    walk = planner.start("")
    assert walk.question.world == "Healthy?"
    walk.answer(2)
    again = planner.resume(walk.snapshot(), "")
    assert (again.word, again.question) == (walk.word, walk.question)
    again.answer(1)
    assert again.question.world
    again.back()
    assert again.question == walk.question
