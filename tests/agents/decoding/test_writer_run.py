"""What both ways of writing have in common: what is told stands in the transcript, and requests are counted."""

from __future__ import annotations

import pytest

from formal_llm.agents import Markers, Monitor, Segment, Transcript
from formal_llm.agents.decoding.manner import Phrases, WritingConfig
from formal_llm.agents.decoding.steps import Steps, driven
from formal_llm.agents.decoding.writer import Bounds, Spent, Told
from formal_llm.agents.decoding.writer_run import WriterRun
from formal_llm.automata import CFG
from formal_llm.errors import WritingError
from formal_llm.llms import ScriptedLLM


class Asks(WriterRun):
    """Asks again and again."""

    def _generate_steps(self) -> Steps[Told]:
        while True:
            self._count_request("a")
            place = yield from self._ask_choice("a", "", "Which?", ["x", "y"])
            yield Segment("a", "xy"[place])


def test_questions_and_their_count() -> None:
    how = WritingConfig(Markers({"a": "[A]"}), "", Bounds(requests=2), Phrases(), 0.0, False)
    run = Asks(how, Transcript("t"), Monitor(CFG.from_string("S -> a S | a")), frozenset(), {})
    told: list[Told] = []
    with pytest.raises(WritingError, match="2 requests and has not ended"):
        for one in driven(run.relay_to_end(), ScriptedLLM([2, 1, 1])):
            told.append(one)  # noqa: PERF402
    assert [one.text for one in told if isinstance(one, Segment)] == ["y", "x"]
    assert run.transcript.segments == (Segment("a", "y"), Segment("a", "x"))
    assert run.transcript.by_state["a"].usage.questions == sum(isinstance(one, Spent) for one in told) == 2
