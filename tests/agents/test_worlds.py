"""What a person writes: a run waits for it."""

from __future__ import annotations

import pytest

from formal_llm.agents import Agent
from formal_llm.agents.decoding.steps import driven
from formal_llm.agents.worlds import PersonDue
from formal_llm.errors import AgentError
from tests.agents.chats import Scripted


def test_a_run_without_a_person_says_what_it_waits_for() -> None:
    agent = Agent("chat-bot-endless", Scripted(["Hello."] * 2))
    with pytest.raises(AgentError, match=r"chat-bot-endless waits for what a person says; run it by Conversation"):
        agent.run("q")
    (outcome,) = agent.run_all(["q"])
    assert isinstance(outcome.error, AgentError) and outcome.transcript.word == ("Chat-Bot",)


def test_whoever_drives_the_run_puts_the_text_there() -> None:
    agent = Agent("chat-bot-endless", Scripted(["Hello.", "Fine."]))
    run = agent.start("")
    steps = driven(run.steps(), agent.llm)
    due = next(steps)
    assert isinstance(due, PersonDue) and due.text is None and run.writing == "User"
    due.text = "How are you?"
    assert isinstance(next(steps), PersonDue)
    assert [one.text for one in run.segments] == ["Hello.", "How are you?", "Fine."]
    steps.close()
