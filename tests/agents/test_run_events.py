"""What happens, as values."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from formal_llm import Limits
from formal_llm.agents import Agent
from formal_llm.agents.run_events import Began, Called, RunEvent, ToolCall, Withdrawn, Wrote
from formal_llm.errors import WritingError
from formal_llm.llms.doubles import TEXTS, TURNS, RandomLLM
from tests.agents.chats import Chats
from tests.agents.test_pausing import MARKED, TOOLS


def test_calls_are_json_data() -> None:
    call = ToolCall(3, "search", "Danube", "a river", False, "#E1")
    assert ToolCall(**json.loads(json.dumps(call.to_data()))) == call
    assert Called(call) == Called(ToolCall(**call.to_data())) != Called(call, "1")  # type: ignore[arg-type]


def test_each_tells_its_run() -> None:
    assert {one.run for one in (Began("Tht", run="1"), Wrote("Tht", "x", "1"))} == {"1"}


def fold_events(events: Sequence[RunEvent]) -> list[tuple[str, str]]:
    """The states and texts of a run, as one who watches it has them."""
    states: list[list[str]] = []
    for event in events:
        match event:
            case Began(state):
                states.append([state, ""])
            case Wrote(state, text):
                assert states[-1][0] == state
                states[-1][1] += text
            case Withdrawn(state):
                assert states.pop()[0] == state
    return [(state, text.strip()) for state, text in states]


@pytest.mark.parametrize("name", ["react", "rewoo", "pass", "reflexion-2-3"])
@pytest.mark.parametrize(
    "make", [lambda seed: RandomLLM(seed, can=TURNS, words=("so", "[Answer]", ""), lies=0.3),
             lambda seed: RandomLLM(seed, can=TEXTS, words=MARKED), lambda seed: Chats(seed, MARKED)],
    ids=["native", "continued", "chat"],
)  # fmt: skip
def test_who_watches_a_stream_has_the_transcript_in_the_end(name: str, make: Callable[[int], Any]) -> None:
    agent = Agent(name, make(0), TOOLS, limits=Limits({"search": 3, "add": 3, "pay": 1}), streaming=True)
    whole, withdrawn = 0, 0
    for seed in range(15):
        events: list[RunEvent] = []
        run = agent.start("q", llm=make(seed), on_event=events.append)
        try:
            made = run.run_to_end()
        except WritingError:
            continue
        assert fold_events(events) == [(one.state, one.text.strip()) for one in made.segments]
        assert {event.id for event in events} == {run.id}
        whole, withdrawn = whole + 1, withdrawn + sum(isinstance(event, Withdrawn) for event in events)
    # A plan of ReWOO begins with a call, so no text of a turn could be its answer.
    assert whole > 5 and (withdrawn > 0 or not agent.native or name == "rewoo")
