"""Conversations: a run for each message, or one run over all of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formal_llm import Behaviour, Limits
from formal_llm.agents import Agent, Conversation, TurnWindow
from formal_llm.agents.run_events import Ended
from formal_llm.agents.tools import agent_toolkit
from formal_llm.errors import AgentError, AgentStopped, LLMError
from formal_llm.llms.doubles import TEXTS, TURNS, RandomLLM, ScriptedLLM
from formal_llm.planning import Budget
from tests.agents.chats import Chats, Scripted, words
from tests.strategies import examples


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
    talk.memory = TurnWindow(0)
    talk.say("fourth")
    assert "Earlier" not in llm.asked[-1]
    with pytest.raises(ValueError, match="0 or more"):
        Conversation(talk.agent, most=-1)


def test_earlier_turns_are_a_chat_where_tools_are_called_natively() -> None:
    script = [
        ("", [("calculate", {"expression": "6 * 7"})]),
        "It is 42.",
        ("", [("calculate", {"expression": "42 + 1"})]),
    ]
    llm = ScriptedLLM(texts=[*script, "It is 43."], can=TURNS)
    talk = Conversation(Agent("react", llm, agent_toolkit))
    talk.say("What is 6 times 7?")
    assert talk.say("And one more?").answer == "It is 43."
    chat = llm.requests[-1].messages
    assert [one.role for one in chat] == ["user", "assistant", "tool", "assistant", "user", "assistant", "tool"]
    assert [call.id for one in chat for call in one.calls] == ["call_1", "call_2"] and chat[3].content == "It is 42."


MARKERS = words(["[Chat-Bot]", "[User]", "[Bogus]"], ["search"])


@given(st.booleans(), st.integers(0, 10**9), st.integers(1, 30))
@examples(40)
def test_a_chat_without_an_end_is_one_run(chats: bool, seed: int, messages: int) -> None:
    llm = Chats(seed, MARKERS) if chats else RandomLLM(seed, can=TEXTS, words=MARKERS)
    talk = Conversation(Agent("chat-bot-endless", llm))
    behaviour = talk.agent.behaviour
    for number in range(messages):
        made = talk.say(f"[Chat-Bot] {number}")
        assert made.word == (*("Chat-Bot", "User") * (number + 1), "Chat-Bot")
        assert made.segments[-2].text == f"[Chat-Bot] {number}" and made.segments[-2].source == "environment"
        assert talk.turns == (made,) and talk.run is not None and talk.run.transcript is made
        assert [*talk.run.monitor.allowed()] == ["User"]  # the monitor is that of the whole conversation
    assert behaviour.accepts(made.word[:-1]) and len(talk.run.monitor.word) == len(made)  # type: ignore[union-attr]


def test_only_the_person_ends_it() -> None:
    """The model ends each text, and would end the run where it may."""
    llm, seen = ScriptedLLM(texts=[" Hello.", "", " Again?"]), []
    talk = Conversation(Agent("chat-bot-endless", llm, on_event=seen.append))
    assert talk.start().answer == "Hello." and not talk.say("Bye.").answer
    assert talk.say("Bye!").answer == "Again?"
    assert not any(isinstance(one, Ended) for one in seen)
    talk.close()
    (ended,) = (one for one in seen if isinstance(one, Ended))
    assert ended.error is None and ended.transcript is talk.turns[0]
    talk.close()
    with pytest.raises(AgentError, match="the conversation has ended"):
        talk.say("Hello?")
    with pytest.raises(AgentError, match="nothing to start"):
        talk.start()
    with pytest.raises(AgentError, match="nothing to start"):
        Conversation(Agent("chat-bot", llm, agent_toolkit)).start()


def test_limits_and_budgets_end_it() -> None:
    agent = Agent("chat-bot-endless", Scripted("abcd"), limits=Limits({"Chat-Bot": 2}))
    talk = Conversation(agent)
    assert talk.say("x").answer == "b" and talk.say("y").word == ("Chat-Bot", "User") * 2
    with pytest.raises(AgentError, match="the conversation has ended"):
        talk.say("z")
    talk = Conversation(Agent("chat-bot-endless", Scripted("abcd"), budget=Budget(requests=2)))
    talk.say("x")
    with pytest.raises(AgentStopped):
        talk.say("y")


def test_a_failure_ends_it_with_all_that_was_said() -> None:
    talk = Conversation(Agent("chat-bot-endless", ScriptedLLM(texts=[" a", " b"])))
    talk.say("x")
    with pytest.raises(LLMError, match="the script ended"):
        talk.say("y")
    assert talk.run is not None and talk.run.transcript.word == ("Chat-Bot", "User") * 2
    with pytest.raises(AgentError, match="the conversation has ended"):
        talk.say("z")


def test_the_person_may_begin_and_tools_be_called() -> None:
    text = """(define help
      (:states (Said (:text "User:") (:flags :env-input)) (Do (:text "Action:")) (With (:text "Action Input:"))
        (Got (:text "Observation:") (:flags :env-input)) (Reply (:text "Assistant:")))
      (:behavior (always (next Said (until (next Do With Got) Reply)))))"""
    llm = Scripted(["Action:", "search", "Danube", "Assistant:", "A river.", "Assistant:", "Good-bye."])
    talk = Conversation(Agent(Behaviour.from_string(text), llm, agent_toolkit))
    assert talk.say("What is the Danube?").answer == "A river." and talk.say("Thanks.").answer == "Good-bye."
    assert talk.turns[0].word == ("Said", "Do", "With", "Got", "Reply", "Said", "Reply")
    assert talk.turns[0].verify(talk.agent.behaviour).valid
