"""What transcripts look like."""

import pytest

from formal_llm.agents import Correction, Segment, Transcript
from formal_llm.agents.transcript import transcript_picture
from tests.pictures.forms import check_dot, check_mermaid, needs_dot

RUN = Transcript(
    "react",
    (
        Segment("Ques", "How tall is it?", "user"),
        Segment("Tht", "I look it up. " * 100),
        Segment("Obs", "", "environment"),
        Segment("Ans", "57 metres", "forced"),
    ),
    (Correction(1, "[Answer]", ("Tht",)), Correction(9, "")),
)


def test_a_box_for_each_segment_and_correction() -> None:
    picture = transcript_picture(RUN)
    assert picture == RUN.picture
    assert [(box.label, box.kind) for box in picture.nodes] == [
        ("1  Ques", "input"), ("2  Tht", "tool"), ("3  Obs", "input"), ("4  Ans", "open"),
        ("not allowed", "open"), ("not allowed", "open"),
    ]  # fmt: skip
    assert [(one.source, one.target) for one in picture.edges if one.style == "dashed"] == [
        ("correction 0", "segment 1"), ("correction 1", "segment 3"),
    ]  # fmt: skip
    assert picture.nodes[5].details == ("the end",)


def test_of_a_long_text_the_beginning_is_shown() -> None:
    (thought,) = (box for box in RUN.picture.nodes if box.label == "2  Tht")
    assert len(thought.details) <= 5
    assert thought.details[0].startswith("I look it up.")


@pytest.mark.parametrize("run", [RUN, Transcript("react"), Transcript("react", (), (Correction(0, "x"),))])
def test_is_drawn(run: Transcript) -> None:
    check_mermaid(run.to_mermaid())
    check_dot(run.to_dot())


@needs_dot
def test_in_a_notebook() -> None:
    assert set(RUN._repr_mimebundle_()) == {"text/plain", "text/vnd.mermaid", "image/svg+xml"}
    long = Transcript("react", (Segment("Tht"),) * 500)
    assert set(long._repr_mimebundle_()) == {"text/plain"}
