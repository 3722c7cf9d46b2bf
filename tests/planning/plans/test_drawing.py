"""Pictures, graphs and terminal panels of plans."""

import io
import shutil
import sys

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from formal_llm import CFG, PDA, Budget, Plan, Planner, RandomLLM, TaskPack
from formal_llm.errors import BudgetExceeded, NoValidPlan
from formal_llm.planning.plans.drawing import plan_graph, plan_picture, plan_rich
from formal_llm.planning.plans.tree import Node
from tests.strategies import examples

needs_dot = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz (dot) is not installed")

DEEP = 5000


def shown(plan: Plan, **options: int) -> str:
    """The plan as a terminal without colours shows it."""
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(plan_rich(plan, **options))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def arrows(plan: Plan) -> set[tuple[str, str, str]]:
    """The arrows of the plan's picture by what their boxes say."""
    picture = plan_picture(plan)
    says = {box.id: " ".join(box.label.split()) for box in picture.nodes}
    return {(says[arrow.source], says[arrow.target], arrow.label) for arrow in picture.edges}


def partial(planner: Planner, questions: int) -> Plan:
    planner.budget = Budget(questions=questions)
    with pytest.raises(BudgetExceeded) as caught:
        planner.plan("a task")
    return caught.value.plan


def leaf(name: str) -> Node:
    return Node(name, name.replace("_", " "), terminal=True)


def tower(depth: int = DEEP) -> Plan:
    """tool(tool(... (input)))."""
    node = Node("S", "thing", [leaf("input")])
    for _ in range(depth):
        node = Node("S", "thing", [leaf("tool"), node])
    return Plan("a long task", node, order="prefix")


@pytest.fixture(scope="module")
def vqa() -> Plan:
    pack = TaskPack.load("openagi")
    return Planner(pack.cfg, "builtin", wording=pack.wording).plan(pack.task(117))


@pytest.fixture
def forward() -> Plan:
    tree = Node("S", "S", [leaf("wash"), Node("S", "S", [leaf("dry")])])
    return Plan("laundry", Node("S", "S", [leaf("fold"), tree], text="Fold the towel"), order="forward")


# -- pictures ---------------------------------------------------------------------------------------------------


def test_data_flow(vqa: Plan) -> None:
    assert arrows(vqa) == {
        ("the input text", "1 Fill Mask", ""),
        ("the input image", "2 Super Resolution", ""),
        ("2 Super Resolution", "3 Image Denoising", ""),
        ("3 Image Denoising", "4 Image Deblurring", ""),
        ("4 Image Deblurring", "5 Colorization", ""),
        ("5 Colorization", "6 Visual Question Answering", "1st"),
        ("1 Fill Mask", "6 Visual Question Answering", "2nd"),
        ("6 Visual Question Answering", "text", ""),
    }
    assert (plan_picture(vqa).title or "").replace("\n", " ").startswith("Given low-resolutioned noisy blurry")


def test_an_input_is_drawn_once() -> None:
    plan = Planner(CFG.from_string("%order prefix\nS -> join A A\nA -> x"), "test:first").plan("t")
    assert arrows(plan) == {("x", "1 join", "1st"), ("x", "1 join", "2nd"), ("1 join", "S", "")}


def test_a_plan_without_tools() -> None:
    assert arrows(Planner(CFG.from_string("%order prefix\nS -> x"), "test:first").plan("t")) == {("x", "S", "")}
    nothing = plan_picture(Planner(CFG.from_string("S -> ε"), "test:first").plan("t"))
    assert [box.kind for box in nothing.nodes] == ["result"]


def test_selections_texts_and_empty_arguments() -> None:
    cfg = CFG.from_string(
        '%order prefix\nS "dish" -> wok B some(salt, pepper) "Season it"\nB "mix" -> wok C D "Combine"\nC -> ε\n'
        'D -> E "Stir twice"\nE -> pot rice'
    )
    plan = Planner(cfg, "test:first").plan("t")
    assert arrows(plan) >= {
        ("rice", "1 pot", ""),
        ("1 pot", "2 Stir twice", ""),
        ("2 Stir twice", "3 Combine", ""),
        ("3 Combine", "4 Season it: salt", "1st"),
        ("salt", "4 Season it: salt", "2nd"),
        ("4 Season it: salt", "dish", ""),
    }


