"""What the environment writes."""

from __future__ import annotations

from formal_llm.agents import Agent
from formal_llm.agents.tools import agent_toolkit
from tests.agents.chats import Scripted

TRY = ["[Final Thought]", "f", "Ridley Scott"]


def test_an_input_without_an_action_is_told() -> None:
    llm = Scripted(["[Action Input]", "Danube", "[Observation]", "[Answer]", "a"])
    made = Agent("react-ablated", llm, agent_toolkit).run("q")
    assert str(made.text_of("Obs")).startswith("Error: no action stands before this input; name one of calculate, ")


def test_reflections_go_on_into_the_next_try_and_no_right_answer_is_shown() -> None:
    llm = Scripted([
        *TRY, "Wrong: that is the director.", "Look for the author.", "[Final Thought]", "g", "Philip K. Dick",
        "Right.", "Fine.", "[Answer]", "Philip K. Dick",
    ])  # fmt: skip
    made = Agent("reflexion", llm, agent_toolkit).run("Who wrote the novel?")
    assert made.word == (
        "Ques", "Final-Tht", "Prop-Ans", "Eval", "Ref", "Final-Tht", "Prop-Ans", "Eval", "Ref", "Ans",
    )  # fmt: skip
    assert [one.text for one in made.segments if one.state == "Eval"] == ["Wrong: that is the director.", "Right."]
    second = next(asked for asked in llm.asked if "Look for the author." in asked)
    assert "Ridley Scott" in second
    evaluated = next(asked for asked in llm.asked if "is to be judged" in asked)
    assert "[Proposed Answer] Ridley Scott" in evaluated and "Who wrote the novel?" in evaluated


def test_an_evaluator_of_ones_own() -> None:
    def judge(run) -> str:  # type: ignore[no-untyped-def]
        return "Right" if run.transcript.text_of("Prop-Ans") == "4" else "Wrong"

    llm = Scripted(["[Final Thought]", "f", "4", "good", "[Answer]", "4"])
    made = Agent("reflexion", llm, agent_toolkit, worlds={"[Evaluation]": judge}).run("2 + 2?")
    assert made.text_of("Eval") == "Right"
