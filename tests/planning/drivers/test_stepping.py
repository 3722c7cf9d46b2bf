"""Being the model: a walk that a person takes."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.studio.texts import CHART, HOSTILE, NESTED, TEA

from formal_llm import CFG, PDA, Behaviour, Flowchart, Limits, Lookahead, Planner, ScriptedLLM, Task, constraint
from formal_llm.errors import AutomatonError, InvalidAnswer, NoValidPlan, WalkError
from formal_llm.planning.drivers.stepping import HTML, Stepping
from tests.strategies import examples


def stepping(text: str = TEA, task: str | Task = "", **settings: object) -> Stepping:
    return Planner(CFG.from_string(text), "test:first", **settings).step_through(task)


def marked(step: Stepping) -> set[str]:
    return {box.label for box in step.picture.nodes if box.tone == "marked"}


def test_choose_back_and_the_plan() -> None:
    step = stepping()
    assert [one.text for one in step.options] == ['the output of "pour"', 'the output of "steep"', "Boil water"]
    assert step.choose(1) is step
    assert [one.text for one in step.options] == ['the output of "steep"', "Boil water"]
    assert step.back().choose(3).done
    assert step.plan.word == ("boil_water",)
    assert step.options == ()
    assert step.question is None
    assert step.back().choose(1).choose(1).plan.word == ("pour", "steep", "boil_water")  # the last one is forced


def test_it_asks_what_an_llm_is_asked() -> None:
    cfg = CFG.from_string(TEA)
    llm = ScriptedLLM([1, 2])
    Planner(cfg, llm).plan("Make tea")
    step = Planner(cfg, "test:first").step_through("Make tea")
    assert [step.question.prompt, step.choose(1).question.prompt] == [one.prompt for one in llm.questions]


def test_what_is_no_answer_changes_nothing() -> None:
    step = stepping()
    with pytest.raises(InvalidAnswer):
        step.choose(9)
    with pytest.raises(InvalidAnswer):
        step.choose(1, 2)
    with pytest.raises(WalkError, match="no question has been answered"):
        step.back()
    assert len(step.options) == 3
    with pytest.raises(WalkError, match="finished"):
        step.choose(3).choose(1)


def test_where_there_is_no_plan_it_is_said_at_once() -> None:
    with pytest.raises(NoValidPlan):
        stepping("S -> a S | b", limits=Limits(at_most={"b": 0}))


def test_state_stack_and_limits() -> None:
    step = stepping(NESTED).choose(1).choose(1)
    assert step.stack[:3] == ("S", "close", "close")
    (limit,) = step.limits
    assert (limit.now, limit.whole, limit.kind, limit.terminal) == (1, 3, "left", "open")
    assert str(limit) == "%limit 3 open (1 of 3 left)"
    assert marked(step) == {"S"}


@pytest.mark.parametrize(
    ("limit", "carried", "shown"),
    [
        ("t <= 2h", "5min", "1h55 of 2h"), ("t <= €10.50", "€0.75", "€9.75 of €10.50"), ("t <= 7", "0.5", "6.5 of 7"),
        ("t >= 90s", "45s", "0min of 1min30s"), ("t <= 0", "0", "0 of 0"),
    ],
)  # fmt: skip
def test_what_is_left_of_a_sum_has_its_unit(limit: str, carried: str, shown: str) -> None:
    step = stepping(f"%order forward\nS -> a S | b\na t={carried}\nb t={carried}\n%limit {limit}\n")
    (left,) = step.choose(1).limits
    assert left.amount == shown


def test_a_selection_takes_several() -> None:
    step = stepping("S -> some(a, b, c) d\n%limit 1\n")
    assert len(list(step.branches())) == 7
    assert step.choose(1, 3).plan.word == ("a", "c", "d")


def test_why() -> None:
    step = stepping().choose(1)
    assert [(one.text, one.reason) for one in step.left_out] == [('the output of "pour"', "because of %limit 1 pour")]
    assert "offered" in step.why("steep")
    assert step.choose(2).left_out == ()


@given(st.sampled_from([TEA, NESTED, "S -> a S | b S c | d\n%limit 3 a\n%limit 2 b\n"]), st.integers(0, 2**16))
@examples(20)
def test_the_counts_of_the_branches_add_up(text: str, seed: int) -> None:
    """However a walk goes: the plans behind the options together are the plans from here."""
    rng = random.Random(seed)
    cfg = CFG.from_string(text)
    total = Lookahead(cfg).count()
    step = Planner(cfg, "test:first").step_through()
    while not step.done:
        behind = list(step.branches())
        assert sum(one.plans for one in behind) == total
        chosen = rng.choice(behind)
        total = chosen.plans
        assert step.choose(*chosen.numbers).done == chosen.done
    assert total == 1


def test_of_many_branches_a_few_are_counted() -> None:
    behind = list(stepping("S -> " + " | ".join(f"a{n}" for n in range(9))).branches(most=4))
    assert len(behind) == 5
    assert behind[-1] is None


# -- pictures -----------------------------------------------------------------------------------------------------


def test_the_rules_are_drawn_as_they_are_written() -> None:
    step = Planner(Flowchart.from_mermaid(CHART), "test:first").step_through()
    assert step.state == "Q"
    assert marked(step) == {"Is it late?"}
    assert {"Is it late?", "1: Go to bed"} <= marked(step.choose(1))


def test_under_constraints_and_with_a_goal() -> None:
    cfg = CFG.from_string("S -> a T\nT -> d T | e T | c")
    never = constraint("(not (next (eventually d) (eventually e)))", cfg.terminals)
    step = Planner(cfg, "test:first", constraints=[never]).step_through(Task("x", goal="T"))
    assert marked(step) == {"T"}
    step.choose(1)
    assert len(step.left_out) == 1
    assert "T" in marked(step.choose(2))


def test_of_a_behaviour() -> None:
    step = Planner(Behaviour.load("react"), "test:first").step_through("What is it?")
    assert len(marked(step)) == 1


class OfOnesOwn:
    """An automaton that is no PDA, without a picture."""

    def __init__(self) -> None:
        self.inner = PDA.from_cfg(CFG.from_string("S -> a S | b"))

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.inner, name)


def test_of_an_automaton_of_ones_own_there_is_the_text() -> None:
    step = Planner(OfOnesOwn(), "test:script=1").step_through()
    assert step.stack == ()
    assert step.state
    assert set(step._repr_mimebundle_()) == {"text/plain", HTML}
    with pytest.raises(AutomatonError, match="reasons are known"):
        _ = step.left_out
    assert step.choose(2).plan.word == ("b",)


def test_the_prompt_shows_the_question_and_where_it_stands() -> None:
    step = stepping(NESTED, "Open some").choose(1)
    text = repr(step)
    assert "1: " in text
    assert "stack S close" in text
    assert "%limit 3 open (2 of 3 left)" in text
    assert ".back()" in text
    assert repr(step.choose(2)).startswith(str(step.plan))


def test_in_a_notebook_options_unfold_to_the_questions_behind_them() -> None:
    html = stepping("S -> a S | b\n%limit 2 a")._repr_mimebundle_(include=[HTML])[HTML]
    assert html.count("<details>") == html.count("</details>") == 4  # a, a a (and b is forced), a b, b
    assert html.count("The plan is finished") == 3
    assert html.index("The plan is finished") > html.index("<details><summary>1: ")


def test_of_endless_plans_a_bounded_part_is_unfolded() -> None:
    step = stepping("S -> a S | b S | c")
    html = step._repr_mimebundle_()[HTML]
    assert 24 <= html.count("<details>") <= 30
    assert step.walk.answered == 0  # looking changes nothing


def test_labels_are_no_markup() -> None:
    label = HOSTILE.replace('"', "'")
    html = stepping(f'S -> a S | b\na "{label}"\nb "{label}"')._repr_mimebundle_(include=[HTML])[HTML]
    assert set(re.findall(r"<(\w+)", html)) == {"pre", "details", "summary", "div", "p"}
    assert "hacked" in html
