"""One run: its budget, what stands in it, what a writer may not do."""

from __future__ import annotations

import pytest

from formal_llm import Limits
from formal_llm.agents import Agent, Segment
from formal_llm.agents.decoding.writer import Due, Writer
from formal_llm.agents.tools import agent_toolkit
from formal_llm.agents.transcript import Transcript
from formal_llm.errors import NotAllowed, WritingError
from formal_llm.llms.doubles import TEXTS, RandomLLM
from formal_llm.llms.usage import Prices
from tests.agents.chats import Scripted


class Wrong(Writer):
    """A writer that does not ask the monitor."""

    def steps(self, *_, **__):  # type: ignore[no-untyped-def]
        yield Segment("Ans", "42")


def test_a_writer_that_leaves_the_rules_is_an_error() -> None:
    run = Agent("react", RandomLLM(), agent_toolkit, writer=lambda *_: Wrong()).start("q")
    with pytest.raises(WritingError, match="Ans was written where it cannot come"):
        run.run_to_end()
    assert [one.state for one in run.segments] == ["Ques"]


def test_a_writer_that_stops_too_early_is_an_error() -> None:
    run = Agent("direct", RandomLLM(), writer=lambda *_: iter_nothing()).start("q")
    with pytest.raises(Exception, match="it cannot end yet"):
        run.run_to_end()


class iter_nothing(Writer):  # noqa: N801
    def steps(self, *_, **__):  # type: ignore[no-untyped-def]
        yield from ()


def test_prices_make_costs() -> None:
    made = Agent("direct", RandomLLM(2, can=TEXTS), prices=Prices(1, 1)).run("q")
    tokens = made.usage.input_tokens + made.usage.output_tokens
    assert made.usage.cost == pytest.approx(tokens / 1_000_000)


class Freely(Writer):
    """A writer that lets every name of a tool pass."""

    def __init__(self, *lines: tuple[str, str]) -> None:
        self.lines = iter(lines)

    def steps(self, _, monitor, *, until=(), contents=None):  # type: ignore[no-untyped-def]
        while not set(monitor.allowed()) <= set(until):
            state, text = next(self.lines)
            monitor = monitor.after(state)
            yield Segment(state, text)
        yield Due(tuple(monitor.allowed()))


ACTIONS = (("Tht", "t"), ("Act", "lookup"), ("Act-Inp", "x"), ("Final-Tht", "f"), ("Ans", "a"))


def test_any_tool_is_called_where_no_rule_is_about_tools() -> None:
    made = Agent("react", RandomLLM(), agent_toolkit, writer=lambda *_: Freely(*ACTIONS)).run("q")
    assert made.corrections == ()
    wrong = Freely(("Tht", "t"), ("Act", "lokup"), ("Act-Inp", "x"), ("Final-Tht", "f"), ("Ans", "a"))
    (correction,) = Agent("react", RandomLLM(), agent_toolkit, writer=lambda *_: wrong).run("q").corrections
    assert correction.legal == ("calculate", "search", "lookup")


def test_of_the_tools_those_may_be_called_that_the_rules_allow() -> None:
    def run(*lines: tuple[str, str]) -> Transcript:
        return Agent(
            "react", RandomLLM(), agent_toolkit, rules=["(not (eventually lookup))"], writer=lambda *_: Freely(*lines)
        ).run("q")

    (correction,) = run(*ACTIONS).corrections
    assert correction.written == "lookup" and correction.legal == ("calculate", "search")
    assert run(("Tht", "t"), ("Act", "search"), *ACTIONS[2:]).corrections == ()


def test_a_run_is_narrowed_where_it_can_go_on() -> None:
    refused: list[str] = []

    def observe_once(run) -> str:  # type: ignore[no-untyped-def]
        assert run.writing == "Obs"
        with pytest.raises(NotAllowed):
            run.narrow(Limits({"Obs": 0}))
        refused.append(run.monitor.why("Obs") or "")
        run.narrow(Limits({"Tht": 1}))
        return "seen"

    llm = Scripted(["[Thought]", "t", "calculate", "1 + 1", "f", "a"])
    run = Agent("react", llm, agent_toolkit, worlds={"Obs": observe_once}).start("q")
    made = run.run_to_end()
    assert made.word == ("Ques", "Tht", "Act", "Act-Inp", "Obs", "Final-Tht", "Ans") and refused == [""]
    assert not run.writing
