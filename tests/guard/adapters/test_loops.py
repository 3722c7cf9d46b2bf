"""A turn of a loop of one's own, whatever the provider: here one that writes as little as can be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from formal_llm.errors import EarlyAnswer
from formal_llm.guard import Call, Guard, GuardedRun, GuardRules
from formal_llm.guard.adapters.loops import GuardedLoop, Item, ModelAnswer, RequestedCall
from tests.guard.adapters.shop import Record, guard


class BareLoop(GuardedLoop[str | list[str], str]):
    """A loop over answers that are texts, or lists of tools: the ids of each answer begin with 0 again."""

    def read_answer(self, response: str | list[str]) -> ModelAnswer[str]:
        if isinstance(response, str):
            return ModelAnswer([], response)
        calls = [
            RequestedCall(f"{n} {tool}", str(n), tool, Call(tool, {"order": 7}, str(n)))
            for n, tool in enumerate(response)
        ]
        return ModelAnswer(calls, "")

    def write_output(self, asked: RequestedCall[str], text: str, *, error: bool) -> Item:
        return {"id": asked.id, "text": text, "error": error}

    def write_items(self, outputs: Sequence[Item], back: str | None) -> list[Item]:
        return [*outputs, *([{"back": back}] if back else ())]


class RepeatingLoop(BareLoop):
    """A loop over answers whose calls have one id."""

    def read_answer(self, response: str | list[str]) -> ModelAnswer[str]:
        calls = [RequestedCall(tool, "0", "look", Call("look", {"order": 7}, "0")) for tool in response]
        return ModelAnswer(calls, "")


def test_early_answers_are_counted_in_a_row() -> None:
    loop = BareLoop(guard(), most_early=1)
    assert "back" in loop.turn("done").messages[0]
    loop.turn(["look"])
    assert not loop.turn("done").done
    with pytest.raises(EarlyAnswer):
        loop.turn("done")


def test_calls_of_one_answer_that_share_an_id_are_two_calls() -> None:
    record = Record()
    turn = RepeatingLoop(GuardedRun(guard(), audit=record)).turn(["one", "two"])
    assert turn.calls == ("one", "two")
    assert record.called == ["look", "look"]


def test_a_tool_that_a_function_of_is_missing() -> None:
    turn = BareLoop(guard()).turn(["look"])
    (message,) = turn.run({"pay": print})
    assert message == {"id": "0", "text": "there is no tool look; there are pay", "error": True}


def test_in_a_conversation_an_answer_hands_over_to_the_user() -> None:
    """The way on goes over what the user says: then the assistant may wait for it, and only then."""
    text = 'yes: user[text == "yes"]\npay: pay\nrule consent: yes before pay\nrule paid: at least 1 pay\n'
    shared = Guard(GuardRules.from_string(text), tools=["pay"])
    ends: dict[bool, Any] = {}
    for final in (True, False):
        loop = BareLoop(GuardedRun(shared, final=final))
        loop.user("pay order 7")
        ends[final] = [loop.turn("shall I?").done]
        loop.user("yes")
        ends[final].append(loop.turn("I will").done)
        assert loop.turn(["pay"]).run({"pay": lambda order: "paid"})
        ends[final].append(loop.turn("done").done)
    assert ends == {True: [False, False, True], False: [True, False, True]}
