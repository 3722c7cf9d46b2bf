"""Plans: word, tree, call, steps, and their other forms."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import asdict

import pytest

from formal_llm import CFG, PDA, Limits, Lookahead, Plan, Planner, RandomLLM, Step, Symbol, Usage, Walk, Wording
from formal_llm.automata.lookahead.verdicts import TALLY
from formal_llm.errors import AutomatonError
from formal_llm.llms import TokenUsage
from formal_llm.planning.plans.steps import read_steps
from formal_llm.planning.plans.tree import Node
from formal_llm.planning.plans.usage import Verdicts
from formal_llm.planning.plans.vocabulary import Vocabulary, fingerprint_of

TOOLS = CFG.from_string(
    """
    %order prefix
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
    for again in (Plan.from_json(text), pickle.loads(pickle.dumps(tree_plan))):
        assert again == tree_plan
        assert hash(again) == hash(tree_plan)
        assert again.steps == tree_plan.steps
        assert again.usage == tree_plan.usage
        assert str(again) == str(tree_plan)


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
        '%order prefix\nD -> mix S B "Pour the sauce over the beef"\nB -> fry beef "Fry the beef"\nS -> sauce | ketchup'
    )
    plan = plan_of(cfg, "1")
    assert plan.word == ("mix", "sauce", "fry", "beef")
    assert [str(step) for step in plan.steps] == [
        "Step 1: Fry the beef",
        "Step 2: Pour the sauce over the beef: sauce",
    ]
    assert [step.inputs for step in plan.steps] == [("beef",), ("sauce", 1)]
    several = CFG.from_string(
        '%order prefix\nD -> Tool some(salt, pepper, oil) "Season"\nTool -> spoon | hand "By hand"'
    )
    assert [str(step) for step in plan_of(several, "1,1+3").steps] == ["Step 1: Season: spoon, salt, oil"]


def test_a_forward_plan_is_a_list_of_its_terminals() -> None:
    cfg = CFG.from_string("Day -> breakfast Rest\nRest -> work Rest | home")
    plan = plan_of(cfg, "1,2")
    assert [str(step) for step in plan.steps] == ["Step 1: Use breakfast", "Step 2: Use work", "Step 3: Use home"]


def test_a_grammar_that_is_no_prefix_grammar_has_no_call() -> None:
    cfg = CFG.from_string("%order prefix\nS -> X a | b\nX -> c d")
    plan = plan_of(cfg, "1")
    assert plan.call is None
    assert [step.name for step in plan.steps] == ["a", "d", "c"]  # prefix: the last terminal is the first step
    assert [step.number for step in plan.steps] == [1, 2, 3]


def test_selections_are_arguments() -> None:
    cfg = CFG.from_string("%order prefix\nS -> wok some(salt, pepper, chili) M\nM -> beef | tofu")
    plan = plan_of(cfg, "1+3,1")
    assert plan.word == ("wok", "salt", "chili", "beef")
    assert str(plan.call) == "s = wok(salt, chili, beef)"
    assert [child.symbol for child in plan.tree.children] == ["wok", "some(salt, pepper, chili)", "M"]


def test_epsilon_arguments_are_left_out() -> None:
    plan = plan_of(CFG.from_string("%order prefix\nS -> f X Y\nX -> ε | x\nY -> y | z"), "1,1")
    assert str(plan.call) == "s = f(y)"
    assert plan.word == ("f", "y")


def test_a_plan_of_a_hand_written_automaton_is_flat() -> None:
    pda = PDA([("q", "a", None, "q"), ("q", "b", None, "r")], start="q", accepting=["r"])
    plan = Planner(pda, "test:script=1,2").plan("t")
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
    plan = plan_of(cfg, "1,2")
    assert [step.text for step in plan.steps] == ["Fold the towel", "Use dry"]


def test_a_renamed_selection_keeps_its_members() -> None:
    cfg = CFG.from_string("%order prefix\nS -> wok X M\nX -> some(salt, pepper)\nM -> beef | tofu")
    assert str(plan_of(cfg, "1+2,2").call) == "s = wok(salt, pepper, tofu)"


CALLS = CFG.from_string('%order prefix\nS -> f S S | g S | x\nf "Join"\nx "the input"')


def leaf(name: str) -> Node:
    return Node(name, name.title(), terminal=True)


def test_a_nesting_is_told_from_the_inside_out() -> None:
    tree = Node("S", "s", [leaf("f"), Node("S", "s", [leaf("g"), leaf("x")]), leaf("x")])
    steps = read_steps(tree, "prefix")
    assert [str(step) for step in steps] == ["Step 1: Use G on X", "Step 2: Use F on the result of step 1 and X"]
    assert [(step.name, step.position, step.inputs) for step in steps] == [("g", 1, ("X",)), ("f", 0, (1, "X"))]
    # Forward it is a list: every terminal is a step.
    assert [step.name for step in read_steps(tree, "forward")] == ["f", "g", "x", "x"]
    assert all(step.inputs == () for step in read_steps(tree, "forward"))


def test_steps_are_numbered_from_one_and_each_comes_after_what_it_needs() -> None:
    for seed in range(30):
        walk, llm = Walk(CALLS), RandomLLM(seed)
        while walk.question is not None and len(walk.word) < 60:
            walk.answer(llm.ask(walk.question))
        steps = walk.partial.steps
        assert [step.number for step in steps] == list(range(1, len(steps) + 1))
        assert all(number < step.number for step in steps for number in step.inputs if isinstance(number, int))
        assert all(walk.word[step.position] == step.name for step in steps)


