from formal_llm import CFG, PDA
from formal_llm.automata.languages.points import WorkPoints
from formal_llm.automata.models.pda import LOOP


def points(text="S -> a S B | c\nB -> b | d"):
    return WorkPoints(PDA.from_cfg(CFG.from_string(text)))


def test_what_only_reads_one_terminal_is_a_leaf():
    made = points()
    assert made.shape(LOOP, "a").leaves == {LOOP: ("a",)}
    assert made.shape(LOOP, "B").leaves == {LOOP: ("b", "d")}
    assert made.shape(LOOP, "S").leaves is None


def test_points_are_made_once():
    made = points()
    shape = made.shape(LOOP, "S")
    (_, first), (_, other) = made.moves(shape)
    assert (first.rest, other.rest) == (("a", "S", "B"), ("c",))
    second = made.behind(first, LOOP)
    assert second.rest == ("S", "B")
    assert second.inner is shape
    assert made.behind(first, LOOP) is second
    assert made.behind(made.behind(second, LOOP), LOOP).inner is None


def test_where_a_symbol_is_deleted():
    made = points("P -> S S | Q\nS -> a S | c | ε\nQ -> E\nE -> ε")
    assert made.deletes(made.shape(LOOP, "S"))  # it reads
    assert not made.deletes(made.shape(LOOP, "E"))  # it reads nothing at all
    assert made.deletes(made.shape(LOOP, "Q"))  # what it begins with does not
    assert not made.deletes(made.shape(LOOP, "P"))  # S and Q do
