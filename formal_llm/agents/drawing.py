"""What transcripts look like: a chain of states, each with what was written in it, and what was corrected beside it."""

from __future__ import annotations

from formal_llm.agents.transcript import Author, Transcript
from formal_llm.pictures.captions import WIDTH, cut, shorten, wrap
from formal_llm.pictures.picture import Arrow, Box, BoxKind, Picture

#: Who wrote a segment gives its box: what comes from outside is an input, what the rules forced is grey.
_KINDS: dict[Author, BoxKind] = {"user": "input", "environment": "input", "model": "tool", "forced": "open"}
#: So many lines of a text are shown; of a text so many characters are looked at.
_LINES, _CHARACTERS = 4, 400


def transcript_picture(transcript: Transcript) -> Picture:
    """A transcript from top to bottom: a box for each segment, with its state, the beginning of its text, its author.

    What was corrected stands in a dashed box, with an arrow to the segment in whose place it was written.
    """
    boxes = [
        Box(f"segment {number}", f"{number + 1}  {one.state}", _KINDS[one.source], _shorten_text(one.text))
        for number, one in enumerate(transcript.segments)
    ]
    arrows = [Arrow(f"segment {n}", f"segment {n + 1}", weight=10) for n in range(len(boxes) - 1)]
    for number, one in enumerate(transcript.corrections):
        box = Box(f"correction {number}", "not allowed", "open", _shorten_text(one.written or "the end"), "marked")
        boxes.append(box)
        place = min(one.position, len(transcript) - 1)
        if place >= 0:
            arrows.append(Arrow(box.id, f"segment {place}", "corrected", "dashed", "marked"))
    return Picture(tuple(boxes) or (Box("empty", "nothing was written", "result"),), tuple(arrows), "TB")


def _shorten_text(text: str) -> tuple[str, ...]:
    lines = wrap(shorten(text.strip(), _CHARACTERS), WIDTH).split("\n")
    return cut([line for line in lines if line], _LINES)