def test_a_forward_plan_is_a_chain(forward: Plan) -> None:
    assert arrows(forward) == {("1 Fold the towel", "2 wash", ""), ("2 wash", "3 dry", "")}


def test_a_plan_of_a_handwritten_automaton_is_a_chain() -> None:
    pda = PDA([("q", "a", None, "r", ()), ("r", "b", None, "s", ())], start="q", accepting=["s"])
    plan = Planner(pda, "test:first").plan("t")
    assert arrows(plan) == {("1 a", "2 b", "")}


def test_unfinished_plans_show_what_is_open() -> None:
    pack = TaskPack.load("openagi")
    plan = partial(Planner(pack.cfg, RandomLLM(0), wording=pack.wording), 3)
    kinds = {box.kind for box in plan_picture(plan).nodes}
    assert "open" in kinds
    assert all(a.style == "dashed" for a in plan_picture(plan).edges if a.source.startswith("open"))
    assert "unfinished plan" in shown(plan)

    cfg = CFG.from_string('S "rest" -> A S | done\nA -> wash | dry')
    picture = plan_picture(partial(Planner(cfg, "test:first"), 2))
    assert picture.nodes[-1].kind == "open"
    assert picture.nodes[-1].label == "rest …"
    assert (picture.edges[-1].target, picture.edges[-1].style) == ("open", "dashed")


RULES = [
    "S -> t1 S S", "S -> t2 A", "S -> x", "A -> y", "A -> ε", 'A -> ε "Rest"', 'S -> A "Look"',
    'A -> t3 A S "Mix them"', "A -> S", "S -> t4 some(p, q)", "A -> K A", "K -> k1", "K -> k2", 'S -> z "Take it"',
    "A -> A2", 'A2 -> A A "Both"',
]  # fmt: skip


@examples(150)
@given(st.sets(st.sampled_from(RULES), min_size=3), st.integers(0, 9), st.integers(1, 6))
@pytest.mark.filterwarnings("ignore::formal_llm.errors.GrammarWarning")
def test_every_step_flows_into_the_result(rules: set[str], seed: int, questions: int) -> None:
    cfg = CFG.from_string("\n".join(["S -> w", "A -> v", "K -> k", "A2 -> A", *sorted(rules)]))
    for budget in (Budget(questions=questions), Budget(steps=60)):
        try:
            plan = Planner(cfg, RandomLLM(seed), budget=budget).plan("t")
        except BudgetExceeded as stopped:
            plan = stopped.plan
        except NoValidPlan:
            continue
        picture = plan_picture(plan)
        assert sum(box.kind == "tool" for box in picture.nodes) == len(plan.steps)
        graph = networkx.DiGraph([(a.source, a.target) for a in picture.edges])
        assert networkx.is_directed_acyclic_graph(graph)
        if any(box.kind == "result" and box.id == "result" for box in picture.nodes):
            for box in picture.nodes:
                assert box.id == "result" or networkx.has_path(graph, box.id, "result")
            for step in plan.steps:
                assert step.number not in step.inputs
                if not step.text.startswith("Look"):
                    for other in (number for number in step.inputs if isinstance(number, int)):
                        assert graph.has_edge(f"step {other}", f"step {step.number}")
        assert picture.to_mermaid()
        assert shown(plan)
        assert len(plan_graph(plan)) > 0


# -- graphs -----------------------------------------------------------------------------------------------------