def test_a_text_tells_its_step_and_what_was_chosen_for_it() -> None:
    tree = Node("S", "s", [leaf("pan"), Node("some(salt, oil)", "some", [leaf("oil")])], text="Season")
    (step,) = read_steps(tree, "prefix")
    assert (str(step), step.name, step.has_own_text) == ("Step 1: Season: Oil", "pan", True)


def test_a_decision_is_no_step() -> None:
    tree = Node("plan", "plan", [Node("wet=yes", "yes", terminal=True, text="yes", question="Wet?"), leaf("go")])
    assert [(step.name, step.position) for step in read_steps(tree, "forward")] == [("go", 1)]


def test_a_step_is_a_value() -> None:
    step = Step(2, "f", "Use F", 0, (1, "X"))
    for same in (pickle.loads(pickle.dumps(step)), copy.deepcopy(step)):
        assert same == step
        assert {same: 1}[step] == 1


def test_usages_add_up_field_by_field() -> None:
    one = Usage(3, 1, 2, 1, 4, 100, 20, 0.5, 40, 8, 0.25)
    both = one + Usage(questions=1, seconds=1.5)
    assert both == Usage(4, 1, 2, 1, 4, 100, 20, 2.0, 40, 8, 0.25)  # a cost that is not known is none
    assert (Usage() + Usage()).cost is None
    assert sum([one, one, one], Usage()).cost == 0.75


def test_what_the_answerers_reported() -> None:
    assert Usage(3, 1, 2, 1, 4, 100, 20, 0.5, 40, 8).token_usage == TokenUsage(4, 100, 20, 40, 8)


def test_usage_is_a_value() -> None:
    usage = Usage(questions=3, cost=0.5)
    for same in (pickle.loads(pickle.dumps(usage)), copy.deepcopy(usage)):
        assert same == usage
        assert hash(same) == hash(usage)


def test_verdicts_are_counted_and_read_back() -> None:
    one = Usage(questions=1, verdicts=Verdicts(filter=5, search=2, unknown=1))
    assert (one + one).verdicts == Verdicts(filter=10, search=4, unknown=2)
    assert Usage(**json.loads(json.dumps(asdict(one)))) == one
    assert Usage(questions=1).verdicts == Verdicts()  # as older versions wrote it
    assert Verdicts.unpack(one.verdicts.pack()) == one.verdicts
    packed = 5 * TALLY["filter"] + 2 * TALLY["search"] + 3 * TALLY["linear argument"] + 4 * TALLY["integer program"]
    assert Verdicts.unpack(packed + TALLY["time"]) == Verdicts(5, 2, 3, 4, 1)


LAUNDRY = CFG.from_string('S "the laundry" -> wash S | hang_up\nwash "Wash" "in the machine, at 40 degrees"')


class Bare:
    """An automaton that tells nothing but what it must."""

    def start(self) -> int:
        return 0

    def moves(self, configuration: int) -> list[object]:
        return []

    def step(self, configuration: int, move: object) -> int:
        return 0

    def accepting(self, configuration: int) -> bool:
        return True


@pytest.mark.parametrize("limits", [None, Limits({"wash": 2})])
def test_of_a_grammar(limits: Limits | None) -> None:
    words = Vocabulary(Lookahead(LAUNDRY, limits).automaton)
    assert words.grammar is LAUNDRY
    assert words.start == "S"
    assert (words.label("wash"), words.label("hang_up"), words.label("S")) == ("Wash", "hang up", "the laundry")
    assert words.describe_terminal("wash") == "in the machine, at 40 degrees"
    assert words.describe_terminal("hang_up") == words.describe_terminal("S") == ""
    assert list(words.terminals) == ["wash", "hang_up"]


def test_of_an_automaton_by_hand() -> None:
    words = Vocabulary(PDA([("q", "go_on", None, "r")], start="q", accepting=["r"]))
    assert (words.grammar, words.start, words.label("go_on"), list(words.terminals)) == (None, None, "go on", ["go_on"])


def test_of_an_automaton_of_ones_own() -> None:
    class Labelled(Bare):
        terminals = ("tick_tock",)
        fingerprint = "clock"

        def label(self, name: str) -> str:
            return f"<{name}>"

    assert Vocabulary(Bare()).label("tick_tock") == "tick tock"
    assert list(Vocabulary(Bare()).terminals) == []
    assert Vocabulary(Labelled()).label("tick_tock") == "<tick_tock>"
    assert list(Vocabulary(Labelled()).terminals) == ["tick_tock"]
    assert fingerprint_of(Labelled()) == "clock"
    with pytest.raises(AutomatonError, match="give it an attribute 'fingerprint'"):
        fingerprint_of(Bare())


class Described(Bare):
    """An automaton that tells what is known of its terminals, and their texts by itself."""

    terminals = ("bed", "table")

    def __init__(self) -> None:
        self.symbols = {"bed": Symbol(description="for a night", numbers={"cost": 50})}

    def label(self, name: str) -> str:
        return name.title()


def test_of_an_automaton_of_ones_own_that_knows_its_terminals() -> None:
    words = Vocabulary(Lookahead(Described()).automaton)
    assert (words.label("bed"), words.describe_terminal("bed"), words.describe_terminal("table")) == (
        "Bed",
        "for a night",
        "",
    )
    assert words.symbols["bed"].numbers == {"cost": 50}
