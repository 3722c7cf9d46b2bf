"""What is afforded has what the model has, and is looked at before each request."""

from __future__ import annotations

from formal_llm.agents.afforded import Afforded
from formal_llm.llms.generation import ContinuingLLM, StreamingLLM, TextLLM
from formal_llm.llms.question import Question
from formal_llm.llms.text_doubles import FunctionTextLLM
from tests.agents.chats import Chats


def test_what_is_afforded_has_what_the_model_has() -> None:
    looked: list[int] = []
    whole = Afforded(FunctionTextLLM(lambda _: " so"), lambda: looked.append(1))
    assert isinstance(whole, TextLLM) and isinstance(whole, ContinuingLLM) and isinstance(whole, StreamingLLM)
    assert whole.takes_text and whole.generate("q").text == " so" and whole.choose(Question("?", ["a"])).number == 1
    chats = Afforded(Chats(1, ["x"]), lambda: looked.append(1))
    assert isinstance(chats, TextLLM) and not isinstance(chats, ContinuingLLM) and len(looked) == 2
