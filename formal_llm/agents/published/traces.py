"""Traces in the formats in which papers print them, as transcripts, to be verified by a monitor.

ReAct (Yao et al. 2023)::

    Question: ...
    Thought 1: I need to search Danube.
    Action 1: Search[Danube]
    Observation 1: The Danube is a river ...
    Thought 2: ...
    Action 2: Finish[the Black Sea]

ReWOO (Xu et al. 2023)::

    Question: ...
    Plan: Find the river.
    #E1 = Search[Danube]
    Plan: ...
    #E2 = LLM[Into which sea? Given #E1]
    Answer: the Black Sea

The beginning of a line determines what it is; other lines continue the text before.
"""

from __future__ import annotations

import re

from formal_llm.agents.transcript import Author, Segment, Transcript
from formal_llm.errors import TranscriptError

_LINE = re.compile(r"(Question|Thought|Action|Observation|Plan|Answer)(?: [0-9]+)?: ?(.*)|(#E[0-9]+) = (.*)", re.DOTALL)
_CALL = re.compile(r"\s*([^\[\]]+?)\s*\[(.*)\]\s*", re.DOTALL)


def read_react(text: str) -> Transcript:
    """The transcript of ``react`` that a trace of ReAct shows. The thought before ``Finish`` is the final one.

    Raises:
        TranscriptError: a line before any other that begins with nothing known; an action that is no call.
    """
    found: list[Segment] = []
    for what, content in _split_lines(text):
        if what == "Action":
            tool, given = _parse_call(content)
            if tool == "Finish":
                if found and found[-1].state == "Tht":
                    found[-1] = Segment("Final-Tht", found[-1].text)
                found.append(Segment("Ans", given))
            else:
                found += [Segment("Act", tool), Segment("Act-Inp", given)]
        else:
            found.append(
                _make_segment(what, content, {"Question": "Ques", "Thought": "Tht", "Observation": "Obs"}, "Obs")
            )
    return Transcript("react", tuple(found))


def read_rewoo(text: str) -> Transcript:
    """The transcript of ``rewoo`` that a trace of ReWOO shows.

    Raises:
        TranscriptError: as of :func:`read_react`.
    """
    found: list[Segment] = []
    for what, content in _split_lines(text):
        if what.startswith("#"):
            tool, given = _parse_call(content)
            found += [Segment("Act-Lbl", what), Segment("Act", tool), Segment("Act-Inp", given)]
        else:
            found.append(
                _make_segment(what, content, {"Question": "Ques", "Plan": "Plan", "Answer": "Solver"}, "Solver")
            )
    return Transcript("rewoo", tuple(found))


def _split_lines(text: str) -> list[tuple[str, str]]:
    """What each line is, and its text, with those that continue it."""
    found: list[tuple[str, str]] = []
    for line in text.strip().split("\n"):
        match = _LINE.fullmatch(line)
        if match is not None:
            found.append((match[1] or match[3], match[2] if match[1] else match[4]))
        elif found:
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{line}")
        else:
            raise TranscriptError(f"a trace begins with a question, not with {line[:60]!r}")
    return [(what, content.strip()) for what, content in found]


def _parse_call(content: str) -> tuple[str, str]:
    match = _CALL.fullmatch(content)
    if match is None:
        raise TranscriptError(f"an action is written as Tool[input], not as {content[:60]!r}")
    return match[1], match[2]


def _make_segment(what: str, content: str, states: dict[str, str], outside: str) -> Segment:
    if what not in states:
        raise TranscriptError(f"there is no {what} in such a trace")
    state = states[what]
    author: Author = "user" if what == "Question" else "environment" if state == outside else "model"
    return Segment(state, content, author)
