from formal_llm import CFG, PDA
from formal_llm.automata.languages.points import WorkPoints
from formal_llm.automata.models.pda import LOOP


def points(text="S -> a S B | c\nB -> b | d"):
    return WorkPoints(PDA.from_cfg(CFG.from_string(text)))


def test_what_only_reads_one_terminal_is_a_leaf():
    made = points()
    assert made.get_shape(LOOP, "a").leaves == {LOOP: ("a",)}
    assert made.get_shape(LOOP, "B").leaves == {LOOP: ("b", "d")}
    assert made.get_shape(LOOP, "S").leaves is None


def test_points_are_made_once():
    made = points()
    shape = made.get_shape(LOOP, "S")
    (_, first), (_, other) = made.list_moves(shape)
    assert (first.rest, other.rest) == (("a", "S", "B"), ("c",))
    second = made.point_after_symbol(first, LOOP)
    assert second.rest == ("S", "B")
    assert second.inner is shape
    assert made.point_after_symbol(first, LOOP) is second
    assert made.point_after_symbol(made.point_after_symbol(second, LOOP), LOOP).inner is None


def test_where_a_symbol_is_deleted():
    made = points("P -> S S | Q\nS -> a S | c | ε\nQ -> E\nE -> ε")
    assert made.may_delete(made.get_shape(LOOP, "S"))  # it reads
    assert not made.may_delete(made.get_shape(LOOP, "E"))  # it reads nothing at all
    assert made.may_delete(made.get_shape(LOOP, "Q"))  # what it begins with does not
    assert not made.may_delete(made.get_shape(LOOP, "P"))  # S and Q do
