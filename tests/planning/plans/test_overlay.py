"""Plans drawn over their rules."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import CFG, PDA, Behaviour, Flowchart, Planner, RandomLLM, TaskPack
from formal_llm.errors import AutomatonError
from formal_llm.pictures.picture import Picture
from formal_llm.planning.plans.overlay import Overlay
from tests.planning.printing import read_in
from tests.strategies import examples

CHART = Flowchart.from_mermaid("""
flowchart TD
    start([Start]) --> ask{Again?}
    ask -->|Yes| work[Work]
    work --> ask
    ask -->|No| rest[Rest]
    rest --> over([End])
""")
AB = PDA([("p", "a", None, "q", ()), ("q", "b", None, "p", ()), ("p", "c", None, "r", ())], start="p", accepting=["r"])


def marked(picture: Picture) -> tuple[set[str], dict[tuple[str, str], str]]:
    """What is marked: the ids of boxes, and of arrows their ends with their labels. All else is faded."""
    assert {thing.tone for thing in (*picture.nodes, *picture.edges)} <= {"marked", "faded"}
    boxes = {box.id for box in picture.nodes if box.tone == "marked"}
    return boxes, {(a.source, a.target): a.label for a in picture.edges if a.tone == "marked"}


def rows(picture: Picture, name: str) -> list[str]:
    """The rows of a box that are marked."""
    box = next(box for box in picture.nodes if box.id == name)
    return [box.details[place] for place in box.strong]


def test_over_a_grammar() -> None:
    pack = TaskPack.load("openagi")
    plan = Planner(pack.cfg, "builtin", wording=pack.wording).plan(pack.task(117))
    picture = plan.over(pack.cfg).picture
    assert rows(picture, "D") == ["1: Fill Mask"]
    assert rows(picture, "A") == ["5: Colorization", "2: Super Resolution", "3: Image Denoising", "4: Image Deblurring"]
    assert rows(picture, "I") == ["2, 3, 4, 5: → A I", "→ input_image"]
    assert rows(picture, "text_plan") == ["6: → E I T"]
    boxes, arrows = marked(picture)
    assert boxes == {"", "plan", "text_plan", "T", "I", "A", "D", "E", "input_image", "input_text"}
    assert ("T", "B") not in arrows
    assert ("T", "D") in arrows


def test_selections_show_what_was_chosen() -> None:
    cfg = CFG.from_string('%order prefix\nS -> wok some(salt, pepper, oil) "Season it" | pan')
    picture = Overlay(["wok", "salt", "oil"], cfg).picture
    assert rows(picture, "S") == ["1: → wok some(…)   “Season it”"]
    assert rows(picture, "some(salt, pepper, oil)") == ["1: salt", "1: oil"]


def test_used_rows_are_not_cut() -> None:
    cfg = CFG.from_string("S -> A x\nA -> " + " | ".join(f"a{n}" for n in range(50)))
    box = next(box for box in Overlay(["a49", "x"], cfg).picture.nodes if box.id == "A")
    assert box.details[0] == "1: a49"
    assert box.details[-1].endswith("more")


def test_over_an_automaton() -> None:
    boxes, arrows = marked(Overlay(["a", "b", "a", "b", "c"], AB).picture)
    assert boxes == {"start", "0", "1", "2"}
    assert arrows == {("start", "0"): "", ("0", "1"): "1, 3: a", ("1", "0"): "2, 4: b", ("0", "2"): "5: c"}
    boxes, arrows = marked(Overlay(["c"], AB).picture)
    assert boxes == {"start", "0", "2"}
    assert arrows == {("start", "0"): "", ("0", "2"): "1: c"}


def test_a_prefix_plan_has_the_numbers_of_its_steps() -> None:
    _, arrows = marked(Overlay(["a", "b", "c"], read_in(AB, "prefix")).picture)
    assert arrows[("0", "1")] == "3: a"
    assert arrows[("0", "2")] == "1: c"


def test_what_is_not_taken_is_counted() -> None:
    pda = PDA([(0, name, None, 1, ()) for name in "abc"], start=0, accepting=[1])
    _, arrows = marked(Overlay(["b"], pda).picture)
    assert arrows[("0", "1")] == "1: b\n… or 2 others"


def test_moves_without_input_lead_to_the_next_step() -> None:
    pda = PDA([(0, None, None, 1, ()), (1, "a", None, 2, ()), (2, None, None, 3, (), "Rest")], start=0, accepting=[3])
    _, arrows = marked(Overlay(["a"], pda).picture)
    assert [arrows[key] for key in (("0", "1"), ("1", "2"), ("2", "3"))] == ["1: ε", "1: a", "2: ε"]


def test_over_a_flowchart() -> None:
    overlay = Overlay(["ask=yes", "work", "ask=yes", "work", "ask=no", "rest"], CHART)
    boxes, arrows = marked(overlay.picture)
    assert boxes == {"start", "ask", "work", "rest", "over"}
    assert arrows == {
        ("start", "ask"): "", ("ask", "work"): "1, 2: Yes", ("work", "ask"): "", ("ask", "rest"): "3: No",
        ("rest", "over"): "",
    }  # fmt: skip
    assert {box.id: box.label for box in overlay.picture.nodes}["work"] == "1, 2: Work"
    boxes, arrows = marked(Overlay(["ask=no", "rest"], CHART).picture)
    assert boxes == {"start", "ask", "rest", "over"}
    assert ("work", "ask") not in arrows


def test_of_an_arrow_from_several_nodes_what_was_done_is_marked() -> None:
    chart = Flowchart.from_mermaid("flowchart TD\n q{?} -->|a| x\n q -->|b| y\n x & y --> z & v")
    boxes, arrows = marked(Overlay(["q=b", "y", "z", "v"], chart).picture)
    (point,) = boxes - {"q", "y", "z", "v"}
    assert set(arrows) == {("q", "y"), ("y", point), (point, "z"), (point, "v")}


def test_over_a_selection_of_a_flowchart() -> None:
    chart = Flowchart.from_mermaid("flowchart TD\n p{{Pack what?}} -->|Rope| go[Go]\n p -->|Tent| go\n p -->|Map| go")
    _, arrows = marked(Overlay(["p=rope", "p=map", "go"], chart).picture)
    assert arrows == {("p", "go"): "• 1: Rope\n• 2: Map\n… or 1 other"}


def test_over_a_behaviour() -> None:
    react = Behaviour.load("react-5")
    word = ["question", "thought", "action", "action-input", "observation", "final-thought", "answer"]
    _, arrows = marked(Overlay(word, react).picture)
    assert {"2: thought", "3: action", "4: action-input", "5: observation"} <= set(arrows.values())


def test_of_a_large_automaton_only_the_way_is_drawn() -> None:
    grid = PDA(
        [
            t
            for x in range(9)
            for y in range(9)
            for t in (((x, y), "r", None, (x + 1, y), ()), ((x, y), "u", None, (x, y + 1), ()))
        ],
        start=(0, 0),
        accepting=[(9, 0)],
    )
    picture = Overlay("r" * 9, grid).picture
    assert picture.title == f"{len(grid.states) - 10} states that the plan does not come by left out"
    assert len(picture.nodes) == 11


@pytest.mark.parametrize("rules", [AB, CHART, CFG.from_string("S -> a"), Behaviour.load("react")])
@pytest.mark.parametrize("word", [["b"], ["nonsense"], []])
def test_what_is_no_plan_of_the_rules_is_not_drawn(rules: object, word: list[str]) -> None:
    with pytest.raises(AutomatonError, match="no plan of these rules"):
        Overlay(word, rules)


@pytest.mark.filterwarnings("ignore:.*can become")
def test_a_long_plan_over_a_grammar_with_empty_cycles() -> None:
    cfg = CFG.from_string("S -> S S | a | ε\n")
    overlay = Overlay(["a"] * 30, cfg)
    assert rows(overlay.picture, "S")
    assert len(overlay.moves) < 30 * 6


@examples(30)
@given(st.integers(0, 10**6))
def test_the_numbers_are_those_of_the_plan(seed: int) -> None:
    for name in ("openagi", "cooking"):
        pack = TaskPack.load(name)
        plan = Planner(pack.source, RandomLLM(seed), wording=pack.wording).plan(
            pack.task(seed % 185) if name == "openagi" else "t"
        )
        overlay = plan.over(pack.source)
        assert [(s.number, s.name, s.text) for s in overlay.steps] == [(s.number, s.name, s.text) for s in plan.steps]
        shown = {
            int(number)
            for box in overlay.picture.nodes
            for place in box.strong
            for head, colon, _ in [box.details[place].partition(": ")]
            if colon
            for number in head.replace("…", "").split(", ")
            if number
        }
        assert shown == {step.number for step in plan.steps} or any(
            "…" in row for b in overlay.picture.nodes for row in b.details
        )


def test_every_form() -> None:
    overlay = Overlay(["a", "b", "c"], AB)
    assert "linkStyle" in overlay.to_mermaid()
    assert "stateMarkedBox" in overlay.to_mermaid()
    assert "penwidth=2.2" in overlay.to_dot()
    assert overlay.to_dot() == Overlay(["a", "b", "c"], AB).to_dot()
    assert json.dumps(repr(overlay)) == '"<Overlay: a b c>"'


def test_a_plan_of_a_grammar_whose_start_is_called_plan() -> None:
    cfg = CFG.from_string("%order prefix\nplan -> tool Rest\nRest -> tool2 x")
    plan = Planner(cfg, "test:first").plan("t")
    assert str(plan.call) == "plan = tool(tool2(x))"
    assert len(plan.steps) == 2
    assert Planner(AB, RandomLLM(1)).plan("t").call is None
