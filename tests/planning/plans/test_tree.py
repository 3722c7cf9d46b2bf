"""Trees and calls: flat forms, values however deep, and moves that say little."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, Call, Plan, Planner, Production, Transition, read_plan_text
from formal_llm.planning.plans.tree import (
    Node,
    build_tree,
    is_flat,
    is_nested,
    only_terminal,
    production_of,
    read_call,
    text_of,
)

DEEP = 5_000


def label(name: str) -> str:
    return name.upper()


@st.composite
def trees(draw: st.DrawFn) -> Node:
    node = Node(
        draw(st.sampled_from("STUab")),
        draw(st.text(max_size=3)),
        terminal=draw(st.booleans()),
        open=draw(st.booleans()),
        text=draw(st.none() | st.text(max_size=3)),
        question=draw(st.none() | st.text(max_size=3)),
    )
    if not node.terminal:
        node.children = draw(st.lists(trees(), max_size=2))
    return node


def deep_tree() -> Node:
    node = Node("a", "A", terminal=True)
    for _ in range(DEEP):
        node = Node("S", "s", [Node("f", "F", terminal=True), node])
    return node


@given(trees())
def test_a_tree_is_a_value(tree: Node) -> None:
    for same in (Node.from_flat(tree.flat()), pickle.loads(pickle.dumps(tree)), copy.deepcopy(tree)):
        assert same == tree
        assert hash(same) == hash(tree)
        assert same is not tree
    assert [node.symbol for node in tree.walk()] == [row[0] for row in tree.flat()]


def test_trees_that_differ_in_one_thing_are_not_equal() -> None:
    tree = Node("S", "s", [Node("a", "A", terminal=True)])
    for other in (
        Node("S", "s"),
        Node("S", "t", [Node("a", "A", terminal=True)]),
        Node("S", "s", [Node("a", "A", terminal=True, text="go")]),
        Node("S", "s", [Node("a", "A", terminal=True, question="")]),
    ):
        assert other != tree
    assert tree != "S"


def test_deep_trees_and_calls_are_values_too() -> None:
    tree = deep_tree()
    call = read_call(tree)
    assert call is not None
    assert sum(1 for _ in call.walk()) == DEEP + 1
    for thing in (tree, call):
        assert pickle.loads(pickle.dumps(thing)) == thing == copy.deepcopy(thing)


def test_a_call_keeps_labels_and_result_when_it_is_copied() -> None:
    call = Call("vqa", "Ask", (Call("img", "Image"), Call("ocr", "Read", (Call("img", "Image"),))), "text")
    same = pickle.loads(pickle.dumps(call))
    assert str(same) == str(call) == "text = vqa(img, ocr(img))"
    assert [(one.name, one.label) for one in same.walk()] == [(one.name, one.label) for one in call.walk()]
    assert hash(same) == hash(call)
    assert call != Call("vqa", "Ask")


def test_what_is_cut_off_is_refused() -> None:
    rows = deep_tree().flat()
    with pytest.raises(ValueError, match="cut off"):
        Node.from_flat(rows[:-1])
    with pytest.raises(ValueError, match="cut off"):
        Node.from_flat([])


def test_the_tree_of_a_leftmost_derivation() -> None:
    moves = [
        Transition(0, None, "S", 0, ("a", "S", "b"), production=Production("S", ("a", "S", "b"), "wrap")),
        Transition(0, "a", "a", 0),
        Transition(0, None, "S", 0, (), production=Production("S", ())),
    ]
    tree = build_tree(moves, label, "S")
    assert [(node.symbol, node.label, node.open) for node in tree.walk()] == [
        ("S", "S", False), ("a", "A", False), ("S", "S", False), ("b", "B", True),
    ]  # fmt: skip
    assert (tree.text, [leaf.symbol for leaf in tree.leaves]) == ("wrap", ["a"])
    assert build_tree([], label, "S") == Node("S", "S", open=True)


def test_the_flat_tree_of_an_automaton_holds_steps_and_decisions() -> None:
    moves = [
        Transition(0, "go", None, 1, (), "Go out"),
        Transition(1, "wet=yes", None, 2, (), "yes", question="Wet?", decision=True),
        Transition(2, None, None, 3, (), "Wait"),
        Transition(3, None, None, 4),
    ]
    tree = build_tree(moves, label, None)
    assert is_flat(tree)
    assert not is_nested(tree)
    assert [(node.symbol, node.text, node.question) for node in tree.children] == [
        ("go", "Go out", None), ("wet=yes", "yes", "Wet?"), ("", "Wait", None),
    ]  # fmt: skip
    assert read_call(tree) is None


def test_moves_of_ones_own_need_nothing_but_what_they_read() -> None:
    @dataclass(frozen=True)
    class Bare:
        read: str | None

    @dataclass(frozen=True)
    class Telling(Bare):
        text: str

    assert (text_of(Bare("a")), text_of(Telling("a", "Go"))) == ("", "Go")
    assert production_of(Telling("a", "Go")) is None
    assert [node.text for node in build_tree([Bare("a"), Telling("b", "Go")], label, None).children] == [None, "Go"]


def test_a_terminal_is_seen_through_renamings_but_not_through_texts() -> None:
    leaf = Node("a", "A", terminal=True)
    assert only_terminal(Node("S", "s", [Node("T", "t", [leaf])])) is leaf
    assert only_terminal(Node("S", "s", [leaf], text="Do it")) is None
    assert only_terminal(Node("S", "s", [leaf, leaf])) is None


class TestRepetitions:
    """A repetition is one node; it holds arguments of a tool, or steps that follow each other."""

    @staticmethod
    def plan(text: str, script: str):
        return Planner(CFG.from_string(text), llm=f"test:script={script}").plan("a task")

    def test_a_node_holds_as_many_children_as_there_are(self) -> None:
        plan = self.plan("%order forward\nS -> (a | b)* end", "1,2,1,3")
        assert plan.word == ("a", "b", "a", "end")
        node = plan.tree.children[0]
        assert (node.symbol, node.label) == ("(a | b)*", "any number of a or b")
        assert [child.symbol for child in node.children] == ["(a | b)"] * 3
        assert [step.name for step in plan.steps] == ["a", "b", "a", "end"]
        assert Plan.from_json(plan.to_json()) == plan

    def test_they_are_arguments_of_a_tool(self) -> None:
        rules = "%order prefix\nS -> combine Photo+\nPhoto -> crop Photo | raw"
        plan = self.plan(rules, "2,1,1,2,2")
        assert str(plan.call) == "s = combine(raw, crop(raw))"
        assert [str(step) for step in plan.steps] == [
            "Step 1: Use crop on raw",
            "Step 2: Use combine on raw and the result of step 1",
        ]
        assert read_plan_text(str(plan), CFG.from_string(rules)) == plan.word
        assert read_plan_text(str(plan.call), CFG.from_string(rules)) == plan.word

    def test_what_begins_with_them_is_no_call(self) -> None:
        for script in ("2", "1,2", "1,1,2"):
            plan = self.plan("%order prefix\nS -> wash* dry", script)
            assert plan.call is None
            assert [step.name for step in plan.steps] == ["dry", *["wash"] * (len(plan.word) - 1)]

    def test_one_more_and_no_more(self) -> None:
        rules = CFG.from_string("%order forward\nS -> Day{1,3} x?\nDay -> a b | c")
        walk = Planner(rules, llm="test:script=1").start("a task")
        told = []
        for answer in (1, 1, 2, 2, 1):
            told.append([option.text for option in walk.question.options])
            walk.answer(answer)
        once, again = ["a, b", "c"], ["another Day", "no more Day"]
        assert told == [once, again, once, again, ["x", "no x"]]
        assert walk.plan.word == ("a", "b", "c", "x")
