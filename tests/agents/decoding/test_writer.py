"""What writers tell, and their bounds."""

from __future__ import annotations

import pytest

from formal_llm.agents import Correction, Segment, Transcript
from formal_llm.agents.decoding.writer import Bounds, Due, SegmentBegan, Spent, Text, added
from formal_llm.planning.plans.usage import Usage


def test_a_transcript_is_what_was_told() -> None:
    told = (
        SegmentBegan("Tht"), Text("so"), Segment("Tht", "so"), Correction(1, "[Answer]", ("[Action]",), "[Action]"),
        Spent("Tht", Usage(requests=1)), Spent("", Usage(requests=2)), Due(("Obs",)),
    )  # fmt: skip
    transcript = Transcript("react")
    for one in told:
        transcript = added(transcript, one)
    took = {"Tht": Usage(requests=1), "": Usage(requests=2)}
    assert transcript == Transcript("react", (Segment("Tht", "so"),), (told[3],), took)


@pytest.mark.parametrize("name", ["state_tokens", "chunk_tokens", "corrections", "requests"])
def test_bounds_count_from_1(name: str) -> None:
    with pytest.raises(ValueError, match="count from 1"):
        Bounds(**{name: 0})
