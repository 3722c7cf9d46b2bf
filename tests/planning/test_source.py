"""What can be planned with, and what is said of anything else."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from formal_llm import (
    CFG,
    PDA,
    Behaviour,
    Flowchart,
    FunctionLLM,
    Limits,
    Planner,
    RandomLLM,
    Task,
    Verifier,
    Walk,
    read_plan_text,
    verify,
)
from formal_llm.errors import AutomatonError, NotationError, UnknownProvider
from formal_llm.planning.source import source_of

TEXT = "S -> wash S | dry"
GRAMMAR = CFG.from_string(TEXT)
CHART = Flowchart.from_mermaid("flowchart TD\nA{Wet?} -->|yes| dry[Dry it]\nA -->|no| wear[Wear it]")
PLACES = Flowchart.from_mermaid("flowchart TD\nA{In {city}?} -->|yes| b[Go]\nA -->|no| c[Stay]")
MOODS = Behaviour.load("react")


@dataclass(frozen=True)
class Tick:
    read: str | None


class Clock:
    """Strikes as often as one likes, at least once. It tells nothing but what an automaton must."""

    def start(self) -> int:
        return 0

    def moves(self, configuration: int) -> Sequence[Tick]:
        return [Tick("strike")] if configuration < 3 else []

    def step(self, configuration: int, move: Tick) -> int:
        return configuration + 1

    def accepting(self, configuration: int) -> bool:
        return configuration > 0


def test_grammars_and_automata_as_they_are() -> None:
    pda, clock = PDA.from_cfg(GRAMMAR), Clock()
    assert [source_of(one) for one in (GRAMMAR, pda, clock)] == [GRAMMAR, pda, clock]


def test_flowcharts_and_behaviours_are_planned_with_as_they_are() -> None:
    assert Planner(CHART, "test:script=2").plan("dress").word == ("A=no", "wear")
    assert [option.text for option in Walk(CHART).question.options] == ["yes", "no"]  # type: ignore[union-attr]
    plan = Planner(MOODS, RandomLLM(1)).plan("think")
    assert MOODS.accepts(plan.word)
    assert verify(plan, MOODS).valid
    assert Verifier(CHART).verify(["A=no", "dry"]).position == 1
    assert read_plan_text("Wear it", CHART) == ("A=no", "wear")
    with pytest.raises(AutomatonError, match=r"no value for \{city\}"):
        Planner(PLACES)


def test_an_automaton_that_tells_nothing_else_is_planned_with() -> None:
    assert Planner(Clock(), "test:script=2,2").plan("t").word == ("strike", "strike", "strike")
    walk = Planner(Clock()).start("t")
    walk.answer(2)
    with pytest.raises(AutomatonError, match="Clock has no fingerprint"):
        walk.snapshot()


@pytest.mark.parametrize(
    ("wrong", "instead"),
    [
        (TEXT, r"not text: Planner\(CFG.from_string\(text\)\)"),
        ("rules/tools.cfg", r"not the name of a file: Planner\(CFG.from_file\('rules/tools.cfg'\)\)"),
        (Path("chart.mmd"), r"not the name of a file: Planner\(Flowchart.from_file\('chart.mmd'\)\)"),
        (Path("rules"), r"Planner\(CFG.from_file\('rules'\)\)"),
        ("agent.agent", r"Behaviour.from_file"),
        ("machine.pda", r"PDA.from_file"),
        (RandomLLM(1), r"first, and who answers after it: Planner\(cfg, llm\)"),
        (lambda question: 1, r"Planner\(cfg, llm\)"),
        (Task("sort the mail"), "not Task"),
        (PDA, "not the class PDA"),
        (None, "not NoneType"),
        (42, "not int"),
    ],
)
def test_what_is_no_rules_is_told_with_what_to_write_instead(wrong: object, instead: str) -> None:
    with pytest.raises(TypeError, match=f"Planner takes a grammar.*{instead}"):
        Planner(wrong)  # type: ignore[arg-type]


def test_grammar_and_llm_the_wrong_way_round() -> None:
    with pytest.raises(TypeError, match=r"Planner\(cfg, llm\)"):
        Planner(FunctionLLM(lambda question: 1), GRAMMAR)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not text"):
        Planner("test:first", GRAMMAR)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 7, Task("who?"), GRAMMAR])
def test_nobody_who_could_answer(wrong: object) -> None:
    with pytest.raises(TypeError, match="an llm is a provider string, a function, or an object with answer"):
        Planner(GRAMMAR, llm=wrong)  # type: ignore[arg-type]


def test_an_unknown_provider_is_told_with_those_there_are() -> None:
    with pytest.raises(UnknownProvider, match="builtin"):
        Planner(GRAMMAR, "gpt-17")


@pytest.mark.parametrize("take", [Walk, Verifier, lambda source: read_plan_text("wash", source)])
def test_others_that_take_rules_say_so_as_well(take: object) -> None:
    with pytest.raises(TypeError, match=r"(Walk|Verifier|read_plan_text).*not text: .*CFG.from_string"):
        take(TEXT)  # type: ignore[operator]


def test_a_text_is_a_task_and_a_task_is_one() -> None:
    task = Task("sort the mail", goal="S", limits=Limits({"stamp": 2}), inputs=("mail",), group="office")
    assert Task.of(task) is task
    assert Task.of("sort the mail") == Task("sort the mail") != task


def test_tasks_are_values() -> None:
    task = Task("sort the mail", limits=Limits({"stamp": 2}, {"stamp": 1}), inputs=("mail",))
    for same in (pickle.loads(pickle.dumps(task)), copy.deepcopy(task), copy.copy(task)):
        assert same == task
        assert {same: 1}[task] == 1


@pytest.mark.parametrize("wrong", [None, 3, b"text", ["one", "two"], CFG.from_string("S -> a")])
def test_what_is_no_task_is_told_with_its_class(wrong: object) -> None:
    with pytest.raises(TypeError, match=rf"Task\('\.\.\.'\), not by {type(wrong).__name__}"):
        Task.of(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="described by a text"):
        Task(Task("twice"))  # type: ignore[arg-type]


def test_rules_and_limits_are_given_as_texts_and_a_mapping() -> None:
    deploy = CFG.from_string('Plan -> Step Plan | Step\nStep -> backup | migrate | scan\nscan "Scan" cost=2')
    planner = Planner(
        deploy, "test:random=3", rules=["backup before migrate", "at least 1 migrate"], limits={"scan": 1, "cost": 5}
    )
    for plan in planner.plan_all([f"task {number}" for number in range(20)]):
        word = plan.unwrap().word
        assert "backup" in word[: word.index("migrate")] and word.count("scan") <= 1
    with pytest.raises(NotationError, match="bakup"):
        Planner(deploy, rules=["bakup before migrate"])
    with pytest.raises(AutomatonError, match=r"scann.*did you mean scan"):
        Planner(deploy, limits={"scann": 1})
    with pytest.raises(TypeError, match=r"rules=\['backup before migrate'\]"):
        Planner(deploy, rules="backup before migrate")
    with pytest.raises(TypeError, match="whole number"):
        Planner(deploy, limits={"scan": 1.5})
