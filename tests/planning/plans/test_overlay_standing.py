"""Where a run stands in its rules, as a picture."""

from tests.studio.texts import CHART, NESTED, TEA

from formal_llm import CFG, PDA, Behaviour, Flowchart
from formal_llm.automata import Configuration, Stack
from formal_llm.pictures.drawable import picture_of
from formal_llm.pictures.picture import Picture
from formal_llm.planning.plans.overlay import MOST, position_picture, way_picture


def marked(picture: Picture) -> set[str]:
    return {box.label for box in picture.nodes if box.tone == "marked"}


def test_the_top_of_the_stack_is_marked_and_the_rest_of_it_stays() -> None:
    here = Configuration("loop", Stack.of("S", "close", "close"))
    picture = position_picture(CFG.from_string(NESTED), here)
    assert marked(picture) == {"S"}
    assert {box.label for box in picture.nodes if box.tone == "plain"} == {"close"}
    assert {box.label for box in picture.nodes if box.tone == "faded"} >= {"open", "x"}


def test_a_terminal_of_a_class_stands_in_the_box_of_its_class() -> None:
    rules = CFG.from_string("S -> A b\nA -> a1 | a2\n")
    assert marked(position_picture(rules, Configuration("loop", Stack.of("a2", "b")))) == {"A: one of"}


def test_of_a_chart_the_node_is_marked() -> None:
    chart = Flowchart.from_mermaid(CHART)
    for state in ("Q", ("Q", 3), (("Q", "x"), 3)):  # alone, and with constraints beside it
        assert marked(position_picture(chart, Configuration(state, Stack.of()))) == {"Is it late?"}


def test_of_an_automaton_the_state_is_marked_and_never_folded_away() -> None:
    lines = [f"s{n}, a, ε -> s{n + 1}, ε" for n in range(30)]
    rules = PDA.from_string("\n".join(["%start s0", "%accept s30", *lines]))
    assert "s17" not in {box.label for box in picture_of(rules).nodes}
    for state in ("s17", ("other", "s17")):
        assert marked(position_picture(rules, Configuration(state, Stack.of()))) == {"s17"}


def test_of_a_behaviour_as_of_its_automaton() -> None:
    behaviour = Behaviour.load("react")
    here = Configuration(behaviour.pda.start_state, Stack.of())
    assert len(marked(position_picture(behaviour, here))) == 1


def test_a_very_long_plan_is_not_drawn() -> None:
    picture = way_picture(CFG.from_string("S -> a S | b\n"), ("a",) * 5000 + ("b",), "forward")
    assert not marked(picture)


def test_a_plan_over_its_rules() -> None:
    picture = way_picture(CFG.from_string(TEA), ("pour", "boil_water"), "backward")
    assert {"pour", "Boil water"} <= marked(picture)
    assert "steep" not in marked(picture)


def test_of_large_rules_what_lies_around_is_drawn() -> None:
    text = "N0 -> t0 N1 | t0\n" + "".join(f"N{n} -> t{n} N{n + 1} | t{n}\n" for n in range(1, 200)) + "N200 -> t\n"
    picture = position_picture(CFG.from_string(text), Configuration("loop", Stack.of("N150")))
    assert len(picture.nodes) == MOST
    assert marked(picture) == {"N150"}
