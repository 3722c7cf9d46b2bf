"""Plans: word, tree, call, steps, and their other forms."""

from __future__ import annotations

import json
import pickle

import pytest

from formal_llm import CFG, PDA, Plan, Planner, Usage, Wording

TOOLS = CFG.from_string(
    """
    T "text" -> B I | E I T | text
    I "image" -> A I | image
    A -> colorize | denoise
    B -> classify
    E -> vqa
    image "the image"
    vqa "Visual Question Answering"
    """
)


def plan_of(cfg: CFG, script: str, **wording: str) -> Plan:
    return Planner(cfg, f"test:script={script}", wording=Wording(**wording)).plan("t")  # type: ignore[arg-type]


@pytest.fixture
def tree_plan() -> Plan:
    # vqa(colorize(image), classify(image))
    return plan_of(TOOLS, "2,1,3,1,3")


def test_word_call_and_steps_of_a_tree_structured_plan(tree_plan: Plan) -> None:
    assert tree_plan.word == ("vqa", "colorize", "image", "classify", "image")
    assert str(tree_plan.call) == "text = vqa(colorize(image), classify(image))"
    assert [str(step) for step in tree_plan.steps] == [
        "Step 1: Use classify on the image",
        "Step 2: Use colorize on the image",
        "Step 3: Use Visual Question Answering on the result of step 2 and the result of step 1",
    ]
    assert [step.position for step in tree_plan.steps] == [3, 1, 0]


def test_every_step_comes_after_what_it_needs(tree_plan: Plan) -> None:
    for step in tree_plan.steps:
        assert all(number < step.number for number in step.inputs if isinstance(number, int))


def test_the_derivation_tree(tree_plan: Plan) -> None:
    tree = tree_plan.tree
    assert tree.symbol == "T"
    assert [child.symbol for child in tree.children] == ["E", "I", "T"]
    assert [leaf.symbol for leaf in tree.leaves] == list(tree_plan.word)
    assert not any(node.open for node in tree.walk())


def test_json_and_pickle_round_trips(tree_plan: Plan) -> None:
    text = tree_plan.to_json(indent=2)
    assert json.loads(text)["call"] == "text = vqa(colorize(image), classify(image))"
    for copy in (Plan.from_json(text), pickle.loads(pickle.dumps(tree_plan))):
        assert copy == tree_plan
        assert hash(copy) == hash(tree_plan)
        assert copy.steps == tree_plan.steps
        assert copy.usage == tree_plan.usage
        assert str(copy) == str(tree_plan)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "other"}', '{"format": "formal_llm.plan/1"}', "7"])
def test_what_is_no_plan_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Plan.from_json(text)


def test_a_tree_that_is_cut_off_is_refused(tree_plan: Plan) -> None:
    data = json.loads(tree_plan.to_json())
    data["tree"] = data["tree"][:3]
    with pytest.raises(ValueError, match="cut off"):
        Plan.from_json(json.dumps(data))


def test_productions_with_a_text_are_the_steps() -> None:
    cfg = CFG.from_string(
        'D -> mix S B "Pour the sauce over the beef"\nB -> fry beef "Fry the beef"\nS -> sauce | ketchup'
    )
    plan = plan_of(cfg, "1")
    assert plan.word == ("mix", "sauce", "fry", "beef")
    assert [str(step) for step in plan.steps] == [
        "Step 1: Fry the beef",
        "Step 2: Pour the sauce over the beef: sauce",
    ]
    assert [step.inputs for step in plan.steps] == [("beef",), ("sauce", 1)]
    several = CFG.from_string('D -> Tool some(salt, pepper, oil) "Season"\nTool -> spoon | hand "By hand"')
    assert [str(step) for step in plan_of(several, "1,1+3").steps] == ["Step 1: Season: spoon, salt, oil"]


def test_a_forward_plan_is_a_list_of_its_terminals() -> None:
    cfg = CFG.from_string("Day -> breakfast Rest\nRest -> work Rest | home")
    plan = plan_of(cfg, "1,2", order="forward")
    assert [str(step) for step in plan.steps] == ["Step 1: Use breakfast", "Step 2: Use work", "Step 3: Use home"]


def test_a_grammar_that_is_no_prefix_grammar_has_no_call() -> None:
    cfg = CFG.from_string("S -> X a | b\nX -> c d")
    plan = plan_of(cfg, "1")
    assert plan.call is None
    assert [step.name for step in plan.steps] == ["a", "d", "c"]  # backward: the last terminal is the first step
    assert [step.number for step in plan.steps] == [1, 2, 3]


def test_selections_are_arguments() -> None:
    cfg = CFG.from_string("S -> wok some(salt, pepper, chili) M\nM -> beef | tofu")
    plan = plan_of(cfg, "1+3,1")
    assert plan.word == ("wok", "salt", "chili", "beef")
    assert str(plan.call) == "s = wok(salt, chili, beef)"
    assert [child.symbol for child in plan.tree.children] == ["wok", "some(salt, pepper, chili)", "M"]


def test_epsilon_arguments_are_left_out() -> None:
    plan = plan_of(CFG.from_string("S -> f X Y\nX -> ε | x\nY -> y | z"), "1,1")
    assert str(plan.call) == "s = f(y)"
    assert plan.word == ("f", "y")


def test_a_plan_of_a_hand_written_automaton_is_flat() -> None:
    pda = PDA([("q", "a", None, "q"), ("q", "b", None, "r")], start="q", accepting=["r"])
    plan = Planner(pda, "test:script=1,2", wording=Wording(order="forward")).plan("t")
    assert plan.call is None
    assert [str(step) for step in plan.steps] == ["Step 1: Use a", "Step 2: Use b"]
    assert Plan.from_json(plan.to_json()) == plan


def test_the_empty_plan() -> None:
    plan = Planner(CFG.from_string("S -> ε"), "test:first").plan("t")
    assert plan.word == ()
    assert plan.steps == ()
    assert str(plan) == ""
    assert plan.call is None


def test_plans_compare_by_content_not_by_usage(tree_plan: Plan) -> None:
    other = plan_of(TOOLS, "2,1,3,1,3")
    assert other == tree_plan
    assert other.usage is not tree_plan.usage
    assert tree_plan != plan_of(TOOLS, "3")
    assert tree_plan != "a plan"
    assert tree_plan.usage.questions == 5
    assert isinstance(tree_plan.usage, Usage)


def test_a_text_speaks_for_its_own_production_only() -> None:
    cfg = CFG.from_string('S -> fold S "Fold the towel" | dry')
    plan = plan_of(cfg, "1,2", order="forward")
    assert [step.text for step in plan.steps] == ["Fold the towel", "Use dry"]


def test_a_renamed_selection_keeps_its_members() -> None:
    cfg = CFG.from_string("S -> wok X M\nX -> some(salt, pepper)\nM -> beef | tofu")
    assert str(plan_of(cfg, "1+2,2").call) == "s = wok(salt, pepper, tofu)"
