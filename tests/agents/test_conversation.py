"""Conversations: each turn is shown those before."""

from __future__ import annotations

import pytest

from formal_llm.agents import Agent, Conversation
from formal_llm.agents.tools import agent_toolkit
from tests.agents.chats import Scripted


def test_earlier_turns_are_shown() -> None:
    llm = Scripted(["[Final Response]", "Hello, [Thought] Ada.", "[Final Response]", "Ada."])
    talk = Conversation(Agent("chat-bot", llm, agent_toolkit))
    talk.say("I am Ada.")
    assert talk.say("Who am I?").answer == "Ada." and len(talk.turns) == 2
    assert "Earlier in this conversation:\n[User Problem] I am Ada." in llm.asked[-1]
    assert all(turn.verify(talk.agent.behaviour).valid for turn in talk.turns)


def test_only_the_latest_turns_are_shown() -> None:
    llm = Scripted(["[Final Response]", "x"] * 4)
    talk = Conversation(Agent("chat-bot", llm, agent_toolkit), most=1)
    for said in ("first", "second", "third"):
        talk.say(said)
    assert "second" in llm.asked[-1] and "first" not in llm.asked[-1].split("conversation:")[1]
    talk.most = 0
    talk.say("fourth")
    assert "Earlier" not in llm.asked[-1]
    with pytest.raises(ValueError, match="0 or more"):
        Conversation(talk.agent, most=-1)