def test_graph_of_calls(vqa: Plan) -> None:
    graph = vqa.to_networkx()
    assert list(graph.nodes) == list(range(len(vqa.word)))
    assert tuple(name for _, name in graph.nodes(data="name")) == vqa.word
    # word: vqa colorization deblurring denoising super_resolution input_image fill_mask input_text
    assert set(graph.edges(data="position")) == {
        (1, 0, 0), (2, 1, 0), (3, 2, 0), (4, 3, 0), (5, 4, 0), (6, 0, 1), (7, 6, 0),
    }  # fmt: skip
    assert graph.nodes[0] == {
        "name": "visual_question_answering", "label": "Visual Question Answering", "kind": "tool",
    }  # fmt: skip
    assert [n for n, kind in graph.nodes(data="kind") if kind == "input"] == [5, 7]
    # An order of execution: arguments before their tools.
    assert list(networkx.topological_sort(graph))[-1] == 0


def test_graph_of_a_tree(forward: Plan) -> None:
    graph = forward.to_networkx()
    assert networkx.is_arborescence(graph)
    assert [(d["name"], d["kind"]) for _, d in graph.nodes(data=True)] == [
        ("S", "nonterminal"), ("fold", "terminal"), ("S", "nonterminal"), ("wash", "terminal"), ("S", "nonterminal"),
        ("dry", "terminal"),
    ]  # fmt: skip
    assert set(graph.edges) == {(0, 1), (0, 2), (2, 3), (2, 4), (4, 5)}


# -- the terminal -----------------------------------------------------------------------------------------------


def test_terminal(vqa: Plan) -> None:
    text = shown(vqa)
    assert "1 Use Fill Mask on the input text" in text
    assert "visual_question_answering(colorization(" in text
    assert "E › Visual Question Answering" in text
    assert "8 questions" in text


def test_terminal_reads_no_markup() -> None:
    assert "[red]x[/red]" in shown(Plan("[bold]t", Node("S", "[red]x[/red]", [leaf("a"), leaf("b")])))


def test_terminal_cuts_large_trees() -> None:
    wide = Plan("t", Node("S", "S", [Node("A", "A", [leaf("a"), leaf(f"b{n}")]) for n in range(500)]), order="forward")
    assert "the tree is cut here" in shown(wide)
    assert shown(wide, most=5).count("── A") == 2
    deep = shown(tower(100), deepest=4)
    assert "… deeper" in deep
    assert deep.count("── thing") == 4
    # What shares a line is no deeper.
    chains = Node("S", "S", [Node("A", "A", [Node("B", "B", [leaf(name)])]) for name in "ab"])
    assert "deeper" not in shown(Plan("t", chains, order="forward"), deepest=1)
    assert "deeper" in shown(Plan("t", Node("R", "R", [chains, leaf("c")]), order="forward"), deepest=1)


# -- deep plans -------------------------------------------------------------------------------------------------


def chain_of_renamings() -> Plan:
    node = leaf("input")
    for _ in range(DEEP):
        node = Node("S", "thing", [node])
    return Plan("t", node, order="prefix")


@pytest.mark.parametrize("make", [tower, chain_of_renamings])
def test_deep_plans(make) -> None:
    plan = make()
    assert sys.getrecursionlimit() < DEEP
    assert "flowchart" in plan.to_mermaid()
    assert "digraph" in plan.to_dot()
    assert len(plan.to_networkx()) == len(plan.word)
    assert "plan" in shown(plan)


def test_a_notebook_is_not_kept_waiting() -> None:
    assert "image/svg+xml" not in tower()._repr_mimebundle_()


@needs_dot
def test_a_derivation_tree_draws_itself(vqa: Plan) -> None:
    picture = vqa.tree.picture
    assert len(picture.nodes) == len(list(vqa.tree.walk())) == len(picture.edges) + 1
    assert [box.label for box in picture.nodes if box.kind == "terminal"] == [leaf.label for leaf in vqa.tree.leaves]
    assert repr(vqa.tree) == f"<Node text_plan: {' '.join(vqa.word)}>"
    assert "image/svg+xml" in vqa.tree._repr_mimebundle_()
