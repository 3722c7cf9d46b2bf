"""How a model is asked."""

from __future__ import annotations

import pytest

from formal_llm.agents import Markers, Monitor, Segment, Transcript
from formal_llm.agents.decoding.continuing import ContinuingWriter
from formal_llm.agents.decoding.steps import Steps, driven
from formal_llm.agents.decoding.writer import (
    Bounds,
    Phrases,
    Spent,
    WriterEvent,
    WriterRun,
    build_chat,
)
from formal_llm.automata import CFG
from formal_llm.errors import WritesNoText, WritingError
from formal_llm.llms import ScriptedLLM
from formal_llm.llms.doubles import TEXTS, RandomLLM

MARKERS = Markers({"a": "[A]"})


def test_a_question() -> None:
    writer = ContinuingWriter(RandomLLM(can=TEXTS), MARKERS, "You act.")
    system, asked = writer.build_question("[Question] How?\n", Phrases().next, ["[A]", "[B]"]).messages
    assert system.content == "You act."
    assert asked.content == (
        "[Question] How?\n\nWhat comes next?\n1: [A]\n2: [B]\n\n"
        "Answer with the number of your choice, an integer from 1 to 2, and nothing else."
    )


def test_a_talk_takes_turns() -> None:
    assert [message.role for message in build_chat("", "a", "b", "c")] == ["user", "assistant", "user"]


def test_a_model_that_does_not_write_is_refused() -> None:
    with pytest.raises(WritesNoText):
        ContinuingWriter(RandomLLM(), Markers({"a": "[A]"}))


class Asks(WriterRun):
    """Asks again and again."""

    def _generate_steps(self) -> Steps[WriterEvent]:
        while True:
            self._count_request("a")
            place = yield from self._ask_choice("a", "", "Which?", ["x", "y"])
            yield Segment("a", "xy"[place])


def test_questions_and_their_count() -> None:
    writer = ContinuingWriter(RandomLLM(can=TEXTS), MARKERS, bounds=Bounds(requests=2))
    run = Asks(writer, Transcript("t"), Monitor(CFG.from_string("S -> a S | a")), frozenset(), {})
    told: list[WriterEvent] = []
    with pytest.raises(WritingError, match="2 requests and has not ended"):
        for one in driven(run.relay_to_end(), ScriptedLLM([2, 1, 1])):
            told.append(one)  # noqa: PERF402
    assert [one.text for one in told if isinstance(one, Segment)] == ["y", "x"]
    assert run.transcript.segments == (Segment("a", "y"), Segment("a", "x"))
    assert run.transcript.by_state["a"].usage.questions == sum(isinstance(one, Spent) for one in told) == 2
