"""Steps: what is a step, in which order, and what it is applied to."""

from __future__ import annotations

import copy
import pickle

from formal_llm import CFG, RandomLLM, Step, Walk
from formal_llm.planning.plans.steps import read_steps
from formal_llm.planning.plans.tree import Node

CALLS = CFG.from_string('S -> f S S | g S | x\nf "Join"\nx "the input"')


def leaf(name: str) -> Node:
    return Node(name, name.title(), terminal=True)


def test_a_nesting_is_told_from_the_inside_out() -> None:
    tree = Node("S", "s", [leaf("f"), Node("S", "s", [leaf("g"), leaf("x")]), leaf("x")])
    steps = read_steps(tree, "backward")
    assert [str(step) for step in steps] == ["Step 1: Use G on X", "Step 2: Use F on the result of step 1 and X"]
    assert [(step.name, step.position, step.inputs) for step in steps] == [("g", 1, ("X",)), ("f", 0, (1, "X"))]
    # Forward it is a list: every terminal is a step.
    assert [step.name for step in read_steps(tree, "forward")] == ["f", "g", "x", "x"]
    assert all(step.inputs == () for step in read_steps(tree, "forward"))


def test_steps_are_numbered_from_one_and_each_comes_after_what_it_needs() -> None:
    for seed in range(30):
        walk, llm = Walk(CALLS), RandomLLM(seed)
        while walk.question is not None and len(walk.word) < 60:
            walk.answer(llm.choose(walk.question))
        steps = walk.partial.steps
        assert [step.number for step in steps] == list(range(1, len(steps) + 1))
        assert all(number < step.number for step in steps for number in step.inputs if isinstance(number, int))
        assert all(walk.word[step.position] == step.name for step in steps)


def test_a_text_tells_its_step_and_what_was_chosen_for_it() -> None:
    tree = Node("S", "s", [leaf("pan"), Node("some(salt, oil)", "some", [leaf("oil")])], text="Season")
    (step,) = read_steps(tree, "backward")
    assert (str(step), step.name, step.has_own_text) == ("Step 1: Season: Oil", "pan", True)


def test_a_decision_is_no_step() -> None:
    tree = Node("plan", "plan", [Node("wet=yes", "yes", terminal=True, text="yes", question="Wet?"), leaf("go")])
    assert [(step.name, step.position) for step in read_steps(tree, "forward")] == [("go", 1)]


def test_a_step_is_a_value() -> None:
    step = Step(2, "f", "Use F", 0, (1, "X"))
    for same in (pickle.loads(pickle.dumps(step)), copy.deepcopy(step)):
        assert same == step
        assert {same: 1}[step] == 1
