"""Errors of agents carry what was refused and why."""

from __future__ import annotations

import pickle

import pytest

from formal_llm import constraint
from formal_llm.agents import Monitor
from formal_llm.errors import AgentError, EarlyAnswer, NotAllowed, TranscriptError, WritingError
from formal_llm.guard import Decision


def test_what_was_refused_travels_with_the_error() -> None:
    monitor = Monitor(constraint("(next ask pay)", ["ask", "pay"]))
    with pytest.raises(NotAllowed, match="pay cannot come now; ask could come next") as caught:
        monitor.after("pay")
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.refusal.name, list(error.refusal.allowed)) == ("pay", ["ask"])
    assert str(error) == error.refusal.reason


def test_one_root() -> None:
    assert issubclass(TranscriptError, AgentError)
    assert issubclass(TranscriptError, ValueError)


def test_what_was_written_travels_with_the_error() -> None:
    error = pickle.loads(pickle.dumps(WritingError("the text of Act is wrong", "Act", "Google", ("Search",))))
    assert (str(error), error.state, error.wrote, error.legal) == (
        "the text of Act is wrong", "Act", "Google", ("Search",),
    )  # fmt: skip


def test_an_early_answer_says_why_and_how_often_it_was_sent_back() -> None:
    decision = Decision("block", "paid", "The run cannot end yet: paid.", ("approve",), ("approve", "pay"))
    error = EarlyAnswer(decision, 2)
    assert isinstance(error, AgentError)
    assert (error.decision, error.times) == (decision, 2)
    assert str(error) == (
        "the agent answered too early 3 times and was sent back 2 times (most_early=2): The run cannot end yet: paid. "
        "Allowed now: approve. The shortest way on: approve, then pay."
    )
