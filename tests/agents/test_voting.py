"""Votes over several runs."""

from __future__ import annotations

import pytest

from formal_llm.agents import Agent, Segment, SelfConsistency, Transcript
from formal_llm.agents.tools import agent_toolkit
from formal_llm.agents.voting import normalise_answer, vote
from formal_llm.errors import LLMError
from formal_llm.llms.doubles import ScriptedLLM
from tests.agents.chats import Scripted


def runs(*answers: str) -> list[Transcript]:
    return [Transcript("direct", (Segment("Ques", "q", "user"), Segment("Ans", answer))) for answer in answers]


def test_the_answer_that_comes_most_often_is_taken_and_ties_are_told() -> None:
    assert (
        normalise_answer("The  Danube!") == normalise_answer("danube")
        and normalise_answer("3.5") != normalise_answer("35")
        and normalise_answer("1,000") == "1,000"
    )
    found = vote(runs("the Elbe", "Rhine", "Rhine.", "elbe", "Oder"))
    assert (found.answer, found.count, found.tied, found.agreed) == ("the Elbe", 2, ("Rhine",), True)
    assert vote(runs("a b", "c")).tied == ("c",) and not vote(runs("x", "y")).agreed
    assert vote(runs("", "")).count == 0


def test_self_consistency_asks_k_times() -> None:
    llm = Scripted(["Rhine", "Elbe", "Rhine"])
    found = SelfConsistency(Agent("direct", llm, temperature=0.7), 3).run("q")
    assert (found.answer, found.count, found.usage.requests) == ("Rhine", 2, 3)
    with pytest.raises(ValueError, match="once at least"):
        SelfConsistency(Agent("direct", llm), 0)


def test_an_agent_is_asked_where_no_answer_repeats(tmp_path) -> None:  # type: ignore[no-untyped-def]
    then = Agent("react", Scripted(["[Final Thought] t [Answer] Oder"]), agent_toolkit)
    both = SelfConsistency(Agent("direct", Scripted(["a", "b", "c", "c"]), temperature=0.7), 2, then=then)
    first, second = both.run_all(["q1", "q2"], results=tmp_path / "sc")
    assert (first.answer, first.after is not None, first.agreed) == ("Oder", True, False)
    assert (second.answer, second.after) == ("c", None)
    # All of it is on record: nobody is asked again.
    nobody = Agent("direct", Scripted([]), temperature=0.7)
    again = SelfConsistency(nobody, 2, then=Agent("react", Scripted([]), agent_toolkit))
    assert [one.answer for one in again.run_all(["q1", "q2"], results=tmp_path / "sc")] == ["Oder", "c"]


def test_a_question_without_any_answer_says_why() -> None:
    agent = SelfConsistency(Agent("direct", ScriptedLLM(texts=[]), temperature=0.7), 2)
    assert agent.run_all(["q"])[0].error is not None
    with pytest.raises(LLMError, match="the script ended"):
        agent.run("q")


def test_votes_at_temperature_0_are_warned_of() -> None:
    sure = Agent("direct", Scripted(["Rhine", "Rhine"]))
    with pytest.warns(UserWarning, match=r"at temperature 0 the 2 answers .* are the same.*temperature=0.7") as caught:
        assert SelfConsistency(sure, 2).run("q").count == 2
    assert [warning.filename for warning in caught] == [__file__]
    SelfConsistency(sure, 1)  # one answer needs no vote: no warning, which would be an error here
