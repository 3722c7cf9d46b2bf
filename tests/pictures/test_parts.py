"""Parts of pictures."""

from hypothesis import given
from hypothesis import strategies as st

from formal_llm.pictures.parts import cut_around, mark_boxes
from formal_llm.pictures.picture import Arrow, Box, Picture

CHAIN = Picture(
    tuple(Box(str(n), f"box {n}", "terminal") for n in range(10)),
    tuple(Arrow(str(n), str(n + 1)) for n in range(9)),
)


def test_what_is_near_stays() -> None:
    part = cut_around(CHAIN, ["5"], 3)
    assert {box.id for box in part.nodes} == {"4", "5", "6"}
    assert {(arrow.source, arrow.target) for arrow in part.edges} == {("4", "5"), ("5", "6")}
    assert part.title == "3 of 10 boxes"


def test_a_small_picture_stays_as_it_is() -> None:
    assert cut_around(CHAIN, ["5"], 10) is CHAIN


@given(st.lists(st.sampled_from([*"0123456789", "?"]), max_size=3), st.integers(1, 12))
def test_no_more_boxes_than_asked_for(centres: list[str], most: int) -> None:
    part = cut_around(CHAIN, centres, most)
    assert len(part.nodes) <= max(most, len(set(centres)))
    known = [name for name in dict.fromkeys(centres) if name != "?"]
    assert {*known} <= {box.id for box in part.nodes}


def test_marked_and_faded() -> None:
    picture = mark_boxes(CHAIN, ["1"], ["2"])
    assert [box.tone for box in picture.nodes[:4]] == ["faded", "marked", "plain", "faded"]
